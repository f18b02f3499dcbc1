//! What a daemon says: refusals in the words of the command line, and who one is to it.

use rejoin_runner::failure::codes;
use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::{Ask, Remote};
use crate::failure::{Failure, Result};

/// Which daemon it is, and who we are to it.
#[derive(Debug, Deserialize)]
pub(crate) struct HubView {
    pub(crate) name: String,
    pub(crate) scope: String,
    pub(crate) namespace: String,
    pub(crate) store: String,
}

/// A refusal (RFC 9457).
#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
    code: String,
    #[serde(rename = "try")]
    next: Option<String>,
}

impl Remote {
    pub(crate) async fn hub(&self) -> Result<HubView> {
        self.ask(Ask::get(&["api", "hub"])).await
    }

    /// The same failure as if it had happened in this process.
    pub(super) async fn refused(&self, response: Response) -> Failure {
        let status = response.status();
        let bytes = response.bytes().await.unwrap_or_default();
        let problem = serde_json::from_slice::<Problem>(&bytes).ok();
        let known = problem.and_then(|p| Some((*codes::of_word(&p.code)?, p)));
        let Some((code, problem)) = known else {
            return self.no_daemon(status);
        };
        let failure = Failure::new(code, problem.detail);
        // What can be asked over HTTP is nothing to type.
        let asked = |next: &String| {
            let methods = ["GET ", "POST ", "PATCH ", "DELETE "];
            methods.iter().any(|method| next.starts_with(method))
        };
        match problem.next.filter(|next| !asked(next)) {
            Some(next) => failure.try_this(next),
            None => failure,
        }
    }

    /// Something else answers there.
    fn no_daemon(&self, status: StatusCode) -> Failure {
        let text = format!(
            "{} is no rejoin daemon: it answered {status}",
            self.called()
        );
        Failure::unavailable(text).try_this("curl URL/healthz, which says ok")
    }
}

//! Answers of a daemon: refusals as failures of the command line, and the caller's identity.

use rejoin_errors::codes;
use reqwest::{Response, StatusCode};
use serde::Deserialize;

use super::{Ask, Remote};
use rejoin_errors::{CommandError, Result};

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

    /// Turns a refusal into the failure that this process would report.
    pub(super) async fn refused(&self, response: Response) -> CommandError {
        let status = response.status();
        let bytes = response.bytes().await.unwrap_or_default();
        let problem = serde_json::from_slice::<Problem>(&bytes).ok();
        let known = problem.and_then(|p| Some((*codes::of_word(&p.code)?, p)));
        let Some((code, problem)) = known else {
            return self.no_daemon(status);
        };
        let failure = CommandError::new(code, problem.detail);
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
    fn no_daemon(&self, status: StatusCode) -> CommandError {
        let text = format!(
            "{} is no rejoin daemon: it answered {status}",
            self.called()
        );
        CommandError::unavailable(text).try_this("curl URL/healthz, which says ok")
    }
}

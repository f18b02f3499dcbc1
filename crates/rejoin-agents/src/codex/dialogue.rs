//! The CLI as a server (`codex app-server`): what it wants to do is asked before it is done, and a
//! person decides. JSON-RPC in lines, without the word that says so.
//!
//! Seen on 0.166.0: with the approval policy `untrusted` it asks before every command, also `ls`, and
//! before every patch, also when they are called from the JavaScript of newer models. What is typed
//! into a terminal that was begun with leave is asked about only outside the sandbox, so there are no
//! terminals. Approved commands run in the sandbox, or outside if that is what was asked for. Only
//! what a rule of the user's allows is not asked about: the server cannot be told to ignore those.

use rejoin_core::TurnPlan;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{command, permission};
use crate::order::{CommandSpec, RunOrder};
use crate::session::text_mark;

mod approvals;
mod items;
mod reader;
mod stay;
mod wire;

pub(super) use reader::Reader;
pub(super) use stay::Stays;

/// What a run says first has ids of its own; the server counts its requests from zero.
const HELLO: &str = "rejoin-hello";
const THREAD: &str = "rejoin-thread";
const TURN: &str = "rejoin-turn";
/// The answer to this, whatever it is, is where stdin is closed and the server ends.
const END: &str = "rejoin-end";

const POLICY: &str = "untrusted";
/// Not the model that the user may have put in charge of it.
const REVIEWER: &str = "user";

/// Said very often, and nobody here listens.
const UNHEARD: &[&str] = &[
    "account/rateLimits/updated",
    "item/commandExecution/outputDelta",
    "item/fileChange/outputDelta",
    "item/fileChange/patchUpdated",
    "item/plan/delta",
    "item/reasoning/summaryPartAdded",
    "item/reasoning/summaryTextDelta",
    "item/reasoning/textDelta",
    "thread/readState/changed",
    "thread/status/changed",
    "turn/diff/updated",
];

/// What leads it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dialogue {
    prompt: String,
    /// The one to go on with; none: a new one.
    session: Option<String>,
}

pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let mut args = vec!["app-server".to_owned()];
    args.extend(command::settings(order));
    args.extend(permission::settings(order.envelope, order.tool_servers));
    args.extend(order.extra_args.iter().cloned());
    let session = match order.plan {
        // Of a fork that is its copy.
        TurnPlan::Resume { .. } => Some(order.session().to_string()),
        TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => None,
    };
    let prompt = command::prompt(order);
    CommandSpec {
        args,
        prompt_mark: Some(text_mark(&prompt)),
        stdin: if order.is_live() {
            thread(order, session.as_deref())
        } else {
            opening() + &thread(order, session.as_deref())
        },
        hold_stdin: true,
        close_stdin_on: vec!["method:turn/completed".into(), format!("id:{END}")],
        dialogue: serde_json::to_string(&Dialogue { prompt, session }).ok(),
        ..CommandSpec::default()
    }
}

fn opening() -> String {
    let hello = json!({"id": HELLO, "method": "initialize", "params": {
        "clientInfo": {"name": "rejoin", "title": "rejoin", "version": env!("CARGO_PKG_VERSION")},
        "capabilities": {"experimentalApi": true, "optOutNotificationMethods": UNHEARD},
    }});
    format!("{hello}\n{}\n", json!({"method": "initialized"}))
}

/// The session. The prompt follows when the server has said what holds there.
fn thread(order: &RunOrder<'_>, session: Option<&str>) -> String {
    // All of it on every run: the server would go on with what the session remembers.
    let mut params = json!({
        "cwd": order.folder,
        "sandbox": permission::sandbox(order.envelope.mode),
        "approvalPolicy": POLICY,
        "approvalsReviewer": REVIEWER,
    });
    if let Some(model) = order.model {
        params["model"] = json!(model);
    }
    let method = match session {
        Some(session) => {
            params["threadId"] = json!(session);
            params["excludeTurns"] = json!(true);
            "thread/resume"
        }
        None => "thread/start",
    };
    format!(
        "{}\n",
        json!({"id": THREAD, "method": method, "params": params})
    )
}

//! The CLI as a server (`codex app-server`), which asks before each action so that a person
//! decides. It speaks JSON-RPC in lines, without the `jsonrpc` member.
//!
//! RunFacts on 0.166.0: with the approval policy `untrusted` it asks before every command, even `ls`,
//! and before every patch, also if they are called from the JavaScript of newer models. It asks
//! about input to a terminal that was started with approval only outside the sandbox, so terminals
//! are disabled. Approved commands run in the sandbox, or outside if the request was for that. The
//! server does not ask about commands that a rule of the user allows, and cannot be made to ignore
//! those rules.

use rejoin_core::TurnPlan;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{command, permission};
use crate::order::{CommandSpec, RunOrder};
use crate::session::text_mark;

mod approvals;
mod items;
mod reader;
mod turn_end;
mod wire;

pub(super) use reader::Reader;
pub(super) use turn_end::TurnEnd;

/// Ids of the first requests of a run. The server numbers its own requests from zero.
const HELLO: &str = "rejoin-hello";
const THREAD: &str = "rejoin-thread";
const TURN: &str = "rejoin-turn";
/// Id of the last request. Any response to it closes stdin, and the server exits.
const END: &str = "rejoin-end";

const POLICY: &str = "untrusted";
/// The user decides, not a model that the user may have configured as reviewer.
const REVIEWER: &str = "user";

/// Frequent notifications that are not used.
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

/// Data with which the parser conducts the dialogue.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Dialogue {
    prompt: String,
    /// Session to resume. None: a new session.
    session: Option<String>,
}

pub(super) fn command(order: &RunOrder<'_>) -> CommandSpec {
    let mut args = vec!["app-server".to_owned()];
    args.extend(command::settings(order));
    args.extend(permission::settings(order.permissions, order.mcp_servers));
    args.extend(order.extra_args.iter().cloned());
    let session = match order.plan {
        // For a fork this is the copy.
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

/// Formats the request that opens the session. The prompt follows after the server has reported the
/// effective settings.
fn thread(order: &RunOrder<'_>, session: Option<&str>) -> String {
    // Every run sends all settings: otherwise the server would use those that the session
    // remembers.
    let mut params = json!({
        "cwd": order.folder,
        "sandbox": permission::sandbox(order.permissions.mode),
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

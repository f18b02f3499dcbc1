//! The CLI's terminal interface on a session.
//!
//! Seen on 0.166.0: it appends to the same rollout under the same id, and what was there stays byte
//! for byte; left without a word it adds nothing. It holds the session's lock for as long as it runs.
//! On its own it starts a server in the background that goes on when it is left, and would go on
//! holding the session. A session that was made headless keeps asking nobody unless it is told to.

use rejoin_core::PermissionMode;

use super::command::projects;
use super::{permission, repository};
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

/// No server in the background; known to the versions that have one.
const ALONE: &str = "--no-daemon";

pub(super) fn command(order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
    let mode = order.envelope.mode;
    let mut args = vec![];
    let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
    add("-s", sandbox(mode));
    add("-a", approval(mode));
    add("-C", order.folder);
    if let Some(model) = order.model {
        add("-m", model);
    }
    if mode == PermissionMode::ReadOnly {
        // A turn ignores them; this interface has no flag for it.
        if let Some(rules) = (order.list)("rules").first() {
            return Err(format!(
                "Codex's terminal interface cannot be kept from what your rules allow (rules/{rules}), and the conversation is read-only"
            ));
        }
        // Then it asks whether to open the folder restricted; else what the user trusts counts, and it
        // asks about a folder that it does not know.
        add("-c", &projects(order.folder, order.repository));
    }
    if let Some(setting) = repository::without_skills(order.repository) {
        add("-c", &setting);
    }
    if order.help.contains(ALONE) {
        args.push(ALONE.into());
    }
    args.extend(permission::settings(order.envelope, order.tool_servers));
    args.extend(order.extra_args.iter().cloned());
    args.extend(["resume".to_owned(), order.session.id().to_string()]);
    Ok(CommandSpec {
        args,
        ..CommandSpec::default()
    })
}

/// Here it cannot be told to ask before everything. To write nothing that it did not ask for comes
/// nearest.
fn sandbox(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Ask => permission::sandbox(PermissionMode::ReadOnly),
        PermissionMode::ReadOnly | PermissionMode::Edit | PermissionMode::Full => {
            permission::sandbox(mode)
        }
    }
}

/// The person may allow what the sandbox does not; but for a conversation that is to write nothing.
fn approval(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Edit | PermissionMode::Ask => "on-request",
        PermissionMode::ReadOnly | PermissionMode::Full => "never",
    }
}

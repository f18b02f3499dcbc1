//! The CLI's terminal interface on a session.
//!
//! RunFacts on 0.166.0: it appends to the same rollout under the same id, and the existing bytes stay
//! unchanged; closed without a message it adds nothing. It holds the session's lock for as long as
//! it runs. By default it starts a background server that survives it and would keep holding the
//! session. A session that was created headless never asks for approval unless the command requests
//! it.

use rejoin_core::PermissionMode;

use super::command::projects;
use super::{Codex, permission, repository};
use crate::capability::Terminal;
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

/// Disables the background server. Known to the versions that have one.
const ALONE: &str = "--no-daemon";

impl Terminal for Codex {
    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        Some(&["--help"])
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        let mode = order.permissions.mode;
        let mut args = vec![];
        let mut add = |flag: &str, value: &str| args.extend([flag.to_owned(), value.to_owned()]);
        add("-s", sandbox(mode));
        add("-a", approval(mode));
        add("-C", order.folder);
        if let Some(model) = order.model {
            add("-m", model);
        }
        if mode == PermissionMode::ReadOnly {
            // A turn ignores these rules; the terminal interface has no flag for that.
            if let Some(rules) = (order.list)("rules").first() {
                return Err(format!(
                    "Codex's terminal interface cannot be kept from what your rules allow (rules/{rules}), and the conversation is read-only"
                ));
            }
            // The interface then asks whether to open the folder restricted. Otherwise the user's own
            // trust settings count, and it asks about an unknown folder.
            add("-c", &projects(order.folder, order.repository));
        }
        if let Some(setting) = repository::without_skills(order.repository) {
            add("-c", &setting);
        }
        if order.help.contains(ALONE) {
            args.push(ALONE.into());
        }
        args.extend(permission::settings(order.permissions, order.mcp_servers));
        args.extend(order.extra_args.iter().cloned());
        args.extend(["resume".to_owned(), order.session.id().to_string()]);
        Ok(CommandSpec {
            args,
            ..CommandSpec::default()
        })
    }
}

/// Returns the sandbox. The terminal interface cannot be made to ask before every action.
/// Read-only, so that every write needs a question, is the closest.
fn sandbox(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Ask => permission::sandbox(PermissionMode::ReadOnly),
        PermissionMode::ReadOnly | PermissionMode::Edit | PermissionMode::Full => {
            permission::sandbox(mode)
        }
    }
}

/// Returns the approval policy. The person may allow actions beyond the sandbox, except in a
/// read-only conversation.
fn approval(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::Edit | PermissionMode::Ask => "on-request",
        PermissionMode::ReadOnly | PermissionMode::Full => "never",
    }
}

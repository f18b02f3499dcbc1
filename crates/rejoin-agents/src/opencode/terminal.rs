//! The CLI's terminal interface on a session.
//!
//! RunFacts on 1.18.33: it continues in the same database under the same id, and changes none of the
//! existing messages; closed without a message it records only when the project was last used. It
//! holds a lock on the database's shared memory for as long as it runs, and leaves the write-ahead
//! log unmerged. `/new` begins another session in the same database, which does not belong to the
//! conversation.

use super::command::LaunchContext;
use super::{OpenCode, permission};
use crate::capability::Terminal;
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

/// Agent name that no configuration uses, as in a turn. People see this one.
const AGENT: &str = "rejoin-open";

impl Terminal for OpenCode {
    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        None
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        let mut args = vec!["-s".to_owned(), order.session.id().to_string()];
        args.extend(["--agent", AGENT].map(str::to_owned));
        if let Some(model) = order.model {
            args.extend(["-m".to_owned(), model.to_owned()]);
        }
        args.extend(permission::flags(order.permissions));
        args.extend(order.extra_args.iter().cloned());
        let scene = LaunchContext {
            agent: AGENT,
            rules: &permission::rules_for_a_person(order.permissions),
            folder: order.folder,
            database: Some(format!("{}/{}", order.home, order.place)),
            guard: None,
            env: order.env,
            repository: order.repository,
            memory: order.memory,
        };
        Ok(CommandSpec {
            args,
            env: scene.variables(),
            ..CommandSpec::default()
        })
    }
}

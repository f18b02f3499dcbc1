//! The CLI's terminal interface on a session.
//!
//! Seen on 1.18.33: it goes on in the same database under the same id, and changes none of the
//! messages that were there; left without a word it notes only when the project was last used. It
//! holds a lock on the database's shared memory for as long as it runs, and leaves its log unwritten.
//! `/new` begins another session in the same database, which is not the conversation's.

use super::command::Scene;
use super::permission;
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

/// A name that no configuration knows, as in a turn; this one people see.
const AGENT: &str = "rejoin-open";

pub(super) fn command(order: &TerminalOrder<'_>) -> CommandSpec {
    let mut args = vec!["-s".to_owned(), order.session.id().to_string()];
    args.extend(["--agent", AGENT].map(str::to_owned));
    if let Some(model) = order.model {
        args.extend(["-m".to_owned(), model.to_owned()]);
    }
    args.extend(permission::flags(order.envelope));
    args.extend(order.extra_args.iter().cloned());
    let scene = Scene {
        agent: AGENT,
        rules: &permission::rules_for_a_person(order.envelope),
        folder: order.folder,
        database: Some(format!("{}/{}", order.home, order.place)),
        guard: None,
        env: order.env,
        repository: order.repository,
        memory: order.memory,
    };
    CommandSpec {
        args,
        env: scene.variables(),
        ..CommandSpec::default()
    }
}

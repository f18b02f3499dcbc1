//! The CLI's terminal interface on a session.
//!
//! Seen on 2.1.197 and 2.1.325: it appends to the same file under the same id, and what was there
//! stays byte for byte. Left without a word it still adds lines (`permission-mode`, on 2.1.325 also
//! `cost-state` and `file-history-snapshot`), none of which the model is shown. `/clear` begins
//! another session; what is said after it is not in this one. What `!` ran and `/commands` printed is
//! shown to the model in the CLI's own words. `sessions/<pid>.json` is there for as long as it runs.

use super::{environment, permission, repository};
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

/// A set of tools and what is denied hold here as well, whichever mode the person switches to.
pub(super) fn command(order: &TerminalOrder<'_>) -> CommandSpec {
    let mut args = vec!["--resume".to_owned(), order.session.id().to_string()];
    if let Some(model) = order.model {
        args.extend(["--model".to_owned(), model.to_owned()]);
    }
    args.extend(permission::flags(order.envelope));
    args.extend(repository::flags(
        order.repository,
        order.folder,
        order.memory,
    ));
    args.extend(order.extra_args.iter().cloned());
    CommandSpec {
        args,
        env: environment::always()
            .into_iter()
            .chain(repository::env(order.repository))
            .collect(),
        ..CommandSpec::default()
    }
}

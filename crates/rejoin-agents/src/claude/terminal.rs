//! The CLI's terminal interface on a session.
//!
//! RunFacts on 2.1.197 and 2.1.325: it appends to the same file under the same id, and the existing
//! bytes stay unchanged. Closed without a message it still adds lines (`permission-mode`, on
//! 2.1.325 also `cost-state` and `file-history-snapshot`), none of which the model sees. `/clear`
//! begins another session; later messages are not in this one. The model sees the output of `!` and
//! of `/commands` in the CLI's own format. `sessions/<pid>.json` exists for as long as it runs.

use super::{Claude, environment, permission, repository};
use crate::capability::Terminal;
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

impl Terminal for Claude {
    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// The set of tools and the denials stay in effect in every mode that the person switches to.
    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        let mut args = vec!["--resume".to_owned(), order.session.id().to_string()];
        if let Some(model) = order.model {
            args.extend(["--model".to_owned(), model.to_owned()]);
        }
        args.extend(permission::flags(order.permissions));
        args.extend(repository::flags(
            order.repository,
            order.folder,
            order.memory,
        ));
        args.extend(order.extra_args.iter().cloned());
        Ok(CommandSpec {
            args,
            env: environment::always()
                .into_iter()
                .chain(repository::env(order.repository))
                .collect(),
            ..CommandSpec::default()
        })
    }
}

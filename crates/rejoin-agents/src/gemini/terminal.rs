//! The CLI's terminal interface on a session.
//!
//! RunFacts on 0.61.0: it appends to the same file under the same id, and the existing bytes stay
//! unchanged. At its start it writes the whole history once more (in the minute in which the
//! session began, first an empty one), and in any later minute leaves a stub beside the session.
//! When it starts in a folder, it lets a model summarise the newest other session there and adds
//! the summary to that session's file. It holds no lock: another process detects it by its marker.

use super::{Gemini, environment, home, permission};
use crate::capability::Terminal;
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

impl Terminal for Gemini {
    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        None
    }

    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        let mut args = vec!["--resume".to_owned(), order.session.id().to_string()];
        if let Some(model) = order.model {
            args.extend(["--model".to_owned(), model.to_owned()]);
        }
        let permission::Rules { flags, mut files } =
            permission::rules(order.permissions, order.home);
        args.extend(flags);
        args.extend(order.extra_args.iter().cloned());
        files.push(home::owner_mark(order.folder));
        Ok(CommandSpec {
            args,
            env: environment::always(order.home),
            files,
            ..CommandSpec::default()
        })
    }
}

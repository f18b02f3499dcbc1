//! The CLI's terminal interface on a session.
//!
//! Seen on 0.61.0: it appends to the same file under the same id, and what was there stays byte for
//! byte. Already when it starts it writes the whole history once more (in the minute in which the
//! session was begun first an empty one), and leaves a stub beside the session in any later minute.
//! Started in a folder it lets a model summarise the newest other session there and adds that to its
//! file. It holds no lock: whoever comes meanwhile finds it by its marker.

use super::{environment, home, permission};
use crate::order::CommandSpec;
use crate::terminal::TerminalOrder;

pub(super) fn command(order: &TerminalOrder<'_>) -> CommandSpec {
    let mut args = vec!["--resume".to_owned(), order.session.id().to_string()];
    if let Some(model) = order.model {
        args.extend(["--model".to_owned(), model.to_owned()]);
    }
    let permission::Rules { flags, mut files } = permission::rules(order.envelope, order.home);
    args.extend(flags);
    args.extend(order.extra_args.iter().cloned());
    files.push(home::owner_mark(order.folder));
    CommandSpec {
        args,
        env: environment::always(order.home),
        files,
        ..CommandSpec::default()
    }
}

//! A conversation as a markdown document: for a file, a ticket, another tool.

use std::fmt::Write as _;

use rejoin_core::{MessageState, Role};

use super::{Shown, verdict, verdict_below, who};
use crate::output::{one_line, safe};

/// Returns the title and the facts of the conversation.
pub(super) fn head(shown: &Shown) -> String {
    let c = &shown.conversation;
    let mut page = format!("# {}\n\n", one_line(&c.title, 200));
    let key = c
        .key
        .as_deref()
        .map(|k| format!(", key `{}`", safe(k)))
        .unwrap_or_default();
    let day = c.created_at.get(..10).unwrap_or(&c.created_at);
    let _ = writeln!(
        page,
        "Conversation `{}`{key} in `{}`, begun {day}.",
        c.handle,
        safe(&c.workdir)
    );
    page
}

/// Returns the messages of a page. Their texts are unchanged; only text that rejoin adds is
/// made safe.
pub(super) fn messages(shown: &Shown) -> String {
    let mut page = String::new();
    for message in &shown.messages {
        let number = message.seq.map(|n| format!("{n}. ")).unwrap_or_default();
        let name = match message.role {
            Role::User => "You",
            Role::Assistant => who(message),
        };
        let state = match message.state {
            MessageState::Ok => "",
            MessageState::Unanswered => " (unanswered)",
            MessageState::Queued => " (queued)",
        };
        let _ = write!(
            page,
            "\n## {number}{}{state}\n\n{}\n",
            safe(name),
            message.text.trim_end()
        );
        if let Some(turn) = verdict_below(shown, message) {
            let _ = write!(page, "\n> {}\n", safe(&verdict(turn, usize::MAX)));
        }
    }
    page
}

//! What the commands that change a history have in common: what they name, and what they report.

use rejoin_hub::{Affected, Changed, Doing, PlaceView, Want};
use rejoin_store::Conversation;

use crate::app::App;
use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::output::figures::count;

pub(super) fn doing(dry_run: bool) -> Doing {
    if dry_run { Doing::Later } else { Doing::Now }
}

/// A message that was named, and how people call it.
pub(super) struct Target {
    pub(super) message: PlaceView,
    /// `tmqx:4`
    pub(super) name: String,
}

/// Exactly one message; a conversation alone does not name one.
pub(super) async fn message(at: At<'_>, name: &str, command: &str) -> Result<Target> {
    let named = at.named(name, Want::Message).await?;
    let Some(message) = named.message else {
        let handle = &named.conversation.handle;
        let text = format!("`{name}` is a conversation; name one of its messages");
        return Err(Failure::usage(text).try_this(format!("rejoin {command} {handle}:N")));
    };
    let name = named.called(message);
    Ok(Target { message, name })
}

pub(super) async fn handle(app: &App, conversation: &Conversation) -> Result<String> {
    let mut read = app.hub().store.read().await?;
    Ok(read.short_handle(&conversation.handle).await?)
}

/// The document, or one sentence and a line for each agent that is affected.
pub(super) fn report(out: Output, changed: &Changed, sentence: &str) {
    if out.json {
        out.json(changed);
        return;
    }
    let mut lines = vec![if changed.dry_run {
        format!("would be done: {sentence}")
    } else {
        sentence.to_owned()
    }];
    lines.extend(changed.note.iter().map(|note| format!("  {note}")));
    lines.extend(changed.affected.iter().map(effect));
    out.text(&lines.join("\n"));
}

/// What it means for an agent's next turn.
pub(super) fn effect(affected: &Affected) -> String {
    let Affected {
        agent,
        usable,
        was_usable,
        reason,
        epoch: _,
    } = affected;
    let reason = reason.map_or("", |r| r.as_str());
    match (was_usable, usable) {
        (true, true) => format!("  {agent}: its session is not affected"),
        (false, true) => format!("  {agent}: its session can be resumed again"),
        (true, false) => {
            format!(
                "  {agent}: its session has seen what was changed, the next turn is told again ({reason})"
            )
        }
        (false, false) => format!("  {agent}: as before, the next turn is told again ({reason})"),
    }
}

/// `2 messages removed`
pub(super) fn removed(changed: &Changed) -> String {
    format!("{} removed", count(changed.removed.len() as u64, "message"))
}

//! Shared by the commands that change a history: message names and the report.

use rejoin_core::ConversationId;
use rejoin_hub::{Affected, ChangeMode, Changed, NameKind, PlaceView};
use rejoin_store::Conversation;

use crate::app::App;
use crate::hub_client::HubClient;
use crate::output::format::count;
use crate::output::{Output, suggestion};
use rejoin_errors::{CommandError, Result};

impl Target {
    /// Returns the command that takes a change of the message back, to follow a sentence about it.
    pub(super) fn undo(&self, dry_run: bool) -> String {
        if dry_run {
            return String::new();
        }
        let conversation = self.name.split(':').next().unwrap_or_default();
        let undo = suggestion(&format!("rejoin undo {conversation}"));
        format!(" · {undo}")
    }
}

pub(super) fn doing(dry_run: bool) -> ChangeMode {
    if dry_run {
        ChangeMode::Later
    } else {
        ChangeMode::Now
    }
}

/// A message that was named, and how people call it.
pub(super) struct Target {
    pub(super) conversation: ConversationId,
    pub(super) message: PlaceView,
    /// `tmqx:4`
    pub(super) name: String,
}

/// Exactly one message; a conversation alone does not name one.
pub(super) async fn message(hub: HubClient<'_>, name: &str, command: &str) -> Result<Target> {
    let named = hub.named(name, NameKind::Message).await?;
    let Some(message) = named.message else {
        let handle = &named.conversation.handle;
        let text = format!("`{name}` is a conversation; name one of its messages");
        return Err(CommandError::usage(text).try_this(format!("rejoin {command} {handle}:N")));
    };
    let name = named.called(message);
    Ok(Target {
        conversation: named.conversation.id,
        message,
        name,
    })
}

pub(super) async fn handle(app: &App, conversation: &Conversation) -> Result<String> {
    let mut read = app.hub().store.read().await?;
    Ok(read
        .conversations()
        .short_handle(&conversation.handle)
        .await?)
}

/// The document, or one sentence and its effects.
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
    lines.extend(effects(&changed.affected));
    out.prose(&lines.join("\n"));
}

/// The effects on the next turn of each agent, agents with the same effect in one line.
pub(super) fn effects(affected: &[Affected]) -> Vec<String> {
    let named = |fits: fn(&Affected) -> bool| {
        let names = affected.iter().filter(|it| fits(it));
        names.map(|it| it.agent.to_string()).collect::<Vec<_>>()
    };
    let line = |names: Vec<String>, one: &str, several: &str| {
        let what = if names.len() == 1 { one } else { several };
        (!names.is_empty()).then(|| format!("  {} {what}", names.join(", ")))
    };
    [
        line(
            named(|it| !it.usable),
            "is told again in its next turn",
            "are told again in their next turns",
        ),
        line(
            named(|it| it.usable && !it.was_usable),
            "can resume its session again",
            "can resume their sessions again",
        ),
        line(
            named(|it| it.usable && it.was_usable && it.switches),
            "goes on in an earlier session, and is told what that has not seen",
            "go on in earlier sessions, and are told what those have not seen",
        ),
        line(
            named(|it| it.usable && it.was_usable && !it.switches),
            "is not affected",
            "are not affected",
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// `2 messages removed`
pub(super) fn removed(changed: &Changed) -> String {
    format!("{} removed", count(changed.removed.len() as u64, "message"))
}

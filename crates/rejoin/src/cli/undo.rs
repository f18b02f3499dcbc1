//! `rejoin undo`

use clap::Args;
use rejoin_hub::{Changed, ConversationView, NameKind};

use super::change::{doing, removed, report};
use crate::cli::command::{Help, Run, Task};
use crate::hub_client::HubClient;
use crate::output::format::count;
use rejoin_errors::Result;

/// Undo the last change of a conversation's history
///
/// Repeat to undo earlier changes. Undoing a truncation or a retry removes messages sent since; rejoin
/// show --all still shows them.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Show the effect, and change nothing
    #[arg(long)]
    dry_run: bool,
}

impl Run for UndoArgs {
    const NAME: &'static str = "undo";
    const HELP: Help = Help::Change("undo a change");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

async fn run(hub: HubClient<'_>, args: &UndoArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let found = found.conversation;
    let changed = hub.undo(found.id, doing(args.dry_run)).await?;
    let names = names(hub, &found, &changed).await;
    report(
        hub.out(),
        &changed,
        &sentence(&found.handle, &changed, names.as_deref()),
    );
    Ok(0)
}

/// Returns the numbers of the messages whose text or place is restored, as people name them. After a dry run they
/// are not in the history.
async fn names(hub: HubClient<'_>, c: &ConversationView, changed: &Changed) -> Option<String> {
    let all = match changed.message_id {
        Some(edited) if changed.change == "edit" => vec![edited],
        _ => changed.restored.clone(),
    };
    let mut numbers = vec![];
    for id in [all.first()?, all.last()?] {
        let found = hub.named(&id.to_string(), NameKind::Message).await.ok()?;
        numbers.push(
            found
                .message
                .map(|message| message.seq)
                .filter(|n| *n > 0)?,
        );
    }
    let (first, last) = (numbers.iter().min()?, numbers.iter().max()?);
    let handle = &c.handle;
    Some(if first == last {
        format!("{handle}:{first}")
    } else {
        format!("{handle}:{first}-{last}")
    })
}

fn sentence(name: &str, changed: &Changed, names: Option<&str>) -> String {
    let mut parts = vec![format!("{name}: {} taken back", changed.change)];
    let named = names.map_or(String::new(), |names| format!(" ({names})"));
    if !changed.restored.is_empty() {
        let n = changed.restored.len() as u64;
        let many = count(n, "message");
        parts.push(format!("{many} restored{named}"));
    } else if let (Some(message), "edit") = (names, changed.change.as_str()) {
        parts.push(format!("the old text of {message} restored"));
    }
    if !changed.removed.is_empty() {
        parts.push(format!("{} that had been said since", removed(changed)));
    }
    parts.join(", ")
}

//! `rejoin prompt`, for the prompt of a shell.

use clap::Args;
use rejoin_store::ListFilter;
use serde_json::json;

use crate::app::{Invocation, data_home, folders, here};
use crate::cli::command::{Help, Run, Task};
use crate::output::format::count;
use crate::remote::HubSelection;
use crate::store_url::StoreUrl;
use rejoin_errors::Result;

/// Print the conversation of this folder, for a shell prompt
///
/// One line: the handle, its state if it is not idle, and the number of turns that wait for you. Nothing
/// without a conversation here. Reads the SQLite store of this machine only, and changes nothing.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  PS1='$(rejoin prompt) \\$ '            bash\n  rejoin prompt --json                 for a prompt of your own"
)]
pub(crate) struct PromptArgs {}

impl Run for PromptArgs {
    const NAME: &'static str = "prompt";
    const HELP: Help = Help::SetUp("for shell prompts");

    fn task(self) -> Task {
        Task::machine(self, async |on, _args| run(on).await).unrouted()
    }
}

/// The state of a folder.
struct Segment {
    handle: Option<String>,
    agent: Option<String>,
    state: &'static str,
    waiting: i64,
}

async fn run(on: &Invocation) -> Result<u8> {
    let out = on.out;
    let found = look(on).await;
    if out.json {
        let found = found?;
        let state = found
            .as_ref()
            .and_then(|s| s.handle.as_ref().map(|_| s.state));
        out.json(&json!({
            "handle": found.as_ref().and_then(|s| s.handle.clone()),
            "agent": found.as_ref().and_then(|s| s.agent.clone()),
            "state": state,
            "waiting": found.as_ref().map_or(0, |s| s.waiting),
        }));
        return Ok(0);
    }
    // A prompt has no place for an error; the next command prints it.
    if let Ok(Some(segment)) = found {
        let line = line(&segment);
        if !line.is_empty() {
            out.text(&line);
        }
    }
    Ok(0)
}

fn line(segment: &Segment) -> String {
    let mut parts: Vec<String> = segment.handle.iter().cloned().collect();
    if segment.handle.is_some() && segment.state != "idle" {
        parts.push(segment.state.to_owned());
    }
    if segment.waiting > 0 {
        parts.push(format!(
            "{} for you",
            count(segment.waiting as u64, "question")
        ));
    }
    parts.join(" ")
}

/// Reads the store. Returns none if there is no store that can be read at once.
async fn look(on: &Invocation) -> Result<Option<Segment>> {
    if matches!(
        HubSelection::of(on.hub.as_deref()),
        HubSelection::Named { .. }
    ) {
        return Ok(None);
    }
    let here = here()?;
    let config = on.config()?;
    let untrusted = config.untrusted.as_ref();
    if untrusted.is_some_and(|untrusted| untrusted.names_store) {
        return Ok(None);
    }
    let store = StoreUrl::named(&data_home()?, config.database_url.as_deref())?;
    if !matches!(&store, StoreUrl::File(file) if file.exists()) {
        return Ok(None);
    }
    let store = store.open().await?;
    let mut read = store.read().await?;
    let mut segment = Segment {
        handle: None,
        agent: None,
        state: "idle",
        waiting: read.turns().waiting_in("").await?,
    };
    for folder in folders(&here) {
        let filter = ListFilter {
            workdir: Some(folder),
            limit: 1,
            ..ListFilter::default()
        };
        let Some(found) = read.listing(&filter).await?.into_iter().next() else {
            continue;
        };
        let handle = read.conversations().short_handle(&found.handle).await?;
        segment.handle = Some(handle);
        segment.agent = Some(found.agent.to_string());
        segment.state = match read.turns().unfinished(found.id).await? {
            Some(turn) if turn.status == rejoin_core::TurnStatus::Waiting => "waiting",
            Some(_) => "running",
            None => "idle",
        };
        break;
    }
    Ok(Some(segment))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_matters_is_shown() {
        let segment = |handle: Option<&str>, state, waiting| Segment {
            handle: handle.map(str::to_owned),
            agent: None,
            state,
            waiting,
        };
        assert_eq!(line(&segment(Some("tmqx"), "idle", 0)), "tmqx");
        assert_eq!(line(&segment(Some("tmqx"), "running", 0)), "tmqx running");
        assert_eq!(
            line(&segment(Some("tmqx"), "waiting", 2)),
            "tmqx waiting 2 questions for you"
        );
        assert_eq!(line(&segment(None, "idle", 1)), "1 question for you");
        assert_eq!(line(&segment(None, "idle", 0)), "");
    }
}

//! `rejoin snapshot`

mod list;
mod pin;
mod restore;
mod save;
mod verify;

use clap::{Args, Subcommand};
use rejoin_core::{AgentName, SnapshotId};
use rejoin_store::{Conversation, Snapshot, Vault};

use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use rejoin_errors::{CommandError, Result};

/// Manage snapshots of sessions: list, verify, save, restore, pin
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    what: What,
}

impl Run for SnapshotArgs {
    const NAME: &'static str = "snapshot";
    const HELP: Help = Help::Change("saved sessions");

    fn task(self) -> Task {
        let trust = match &self.what {
            What::Restore(args) if !args.writes_out() => TrustCheck::Required,
            What::Restore(_)
            | What::List(_)
            | What::Verify(_)
            | What::Save(_)
            | What::Pin(_)
            | What::Unpin(_) => TrustCheck::Unneeded,
        };
        Task::store(self, run).trust(trust)
    }
}

#[derive(Debug, Subcommand)]
enum What {
    List(list::ListArgs),
    Verify(verify::VerifyArgs),
    Save(save::SaveArgs),
    Restore(restore::RestoreArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
}

async fn run(app: &App, args: &SnapshotArgs) -> Result<u8> {
    match &args.what {
        What::List(args) => list::run(app, args).await,
        What::Verify(args) => verify::run(app, args).await,
        What::Save(args) => save::save(app, args).await,
        What::Restore(args) => restore::restore(app, args).await,
        What::Pin(args) => pin::pin(app, args).await,
        What::Unpin(args) => pin::unpin(app, args).await,
    }
}

/// The last letters of an id tell it apart; the first are its time.
const SHORT: usize = 8;

pub(super) fn short(id: SnapshotId) -> String {
    let id = id.to_string();
    id[id.len() - SHORT..].to_owned()
}

/// By its id, or the end of one that no other has.
async fn find(app: &App, text: &str) -> Result<Snapshot> {
    let mut read = app.hub().store.read().await?;
    let unknown = || {
        CommandError::not_found(format!("there is no snapshot {text}"))
            .try_this("rejoin snapshot list")
    };
    if let Ok(id) = text.parse() {
        return read.snapshots().get(id).await?.ok_or_else(unknown);
    }
    if text.len() < 4 || !text.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-') {
        return Err(unknown());
    }
    let text = text.to_ascii_lowercase();
    let mut found = read.inventory().snapshot_ids().await?;
    found.retain(|id| id.to_string().ends_with(&text));
    match found.as_slice() {
        [] => Err(unknown()),
        [id] => read.snapshots().get(*id).await?.ok_or_else(unknown),
        several => {
            let count = several.len();
            let why = format!("{count} snapshots end with {text}");
            Err(CommandError::ambiguous(why).try_this("rejoin snapshot list --json, for whole ids"))
        }
    }
}

fn vault(app: &App) -> Result<&Vault> {
    let vault = app.hub().vault.as_ref();
    vault.ok_or_else(|| CommandError::unavailable("snapshots are switched off"))
}

/// Resolves a conversation and the agent of its session; none: the agent of the newest turn.
async fn resolve(
    app: &App,
    name: &str,
    agent: Option<&String>,
) -> Result<(Conversation, AgentName)> {
    let conversation = app.hub().find(name, &app.folders()).await?.conversation;
    let agent = match agent {
        Some(name) => {
            AgentName::new(name.as_str()).map_err(|e| CommandError::usage(e.to_string()))?
        }
        None => conversation.agent.clone(),
    };
    Ok((conversation, agent))
}

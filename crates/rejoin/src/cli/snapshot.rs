//! `rejoin snapshot`

mod list;
mod pin;
mod put_back;
mod verify;

use clap::{Args, Subcommand};
use rejoin_core::SnapshotId;
use rejoin_store::{Snapshot, Vault};

use crate::app::App;
use crate::failure::{Failure, Result};

/// Sessions that are kept: list, check, save and restore them
#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    List(list::ListArgs),
    Verify(verify::VerifyArgs),
    Save(put_back::SaveArgs),
    Restore(put_back::RestoreArgs),
    Pin(pin::PinArgs),
    Unpin(pin::UnpinArgs),
}

pub(crate) async fn run(app: &App, args: &SnapshotArgs) -> Result<u8> {
    match &args.what {
        What::List(args) => list::run(app, args).await,
        What::Verify(args) => verify::run(app, args).await,
        What::Save(args) => put_back::save(app, args).await,
        What::Restore(args) => put_back::restore(app, args).await,
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
        Failure::not_found(format!("there is no snapshot {text}")).try_this("rejoin snapshot list")
    };
    if let Ok(id) = text.parse() {
        return read.snapshot(id).await?.ok_or_else(unknown);
    }
    if text.len() < 4 || !text.bytes().all(|c| c.is_ascii_hexdigit() || c == b'-') {
        return Err(unknown());
    }
    let text = text.to_ascii_lowercase();
    let mut found = read.snapshot_ids().await?;
    found.retain(|id| id.to_string().ends_with(&text));
    match found.as_slice() {
        [] => Err(unknown()),
        [id] => read.snapshot(*id).await?.ok_or_else(unknown),
        several => {
            let count = several.len();
            let why = format!("{count} snapshots end with {text}");
            Err(Failure::ambiguous(why).try_this("rejoin snapshot list --json, for whole ids"))
        }
    }
}

fn vault(app: &App) -> Result<&Vault> {
    let vault = app.hub().vault.as_ref();
    vault.ok_or_else(|| Failure::unavailable("snapshots are switched off"))
}

//! `rejoin snapshot pin`, `rejoin snapshot unpin`

use clap::Args;
use serde_json::json;

use super::{find, short};
use crate::app::App;
use rejoin_errors::{CommandError, Result};

/// Keep a snapshot, regardless of the configuration
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin snapshot list tmqx\n  rejoin snapshot pin 3f0a91c2")]
pub(crate) struct PinArgs {
    /// Snapshot: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
}

/// Let a snapshot expire as configured
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  rejoin snapshot unpin 3f0a91c2")]
pub(crate) struct UnpinArgs {
    /// Snapshot: its id, or the end of it
    #[arg(value_name = "ID")]
    id: String,
}

pub(super) async fn pin(app: &App, args: &PinArgs) -> Result<u8> {
    set(app, &args.id, true).await
}

pub(super) async fn unpin(app: &App, args: &UnpinArgs) -> Result<u8> {
    set(app, &args.id, false).await
}

async fn set(app: &App, id: &str, kept: bool) -> Result<u8> {
    let snapshot = find(app, id).await?;
    let mut tx = app.hub().store.begin().await?;
    let done = tx.snapshots().keep(snapshot.id, kept).await?;
    tx.commit().await?;
    let name = short(snapshot.id);
    if !done {
        let gone = format!("the snapshot {name} has expired; nothing is left of it to keep");
        return Err(CommandError::conflict(gone).try_this("rejoin snapshot list"));
    }
    if app.out.json {
        app.out.json(&json!({"id": snapshot.id, "pinned": kept}));
    } else if kept {
        app.out
            .text(&format!("{name} is kept until its conversation is deleted"));
    } else {
        app.out.text(&format!("{name} goes when its time comes"));
    }
    Ok(0)
}

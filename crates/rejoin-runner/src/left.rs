//! What became of a turn whose holder is gone: judged by its folder, its shim and its processes.

use std::path::Path;

use rejoin_hub::{AttemptPlan, Claimed};
use rejoin_store::{Attempt, StoredTurn};

use crate::attempt::boot;
use crate::error::{Error, Result};
use crate::holder::Holder;
use crate::leftovers;
use crate::shim::{Begun, End, begun, void};

/// What a turn without a living holder is doing.
pub(crate) enum Left {
    /// Nothing was started: it can be queued again.
    NotBegun,
    /// Its CLI still runs.
    Running,
    /// It ended, and nobody has settled it.
    Ended,
}

pub(crate) fn left(folder: &Path, claimed: &Claimed, attempt: &Attempt) -> Result<Left> {
    if AttemptPlan::read(attempt)?.boot != boot()? {
        // Whether it had begun cannot be known any more, so it is not tried again.
        return Ok(Left::Ended);
    }
    if !folder.exists() {
        // Of another home on the same store, perhaps: then its processes tell.
        let living = !leftovers::marked(&claimed.turn.id.to_string()).is_empty();
        return Ok(if living {
            Left::Running
        } else {
            Left::NotBegun
        });
    }
    if End::load(folder)
        .map_err(Error::io("reading how the run ended"))?
        .is_some()
    {
        return Ok(Left::Ended);
    }
    Ok(
        match begun(folder).map_err(Error::io("looking after the shim"))? {
            Begun::No | Begun::Void => {
                if void(folder).map_err(Error::io("calling off a run"))? {
                    Left::NotBegun
                } else {
                    Left::Running
                }
            }
            Begun::By(holder) if holder.is_alive() => Left::Running,
            Begun::By(_) | Begun::Unclear => {
                // The shim is gone. As long as the CLI runs it writes into its files.
                let cli = leftovers::live_cli(folder).is_some();
                let marked = !cli
                    && !folder.join("cli.json").exists()
                    && !leftovers::marked(&claimed.turn.id.to_string()).is_empty();
                if cli || marked {
                    Left::Running
                } else {
                    Left::Ended
                }
            }
        },
    )
}

pub(crate) fn from_another_boot(claimed: &Claimed) -> Result<bool> {
    let before = claimed
        .taken_from
        .as_deref()
        .and_then(|h| h.parse::<Holder>().ok());
    let now = boot()?;
    Ok(before.is_some_and(|holder| holder.boot != now))
}

pub(crate) fn held_by_the_living(turn: &StoredTurn) -> bool {
    turn.holder.as_deref().is_some_and(lives)
}

pub(crate) fn lives(holder: &str) -> bool {
    holder.parse::<Holder>().is_ok_and(|h| h.is_alive())
}

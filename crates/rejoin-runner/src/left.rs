//! What became of a turn whose holder is gone: judged by its folder, its shim and its processes.

use std::path::Path;

use rejoin_hub::{AttemptPlan, Claimed};
use rejoin_store::Attempt;

use crate::attempt::boot;
use crate::error::{Error, Result};
use crate::leftovers;
use crate::place::{HolderAt, Place};
use crate::shim::{Begun, End, begun, void};

/// What a turn without a living holder is doing.
pub(crate) enum Left {
    /// Nothing was started: it can be queued again.
    NotBegun,
    /// Its CLI still runs.
    Running,
    /// It ended, and nobody has settled it.
    Ended,
    /// What was left of it lies elsewhere.
    Elsewhere,
}

pub(crate) fn left(
    folder: &Path,
    claimed: &Claimed,
    attempt: &Attempt,
    here: &Place,
) -> Result<Left> {
    let place = claimed.turn.place.as_deref().and_then(|p| p.parse().ok());
    let elsewhere = |place: &Place| !here.is_same_home(place);
    if place.as_ref().is_some_and(elsewhere) {
        return Ok(Left::Elsewhere);
    }
    if AttemptPlan::read(attempt)?.boot != boot()? {
        // Whether it had begun cannot be known any more, so it is not tried again.
        return Ok(Left::Ended);
    }
    if !folder.exists() {
        // A copy of a home is not that home.
        if place.as_ref().is_some_and(|place| place != here) {
            return Ok(Left::Elsewhere);
        }
        // Of a build that did not say where: then its processes tell.
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
        .and_then(|h| h.parse::<HolderAt>().ok());
    let now = boot()?;
    Ok(before.is_some_and(|holder| holder.process.boot != now))
}

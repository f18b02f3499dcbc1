//! Classifies a turn whose holder is gone, by its folder, its shim and its processes.

use std::path::Path;

use rejoin_hub::{AttemptPlan, Claimed};
use rejoin_store::Attempt;

use crate::attempt::boot;
use crate::error::{Error, Result};
use crate::location::{HolderAt, HomeLocation};
use crate::shim::{Begun, ShimEnd, begun, void};
use crate::stray_processes;

/// State of a turn without a live holder.
pub(crate) enum Abandoned {
    /// Not started: it can be queued again.
    NotBegun,
    /// CLI still running.
    Running,
    /// Ended, but not settled.
    Ended,
    /// Remains of the turn are in another place.
    Elsewhere,
}

/// Classifies a turn by its latest attempt.
pub(crate) fn classify(
    folder: &Path,
    claimed: &Claimed,
    attempt: &Attempt,
    here: &HomeLocation,
) -> Result<Abandoned> {
    let place = claimed.turn.place.as_deref().and_then(|p| p.parse().ok());
    let elsewhere = |place: &HomeLocation| !here.is_same_home(place);
    if place.as_ref().is_some_and(elsewhere) {
        return Ok(Abandoned::Elsewhere);
    }
    if AttemptPlan::read(attempt)?.boot != boot()? {
        // It is unknown if the run had begun, so it is not tried again.
        return Ok(Abandoned::Ended);
    }
    if !folder.exists() {
        // A copy of a home is not the same home.
        if place.as_ref().is_some_and(|place| place != here) {
            return Ok(Abandoned::Elsewhere);
        }
        // Older builds did not record the place; the processes decide.
        let living = !stray_processes::marked(&claimed.turn.id.to_string()).is_empty();
        return Ok(if living {
            Abandoned::Running
        } else {
            Abandoned::NotBegun
        });
    }
    if ShimEnd::load(folder)
        .map_err(Error::io("reading how the run ended"))?
        .is_some()
    {
        return Ok(Abandoned::Ended);
    }
    Ok(
        match begun(folder).map_err(Error::io("looking after the shim"))? {
            Begun::No | Begun::Void => {
                if void(folder).map_err(Error::io("calling off a run"))? {
                    Abandoned::NotBegun
                } else {
                    Abandoned::Running
                }
            }
            Begun::By(holder) if holder.is_alive() => Abandoned::Running,
            Begun::By(_) | Begun::Unclear => {
                // The shim is gone, but the CLI writes into its files as long as it runs.
                let cli = stray_processes::live_cli(folder).is_some();
                let marked = !cli
                    && !folder.join("cli.json").exists()
                    && !stray_processes::marked(&claimed.turn.id.to_string()).is_empty();
                if cli || marked {
                    Abandoned::Running
                } else {
                    Abandoned::Ended
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

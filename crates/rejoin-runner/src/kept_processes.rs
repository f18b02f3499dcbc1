//! Processes that `--keep-background` let live after their turn: finds them, and ends them on
//! request.

use std::time::Duration;

use rejoin_hub::Clock;
use rejoin_store::StoredTurn;

use crate::error::{Error, Result};
use crate::process::tree;
use crate::stray_processes::{self, Marked};
use crate::turn::Runner;
use crate::worker_thread::on_worker;

/// Tolerated difference between the clock of the store and that of the process table.
const SLACK: Duration = Duration::from_secs(2);

impl Runner {
    /// Ends the processes that an ended turn left running, on this machine. Returns their number.
    pub async fn end_kept(&self, turn: &StoredTurn) -> Result<usize> {
        let ended = turn.ended_at.filter(|_| turn.machine == self.hub.machine);
        let (Some(ended), false) = (ended, turn.record.leftovers.is_empty()) else {
            return Ok(0);
        };
        let since = Clock.now().saturating_sub(ended).max(0).unsigned_abs();
        let since = Duration::from_micros(since).saturating_sub(SLACK);
        let (id, listed) = (turn.id.to_string(), turn.record.leftovers.clone());
        on_worker(move || {
            let unmarked = listed.iter().filter_map(|line| living(line, since));
            let killed = stray_processes::end(&unmarked.collect::<Vec<_>>())?;
            Ok(killed + stray_processes::end_marked(&id)?)
        })
        .await
        .map_err(Error::io("ending what the turn left running"))
    }
}

/// Returns the process of an entry `PID COMMAND` of the turn's list, if it is still the same process.
///
/// A process without environment carries no marker. Its pid may have been reused since, so the
/// command must be the same and the process older than the end of the turn.
fn living(line: &str, since: Duration) -> Option<Marked> {
    let (pid, command) = line.split_once(' ')?;
    let entry = tree::read(pid.parse().ok()?)?;
    let same = !entry.zombie && entry.age() >= since && tree::command(entry.pid) == command;
    same.then(|| Marked {
        pid: entry.pid,
        start: entry.start,
        command: command.to_owned(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_the_very_process_counts() {
        let me = std::process::id() as i32;
        let command = tree::command(me);
        let young = Duration::ZERO;
        assert_eq!(living(&format!("{me} {command}"), young).unwrap().pid, me);
        for other in [
            format!("{me} {command} x"),
            format!("{me}"),
            format!("x {command}"),
            "0 init".to_owned(),
        ] {
            assert_eq!(living(&other, young), None, "{other}");
        }
        let year = Duration::from_hours(24 * 365);
        assert_eq!(living(&format!("{me} {command}"), year), None);
    }
}

//! What a run knows of the process it goes through.

use std::path::Path;

use rejoin_agents::{Adapter, EndCause};
use rejoin_core::Outcome;
use rejoin_hub::AttemptPlan;

use super::Host;
use super::stay::{NOT_TAKEN, Stay};
use crate::pump::Pumped;
use crate::session::Sessions;
use crate::shim::{End, Spec, Why};

/// What the process of a run had printed when that began, and must have printed by now if nothing came
/// but what the run has.
pub(crate) fn printed(run: &Path) -> Option<(u64, u64)> {
    let stay = Stay::of(&Spec::load(run).ok()?)?;
    let own = fs_err::metadata(run.join("out")).map_or(0, |meta| meta.len());
    Some((stay.from, stay.from + own))
}

/// The process of this run has printed nothing in it.
pub(crate) fn was_silent(run: &Path) -> bool {
    let said = Host::of_run(run).map(|host| host.said());
    // Of one that was not even reached nothing is left.
    let code = || End::load(run).ok().flatten().and_then(|end| end.code);
    let not_taken = || code() == Some(NOT_TAKEN.into());
    printed(run).is_some_and(|(from, now)| said == Some(from) || (from == now && not_taken()))
}

/// How a run ended that went through a process of its own: what is said of the CLI is its.
pub(crate) fn seen(run: &Path, end: End) -> End {
    let Some(host) = Host::of_run(run) else {
        return end;
    };
    let Ok(Some(of_cli)) = End::load(&host.folder) else {
        return end;
    };
    let why = if end.why == Why::Exited {
        of_cli.why
    } else {
        end.why
    };
    End { why, ..of_cli }
}

/// The process of a run that is over, if it waits for the next prompt.
pub(crate) fn rests(run: &Path, pumped: &Pumped) -> Option<Host> {
    let well = pumped.ran.outcome == Outcome::Succeeded && pumped.deferred.is_none();
    let rested = || matches!(End::load(run), Ok(Some(End { code: Some(0), .. })));
    let host = Host::of_run(run).filter(|host| well && rested() && !host.has_ended())?;
    // What it said since nobody has read.
    let (_, read) = printed(run)?;
    (host.said() == read).then_some(host)
}

/// A live run whose process went before it was told anything: nothing was printed in it (`silent`, known
/// before the process was seen off) and nothing added to the session, which is as it was again.
pub(crate) async fn unheard(
    adapter: &'static dyn Adapter,
    plan: &AttemptPlan,
    run: &Path,
    silent: bool,
    pumped: &Pumped,
) -> bool {
    let by_itself = matches!(
        pumped.cause,
        EndCause::ByItself | EndCause::Unseen | EndCause::NotStarted
    );
    let (Some(before), true, true) = (&plan.confirmed, silent && by_itself, plan.live.is_some())
    else {
        return false;
    };
    let sessions = Sessions {
        adapter,
        home: Path::new(&plan.home),
    };
    let (file, cursor) = (&before.file, before.cursor.as_deref());
    match sessions.read_apart(&file.path, Some(file), cursor).await {
        Ok((_, added)) => {
            let nothing = added.entries.is_empty() && added.prompts.is_empty();
            nothing && sessions.cut_back_apart(file, run).await.is_ok()
        }
        Err(_) => false,
    }
}

/// Ends the process of a run that is over, unless it rests: before anybody looks at its session.
pub(crate) async fn see_off(run: &Path, pumped: &Pumped) {
    if let (None, Some(host)) = (rests(run, pumped), Host::of_run(run)) {
        host.end().await;
    }
}

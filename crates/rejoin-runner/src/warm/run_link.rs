//! State of the process that a run goes through.

use std::path::Path;

use rejoin_agents::EndCause;
use rejoin_core::Outcome;

use super::WarmProcess;
use super::stay::{NOT_TAKEN, Stay};
use crate::pump::RunEnd;
use crate::run::Run;
use crate::session::Sessions;
use crate::shim::{ShimEnd, Spec, StopReason};

/// Returns the number of bytes that the process had printed when the run began, and the number that
/// it must have printed by now if the run has all its output.
pub(crate) fn printed(run: &Path) -> Option<(u64, u64)> {
    let stay = Stay::of(&Spec::load(run).ok()?)?;
    let own = fs_err::metadata(run.join("out")).map_or(0, |meta| meta.len());
    Some((stay.from, stay.from + own))
}

/// Returns true if the process printed nothing during this run.
pub(crate) fn printed_nothing(run: &Path) -> bool {
    let said = WarmProcess::of_run(run).map(|host| host.said());
    // A process that could not be reached leaves no output.
    let code = || ShimEnd::load(run).ok().flatten().and_then(|end| end.code);
    let not_taken = || code() == Some(NOT_TAKEN.into());
    printed(run).is_some_and(|(from, now)| said == Some(from) || (from == now && not_taken()))
}

/// Returns the end of a run. If the run went through a process of its own, the facts about the CLI
/// come from the end of that process.
pub(crate) fn end_of_cli(run: &Path, end: ShimEnd) -> ShimEnd {
    let Some(host) = WarmProcess::of_run(run) else {
        return end;
    };
    let Ok(Some(of_cli)) = ShimEnd::load(&host.folder) else {
        return end;
    };
    let why = if end.why == StopReason::Exited {
        of_cli.why
    } else {
        end.why
    };
    ShimEnd { why, ..of_cli }
}

/// Returns the process of a finished run if it waits for the next prompt.
pub(crate) fn idle_host(run: &Path, end: &RunEnd) -> Option<WarmProcess> {
    let well = end.ran.outcome == Outcome::Succeeded && end.deferred.is_none();
    let rested = || matches!(ShimEnd::load(run), Ok(Some(ShimEnd { code: Some(0), .. })));
    let host = WarmProcess::of_run(run).filter(|host| well && rested() && !host.has_ended())?;
    // Output beyond this was never read, so the process is not used.
    let (_, read) = printed(run)?;
    (host.said() == read).then_some(host)
}

/// Returns true if the process of a live run ended before it received the prompt: it printed
/// nothing during the run and added nothing to the session, which is cut back to its state before.
pub(crate) async fn prompt_never_delivered(run: &Run<'_>, end: &RunEnd) -> bool {
    let by_itself = matches!(
        end.cause,
        EndCause::ByItself | EndCause::Unseen | EndCause::NotStarted
    );
    let (Some(before), true, true) = (
        &run.plan.confirmed,
        end.silent && by_itself,
        run.plan.live.is_some(),
    ) else {
        return false;
    };
    let sessions = Sessions {
        adapter: run.adapter,
        home: Path::new(&run.plan.home),
    };
    let (file, cursor) = (&before.file, before.cursor.as_deref());
    match sessions.read_async(&file.path, Some(file), cursor).await {
        Ok((_, added)) => {
            let nothing = added.entries.is_empty() && added.prompts.is_empty();
            nothing && sessions.cut_back_async(file, &run.folder).await.is_ok()
        }
        Err(_) => false,
    }
}

/// Ends the process of a finished run unless it rests. Must be called before the session is read.
pub(crate) async fn end_if_not_idle(run: &Path, end: &RunEnd) {
    if let (None, Some(host)) = (idle_host(run, end), WarmProcess::of_run(run)) {
        host.end().await;
    }
}

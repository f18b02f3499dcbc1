//! Run that ended with a deferred question: its results so far, and the sum for its turn in the
//! end.

use std::collections::BTreeMap;

use rejoin_agents::{ReadEntry, Reading, RunReport};
use rejoin_core::{Outcome, Pin, PinEffect, TurnStatus, Usage};
use rejoin_hub::{EarlierRuns, LOCAL_ONLY, PinEnd, Settled};

use super::session::FinishedRun;
use super::{tools_run, trail};
use crate::config::ModelConfig;
use crate::pump::RunEnd;
use crate::run::Run;

/// State of a deferred run from which its turn can continue.
pub(crate) struct Deferral {
    pub(crate) so_far: EarlierRuns,
    /// Session as it is now; nothing of it is confirmed.
    pub(crate) pin: Pin,
}

/// Reads the session that the run left. Returns the reason if the turn cannot continue from there.
pub(crate) async fn read_deferral(
    run: &Run<'_>,
    end: &RunEnd,
    call: &str,
    machine: &str,
    models: &BTreeMap<String, ModelConfig>,
) -> Result<Deferral, String> {
    let (plan, mut ran) = (&run.plan, end.ran.clone());
    // A run that deferred its question did everything it had to do.
    ran.outcome = Outcome::Succeeded;
    let before = plan.so_far.as_ref();
    let run = FinishedRun::new(run, &ran, models, false).await;
    let (mark, reading) = run.read.as_ref().map_err(Clone::clone)?;
    run.must_be_ours(reading)?;
    must_wait(reading, &plan.prompt)?;
    let session = run.session().ok_or("it did not say which session it is")?;
    let pin = run.pin(session, vec![], reading, machine)?;
    let denied = run.denied().into_iter();
    let denied = denied.filter_map(|one| serde_json::to_value(one).ok());
    let own = EarlierRuns {
        call: call.to_owned(),
        times: before.filter(|b| b.call == call).map_or(1, |b| b.times + 1),
        file: mark.clone(),
        text: ran.text.clone(),
        trail: ran.trail.clone(),
        withheld: ran.withheld.clone(),
        tools_run: ran.tools_run,
        denied: denied.collect(),
        usage: run.usage(),
        cost: run.cost(end.cause).known(),
        total: run.total_kept(),
        counted: run.usage_kept(),
        context: run.context(),
        compacted: run.compacted(),
    };
    let so_far = match before {
        Some(before) => after(before, own),
        None => own,
    };
    Ok(Deferral { so_far, pin })
}

/// Checks that the session holds the prompt and ends with exactly one call without a result.
fn must_wait(reading: &Reading, prompt: &str) -> Result<(), String> {
    let whole = Reading {
        orphaned_calls: 0,
        ..reading.clone()
    };
    whole.whole()?;
    if reading.orphaned_calls != 1 {
        return Err("it does not end with the question".into());
    }
    let ours = |e: &ReadEntry| matches!(e, ReadEntry::Prompt { id, .. } if id == prompt);
    if reading.entries.iter().any(ours) {
        Ok(())
    } else {
        Err("the prompt is not in it".into())
    }
}

fn after(before: &EarlierRuns, own: EarlierRuns) -> EarlierRuns {
    EarlierRuns {
        text: joined(&before.text, &own.text),
        trail: [before.trail.clone(), own.trail].concat(),
        tools_run: before.tools_run + own.tools_run,
        denied: [before.denied.clone(), own.denied].concat(),
        usage: plus(before.usage, own.usage),
        cost: before
            .cost
            .zip(own.cost)
            .map(|(a, b)| rejoin_core::Micros(a.0.saturating_add(b.0))),
        compacted: before.compacted || own.compacted,
        ..own
    }
}

fn joined(before: &str, after: &str) -> String {
    match (before, after) {
        (before, "") => before.to_owned(),
        ("", after) => after.to_owned(),
        (before, after) => format!("{before}\n\n{after}"),
    }
}

fn plus(before: Option<Usage>, own: Option<Usage>) -> Option<Usage> {
    let (mut sum, own) = before.zip(own)?;
    sum.add(own);
    Some(sum)
}

/// Adds the text and tool calls of the earlier runs, so that `ran` covers the whole turn.
pub(super) fn join(ran: &mut RunReport, so_far: &EarlierRuns) {
    ran.text = joined(&so_far.text, &ran.text);
    let mut trail = so_far.trail.clone();
    trail.append(&mut ran.trail);
    ran.trail = trail;
    ran.tools_run += so_far.tools_run;
    ran.compacted |= so_far.compacted;
}

/// Adds the cost, tokens and denied calls of the earlier runs.
pub(super) fn add(settled: &mut Settled, so_far: &EarlierRuns) {
    settled.cost = so_far.cost().plus(settled.cost);
    settled.usage = plus(so_far.usage, settled.usage);
    if let Some(denied) = settled.denied.as_array_mut() {
        denied.splice(0..0, so_far.denied.iter().cloned());
    }
}

/// Settles a turn that ends without having continued: its session is cut back to its state before
/// the turn.
pub(crate) async fn settle_unfinished(
    run: &Run<'_>,
    ran: &RunReport,
    so_far: &EarlierRuns,
    status: TurnStatus,
    models: &BTreeMap<String, ModelConfig>,
) -> Settled {
    let mut record = run.record.clone();
    let id = run.attempt.pin;
    let run = FinishedRun::new(run, ran, models, false).await;
    let pin = match &run.read {
        Ok(_) => run.take_back(PinEffect::Keep).await,
        Err(why) => PinEnd::Lost {
            id,
            why: why.clone(),
        },
    };
    record.tools_run = tools_run(ran);
    Settled {
        status,
        answer: None,
        error: ran.outcome.failure().cloned(),
        trail: trail(ran, &[], status),
        outside: run.said_by_others(&pin),
        cost: so_far.cost(),
        model: None,
        usage: so_far.usage,
        context: so_far.context,
        denied: so_far.denied.clone().into(),
        saved: LOCAL_ONLY.into(),
        snapshot: None,
        unsaved: None,
        attempt: None,
        ended_at: None,
        ran_ms: None,
        record,
        pin,
    }
}

//! A run that ended with a question: what it came to so far, and what its turn comes to in the end.

use rejoin_agents::{Ran, ReadEntry, Reading};
use rejoin_core::{Outcome, Pin, PinEffect, TurnStatus, Usage};
use rejoin_hub::{LOCAL_ONLY, PinEnd, Settled, SoFar};

use super::run::Run;
use super::{Written, tools_run, trail};
use crate::pump::Pumped;

/// What is known of a run that can be gone on from.
pub(crate) struct PutOff {
    pub(crate) so_far: SoFar,
    /// The session as it is; nothing of it is confirmed.
    pub(crate) pin: Pin,
}

/// Reads what the run left. Else why nobody can go on from there.
pub(crate) async fn put_off(
    written: &Written<'_>,
    pumped: &Pumped,
    call: &str,
    machine: &str,
) -> Result<PutOff, String> {
    let (plan, mut ran) = (written.plan, pumped.ran.clone());
    // It has done all that it was to do.
    ran.outcome = Outcome::Succeeded;
    let before = plan.so_far.as_ref();
    let mut run = Run {
        adapter: written.adapter,
        attempt: written.attempt,
        plan,
        ran: &ran,
        folder: written.folder,
        models: written.models,
        rests: false,
        read: Err("it was not read".into()),
    };
    run.read = run.read().await;
    let (mark, reading) = run.read.as_ref().map_err(Clone::clone)?;
    run.must_be_ours(reading)?;
    must_wait(reading, &plan.prompt)?;
    let session = run.session().ok_or("it did not say which session it is")?;
    let pin = run.pin(session, vec![], reading, machine)?;
    let denied = run.denied().into_iter();
    let denied = denied.filter_map(|one| serde_json::to_value(one).ok());
    let own = SoFar {
        call: call.to_owned(),
        times: before.filter(|b| b.call == call).map_or(1, |b| b.times + 1),
        file: mark.clone(),
        text: ran.text.clone(),
        trail: ran.trail.clone(),
        withheld: ran.withheld.clone(),
        tools_run: ran.tools_run,
        denied: denied.collect(),
        usage: run.usage(),
        cost: run.cost(pumped.cause).known(),
        total: run.total_kept(),
        counted: run.usage_kept(),
        context: run.context(),
        compacted: run.compacted(),
    };
    let so_far = match before {
        Some(before) => after(before, own),
        None => own,
    };
    Ok(PutOff { so_far, pin })
}

/// The prompt, whatever was said and done for it, and one call that has no result.
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

fn after(before: &SoFar, own: SoFar) -> SoFar {
    SoFar {
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

/// All that the model said and did in the turn.
pub(super) fn join(ran: &mut Ran, so_far: &SoFar) {
    ran.text = joined(&so_far.text, &ran.text);
    let mut trail = so_far.trail.clone();
    trail.append(&mut ran.trail);
    ran.trail = trail;
    ran.tools_run += so_far.tools_run;
    ran.compacted |= so_far.compacted;
}

/// What it cost, and what was not allowed in it.
pub(super) fn add(settled: &mut Settled, so_far: &SoFar) {
    settled.cost = so_far.cost().plus(settled.cost);
    settled.usage = plus(so_far.usage, settled.usage);
    if let Some(denied) = settled.denied.as_array_mut() {
        denied.splice(0..0, so_far.denied.iter().cloned());
    }
}

/// A turn that ends without having gone on: its session is cut back to what it was before.
pub(crate) async fn ended(
    written: Written<'_>,
    ran: &Ran,
    so_far: &SoFar,
    status: TurnStatus,
) -> Settled {
    let mut run = Run {
        adapter: written.adapter,
        attempt: written.attempt,
        plan: written.plan,
        ran,
        folder: written.folder,
        models: written.models,
        rests: false,
        read: Err("it was not read".into()),
    };
    run.read = run.read().await;
    let pin = match &run.read {
        Ok(_) => run.take_back(PinEffect::Keep).await,
        Err(why) => PinEnd::Lost {
            id: written.attempt.pin,
            why: why.clone(),
        },
    };
    let mut record = written.record;
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

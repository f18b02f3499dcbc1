//! Settles a finished run: reads its session and confirms it or cuts it back, computes the turn's
//! own cost, and builds one report for the hub.

mod cost;
mod deferral;
mod session;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rejoin_agents::{EndCause, RunReport};
use rejoin_core::{Class, Context, Failure, Outcome, PinEffect, ToolNote, TurnStatus};
use rejoin_hub::{AttemptPlan, Claimed, LOCAL_ONLY, PinEnd, Settled, fault};
use rejoin_store::TurnRecord;

use self::session::FinishedRun;
use crate::config::ModelConfig;
use crate::error::Error;
use crate::pump::RunEnd;
use crate::run::Run;
use crate::shim::{END, ShimEnd};
use crate::stray_processes;
use crate::warm::WarmProcess;

pub(crate) use deferral::{Deferral, read_deferral, settle_unfinished};

/// Settles every end of a run that counts: confirms its session or cuts it back, and reports what
/// the turn did and cost.
pub(crate) async fn settle(
    run: &Run<'_>,
    end: RunEnd,
    machine: &str,
    models: &BTreeMap<String, ModelConfig>,
    host: Option<&WarmProcess>,
) -> Settled {
    let RunEnd {
        mut ran,
        cause,
        leftovers,
        kept,
        ..
    } = end;
    let so_far = run.plan.so_far.as_ref();
    if let Some(so_far) = so_far {
        deferral::join(&mut ran, so_far);
    }
    let mut finished = FinishedRun::new(run, &ran, models, host.is_some()).await;
    if let Some(host) = host {
        finished.wait_for_writes(host, machine).await;
    }
    let (denied, unseen) = (finished.denied(), finished.unseen());
    let mut record = finished.record(denied.len(), unseen.len());
    record.leftovers = leftovers;
    note_leftovers(&mut record, kept);
    let (status, pin) = finished.confirm_or_take_back(machine, &mut record).await;
    finished.tidy();
    fault::point("after_read");
    let mut settled = Settled {
        status,
        answer: (status == TurnStatus::Succeeded).then(|| ran.text.clone()),
        error: ran.outcome.failure().cloned(),
        trail: trail(&ran, &unseen, status),
        cost: finished.cost(cause),
        model: finished.model(),
        usage: finished.usage(),
        context: finished.context_after(&pin),
        denied: serde_json::to_value(&denied).unwrap_or_default(),
        saved: LOCAL_ONLY.into(),
        snapshot: None,
        unsaved: None,
        attempt: Some(run.attempt.n),
        ended_at: ended_at(&run.folder),
        // If the turn was deferred before, this run is only a part of it.
        ran_ms: so_far.is_none().then(|| ran_ms(&run.folder)).flatten(),
        record,
        outside: finished.said_by_others(&pin),
        pin,
    };
    if let Some(so_far) = so_far {
        deferral::add(&mut settled, so_far);
    }
    settled
}

impl FinishedRun<'_> {
    /// Completes the record of the run by its result. `denied` and `unseen` count tool calls.
    fn record(&self, denied: usize, unseen: usize) -> TurnRecord {
        let mut record = TurnRecord {
            tools_run: tools_run(self.ran) + unseen as u64,
            session_id: self.session().map(ToString::to_string),
            ..self.run.record.clone()
        };
        match denied {
            0 => {}
            1 => record.notes.push("1 tool denied".into()),
            n => record.notes.push(format!("{n} tools denied")),
        }
        if self.compacted() {
            record.notes.push("compacted by the agent".into());
            record.sent.summarised = self.summarised().min(record.sent.resumed);
        }
        record
    }

    /// Returns how full the session is after the turn.
    fn context_after(&self, end: &PinEnd) -> Option<Context> {
        match end {
            PinEnd::Confirm(pin) => pin.context,
            PinEnd::None
            | PinEnd::Untouched(_)
            | PinEnd::PutBack { .. }
            | PinEnd::Retire { .. }
            | PinEnd::Lost { .. } => self.context(),
        }
    }

    /// Confirms the session of a success. After any other end, or if the session does not hold the
    /// turn, cuts it back or retires it.
    async fn confirm_or_take_back(
        &self,
        machine: &str,
        record: &mut TurnRecord,
    ) -> (TurnStatus, PinEnd) {
        let (status, effect) = match &self.ran.outcome {
            Outcome::Succeeded => match self.confirm(machine).await {
                Ok(pin) => return (TurnStatus::Succeeded, PinEnd::Confirm(Box::new(pin))),
                Err(why) => {
                    record.notes.push(format!(
                        "not recorded by {}: {why}; the next turn is told again",
                        self.run.claimed.turn.agent
                    ));
                    // A fork that cannot be confirmed would otherwise be made again with every
                    // turn.
                    let effect = if self.run.plan.forked.is_some() {
                        PinEffect::Count
                    } else {
                        PinEffect::Keep
                    };
                    (TurnStatus::Succeeded, effect)
                }
            },
            Outcome::Failed(failure) => (TurnStatus::Failed, failure.class.on_session()),
            Outcome::Cancelled => (TurnStatus::Cancelled, PinEffect::Keep),
            Outcome::Lost(_) => (TurnStatus::Lost, PinEffect::Keep),
        };
        (status, self.take_back(effect).await)
    }
}

/// Returns the time at which a run ended, in microseconds since 1970: the time of the shim's
/// `end.json`, or of the last output.
fn ended_at(folder: &Path) -> Option<i64> {
    let written = |name: &str| written_at(folder, name);
    written(END).or_else(|| written("out").max(written("err")))
}

fn ran_ms(folder: &Path) -> Option<u64> {
    ShimEnd::load(folder).ok().flatten()?.ran_ms
}

/// Returns the time at which a file of a run was last written, in microseconds since 1970.
fn written_at(folder: &Path, name: &str) -> Option<i64> {
    let meta = fs_err::metadata(folder.join(name)).ok()?;
    Some(meta.mtime().saturating_mul(1_000_000) + meta.mtime_nsec() / 1000)
}

/// Returns the tool calls that the next turn must know about: finished ones and, if the turn was
/// not answered, also those that were only started. Calls that were withheld never ran and are left
/// out.
fn trail(ran: &RunReport, unseen: &[ToolNote], status: TurnStatus) -> Vec<ToolNote> {
    let worth_telling = |note: &ToolNote| note.finished || status != TurnStatus::Succeeded;
    let mut all: Vec<ToolNote> = ran.trail.iter().chain(unseen).cloned().collect();
    for never_ran in &ran.withheld {
        let same = |note: &ToolNote| is_same(note, never_ran);
        if let Some(at) = all.iter().rposition(same) {
            all.remove(at);
        }
    }
    all.into_iter().filter(worth_telling).collect()
}

/// Counts the calls that began. A call that waited for a person until the end did not begin.
fn tools_run(ran: &RunReport) -> u64 {
    ran.tools_run.saturating_sub(ran.withheld.len() as u64)
}

fn is_same(one: &ToolNote, other: &ToolNote) -> bool {
    (&one.tool, &one.subject) == (&other.tool, &other.subject)
}

/// Returns true if the CLI refused the session, or could not fork it, and no tool ran. Only then is
/// the turn retried, once (promise 4).
pub(crate) async fn refused_cleanly(run: &Run<'_>, ran: &RunReport) -> bool {
    if !(ran.refused || never_forked(&run.plan, ran)) || ran.tools_run > 0 {
        return false;
    }
    let models = BTreeMap::new();
    let finished = FinishedRun::new(run, ran, &models, false).await;
    finished.unseen().is_empty() && !finished.did_elsewhere().await
}

/// Returns true if the CLI does not support forking: it complains about its arguments and opens no
/// session.
fn never_forked(plan: &AttemptPlan, ran: &RunReport) -> bool {
    let complained =
        |failure: &Failure| matches!(failure.class, Class::NotStarted | Class::Unknown);
    plan.forked.is_some() && ran.session.is_none() && ran.outcome.failure().is_some_and(complained)
}

/// Ends the processes that a killed shim could not end any more, unless the turn may keep them.
pub(crate) fn kill_strays(claimed: &Claimed, end: &mut RunEnd) -> Result<(), Error> {
    if end.cause != EndCause::Unseen {
        return Ok(());
    }
    let turn = claimed.turn.id.to_string();
    let left = stray_processes::marked(&turn);
    end.leftovers = left
        .iter()
        .map(|l| format!("{} {}", l.pid, l.command))
        .collect();
    end.kept = claimed.request.keep_background && end.ran.outcome == Outcome::Succeeded;
    if !end.kept {
        stray_processes::end_marked(&turn)
            .map_err(Error::io("ending what the turn left running"))?;
    }
    Ok(())
}

/// Notes the processes that the turn left running.
fn note_leftovers(record: &mut TurnRecord, kept: bool) {
    let text = match (record.leftovers.len(), kept) {
        (0, _) => return,
        (1, true) => "1 process is left running".into(),
        (1, false) => "1 process it left running was ended".into(),
        (n, true) => format!("{n} processes are left running"),
        (n, false) => format!("{n} processes it left running were ended"),
    };
    record.notes.push(text);
}

//! What a finished run leaves behind: the session read and confirmed, or cut back to what it was;
//! the turn's own cost; one report for the hub.

mod books;
mod put_off;
mod run;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::time::{Duration, Instant};

use rejoin_agents::{Adapter, EndCause, Ran};
use rejoin_core::{Class, Failure, Outcome, PinEffect, ToolNote, TurnStatus};
use rejoin_hub::{AttemptPlan, Claimed, LOCAL_ONLY, PinEnd, Settled, fault};
use rejoin_store::{Attempt, TurnRecord};

use self::run::Run;
use crate::config::ModelConfig;
use crate::error::Error;
use crate::leftovers;
use crate::pump::Pumped;
use crate::shim::{END, End};
use crate::warm::Host;

pub(crate) use put_off::{PutOff, ended, put_off};

/// A process that stays up may write to its session a moment after its last word (2.1.325: 0.1 s).
const WRITES_WITHIN: Duration = Duration::from_secs(3);
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// A run, as it was written ahead.
pub(crate) struct Written<'a> {
    pub adapter: &'static dyn Adapter,
    pub attempt: &'a Attempt,
    pub plan: &'a AttemptPlan,
    pub record: TurnRecord,
    /// Of the run, with what was saved for it.
    pub folder: &'a Path,
    /// What the user says of models.
    pub models: &'a BTreeMap<String, ModelConfig>,
}

/// Everything but the refusal of a session, which is retried first.
pub(crate) async fn settle(
    claimed: &Claimed,
    written: Written<'_>,
    pumped: Pumped,
    machine: &str,
    host: Option<&Host>,
) -> Settled {
    let Written {
        adapter,
        attempt,
        plan,
        mut record,
        folder,
        models,
    } = written;
    let Pumped {
        mut ran,
        cause,
        leftovers,
        kept,
        deferred: _,
    } = pumped;
    if let Some(so_far) = &plan.so_far {
        put_off::join(&mut ran, so_far);
    }
    let mut run = Run {
        adapter,
        attempt,
        plan,
        ran: &ran,
        folder,
        models,
        rests: host.is_some(),
        read: Err("it was not read".into()),
    };
    run.read = run.read().await;
    if let Some(host) = host {
        let since = Instant::now();
        while run.confirm(machine).await.is_err() && run.rests {
            if since.elapsed() > WRITES_WITHIN {
                // What it still holds back it writes when it ends.
                host.end().await;
                run.rests = false;
            } else {
                tokio::time::sleep(LOOK_AGAIN).await;
            }
            run.read = run.read().await;
        }
    }
    record.tools_run = tools_run(&ran);
    record.leftovers = leftovers;
    record.session_id = run.session().map(ToString::to_string);
    let denied = run.denied();
    let unseen = run.unseen();
    record.tools_run += unseen.len() as u64;
    note(&mut record, denied.len(), run.compacted(), kept);
    if run.compacted() {
        record.sent.summarised = run.summarised().min(record.sent.resumed);
    }
    let mut context = run.context();
    let (status, pin) = match &ran.outcome {
        Outcome::Succeeded => match run.confirm(machine).await {
            Ok(pin) => {
                context = pin.context;
                (TurnStatus::Succeeded, PinEnd::Confirm(Box::new(pin)))
            }
            Err(why) => {
                record.notes.push(format!(
                    "not recorded by {}: {why}; the next turn is told again",
                    claimed.turn.agent
                ));
                // A fork that cannot be confirmed would be made again with every turn.
                let effect = if plan.forked.is_some() {
                    PinEffect::Count
                } else {
                    PinEffect::Keep
                };
                (TurnStatus::Succeeded, run.take_back(effect).await)
            }
        },
        Outcome::Failed(failure) => (
            TurnStatus::Failed,
            run.take_back(failure.class.on_session()).await,
        ),
        Outcome::Cancelled => (TurnStatus::Cancelled, run.take_back(PinEffect::Keep).await),
        Outcome::Lost(_) => (TurnStatus::Lost, run.take_back(PinEffect::Keep).await),
    };
    run.tidy();
    fault::point("after_read");
    let mut settled = Settled {
        status,
        answer: (status == TurnStatus::Succeeded).then(|| ran.text.clone()),
        error: ran.outcome.failure().cloned(),
        trail: trail(&ran, &unseen, status),
        cost: run.cost(cause),
        model: run.model(),
        usage: run.usage(),
        context,
        denied: serde_json::to_value(&denied).unwrap_or_default(),
        saved: LOCAL_ONLY.into(),
        snapshot: None,
        unsaved: None,
        attempt: Some(attempt.n),
        ended_at: ended_at(folder),
        // Of a turn that was put off, this run is only a part.
        ran_ms: plan.so_far.is_none().then(|| ran_ms(folder)).flatten(),
        record,
        outside: run.said_by_others(&pin),
        pin,
    };
    if let Some(so_far) = &plan.so_far {
        put_off::add(&mut settled, so_far);
    }
    settled
}

/// Returns when a run ended by its folder, in microseconds since 1970: when its shim said so, else when it
/// printed last.
fn ended_at(folder: &Path) -> Option<i64> {
    let written = |name: &str| written_at(folder, name);
    written(END).or_else(|| written("out").max(written("err")))
}

fn ran_ms(folder: &Path) -> Option<u64> {
    End::load(folder).ok().flatten()?.ran_ms
}

/// Returns when a file of a run was last written, in microseconds since 1970.
fn written_at(folder: &Path, name: &str) -> Option<i64> {
    let meta = fs_err::metadata(folder.join(name)).ok()?;
    Some(meta.mtime().saturating_mul(1_000_000) + meta.mtime_nsec() / 1000)
}

/// What the next turn must know the tools did; in an unanswered one also what was only started.
fn trail(ran: &Ran, unseen: &[ToolNote], status: TurnStatus) -> Vec<ToolNote> {
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

/// Counts the calls that began. A call that waited for a person to the end did not.
fn tools_run(ran: &Ran) -> u64 {
    ran.tools_run.saturating_sub(ran.withheld.len() as u64)
}

fn is_same(one: &ToolNote, other: &ToolNote) -> bool {
    (&one.tool, &one.subject) == (&other.tool, &other.subject)
}

/// Retried once, and only if no tool ran (promise 4).
pub(crate) async fn refused_cleanly(
    adapter: &'static dyn Adapter,
    attempt: &Attempt,
    plan: &AttemptPlan,
    folder: &Path,
    ran: &Ran,
) -> bool {
    if !(ran.refused || never_forked(plan, ran)) || ran.tools_run > 0 {
        return false;
    }
    let mut run = Run {
        adapter,
        attempt,
        plan,
        ran,
        folder,
        models: &BTreeMap::new(),
        rests: false,
        read: Err("it was not read".into()),
    };
    run.read = run.read().await;
    run.unseen().is_empty() && !run.did_elsewhere().await
}

/// A CLI that does not know how to fork complains of its arguments and opens no session.
fn never_forked(plan: &AttemptPlan, ran: &Ran) -> bool {
    let complained =
        |failure: &Failure| matches!(failure.class, Class::NotStarted | Class::Unknown);
    plan.forked.is_some() && ran.session.is_none() && ran.outcome.failure().is_some_and(complained)
}

/// Ends what a shim that was killed could not end any more.
pub(crate) fn clear_away(claimed: &Claimed, pumped: &mut Pumped) -> Result<(), Error> {
    if pumped.cause != EndCause::Unseen {
        return Ok(());
    }
    let turn = claimed.turn.id.to_string();
    let left = leftovers::marked(&turn);
    pumped.leftovers = left
        .iter()
        .map(|l| format!("{} {}", l.pid, l.command))
        .collect();
    pumped.kept = claimed.request.keep_background && pumped.ran.outcome == Outcome::Succeeded;
    if !pumped.kept {
        leftovers::end_marked(&turn).map_err(Error::io("ending what the turn left running"))?;
    }
    Ok(())
}

fn note(record: &mut TurnRecord, denied: usize, compacted: bool, kept: bool) {
    match denied {
        0 => {}
        1 => record.notes.push("1 tool denied".into()),
        n => record.notes.push(format!("{n} tools denied")),
    }
    if compacted {
        record.notes.push("compacted by the agent".into());
    }
    let text = match (record.leftovers.len(), kept) {
        (0, _) => return,
        (1, true) => "1 process is left running".into(),
        (1, false) => "1 process it left running was ended".into(),
        (n, true) => format!("{n} processes are left running"),
        (n, false) => format!("{n} processes it left running were ended"),
    };
    record.notes.push(text);
}

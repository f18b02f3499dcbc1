//! What a finished run leaves behind: the session read and confirmed, or cut back to what it was;
//! the turn's own cost; one report for the hub.

use std::path::Path;

use rejoin_agents::{Adapter, Denied, EndCause, Ran, Reading, Records, SessionAt};
use rejoin_core::{
    Class, Cost, FileMark, Micros, Outcome, Pin, PinEffect, PinId, PinState, Seen, SessionId,
    ToolNote, TotalsScope, TurnStatus, Usage,
};
use rejoin_hub::{AttemptPlan, Claimed, PinEnd, Settled, fault};
use rejoin_store::{Attempt, TurnRecord};

use crate::error::Error;
use crate::pump::Pumped;
use crate::session::Sessions;
use crate::{folder, leftovers};

/// A run, as it was written ahead.
pub struct Written<'a> {
    pub adapter: &'static dyn Adapter,
    pub attempt: &'a Attempt,
    pub plan: &'a AttemptPlan,
    pub record: TurnRecord,
    /// Of the run, with what was saved for it.
    pub folder: &'a Path,
}

/// Everything but the refusal of a session, which is retried first.
pub async fn settle(
    claimed: &Claimed,
    written: Written<'_>,
    pumped: Pumped,
    machine: &str,
) -> Settled {
    let Written {
        adapter,
        attempt,
        plan,
        mut record,
        folder,
    } = written;
    let Pumped {
        ran,
        cause,
        leftovers,
        kept,
    } = pumped;
    let mut run = Run {
        adapter,
        attempt,
        plan,
        ran: &ran,
        folder,
        read: Err("it was not read".into()),
    };
    run.read = run.read().await;
    run.tidy();
    record.tools_run = ran.tools_run;
    record.leftovers = leftovers;
    record.session_id = run.session().map(ToString::to_string);
    let denied = run.denied();
    let unseen = run.unseen();
    record.tools_run += unseen.len() as u64;
    note(&mut record, denied.len(), run.compacted(), kept);
    let mut context = ran.context;
    let (status, pin) = match &ran.outcome {
        Outcome::Succeeded => match run.confirm(machine) {
            Ok(pin) => {
                context = pin.context;
                (TurnStatus::Succeeded, PinEnd::Confirm(Box::new(pin)))
            }
            Err(why) => {
                record.notes.push(format!(
                    "not recorded by {}: {why}; the next turn is told again",
                    claimed.turn.agent
                ));
                (TurnStatus::Succeeded, run.take_back(PinEffect::Keep))
            }
        },
        Outcome::Failed(failure) => (
            TurnStatus::Failed,
            run.take_back(failure.class.on_session()),
        ),
        Outcome::Cancelled => (TurnStatus::Cancelled, run.take_back(PinEffect::Keep)),
        Outcome::Lost(_) => (TurnStatus::Lost, run.take_back(PinEffect::Keep)),
    };
    fault::point("after_read");
    Settled {
        status,
        answer: (status == TurnStatus::Succeeded).then(|| ran.text.clone()),
        error: ran.outcome.failure().cloned(),
        trail: trail(&ran, &unseen, status),
        cost: run.cost(cause),
        model: run.model(),
        usage: run.usage(),
        context,
        denied: serde_json::to_value(&denied).unwrap_or_default(),
        saved: "local_only".into(),
        attempt: Some(attempt.n),
        record,
        pin,
    }
}

struct Run<'a> {
    adapter: &'static dyn Adapter,
    attempt: &'a Attempt,
    plan: &'a AttemptPlan,
    ran: &'a Ran,
    folder: &'a Path,
    /// What was added to the session, and its mark.
    read: Result<(FileMark, Reading), String>,
}

impl Run<'_> {
    /// The session the run wrote to: as the CLI was told, or as it said itself.
    fn session(&self) -> Option<&SessionId> {
        if self.plan.asked {
            return Some(&self.plan.session);
        }
        let named = self.ran.session.as_ref();
        named.filter(|id| self.adapter.is_session_id(id))
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions {
            adapter: self.adapter,
            home: Path::new(&self.plan.home),
        }
    }

    /// Reads what was added to the session.
    async fn read(&self) -> Result<(FileMark, Reading), String> {
        let session = self.session().ok_or("it did not say which session it is")?;
        let path = self.session_file(session)?;
        let before = self.plan.confirmed.as_ref();
        let cursor = before.and_then(|c| c.cursor.as_deref());
        self.sessions()
            .read_on(&path, before.map(|c| &c.file), cursor)
            .await
            .map_err(|e| format!("its session cannot be read ({e})"))
    }

    fn reading(&self) -> Option<&Reading> {
        self.read.as_ref().ok().map(|(_, reading)| reading)
    }

    /// A run that ended well has done so itself, and others may be running in the same folder.
    fn tidy(&self) {
        if self.ran.outcome == Outcome::Succeeded {
            return;
        }
        for name in &self.plan.litter {
            // Fails if there is something in it.
            drop(fs_err::remove_dir(
                Path::new(&self.plan.folder.path).join(name),
            ));
        }
    }

    /// Calls of which only the session tells. How far they got, nobody knows.
    fn unseen(&self) -> Vec<ToolNote> {
        let stopped = |denied: &Denied| ToolNote {
            tool: denied.tool.clone(),
            subject: denied.input.clone(),
            changed_file: false,
            finished: false,
        };
        let seen = |note: &ToolNote| {
            let same = |told: &ToolNote| (&told.tool, &told.subject) == (&note.tool, &note.subject);
            self.ran.trail.iter().any(same)
        };
        let begun = self
            .reading()
            .into_iter()
            .flat_map(|reading| &reading.begun);
        let begun = begun.filter(|note| !seen(note)).cloned();
        self.stopped().map(stopped).chain(begun).collect()
    }

    fn stopped(&self) -> impl Iterator<Item = &Denied> {
        self.reading()
            .into_iter()
            .flat_map(|reading| &reading.denied)
    }

    /// All that was not allowed. What the CLI could not name, the session can.
    fn denied(&self) -> Vec<Denied> {
        let named = |denied: &Denied| {
            !denied.id.is_empty() || !self.stopped().any(|stopped| stopped.tool == denied.tool)
        };
        let mut all = self.ran.denied.clone();
        all.retain(named);
        all.extend(self.stopped().cloned());
        all
    }

    fn compacted(&self) -> bool {
        self.ran.compacted || self.reading().is_some_and(|reading| reading.compacted)
    }

    fn model(&self) -> Option<String> {
        let read = || self.reading().and_then(|reading| reading.model.clone());
        self.ran.model.clone().or_else(read)
    }

    /// Only if what was added is the prompt we sent and the answer we got, and nothing is broken,
    /// may the session serve again.
    fn confirm(&self, machine: &str) -> Result<Pin, String> {
        let (plan, ran) = (self.plan, self.ran);
        let session = self.session().ok_or("it did not say which session it is")?;
        let before = plan.confirmed.as_ref();
        let (mark, reading) = self.read.as_ref().map_err(Clone::clone)?;
        self.must_be_ours(reading)?;
        reading.confirms(&plan.prompt, &ran.text)?;
        let mut folder = plan.folder.clone();
        if folder.checkout.is_none() {
            folder.checkout = folder::checkout_of(Path::new(&folder.path));
        }
        let runtime = match &ran.version {
            Some(version) => rejoin_core::Runtime {
                version: rejoin_core::Version(version.clone()),
                ..plan.runtime.clone()
            },
            None => plan.runtime.clone(),
        };
        Ok(Pin {
            id: self.attempt.pin,
            agent: rejoin_core::AgentName::new(self.adapter.name()).map_err(|e| e.to_string())?,
            session: session.clone(),
            state: PinState::Confirmed,
            seen: Seen {
                value: plan.value(),
                messages: plan.messages,
                last_seq: 0,
                last: None,
            },
            folder,
            runtime,
            machine: machine.to_owned(),
            files: vec![mark.clone()],
            cursor: reading.cursor.clone(),
            total: self.total_kept(),
            usage: self.usage_kept(),
            context: ran.context.or(reading.context),
            model: plan.model.clone().or_else(|| self.model()),
            provider: reading.provider.clone(),
            failures: 0,
            compacted: self.compacted() || before.is_some_and(|c| c.compacted),
        })
    }

    /// No unknown tails: the session goes back to its confirmed bytes, or is never used again.
    fn take_back(&self, effect: PinEffect) -> PinEnd {
        let id: PinId = self.attempt.pin;
        let Some(before) = &self.plan.confirmed else {
            return PinEnd::Retire {
                id,
                why: "its first turn was not finished".into(),
            };
        };
        // Also one that is not used again: its owner may go on with it by hand.
        let cut = self.cut_back(&before.file);
        if effect == PinEffect::Retire {
            let why = self
                .ran
                .outcome
                .failure()
                .map_or("refused", |f| f.class.as_str());
            return PinEnd::Retire {
                id,
                why: format!("the last turn on it failed: {why}"),
            };
        }
        match cut {
            Ok(mark) => {
                let failures = before.failures + u32::from(effect == PinEffect::Count);
                PinEnd::PutBack {
                    id,
                    files: vec![mark],
                    failures,
                }
            }
            Err(why) => PinEnd::Retire {
                id,
                why: format!("it could not be cut back: {why}"),
            },
        }
    }

    fn must_be_ours(&self, reading: &Reading) -> Result<(), String> {
        if reading.prompts.iter().any(|id| *id != self.plan.prompt) {
            return Err("somebody else went on with it".into());
        }
        Ok(())
    }

    /// Where it lies. The place of a session whose id the CLI chose is found out now.
    fn session_file(&self, session: &SessionId) -> Result<String, String> {
        if let Some(path) = &self.plan.session_file {
            return Ok(path.clone());
        }
        let at = SessionAt {
            folder: &self.plan.folder.path,
            session,
            pin: &self.attempt.pin.to_string(),
        };
        let found = self.sessions().locate(&at);
        found.ok_or_else(|| "its session is nowhere to be found".into())
    }

    /// Never cuts away what somebody else said in it meanwhile.
    fn cut_back(&self, mark: &FileMark) -> Result<FileMark, String> {
        // What cannot be read can still be replaced by its copy.
        match &self.read {
            Ok((_, reading)) => self.must_be_ours(reading)?,
            Err(error) => match self.adapter.records() {
                Records::Lines => return Err(error.clone()),
                Records::Database { .. } => {}
            },
        }
        self.sessions()
            .cut_back(mark, self.folder)
            .map_err(|e| e.to_string())
    }

    /// What its totals cover was proven for one version, and holds for no other.
    fn proven(&self, scope: TotalsScope) -> TotalsScope {
        let version = &self.plan.runtime.version.0;
        let same = self.ran.version.as_ref().is_none_or(|ran| ran == version);
        if same { scope } else { TotalsScope::Unproven }
    }

    fn totals(&self) -> TotalsScope {
        self.proven(self.plan.totals)
    }

    /// The turn's own tokens.
    fn usage(&self) -> Option<Usage> {
        let before = match &self.plan.confirmed {
            None => Some(Usage::default()),
            Some(confirmed) => confirmed.usage,
        };
        // A run that counted nothing has nothing to be subtracted from, but its session may know.
        if self.ran.usage == Usage::default() {
            return match self.reading().and_then(|reading| reading.usage) {
                Some(total) => Usage::of_turn(TotalsScope::Cumulative, total, before),
                None => Some(self.ran.usage),
            };
        }
        Usage::of_turn(self.proven(self.plan.usage), self.ran.usage, before)
    }

    fn usage_kept(&self) -> Option<Usage> {
        match self.proven(self.plan.usage) {
            TotalsScope::Cumulative => Some(self.ran.usage),
            TotalsScope::PerRun | TotalsScope::Unproven => None,
        }
    }

    /// The session's total when the turn began.
    fn total_before(&self) -> Option<Micros> {
        match &self.plan.confirmed {
            None => Some(Micros(0)),
            Some(confirmed) => confirmed.total,
        }
    }

    /// The session's total when its next turn begins. A CLI that counts per run leaves it as it is:
    /// one that adds up, after an upgrade, goes on from there (2.1.325 on a session of 2.1.197).
    fn total_kept(&self) -> Option<Micros> {
        match self.totals() {
            TotalsScope::Cumulative => self.ran.total,
            TotalsScope::PerRun => self.total_before(),
            TotalsScope::Unproven => None,
        }
    }

    /// Of a run that was cut off nobody knows it: the call that was being answered is in no total
    /// (2.1.325 then reports what the session had cost before, as if this turn were free).
    fn cost(&self, cause: EndCause) -> Cost {
        let cut_off = match &self.ran.outcome {
            Outcome::Succeeded => false,
            Outcome::Failed(failure) => {
                failure.class == Class::Interrupted
                    || !matches!(cause, EndCause::ByItself | EndCause::Unseen)
            }
            Outcome::Cancelled | Outcome::Lost(_) => true,
        };
        if cut_off {
            return Cost::Unknown;
        }
        Cost::of_turn(self.totals(), self.ran.total, self.total_before())
    }
}

/// What the next turn must know the tools did; in an unanswered one also what was only started.
fn trail(ran: &Ran, unseen: &[ToolNote], status: TurnStatus) -> Vec<ToolNote> {
    let worth_telling = |note: &&ToolNote| note.finished || status != TurnStatus::Succeeded;
    let all = ran.trail.iter().chain(unseen);
    all.filter(worth_telling).cloned().collect()
}

/// Ends what a shim that was killed could not end any more.
pub fn clear_away(claimed: &Claimed, pumped: &mut Pumped) -> Result<(), Error> {
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

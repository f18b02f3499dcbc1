//! Ends a turn: outcome, answer, cost and pin in one transaction.

use rejoin_agents::SessionMessage;
use rejoin_core::{
    Class, Context, Cost, EventBody, Failure, FileMark, MessageState, PastTurn, Pin, PinId, Reason,
    Role, SummaryFacts, ToolNote, TurnStatus, Usage, Verdict, summary,
};
use rejoin_store::{CapturedSession, HERE, NewMessage, StoredTurn, TurnEnd, TurnRecord};
use serde_json::Value;

use crate::Hub;
use crate::claim::Claimed;
use crate::error::Result;
use crate::metrics::TurnMetrics;
use crate::snapshots::{FAILED, LOCAL_ONLY, STORED};

/// Result of a run, after its processes are gone and its session was read.
#[derive(Debug, Clone)]
pub struct Settled {
    pub status: TurnStatus,
    /// Answer of the agent. Only a succeeded turn has one.
    pub answer: Option<String>,
    pub error: Option<Failure>,
    pub trail: Vec<ToolNote>,
    pub record: TurnRecord,
    pub model: Option<String>,
    pub usage: Option<Usage>,
    pub cost: Cost,
    pub context: Option<Context>,
    pub denied: Value,
    pub saved: String,
    /// Snapshot of the session. `unsaved` is the reason if it could not be taken.
    pub snapshot: Option<CapturedSession>,
    pub unsaved: Option<String>,
    pub attempt: Option<i64>,
    /// End of the run, in microseconds since 1970. `None`: now.
    pub ended_at: Option<i64>,
    /// Duration of the whole run in milliseconds, as measured by its shim. `None` if the shim did
    /// not measure all of it.
    pub ran_ms: Option<u64>,
    pub pin: PinEnd,
    /// Messages that a user added to the session with the CLI meanwhile.
    pub outside: Vec<SessionMessage>,
}

impl Settled {
    /// Returns the same result without a snapshot of the session.
    #[must_use]
    pub fn without_snapshot(&self, why: &str) -> Self {
        let mut settled = self.clone();
        settled.snapshot = None;
        settled.saved = FAILED.into();
        settled.record.notes.push(format!("not saved: {why}"));
        settled.unsaved = Some(why.to_owned());
        settled
    }
}

/// Fate of the session.
#[derive(Debug, Clone)]
pub enum PinEnd {
    /// No session was opened.
    None,
    /// Opened for a run that never began; the session is unchanged.
    Untouched(PinId),
    /// Read, and found to hold the prompt and the answer. `pin.seen.value` is the value with the
    /// prompt; the answer is folded in here, in the transaction that gives it its position.
    Confirm(Box<Pin>),
    /// Cut back to its confirmed bytes.
    PutBack {
        id: PinId,
        files: Vec<FileMark>,
        failures: u32,
    },
    Retire {
        id: PinId,
        why: String,
    },
    /// The session files became unreachable during the turn. Only a snapshot can replace them.
    Lost {
        id: PinId,
        why: String,
    },
}

impl Hub {
    pub async fn finish(&self, claimed: &Claimed, settled: &Settled) -> Result<()> {
        let asked = self.climb_asked(claimed, settled).await?;
        let without_block = asked.as_ref().map(|(_, text)| Settled {
            answer: Some(text.clone()),
            ..settled.clone()
        });
        let settled = without_block.as_ref().unwrap_or(settled);
        let now = self.clock.now();
        let (turn, conversation) = (&claimed.turn, claimed.conversation.id);
        // A turn that no process followed may have ended long before it is settled.
        let ended_at = settled.ended_at.map_or(now, |at| at.min(now));
        let took = self.took(claimed, settled, (ended_at, now));
        let reply = settled
            .answer
            .as_ref()
            .map(|_| self.clock.message_id())
            .transpose()?;
        let handle = self
            .store
            .read()
            .await?
            .conversations()
            .short_handle(&claimed.conversation.handle)
            .await?;
        let fresh_estimate = match (settled.usage, settled.cost, settled.status) {
            (Some(usage), Cost::Known(cost), TurnStatus::Succeeded) if usage.cache_read > 0 => {
                let held = settled.context.map(|c| c.used);
                let resumed = true;
                let this = PastTurn {
                    usage,
                    cost,
                    resumed,
                    held,
                };
                self.estimate_fresh(turn, this).await?
            }
            _ => None,
        };
        let mut tx = self.store.begin().await?;
        let answer = match (&settled.answer, reply) {
            (Some(text), Some(id)) => {
                let new = NewMessage {
                    id,
                    conversation,
                    turn: turn.id,
                    role: Role::Assistant,
                    agent: Some(&turn.agent),
                    text,
                    trail: &settled.trail,
                    origin: HERE,
                    root: None,
                    state: MessageState::Ok,
                    now,
                };
                Some(tx.messages().add_placed(&new).await?)
            }
            _ => {
                tx.messages()
                    .mark_unanswered(turn.message, &settled.trail)
                    .await?;
                None
            }
        };
        self.say(&mut tx, conversation, &turn.agent, &settled.outside, now)
            .await?;
        let last_seq = match &answer {
            Some(answer) => answer.seq,
            // Messages from outside may have been placed before it meanwhile.
            None => (tx.messages().get(turn.message).await?).map_or(0, |m| m.message.seq),
        };
        let mut saved = settled.saved.as_str();
        match &settled.pin {
            PinEnd::None => {}
            PinEnd::Untouched(id) => tx.pins().forget(*id).await?,
            PinEnd::Confirm(pin) => {
                let mut pin = (**pin).clone();
                if let Some(answer) = &answer {
                    pin.seen.value = pin.seen.value.fold(&answer.digest());
                    pin.seen.messages += 1;
                    pin.seen.last_seq = answer.seq;
                    pin.seen.last = Some(answer.id);
                }
                if !tx.pins().confirm(&pin, now).await? {
                    let why = "its session belongs to another conversation";
                    tx.pins().retire(pin.id, why, now).await?;
                    saved = LOCAL_ONLY;
                } else if let Some(captured) = &settled.snapshot {
                    let kept = self.keep_snapshot(&mut tx, conversation, &pin, captured);
                    if !kept.await? {
                        saved = FAILED;
                    }
                } else if let Some(why) = &settled.unsaved {
                    tx.snapshots().set_unsaved(pin.id, Some(why)).await?;
                }
            }
            PinEnd::PutBack {
                id,
                files,
                failures,
            } => {
                tx.pins().put_back(*id, files, *failures, now).await?;
                tx.snapshots().forget_open(*id, false).await?;
            }
            PinEnd::Retire { id, why } => {
                tx.pins().retire(*id, why, now).await?;
                // Snapshots of a session that was never confirmed are never used.
                let never = tx
                    .pins()
                    .get(*id)
                    .await?
                    .is_some_and(|stored| stored.pin.is_none());
                tx.snapshots().forget_open(*id, never).await?;
            }
            PinEnd::Lost { id, why } => tx.leases().lose_pin(*id, why, now).await?,
        }
        if let Some(n) = settled.attempt {
            let session = settled.record.session_id.as_deref();
            tx.attempts()
                .end(turn.id, n, settled.status.as_str(), session)
                .await?;
        }
        let decided = tx.turns().get(turn.id).await?;
        let verdict = decided.as_ref().and_then(|t| t.verdict);
        let reason = decided.and_then(|t| t.reason);
        let reference = format!("{handle}:{last_seq}");
        let mut notes = settled.record.notes.clone();
        let advise = |class: Class| class.advise(&reference, turn.agent.as_str());
        notes.extend(settled.error.as_ref().map(|e| advise(e.class)));
        let continued = matches!(
            verdict,
            Some(Verdict::Resumed | Verdict::Restored | Verdict::Live)
        );
        let saved_by_session = fresh_estimate.filter(|_| continued);
        let line = summary(&SummaryFacts {
            status: settled.status,
            verdict,
            reason,
            because: settled.record.because.as_deref(),
            sent: settled.record.sent,
            caught_up_by: settled.record.caught_up_by.as_deref(),
            reference: &reference,
            agent: turn.agent.as_str(),
            model: settled
                .model
                .as_deref()
                .or(claimed.request.model.as_deref()),
            usage: settled.usage,
            cost: settled.cost,
            fresh_estimate: saved_by_session,
            duration_ms: took,
            failure: settled.error.as_ref(),
            tools_run: settled.record.tools_run,
            notes: &notes,
        });
        let record = TurnRecord {
            took_ms: Some(took),
            fresh_estimate: saved_by_session,
            ..settled.record.clone()
        };
        let ending = TurnEnd {
            status: settled.status,
            reply,
            record: &record,
            model: settled.model.as_deref(),
            usage: settled.usage,
            cost: settled.cost,
            context: settled.context,
            denied: settled.denied.clone(),
            error: settled.error.as_ref(),
            saved,
            summary: &line,
            ended_at,
        };
        let counted = TurnMetrics {
            agent: &turn.agent,
            status: settled.status,
            verdict,
            reason,
            took_ms: took,
            usage: settled.usage,
            cost: settled.cost,
            held: settled.context.map(|c| c.used),
            fresh: fresh_estimate,
        };
        tx.turns().end(turn.id, turn.fence, &ending).await?;
        tx.questions().forget_pending(turn.id).await?;
        if let Some((asked, _)) = &asked {
            self.climb_after(&mut tx, claimed, asked, now).await?;
        }
        tx.conversations().stamp(conversation, ended_at).await?;
        let ended = EventBody::TurnEnded {
            status: settled.status.to_string(),
            summary: line,
        };
        tx.events()
            .add(conversation, turn.id, now, &[ended])
            .await?;
        let kept = settled.snapshot.as_ref().filter(|_| saved == STORED);
        tx.commit().await?;
        counted.count();
        if let Some(captured) = kept {
            let bytes: u64 = captured.files.iter().map(|file| file.length).sum();
            let (turn, session) = (turn.id, settled.record.session_id.as_deref());
            tracing::info!(%turn, session, bytes, added = captured.added, "Session persisted");
        }
        tracing::info!(
            turn = %turn.id,
            %conversation,
            agent = %turn.agent,
            status = %settled.status,
            verdict = verdict.map(Verdict::as_str),
            reason = reason.map(Reason::as_str),
            class = settled.error.as_ref().map(|e| e.class.as_str()),
            "turn ended"
        );
        self.trace(claimed, settled, verdict, reason, now).await;
        Ok(())
    }
}

impl Hub {
    /// Returns the duration of the turn by a clock that cannot be set: this process's own
    /// measurement, else its shim's. Only a turn with neither is measured by its stored times.
    fn took(&self, claimed: &Claimed, settled: &Settled, (ended, now): (i64, i64)) -> u64 {
        let millis =
            |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let own = claimed.since.map(|since| {
            // A run may have ended long before it is settled.
            let late = duration_ms(Some(ended), now);
            let own = millis(self.clock.since_boot().saturating_sub(since));
            own.saturating_sub(late).max(settled.ran_ms.unwrap_or(0))
        });
        own.or(settled.ran_ms)
            .unwrap_or_else(|| duration_ms(claimed.turn.started_at, ended))
    }
}

/// Returns the duration of a stored turn, or 0 if it has not ended.
pub(crate) fn took_ms(turn: &StoredTurn) -> u64 {
    let by_times = || turn.ended_at.map(|end| duration_ms(turn.started_at, end));
    turn.record.took_ms.or_else(by_times).unwrap_or(0)
}

fn duration_ms(started: Option<i64>, ended: i64) -> u64 {
    started.map_or(0, |at| ((ended - at) / 1000).max(0) as u64)
}

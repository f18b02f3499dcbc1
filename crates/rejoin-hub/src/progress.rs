//! Records the progress of a turn: first the decision, before a process starts, then events, each
//! batch together with the offset in the spool up to which it was read.

use rejoin_agents::Facts;
use rejoin_core::{
    EventBody, FileMark, Folder, Micros, Pin, PinId, Reason, Runtime, ScopeValue, Sent, SessionId,
    TotalsScope, TurnId, Usage, Verdict,
};
use rejoin_store::{Attempt, EventRow, NewQuestion, TurnRecord};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::accept::to_json;
use crate::claim::Claimed;
use crate::deferred::EarlierRuns;
use crate::error::{Error, Result};

/// All data needed to settle a run, also by a process that did not start it or by a newer build.
/// Fields are only added, and a missing one has a default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptPlan {
    /// Session id, or our own placeholder until the CLI has chosen one.
    pub session: SessionId,
    /// True if rejoin passed this id to the CLI; false if the CLI chooses the id.
    #[serde(default = "told")]
    pub asked: bool,
    /// Scope value including the new message. Folded with the answer, it becomes the pin's value.
    pub value: [u8; 32],
    pub messages: u64,
    pub folder: Folder,
    pub runtime: Runtime,
    pub totals: TotalsScope,
    pub model: Option<String>,
    /// Scope of the CLI's token counts.
    #[serde(default = "unproven")]
    pub usage: TotalsScope,
    /// Home of the agent. `session_file` is the session's path in it; `None`: the CLI has yet to
    /// choose.
    pub home: String,
    pub session_file: Option<String>,
    /// Mark by which a reader of the session finds the prompt.
    #[serde(default)]
    pub prompt: String,
    /// Session as confirmed before this run. `None`: a new session.
    pub confirmed: Option<Confirmed>,
    /// Set if the session begins with a copy of a session of the conversation's parent.
    #[serde(default)]
    pub forked: Option<Forked>,
    pub sent: Sent,
    /// Boot id of the machine. No process of the run survives a reboot.
    pub boot: String,
    /// Paths that did not exist in the working directory and must not stay there as empty
    /// leftovers.
    #[serde(default)]
    pub litter: Vec<String>,
    /// Hash of the standing instructions that the session has received after this run.
    #[serde(default)]
    pub instructions: Option<String>,
    /// True if a person can answer the agent's questions, so that the run waits for answers.
    #[serde(default)]
    pub asks: bool,
    /// Results of earlier runs, if this one continues a deferred question. After this run defers
    /// one itself, includes its own results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<EarlierRuns>,
    /// Set if the run continues in the process of the previous turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveProcess>,
}

/// State of a process that has answered earlier turns.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LiveProcess {
    /// Cost by the process's own count before this turn. `None`: unknown.
    pub total: Option<Micros>,
}

// Defaults for plans that builds without these fields wrote.
fn told() -> bool {
    true
}

fn unproven() -> TotalsScope {
    TotalsScope::Unproven
}

/// State of a resumed session before the run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Confirmed {
    pub file: FileMark,
    pub cursor: Option<String>,
    pub total: Option<Micros>,
    pub usage: Option<Usage>,
    pub failures: u32,
    pub compacted: bool,
    #[serde(default)]
    pub summarised: u64,
}

impl Confirmed {
    pub fn of(pin: &Pin, file: FileMark) -> Self {
        Self {
            file,
            cursor: pin.cursor.clone(),
            total: pin.total,
            usage: pin.usage,
            failures: pin.failures,
            compacted: pin.compacted,
            summarised: pin.seen.summarised,
        }
    }
}

/// State of the session that a fork copied. Its counts continue in the copy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Forked {
    pub session: SessionId,
    pub total: Option<Micros>,
    pub usage: Option<Usage>,
    pub compacted: bool,
    #[serde(default)]
    pub summarised: u64,
}

impl Forked {
    pub fn of(parent: &Pin) -> Self {
        Self {
            session: parent.session.clone(),
            total: parent.total,
            usage: parent.usage,
            compacted: parent.compacted,
            summarised: parent.seen.summarised,
        }
    }
}

impl AttemptPlan {
    /// Returns true if the session continues an earlier turn, in place or as a copy.
    pub fn continues(&self) -> bool {
        self.confirmed.is_some() || self.forked.is_some()
    }

    /// Returns the cost of the session at the start of the run. `None`: unknown.
    pub fn total_before(&self) -> Option<Micros> {
        if let Some(so_far) = &self.so_far {
            return so_far.total;
        }
        match (&self.confirmed, &self.forked) {
            (Some(confirmed), _) => confirmed.total,
            (None, Some(parent)) => parent.total,
            (None, None) => Some(Micros(0)),
        }
    }

    /// Returns the token counts of the session at the start of the run. `None`: unknown.
    pub fn usage_before(&self) -> Option<Usage> {
        if let Some(so_far) = &self.so_far {
            return so_far.counted;
        }
        match (&self.confirmed, &self.forked) {
            (Some(confirmed), _) => confirmed.usage,
            (None, Some(parent)) => parent.usage,
            (None, None) => Some(Usage::default()),
        }
    }

    pub fn compacted_before(&self) -> bool {
        let own = self.confirmed.as_ref().is_some_and(|c| c.compacted);
        own || self.forked.as_ref().is_some_and(|f| f.compacted)
    }

    /// Counts the messages that the session held only in its agent's summary when the run began.
    pub fn summarised_before(&self) -> u64 {
        let own = self.confirmed.as_ref().map(|c| c.summarised);
        let parents = self.forked.as_ref().map(|f| f.summarised);
        own.or(parents).unwrap_or(0)
    }

    /// Returns the session id that rejoin passed to the CLI, if it did.
    pub fn asked_session(&self) -> Option<SessionId> {
        self.asked.then(|| self.session.clone())
    }

    pub fn value(&self) -> ScopeValue {
        ScopeValue(self.value)
    }

    pub fn read(attempt: &Attempt) -> Result<Self> {
        let mut plan: Self = serde_json::from_value(attempt.plan.clone())
            .map_err(|e| Error::Internal(format!("the plan of an attempt cannot be read: {e}")))?;
        if plan.prompt.is_empty() {
            plan.prompt.clone_from(&attempt.prompt_id);
        }
        Ok(plan)
    }
}

/// Pin that a run writes to.
#[derive(Debug, Clone, Copy)]
pub enum PinStart {
    New(PinId),
    Existing(PinId),
}

impl PinStart {
    pub fn id(self) -> PinId {
        match self {
            Self::New(id) | Self::Existing(id) => id,
        }
    }
}

/// Parameters of an attempt that is about to start.
#[derive(Debug, Clone)]
pub struct BeginAttempt<'a> {
    pub n: i64,
    pub verdict: Verdict,
    pub reason: Option<Reason>,
    pub prompt_id: String,
    pub pin: PinStart,
    pub plan: &'a AttemptPlan,
    pub record: &'a TurnRecord,
    /// Number of the previous attempt, if the CLI refused it.
    pub refused: Option<i64>,
    /// Text that rejoin adds to the message, if it is worth keeping.
    pub context: Option<&'a str>,
}

impl Hub {
    /// Records the decision, the attempt and the pin as `open`, in one transaction. Only then may a
    /// process start.
    pub async fn begin_attempt(&self, claimed: &Claimed, begin: &BeginAttempt<'_>) -> Result<()> {
        let now = self.clock.now();
        let (turn, conversation) = (claimed.turn.id, claimed.conversation.id);
        let mut tx = self.store.begin().await?;
        tx.turns()
            .record_decision(
                turn,
                claimed.turn.fence,
                begin.verdict,
                begin.reason,
                begin.record,
            )
            .await?;
        if let Some(n) = begin.refused {
            tx.attempts().end(turn, n, "refused", None).await?;
        }
        tx.attempts()
            .add(
                turn,
                &Attempt {
                    n: begin.n,
                    verdict: begin.verdict,
                    reason: begin.reason,
                    status: "running".into(),
                    session_id: begin.plan.session.to_string(),
                    pin: begin.pin.id(),
                    prompt_id: begin.prompt_id.clone(),
                    plan: to_json(begin.plan)?,
                    spool: 0,
                },
            )
            .await?;
        if let Some(context) = begin.context {
            tx.prompts().add(turn, begin.n, context).await?;
        }
        match begin.pin {
            PinStart::New(id) => {
                tx.pins()
                    .open_new(
                        id,
                        conversation,
                        &claimed.turn.agent,
                        &begin.plan.session,
                        turn,
                        now,
                    )
                    .await?;
            }
            PinStart::Existing(id) => tx.pins().open(id, turn, now).await?,
        }
        let decided = EventBody::TurnDecided {
            verdict: begin.verdict.to_string(),
            reason: begin.reason.map(|r| r.to_string()),
            checks: begin.record.checks.clone(),
            sent: to_json(&begin.record.sent)?,
        };
        tx.events().add(conversation, turn, now, &[decided]).await?;
        Ok(tx.commit().await?)
    }

    /// Returns the attempt that was recorded as started and is not known to have ended.
    pub async fn running_attempt(&self, turn: TurnId) -> Result<Option<Attempt>> {
        let attempts = self.store.read().await?.attempts().of(turn).await?;
        Ok(attempts.into_iter().rev().find(|a| a.status == "running"))
    }

    /// Commits events, questions and the spool offset that they were read up to, in one
    /// transaction, so that each line counts once.
    pub async fn append(
        &self,
        claimed: &Claimed,
        n: i64,
        events: &[EventBody],
        asked: &[NewQuestion],
        spool: u64,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.attempts()
            .advance_spool(claimed.turn.id, claimed.turn.fence, n, spool as i64)
            .await?;
        let (conversation, turn) = (claimed.conversation.id, claimed.turn.id);
        let now = self.clock.now();
        tx.events().add(conversation, turn, now, events).await?;
        self.count_calls(&mut tx, claimed, events, now).await?;
        if !asked.is_empty() {
            tx.questions()
                .add(conversation, turn, n, now, asked)
                .await?;
        }
        Ok(tx.commit().await?)
    }

    /// Returns at most `limit` events of a turn behind `after`.
    pub async fn events_of(&self, turn: TurnId, after: i64, limit: i64) -> Result<Vec<EventRow>> {
        Ok(self
            .store
            .read()
            .await?
            .events()
            .of_turn(turn, after, limit)
            .await?)
    }

    /// Plans the statements that end a turn, while its run goes on.
    pub async fn expect_end(&self) {
        self.store.expect_end().await;
    }

    /// Writes the log of the store back into the database, if no task uses the writer.
    pub fn checkpoint(&self) {
        self.store.write_back();
    }

    /// Returns the stored facts about a binary.
    pub async fn binary(&self, identity: &str) -> Result<Option<Facts>> {
        Ok(self.store.read().await?.binaries().get(identity).await?)
    }

    /// Stores the facts about a binary.
    pub async fn keep_binary(&self, identity: &str, agent: &str, facts: &Facts) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.binaries()
            .save(identity, agent, facts, self.clock.now())
            .await?;
        Ok(tx.commit().await?)
    }

    /// Deletes the facts about a binary that are no longer true.
    pub async fn forget_binary(&self, identity: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.binaries().forget(identity).await?;
        Ok(tx.commit().await?)
    }

    /// Retires a session that the CLI refused; it is never offered again.
    pub async fn retire(&self, claimed: &Claimed, pin: PinId, why: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        tx.pins().retire(pin, why, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

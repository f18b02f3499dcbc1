//! Keeps what happens in a turn while it happens: the decision before anything is started, then
//! events, each batch together with how far the spool was read.

use rejoin_core::{
    EventBody, FileMark, Folder, Micros, Pin, PinId, Reason, Runtime, ScopeValue, Sent, SessionId,
    TotalsScope, TurnId, Usage, Verdict,
};
use rejoin_store::{Attempt, NewQuestion, TurnRecord};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::accept::to_json;
use crate::claim::Claimed;
use crate::deferred::SoFar;
use crate::error::{Error, Result};

/// All that is needed to settle a run, also by a process that did not start it, or by a newer build:
/// fields are only added, and a missing one has its default.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AttemptPlan {
    /// Its id, or, until the CLI has chosen one, a name that is ours.
    pub session: SessionId,
    /// The CLI was told this id; else it chooses one itself.
    #[serde(default = "told")]
    pub asked: bool,
    /// The value of the scope with the new message: folded with the answer it becomes the pin's.
    pub value: [u8; 32],
    pub messages: u64,
    pub folder: Folder,
    pub runtime: Runtime,
    pub totals: TotalsScope,
    pub model: Option<String>,
    /// What its token counts cover.
    #[serde(default = "unproven")]
    pub usage: TotalsScope,
    /// The agent's own home, and where in it the session lies; none: the CLI has yet to choose.
    pub home: String,
    pub session_file: Option<String>,
    /// How a reader of the session will name the prompt.
    #[serde(default)]
    pub prompt: String,
    /// The session as confirmed before this run; none: a new one.
    pub confirmed: Option<Confirmed>,
    /// It begins with a copy of a session of the conversation that this one was forked from.
    #[serde(default)]
    pub forked: Option<Forked>,
    pub sent: Sent,
    /// Which run of the machine it was started in: after another start nothing of it lives.
    pub boot: String,
    /// What was not in the folder, and is not to stay there if it is left behind empty.
    #[serde(default)]
    pub litter: Vec<String>,
    /// The hash of the standing instructions that the session will have been told.
    #[serde(default)]
    pub instructions: Option<String>,
    /// There is somebody who could answer what it asks: it waits for that.
    #[serde(default)]
    pub asks: bool,
    /// The runs before it, if it goes on with a question that was put off; once it has put one off
    /// itself, with its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub so_far: Option<SoFar>,
    /// It goes on in the process of the turn before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live: Option<LiveFrom>,
}

/// A process that had answered before.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LiveFrom {
    /// What it had cost by then, as it counts itself; none: unknown.
    pub total: Option<Micros>,
}

// What a build before these fields meant.
fn told() -> bool {
    true
}

fn unproven() -> TotalsScope {
    TotalsScope::Unproven
}

/// What a resumed session was before the run.
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

/// The session that a fork was made of, as it was confirmed: its counts go on in the copy.
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
    /// It goes on with what an earlier turn left, in place or as a copy.
    pub fn continues(&self) -> bool {
        self.confirmed.is_some() || self.forked.is_some()
    }

    /// What its session had cost when the run began; none: unknown.
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

    /// The same in tokens.
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

    /// The session the CLI was told to use.
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

/// Which pin a run writes to.
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

/// A run that is about to begin.
#[derive(Debug, Clone)]
pub struct BeginAttempt<'a> {
    pub n: i64,
    pub verdict: Verdict,
    pub reason: Option<Reason>,
    pub prompt_id: String,
    pub pin: PinStart,
    pub plan: &'a AttemptPlan,
    pub record: &'a TurnRecord,
    /// The attempt before it was refused by the CLI.
    pub refused: Option<i64>,
}

impl Hub {
    /// One transaction: the decision, the attempt, and the pin as `open`; then it may be started.
    pub async fn begin_attempt(&self, claimed: &Claimed, begin: &BeginAttempt<'_>) -> Result<()> {
        let now = self.clock.now();
        let (turn, conversation) = (claimed.turn.id, claimed.conversation.id);
        let mut tx = self.store.begin().await?;
        tx.decided(
            turn,
            claimed.turn.fence,
            begin.verdict,
            begin.reason,
            begin.record,
        )
        .await?;
        if let Some(n) = begin.refused {
            tx.end_attempt(turn, n, "refused", None).await?;
        }
        tx.add_attempt(
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
        match begin.pin {
            PinStart::New(id) => {
                tx.open_new_pin(
                    id,
                    conversation,
                    &claimed.turn.agent,
                    &begin.plan.session,
                    turn,
                    now,
                )
                .await?;
            }
            PinStart::Existing(id) => tx.open_pin(id, turn, now).await?,
        }
        let decided = EventBody::TurnDecided {
            verdict: begin.verdict.to_string(),
            reason: begin.reason.map(|r| r.to_string()),
            checks: begin.record.checks.clone(),
            sent: to_json(&begin.record.sent)?,
        };
        tx.add_events(conversation, turn, now, &[decided]).await?;
        Ok(tx.commit().await?)
    }

    /// The run of a turn that was written ahead and is not known to have ended.
    pub async fn running_attempt(&self, turn: TurnId) -> Result<Option<Attempt>> {
        let attempts = self.store.read().await?.attempts(turn).await?;
        Ok(attempts.into_iter().rev().find(|a| a.status == "running"))
    }

    /// Commits events, what was asked and how far the spool was read for them, together: each line
    /// counts once.
    pub async fn append(
        &self,
        claimed: &Claimed,
        n: i64,
        events: &[EventBody],
        asked: &[NewQuestion],
        spool: u64,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.advance_spool(claimed.turn.id, claimed.turn.fence, n, spool as i64)
            .await?;
        let (conversation, turn) = (claimed.conversation.id, claimed.turn.id);
        let now = self.clock.now();
        tx.add_events(conversation, turn, now, events).await?;
        if !asked.is_empty() {
            tx.add_questions(conversation, turn, n, now, asked).await?;
        }
        Ok(tx.commit().await?)
    }

    /// What was found out about a binary is no longer true.
    pub async fn forget_binary(&self, identity: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.forget_binary(identity).await?;
        Ok(tx.commit().await?)
    }

    /// The CLI refused the session: it is never offered again.
    pub async fn retire(&self, claimed: &Claimed, pin: PinId, why: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        tx.retire_pin(pin, why, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

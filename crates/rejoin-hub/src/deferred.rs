//! Turns whose agent has put a question off and ended: they wait without a process, in nobody's hands,
//! and go on wherever they are taken up once the question is answered.

use rejoin_core::{
    Context, Cost, EventBody, FileMark, Micros, PinId, ToolNote, TurnId, Usage, Verdict,
};
use rejoin_store::Attempt;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::accept::to_json;
use crate::claim::Claimed;
use crate::error::Result;
use crate::progress::AttemptPlan;
use crate::{Hub, fault};

/// What such an attempt is called.
pub const DEFERRED: &str = "deferred";

const RESTS: &str =
    "nobody answered in time: its process has ended, and the question waits without it";

/// What the runs of a turn came to that ended with a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SoFar {
    /// The call that was put off.
    pub call: String,
    /// How often that very call was put off.
    pub times: u32,
    /// The session as the last of them left it.
    pub file: FileMark,
    pub text: String,
    pub trail: Vec<ToolNote>,
    /// Calls among these that still wait for a person.
    #[serde(default)]
    pub withheld: Vec<ToolNote>,
    pub tools_run: u64,
    pub denied: Vec<Value>,
    /// The turn's own.
    pub usage: Option<Usage>,
    /// None: unknown.
    pub cost: Option<Micros>,
    /// What the session had counted by then, in its CLI's own books.
    pub total: Option<Micros>,
    pub counted: Option<Usage>,
    pub context: Option<Context>,
    pub compacted: bool,
}

impl SoFar {
    pub fn cost(&self) -> Cost {
        self.cost.map_or(Cost::Unknown, Cost::Known)
    }
}

/// A run that goes on from there.
#[derive(Debug, Clone)]
pub struct BeginAgain<'a> {
    pub n: i64,
    pub verdict: Verdict,
    pub prompt_id: &'a str,
    pub pin: PinId,
    pub plan: &'a AttemptPlan,
    /// For people.
    pub told: String,
}

impl Hub {
    /// Ends an attempt with its question, and lets the turn go: it is anybody's once that is answered.
    pub async fn defer(&self, claimed: &Claimed, n: i64, plan: &AttemptPlan) -> Result<()> {
        let (turn, conversation) = (claimed.turn.id, claimed.conversation.id);
        let mut tx = self.store.begin().await?;
        tx.holds(turn, claimed.turn.fence).await?;
        tx.end_attempt(turn, n, DEFERRED, Some(plan.session.as_str()))
            .await?;
        tx.replan_attempt(turn, n, &to_json(plan)?).await?;
        tx.let_go_turn(turn, claimed.turn.fence).await?;
        tx.place_turn(turn, None, None).await?;
        let event = EventBody::notice(RESTS);
        tx.add_events(conversation, turn, self.clock.now(), &[event])
            .await?;
        fault::point("before_deferred");
        tx.commit().await?;
        fault::point("after_deferred");
        Ok(())
    }

    /// Does its newest attempt end with a question?
    pub async fn is_deferred(&self, turn: TurnId) -> Result<bool> {
        let attempts = self.store.read().await?.attempts(turn).await?;
        Ok(attempts.last().is_some_and(is_deferred))
    }

    /// Writes ahead that the turn goes on in a new process; its session is the turn's still.
    pub async fn begin_again(&self, claimed: &Claimed, begin: &BeginAgain<'_>) -> Result<()> {
        let turn = claimed.turn.id;
        let mut tx = self.store.begin().await?;
        tx.holds(turn, claimed.turn.fence).await?;
        let attempt = Attempt {
            n: begin.n,
            verdict: begin.verdict,
            reason: None,
            status: "running".into(),
            session_id: begin.plan.session.to_string(),
            pin: begin.pin,
            prompt_id: begin.prompt_id.to_owned(),
            plan: to_json(begin.plan)?,
            spool: 0,
        };
        tx.add_attempt(turn, &attempt).await?;
        let event = EventBody::notice(begin.told.clone());
        let (conversation, now) = (claimed.conversation.id, self.clock.now());
        tx.add_events(conversation, turn, now, &[event]).await?;
        Ok(tx.commit().await?)
    }

    /// Of that nothing was started: the turn is again as it was before.
    pub async fn take_back_attempt(&self, claimed: &Claimed, n: i64) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        tx.forget_attempt(claimed.turn.id, n).await?;
        Ok(tx.commit().await?)
    }

    /// The agent never heard the answer to this call, and cannot any more: it is open again, for as long
    /// as it takes to say that whoever asked is gone.
    pub async fn unheard(&self, claimed: &Claimed, call: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        tx.reopen_question(claimed.turn.id, call).await?;
        Ok(tx.commit().await?)
    }
}

/// It ended with a question.
pub fn is_deferred(attempt: &Attempt) -> bool {
    attempt.status == DEFERRED
}

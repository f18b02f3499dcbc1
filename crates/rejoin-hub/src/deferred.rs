//! Deferred turns: the agent postponed a question and its process ended. They wait without a
//! process or a holder, and continue on any machine once the question is answered.

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

/// Status of a deferred attempt.
pub const DEFERRED: &str = "deferred";

const RESTS: &str =
    "nobody answered in time: its process has ended, and the question waits without it";

/// Accumulated results of the runs of a turn that ended with a question.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EarlierRuns {
    /// Id of the postponed tool call.
    pub call: String,
    /// Number of times this call was postponed.
    pub times: u32,
    /// Session files as the last run left them.
    pub file: FileMark,
    pub text: String,
    pub trail: Vec<ToolNote>,
    /// Calls in `trail` that still wait for a person.
    #[serde(default)]
    pub withheld: Vec<ToolNote>,
    pub tools_run: u64,
    pub denied: Vec<Value>,
    /// Usage of this turn alone.
    pub usage: Option<Usage>,
    /// `None`: unknown.
    pub cost: Option<Micros>,
    /// Cost and usage that the CLI had counted for the whole session.
    pub total: Option<Micros>,
    pub counted: Option<Usage>,
    pub context: Option<Context>,
    pub compacted: bool,
}

impl EarlierRuns {
    pub fn cost(&self) -> Cost {
        self.cost.map_or(Cost::Unknown, Cost::Known)
    }
}

/// Parameters of the attempt that continues a deferred turn.
#[derive(Debug, Clone)]
pub struct BeginAgain<'a> {
    pub n: i64,
    pub verdict: Verdict,
    pub prompt_id: &'a str,
    pub pin: PinId,
    pub plan: &'a AttemptPlan,
    /// Notice for people.
    pub told: String,
}

impl Hub {
    /// Ends an attempt as deferred and releases the turn. Any process may claim it once the
    /// question is answered.
    pub async fn defer(&self, claimed: &Claimed, n: i64, plan: &AttemptPlan) -> Result<()> {
        let (turn, conversation) = (claimed.turn.id, claimed.conversation.id);
        let mut tx = self.store.begin().await?;
        tx.turns().check_fence(turn, claimed.turn.fence).await?;
        tx.attempts()
            .end(turn, n, DEFERRED, Some(plan.session.as_str()))
            .await?;
        tx.attempts().replan(turn, n, &to_json(plan)?).await?;
        tx.turns().release(turn, claimed.turn.fence).await?;
        tx.leases().set_place(turn, None, None).await?;
        let event = EventBody::notice(RESTS);
        tx.events()
            .add(conversation, turn, self.clock.now(), &[event])
            .await?;
        fault::point("before_deferred");
        tx.commit().await?;
        fault::point("after_deferred");
        Ok(())
    }

    /// Returns true if the newest attempt of the turn is deferred.
    pub async fn is_deferred(&self, turn: TurnId) -> Result<bool> {
        let attempts = self.store.read().await?.attempts().of(turn).await?;
        Ok(attempts.last().is_some_and(is_deferred))
    }

    /// Records that the turn continues in a new process, before that starts. The session still
    /// belongs to the turn.
    pub async fn begin_again(&self, claimed: &Claimed, begin: &BeginAgain<'_>) -> Result<()> {
        let turn = claimed.turn.id;
        let mut tx = self.store.begin().await?;
        tx.turns().check_fence(turn, claimed.turn.fence).await?;
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
        tx.attempts().add(turn, &attempt).await?;
        let event = EventBody::notice(begin.told.clone());
        let (conversation, now) = (claimed.conversation.id, self.clock.now());
        tx.events().add(conversation, turn, now, &[event]).await?;
        Ok(tx.commit().await?)
    }

    /// Deletes an attempt for which no process was started. The turn is deferred again.
    pub async fn take_back_attempt(&self, claimed: &Claimed, n: i64) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        tx.attempts().forget(claimed.turn.id, n).await?;
        Ok(tx.commit().await?)
    }

    /// Reopens the question of a call whose answer the agent never received and no longer can. It
    /// stays open only until it is marked `gone`.
    pub async fn unheard(&self, claimed: &Claimed, call: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        tx.questions().reopen(claimed.turn.id, call).await?;
        Ok(tx.commit().await?)
    }
}

/// Returns true if the attempt ended with a question.
pub fn is_deferred(attempt: &Attempt) -> bool {
    attempt.status == DEFERRED
}

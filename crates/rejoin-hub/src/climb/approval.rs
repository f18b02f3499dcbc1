//! Approvals of climbs: a question of a turn that has ended, and the climb or the refusal that its
//! answer causes.

use rejoin_core::{
    APPROVAL, AnswerRequest, Approval, Asked, Choice, ClimbDecision, ClimbRequest, EventBody,
    Given, QuestionKind, QuestionState, TurnId,
};
use rejoin_store::{NO_RUN, NewAnswer, NewQuestion, Read, StoredQuestion, StoredTurn, Tx};
use serde_json::{Value, json};

use super::next::NextTurn;
use super::{BY_POLICY, CLIMBED, NONE, Origin, REFUSED, Ruling, WAITING, taken_over};
use crate::Hub;
use crate::accept::may_continue;
use crate::error::{Error, Result};
use crate::metrics;
use crate::questions::QuestionView;
use crate::request::TurnRequest;

/// Name in place of a tool.
pub(crate) const CLIMB_TOOL: &str = "escalate";
/// Author of an approval that a person's command to climb replaces.
const COMMAND: &str = "rejoin escalate";

/// Returns true if the decision about the turn's request says that a person must approve it.
pub(crate) fn waits_for_approval(turn: &StoredTurn) -> bool {
    let escalation = turn.escalation.as_ref();
    escalation.is_some_and(|it| it["decision"] == WAITING)
}

/// Returns the question for the approval of a turn's climb. It lapses with the next turn.
pub(crate) async fn approval_of(read: &mut Read, turn: &StoredTurn) -> Result<Vec<StoredQuestion>> {
    let last = read.turns().last(turn.conversation).await?;
    if last.is_none_or(|last| last.id != turn.id) {
        return Ok(vec![]);
    }
    Ok(read.questions().of(turn.id).await?)
}

/// Returns the request of a turn with its decision. A request that lapsed climbs nowhere.
pub(crate) fn shown_escalation(turn: &StoredTurn, asked: &[QuestionView]) -> Option<Value> {
    let mut shown = turn.escalation.clone()?;
    if waits_for_approval(turn) && asked.is_empty() {
        shown["decision"] = json!(NONE);
    }
    Some(shown)
}

impl Hub {
    /// Stores the question for a person, in the transaction that ends the turn.
    pub(super) async fn ask_for_approval(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        asked: &ClimbRequest,
        next: &NextTurn,
        now: i64,
    ) -> Result<()> {
        let tier = origin.tier.tiers.find(&next.tier).map(|(_, tier)| tier);
        let permissions = &next.request.permissions;
        let question = NewQuestion {
            id: self.clock.question_id()?,
            asked: Asked {
                call_id: CLIMB_TOOL.into(),
                kind: QuestionKind::Approval,
                tool: CLIMB_TOOL.into(),
                input: json!({
                    "from": origin.tier.name, "to": next.tier,
                    "reason": asked.reason, "services": asked.services,
                    "role": tier.map(|tier| tier.role.as_str()),
                    "may": tier.map(|tier| tier.may.as_slice()),
                    "agent": next.agent, "model": next.request.model,
                    "permission": permissions.mode, "tools": permissions.tools,
                    "deny_tools": permissions.deny_tools,
                }),
                questions: vec![],
            },
        };
        let turn = origin.turn;
        tx.questions()
            .add_after_end(turn.conversation, turn.id, now, &question)
            .await?;
        Ok(())
    }

    /// Closes the question of a turn whose climb a person commanded.
    pub(super) async fn close_approval(&self, tx: &mut Tx, turn: TurnId, now: i64) -> Result<()> {
        let asked = tx.questions().of(turn).await?;
        let open = |q: &&StoredQuestion| q.attempt == NO_RUN && q.state == QuestionState::Pending;
        let Some(question) = asked.iter().find(open) else {
            return Ok(());
        };
        let given = Given {
            decision: Choice::Allow,
            message: None,
            answers: [].into(),
        };
        let answer = NewAnswer {
            question: question.id,
            given: &given,
            by: COMMAND,
            key: None,
            now,
        };
        Ok(tx.questions().answer(&answer).await?)
    }

    /// Answers the question for an approval. `allow` decides again, from the facts of this moment,
    /// in the transaction that stores the answer.
    pub(crate) async fn answer_climb(
        &self,
        mut tx: Tx,
        turn: &StoredTurn,
        question: &StoredQuestion,
        (answer, given): (&AnswerRequest, &Given),
    ) -> Result<TurnId> {
        if given.decision == Choice::Always {
            let text = "`always` is for the calls of a process; a climb is allowed or denied";
            return Err(Error::Usage(text.into()));
        }
        self.may_steer(turn)?;
        let found = tx.conversations().get(turn.conversation).await?;
        let gone = || Error::NotFound("the conversation is gone".into());
        let conversation = found.ok_or_else(gone)?;
        let last = tx.turns().last(turn.conversation).await?;
        if last.is_none_or(|last| last.id != turn.id) {
            let text = "the conversation went on without an answer, and the request has lapsed";
            return Err(Error::Conflict(text.into()));
        }
        let now = self.clock.now();
        let stored = NewAnswer {
            question: question.id,
            given,
            by: &answer.by,
            key: answer.client_key.as_deref(),
            now,
        };
        tx.questions().answer(&stored).await?;
        if given.decision == Choice::Deny {
            self.deny(&mut tx, turn, given, &answer.by, now).await?;
            tx.commit().await?;
            return Ok(turn.id);
        }
        if conversation.opened_by.is_some() {
            return Err(Error::Busy);
        }
        may_continue(&mut tx, &conversation, true).await?;
        let was: TurnRequest = serde_json::from_value(turn.request.clone())
            .map_err(|e| Error::Internal(format!("the request of a turn cannot be read: {e}")))?;
        let no_tier = || Error::Internal("a turn without a tier asked for one".into());
        let origin = Origin {
            conversation: &conversation,
            turn,
            base: taken_over(&was),
            tier: was.tier.ok_or_else(no_tier)?,
        };
        let asked = asked_before(turn);
        let approval = Approval::By(&answer.by);
        let (decision, next) = self
            .decide_climb(
                &mut tx,
                &origin,
                (asked.to.as_deref(), &asked.reason),
                approval,
                now,
            )
            .await?;
        let refused = decision.refused().map(|check| check.evidence.clone());
        let next = next.filter(|_| refused.is_none());
        if let Some(next) = &next {
            self.may_run(&next.agent, &next.request)?;
        }
        let ruling = Ruling {
            word: if refused.is_some() { REFUSED } else { CLIMBED },
            trigger: BY_POLICY,
            approval,
            after_end: true,
        };
        self.carry_out(&mut tx, &origin, &decision, ruling, (&asked, next), now)
            .await?;
        tx.commit().await?;
        refused.map_or(Ok(turn.id), |evidence| Err(Error::ClimbRefused(evidence)))
    }

    /// Stores a person's refusal. The agent is told with its next turn.
    async fn deny(
        &self,
        tx: &mut Tx,
        turn: &StoredTurn,
        given: &Given,
        by: &str,
        now: i64,
    ) -> Result<()> {
        let mut stored = turn.escalation.clone().unwrap_or_default();
        let evidence = match &given.message {
            Some(message) => format!("denied by {by}: {message}"),
            None => format!("denied by {by}"),
        };
        let checks = stored["checks"].as_array_mut();
        for check in checks.into_iter().flatten() {
            if check["check"] == APPROVAL {
                check["ok"] = json!(false);
                check["evidence"] = json!(evidence);
            }
        }
        stored["decision"] = json!(REFUSED);
        tx.chains().set_escalation(turn.id, &stored).await?;
        let asked = asked_before(turn);
        let to = asked.to.clone().unwrap_or_default();
        let event = EventBody::Escalation {
            requested: asked.to,
            reason: asked.reason,
            decision: REFUSED.into(),
            checks: stored["checks"].clone(),
            next_turn_id: None,
        };
        // After the end of a turn no event of it follows.
        tx.events()
            .add(turn.conversation, TurnId::nil(), now, &[event])
            .await?;
        let from = turn.tier.as_deref().unwrap_or_default();
        metrics::climb(from, &to, REFUSED);
        tracing::info!(turn = %turn.id, from, to, by, "escalation denied");
        Ok(())
    }
}

/// Returns the stored request of a turn.
fn asked_before(turn: &StoredTurn) -> ClimbRequest {
    let stored = turn.escalation.as_ref().unwrap_or(&Value::Null);
    let services = stored["services"].as_array().into_iter().flatten();
    ClimbRequest {
        to: stored["requested"].as_str().map(str::to_owned),
        reason: stored["reason"].as_str().unwrap_or_default().to_owned(),
        services: services
            .filter_map(|name| name.as_str().map(str::to_owned))
            .collect(),
    }
}

/// Returns the word for the decision about a request, `climbs` if the chain climbs by policy.
pub(super) fn word_for(decision: &ClimbDecision, climbs: bool) -> &'static str {
    match decision.refused() {
        Some(_) => REFUSED,
        None if !climbs => NONE,
        None if decision.waits() => WAITING,
        None => CLIMBED,
    }
}

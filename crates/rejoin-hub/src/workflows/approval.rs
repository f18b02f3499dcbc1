//! Questions of workflows to people: an approval step, or a step whose turn was lost. They belong to a
//! turn that has ended, so no process waits for the answer.

use rejoin_core::{
    Asked, Choice, Given, PermissionMode, QuestionKind, QuestionState, TurnId, WorkflowId,
};
use rejoin_store::{NO_RUN, NewAnswer, NewQuestion, StoredQuestion, StoredTurn, Tx};
use serde_json::json;

use crate::Hub;
use crate::ceiling::LimitedPart;
use crate::error::{Error, Result};

/// Name in place of a tool.
pub const WORKFLOW_TOOL: &str = "workflow";

impl Hub {
    /// Asks a person about a step, once per turn.
    pub async fn ask_about_step(
        &self,
        turn: TurnId,
        (workflow, step): (WorkflowId, &str),
        text: &str,
    ) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let asked = tx.questions().of(turn).await?;
        if asked.iter().any(is_about_step) {
            return Ok(());
        }
        let gone = || Error::NotFound(format!("there is no turn {turn}"));
        let stored = tx.turns().get(turn).await?.ok_or_else(gone)?;
        let question = NewQuestion {
            id: self.clock.question_id()?,
            asked: Asked {
                call_id: WORKFLOW_TOOL.into(),
                kind: QuestionKind::Approval,
                tool: WORKFLOW_TOOL.into(),
                input: json!({"question": text, "workflow_id": workflow, "step": step}),
                questions: vec![],
            },
        };
        tx.questions()
            .add_after_end(stored.conversation, turn, self.clock.now(), &question)
            .await?;
        Ok(tx.commit().await?)
    }

    /// Returns a person's answer about a step, and its author. None if it is still missing.
    pub async fn answer_about_step(&self, turn: TurnId) -> Result<Option<(Given, String)>> {
        let asked = self.store.read().await?.questions().of(turn).await?;
        let answered = asked.into_iter().find(is_about_step);
        let answered = answered.filter(|q| q.state == QuestionState::Answered);
        Ok(answered.and_then(|q| Some((q.given?, q.by.unwrap_or_default()))))
    }

    /// Withdraws the question about a step, because the run does not wait for the answer any more.
    pub async fn withdraw_step_question(&self, turn: TurnId, by: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let asked = tx.questions().of(turn).await?;
        let pending = |q: &&StoredQuestion| is_about_step(q) && q.state == QuestionState::Pending;
        let Some(question) = asked.iter().find(pending) else {
            return Ok(());
        };
        let given = Given {
            decision: Choice::Deny,
            message: None,
            answers: [].into(),
        };
        let answer = NewAnswer {
            question: question.id,
            given: &given,
            by,
            key: None,
            now: self.clock.now(),
        };
        tx.questions().answer(&answer).await?;
        Ok(tx.commit().await?)
    }

    /// Stores the answer about a step. The process that runs the workflow reads it.
    pub(crate) async fn answer_step(
        &self,
        mut tx: Tx,
        turn: &StoredTurn,
        question: &StoredQuestion,
        given: &Given,
        (by, key): (&str, Option<&str>),
    ) -> Result<TurnId> {
        if given.decision == Choice::Always {
            let text = "`always` is for the calls of a process; a step is allowed or denied";
            return Err(Error::Usage(text.into()));
        }
        self.may_steer(turn)?;
        if given.decision == Choice::Allow {
            self.may(LimitedPart::Approval, PermissionMode::Ask)?;
        }
        let answer = NewAnswer {
            question: question.id,
            given,
            by,
            key,
            now: self.clock.now(),
        };
        tx.questions().answer(&answer).await?;
        tx.commit().await?;
        Ok(turn.id)
    }
}

/// Returns true if this is a question of a workflow.
pub(crate) fn is_about_step(question: &StoredQuestion) -> bool {
    question.attempt == NO_RUN && question.asked.tool == WORKFLOW_TOOL
}

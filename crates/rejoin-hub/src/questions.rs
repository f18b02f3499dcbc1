//! What waits for a person: shown, and answered once.

use rejoin_core::{
    AnswerWish, Asked, Choice, ConversationId, Given, MessageId, PermissionMode, QuestionId,
    QuestionItem, QuestionKind, QuestionState, TurnId, TurnStatus,
};
use rejoin_store::{NewAnswer, StoredQuestion, StoredTurn, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ceiling::Beyond;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::{Hub, fault};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionView {
    pub id: QuestionId,
    pub kind: QuestionKind,
    pub tool: String,
    pub input: Value,
    pub questions: Vec<QuestionItem>,
    pub state: QuestionState,
    pub asked_at: String,
    /// What was said to it, and by whom.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Given>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

/// A turn that waits for a person, or was lost while it did.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InboxView {
    pub conversation_id: ConversationId,
    pub turn_id: TurnId,
    pub handle: String,
    pub title: String,
    pub agent: String,
    pub workdir: String,
    pub status: String,
    pub asked_at: String,
    pub questions: Vec<QuestionView>,
}

/// The inbox as one document: the same for `rejoin inbox --json` and `GET /api/inbox`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct InboxDocument {
    /// Turns with an open question, longest wait first.
    pub turns: Vec<InboxView>,
    /// The same list under its older name.
    #[serde(default)]
    pub inbox: Vec<InboxView>,
}

impl From<Vec<InboxView>> for InboxDocument {
    fn from(turns: Vec<InboxView>) -> Self {
        Self {
            inbox: turns.clone(),
            turns,
        }
    }
}

/// An answer to a question whose process is gone. It is stored together with the message that it becomes.
#[derive(Debug, Clone)]
pub struct LateAnswer {
    pub question: QuestionId,
    pub given: Given,
    pub by: String,
    pub key: Option<String>,
}

impl LateAnswer {
    /// Stores the answer, in the transaction that stores its message. The first one wins.
    pub(crate) async fn store(&self, tx: &mut Tx, message: MessageId, now: i64) -> Result<()> {
        let answer = NewAnswer {
            question: self.question,
            given: &self.given,
            by: &self.by,
            key: self.key.as_deref(),
            now,
        };
        if tx.answer_gone_question(&answer, message).await? {
            return Ok(());
        }
        let question = tx.question(self.question).await?;
        let gone = || Error::NotFound(format!("there is no question {}", self.question));
        Err(answered(&question.ok_or_else(gone)?))
    }
}

impl Hub {
    /// What waits for a person, longest first.
    pub async fn inbox(&self) -> Result<Vec<InboxView>> {
        let waiting = self.store.read().await?.waiting_turns().await?;
        let mut views = vec![];
        for id in waiting {
            // It may have been answered, or deleted, meanwhile.
            let view = match self.turn_view(id).await {
                Err(Error::NotFound(_)) => continue,
                view => view?,
            };
            let Some(first) = view.questions.first() else {
                continue;
            };
            let mut read = self.store.read().await?;
            let conversation = read.conversation(view.conversation_id).await?;
            let own = conversation.filter(|c| *c.namespace == *self.namespace);
            let Some(conversation) = own else {
                continue;
            };
            views.push(InboxView {
                conversation_id: view.conversation_id,
                turn_id: id,
                handle: view.handle,
                title: conversation.title,
                agent: view.agent,
                workdir: conversation.workdir,
                status: view.status,
                asked_at: first.asked_at.clone(),
                questions: view.questions,
            });
        }
        Ok(views)
    }

    /// Answers a question of a turn. The first answer wins. Returns the turn that shows what became of it:
    /// the one that asked, or, for a repeated answer that became a message, the turn of that message.
    pub async fn answer(&self, turn: TurnId, wish: &AnswerWish) -> Result<TurnId> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turn(turn).await?;
        let stored = stored.ok_or_else(|| Error::NotFound(format!("there is no turn {turn}")))?;
        let asked = tx.questions(turn).await?;
        if let Some(before) = asked.iter().find(|q| is_repeated(q, wish)) {
            return repeated(&mut tx, before, wish).await;
        }
        let question = one(&stored, &asked, wish)?;
        let checked = question.asked.check(wish);
        let given = checked.map_err(|no| Error::Usage(no.to_string()))?;
        match question.state {
            QuestionState::Pending => {
                self.may_answer(&stored, question.asked.kind, &given)?;
            }
            QuestionState::Answered => return Err(answered(question)),
            QuestionState::Gone => {
                return Err(Error::QuestionGone {
                    conversation: stored.conversation,
                    text: question.asked.in_words(&given),
                    answer: Box::new(LateAnswer {
                        question: question.id,
                        given,
                        by: wish.by.clone(),
                        key: wish.client_key.clone(),
                    }),
                });
            }
        }
        let (id, now) = (question.id, self.clock.now());
        tx.answer_question(&NewAnswer {
            question: id,
            given: &given,
            by: &wish.by,
            key: wish.client_key.as_deref(),
            now,
        })
        .await?;
        let call = &question.asked.call_id;
        let event = rejoin_core::EventBody::answered(call, id, &given, &wish.by);
        tx.add_events(stored.conversation, turn, now, &[event])
            .await?;
        tx.go_on_if_answered(turn).await?;
        fault::point("before_answered");
        tx.commit().await?;
        fault::point("after_answered");
        Ok(turn)
    }

    /// Refuses an answer that lets an agent do more than the caller may ask for. An approval permits one call
    /// of a turn in which a person decides, so it needs the ceiling `ask`.
    fn may_answer(&self, turn: &StoredTurn, kind: QuestionKind, given: &Given) -> Result<()> {
        self.may_steer(turn)?;
        let approval = kind == QuestionKind::Approval && given.decision != Choice::Deny;
        if approval {
            self.may(Beyond::Approval, PermissionMode::Ask)?;
        }
        Ok(())
    }

    /// Everything that one run of a turn asked, or those that it goes on from.
    pub async fn questions(&self, turn: TurnId, attempt: i64) -> Result<Vec<StoredQuestion>> {
        let mut found = self.store.read().await?.questions(turn).await?;
        found.retain(|q| q.attempt <= attempt);
        Ok(found)
    }
}

fn is_repeated(question: &StoredQuestion, wish: &AnswerWish) -> bool {
    wish.client_key.is_some() && question.answer_key == wish.client_key
}

/// An answer that came before, under the same key. Another answer under that key is refused.
async fn repeated(tx: &mut Tx, before: &StoredQuestion, wish: &AnswerWish) -> Result<TurnId> {
    let given = before.asked.check(wish).ok();
    if given.is_none() || given != before.given {
        let key = wish.client_key.clone().unwrap_or_default();
        return Err(Error::KeyReused(key));
    }
    let message = match before.answer_message {
        Some(message) => tx.message(message).await?,
        None => None,
    };
    Ok(message.map_or(before.turn, |message| message.turn))
}

/// The question that is meant.
fn one<'q>(
    turn: &StoredTurn,
    asked: &'q [StoredQuestion],
    wish: &AnswerWish,
) -> Result<&'q StoredQuestion> {
    if let Some(id) = wish.question_id {
        let found = asked.iter().find(|q| q.id == id);
        return found.ok_or_else(|| Error::NotFound(format!("the turn did not ask {id}")));
    }
    let is = |state| move |q: &&StoredQuestion| q.state == state;
    let mut pending = asked.iter().filter(is(QuestionState::Pending));
    if let Some(first) = pending.next() {
        return match pending.count() {
            0 => Ok(first),
            more => Err(Error::Usage(format!(
                "the turn asks {} things; say which one (question_id)",
                more + 1
            ))),
        };
    }
    let gone = asked.iter().rev().find(is(QuestionState::Gone));
    if let Some(gone) = gone.filter(|_| turn.status == TurnStatus::Lost) {
        return Ok(gone);
    }
    match asked.last() {
        Some(last) if last.state == QuestionState::Answered => Err(answered(last)),
        Some(_) | None if turn.status.ended() => Err(Error::Conflict(format!(
            "the turn has ended ({}) and asks nothing",
            turn.status
        ))),
        Some(_) | None => Err(Error::Conflict("the turn asks nothing".into())),
    }
}

fn answered(question: &StoredQuestion) -> Error {
    let told = question.given.as_ref().map(Given::told).unwrap_or_default();
    let by = question.by.as_deref().unwrap_or("somebody");
    Error::Conflict(format!("{by} has answered it already: {told}"))
}

/// What is shown with a turn: what it waits for, or what it waited for when it was lost.
pub(crate) fn shown(status: TurnStatus, asked: Vec<StoredQuestion>) -> Vec<QuestionView> {
    let state = match status {
        TurnStatus::Waiting => QuestionState::Pending,
        TurnStatus::Lost => QuestionState::Gone,
        TurnStatus::Queued
        | TurnStatus::Running
        | TurnStatus::Succeeded
        | TurnStatus::Failed
        | TurnStatus::Cancelled => return vec![],
    };
    let shown = asked.into_iter().filter(|q| q.state == state);
    shown.map(question_view).collect()
}

fn question_view(stored: StoredQuestion) -> QuestionView {
    let Asked {
        kind,
        tool,
        input,
        questions,
        ..
    } = stored.asked;
    QuestionView {
        id: stored.id,
        kind,
        tool,
        input,
        questions,
        state: stored.state,
        asked_at: rfc3339(stored.asked_at),
        answer: stored.given,
        by: stored.by,
    }
}

//! Questions of agents to people: shown, and answered once.

use rejoin_core::{
    AnswerRequest, Asked, Choice, ConversationId, FileChange, Given, MessageId, PermissionMode,
    QuestionId, QuestionItem, QuestionKind, QuestionState, TurnId, TurnStatus, file_changes,
};
use rejoin_store::{NO_RUN, NewAnswer, StoredQuestion, StoredTurn, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ceiling::LimitedPart;
use crate::climb::CLIMB_TOOL;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::view::turn_view;
use crate::workflows::{WORKFLOW_TOOL, is_about_step};
use crate::{Hub, fault};

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct QuestionView {
    pub id: QuestionId,
    pub kind: QuestionKind,
    pub tool: String,
    pub input: Value,
    /// Changes to files that an approval would allow; left out where the call changes none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diff: Vec<FileChange>,
    pub questions: Vec<QuestionItem>,
    pub state: QuestionState,
    pub asked_at: String,
    /// The answer and its author.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<Given>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl QuestionView {
    /// Returns the tier if the question is an approval of a climb.
    pub fn climb(&self) -> Option<&str> {
        let approval = self.kind == QuestionKind::Approval && self.tool == CLIMB_TOOL;
        self.input["to"].as_str().filter(|_| approval)
    }
}

impl QuestionView {
    /// Returns the text if the question is about a step of a workflow.
    pub fn about_step(&self) -> Option<&str> {
        let about = self.kind == QuestionKind::Approval && self.tool == WORKFLOW_TOOL;
        self.input["question"].as_str().filter(|_| about)
    }
}

/// Returns the facts about a climb that needs an approval, one per line.
pub fn climb_facts(input: &Value) -> Vec<String> {
    let text = |key: &str| input[key].as_str().unwrap_or_default().to_owned();
    let list = |key: &str, between: &str| {
        let items = input[key].as_array().into_iter().flatten();
        let items: Vec<&str> = items.filter_map(Value::as_str).collect();
        items.join(between)
    };
    let facts = [
        ("reason", text("reason")),
        ("services", list("services", ", ")),
        ("may", list("may", "; ")),
        ("permission", text("permission")),
        ("tools", list("tools", ", ")),
        ("denied", list("deny_tools", ", ")),
        ("model", text("model")),
    ];
    let known = facts.into_iter().filter(|(_, value)| !value.is_empty());
    known
        .map(|(name, value)| format!("{name}: {value}"))
        .collect()
}

/// A turn that waits for a person or was lost while it did, or whose climb needs an approval.
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
    /// Older name of the list.
    #[serde(default)]
    pub inbox: Vec<InboxView>,
    /// Number of the last event that this view contains: a stream with `after` and this number continues exactly here.
    #[serde(default)]
    pub as_of: i64,
}

impl InboxDocument {
    fn new(turns: Vec<InboxView>, as_of: i64) -> Self {
        Self {
            inbox: turns.clone(),
            turns,
            as_of,
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
        if tx.questions().answer_gone(&answer, message).await? {
            return Ok(());
        }
        let question = tx.questions().get(self.question).await?;
        let gone = || Error::NotFound(format!("there is no question {}", self.question));
        Err(answered(&question.ok_or_else(gone)?))
    }
}

impl Hub {
    /// Returns the turns that wait for a person, longest wait first.
    pub async fn inbox(&self) -> Result<InboxDocument> {
        let mut read = self.store.read_consistent().await?;
        let as_of = read.events().last().await?;
        let mut views = vec![];
        for id in read.questions().waiting_turns().await? {
            let Some(turn) = read.turns().get(id).await? else {
                continue;
            };
            let conversation = read.conversations().get(turn.conversation).await?;
            let own = conversation.filter(|c| *c.namespace == *self.namespace);
            let Some(conversation) = own else {
                continue;
            };
            let handle = read
                .conversations()
                .short_handle(&conversation.handle)
                .await?;
            let view = turn_view(&mut read, &handle, turn).await?;
            let Some(first) = view.questions.first() else {
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
        read.finish().await;
        Ok(InboxDocument::new(views, as_of))
    }

    /// Answers a question of a turn. The first answer wins. Returns the turn that asked, or, for a
    /// repeated answer that became a message, the turn of that message.
    pub async fn answer(&self, turn: TurnId, answer: &AnswerRequest) -> Result<TurnId> {
        let mut tx = self.store.begin().await?;
        let stored = tx.turns().get(turn).await?;
        let stored = stored.ok_or_else(|| Error::NotFound(format!("there is no turn {turn}")))?;
        let asked = tx.questions().of(turn).await?;
        if let Some(before) = asked.iter().find(|q| is_repeated(q, answer)) {
            return repeated(&mut tx, before, answer).await;
        }
        let question = one(&stored, &asked, answer)?;
        let checked = question.asked.check(answer);
        let given = checked.map_err(|no| Error::Usage(no.to_string()))?;
        match question.state {
            QuestionState::Pending if is_about_step(question) => {
                let author = (answer.by.as_str(), answer.client_key.as_deref());
                return self
                    .answer_step(tx, &stored, question, &given, author)
                    .await;
            }
            QuestionState::Pending if question.attempt == NO_RUN => {
                return self
                    .answer_climb(tx, &stored, question, (answer, &given))
                    .await;
            }
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
                        by: answer.by.clone(),
                        key: answer.client_key.clone(),
                    }),
                });
            }
        }
        let (id, now) = (question.id, self.clock.now());
        tx.questions()
            .answer(&NewAnswer {
                question: id,
                given: &given,
                by: &answer.by,
                key: answer.client_key.as_deref(),
                now,
            })
            .await?;
        let call = &question.asked.call_id;
        let event = rejoin_core::EventBody::answered(call, id, &given, &answer.by);
        tx.events()
            .add(stored.conversation, turn, now, &[event])
            .await?;
        tx.questions().resume_if_answered(turn).await?;
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
            self.may(LimitedPart::Approval, PermissionMode::Ask)?;
        }
        Ok(())
    }

    /// Returns the questions of one attempt of a turn and of the attempts before it.
    pub async fn questions(&self, turn: TurnId, attempt: i64) -> Result<Vec<StoredQuestion>> {
        let mut found = self.store.read().await?.questions().of(turn).await?;
        found.retain(|q| q.attempt <= attempt);
        Ok(found)
    }
}

fn is_repeated(question: &StoredQuestion, answer: &AnswerRequest) -> bool {
    answer.client_key.is_some() && question.answer_key == answer.client_key
}

/// Returns the turn of an earlier answer under the same key. Refuses another answer under that key.
async fn repeated(tx: &mut Tx, before: &StoredQuestion, answer: &AnswerRequest) -> Result<TurnId> {
    let given = before.asked.check(answer).ok();
    if given.is_none() || given != before.given {
        let key = answer.client_key.clone().unwrap_or_default();
        return Err(Error::KeyReused(key));
    }
    let message = match before.answer_message {
        Some(message) => tx.messages().get(message).await?,
        None => None,
    };
    Ok(message.map_or(before.turn, |message| message.turn))
}

/// Selects the question to answer.
fn one<'q>(
    turn: &StoredTurn,
    asked: &'q [StoredQuestion],
    answer: &AnswerRequest,
) -> Result<&'q StoredQuestion> {
    if let Some(id) = answer.question_id {
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

/// Returns the questions to show with a turn: the open ones, or those that were open when it was
/// lost. A succeeded turn has one while its climb needs an approval.
pub(crate) fn shown(status: TurnStatus, asked: Vec<StoredQuestion>) -> Vec<QuestionView> {
    let state = match status {
        TurnStatus::Waiting | TurnStatus::Succeeded => QuestionState::Pending,
        TurnStatus::Lost => QuestionState::Gone,
        TurnStatus::Queued | TurnStatus::Running | TurnStatus::Failed | TurnStatus::Cancelled => {
            return vec![];
        }
    };
    // A lost turn of a workflow asks if it runs again.
    let about_step = |q: &StoredQuestion| is_about_step(q) && q.state == QuestionState::Pending;
    let shown = asked
        .into_iter()
        .filter(|q| q.state == state || about_step(q));
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
    let approves = kind == QuestionKind::Approval;
    QuestionView {
        id: stored.id,
        kind,
        diff: if approves {
            file_changes(&input)
        } else {
            vec![]
        },
        tool,
        input,
        questions,
        state: stored.state,
        asked_at: rfc3339(stored.asked_at),
        answer: stored.given,
        by: stored.by,
    }
}

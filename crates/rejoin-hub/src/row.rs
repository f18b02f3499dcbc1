//! The row of a conversation in a list: its state, figures, and current action.

use rejoin_core::{
    ConversationId, EventBody, Micros, QuestionState, Role, TurnId, TurnStatus, tool_subject,
};
use rejoin_store::{Conversation, Read, StoredTurn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::climb::waits_for_approval;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::view::{ActivityView, AsksView, ConversationView, LastTurnView};

/// Number of conversations by state. Archived ones count only as `archived`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CountsView {
    pub all: i64,
    pub idle: i64,
    pub queued: i64,
    pub running: i64,
    pub waiting: i64,
    pub archived: i64,
}

impl Hub {
    /// Marks the messages of a conversation up to a position as seen, and the later ones as not.
    pub async fn mark_seen(&self, c: ConversationId, seq: i64) -> Result<Conversation> {
        let mut tx = self.store.begin().await?;
        let last = tx.history().last_seq(c).await?;
        if seq < 0 || seq > last {
            return Err(Error::Usage(format!(
                "there is no message {seq}; the last one is {last}"
            )));
        }
        tx.conversations().set_seen(c, seq).await?;
        let event = EventBody::changed(["seen"]);
        let now = self.clock.now();
        tx.events().add(c, TurnId::nil(), now, &[event]).await?;
        let found = tx.conversations().get(c).await?;
        tx.commit().await?;
        found.ok_or_else(|| Error::NotFound("the conversation is gone".into()))
    }
}

pub(crate) async fn counts(read: &mut Read, namespace: &str) -> Result<CountsView> {
    let shelves = read.shelf_sizes(namespace).await?;
    let busy = read.busy_conversations(namespace).await?;
    let of = |state: &str| busy.iter().find(|(s, _)| s == state).map_or(0, |(_, n)| *n);
    let (running, waiting, queued) = (of("running"), of("waiting"), of("queued"));
    let all = shelves.listed;
    Ok(CountsView {
        all,
        idle: (all - running - waiting - queued).max(0),
        queued,
        running,
        waiting,
        archived: shelves.archived,
    })
}

pub(crate) async fn conversation_view(
    read: &mut Read,
    c: &Conversation,
) -> Result<ConversationView> {
    let busy = read.turns().unfinished(c.id).await?;
    let state = match &busy {
        Some(turn) => turn.status.to_string(),
        None if c.opened_by.is_some() => "running".into(),
        None if read.turns().has_queued(c.id).await? => "queued".into(),
        None => "idle".into(),
    };
    let (mut activity, mut asks) = (None, None);
    match &busy {
        Some(turn) if turn.status == TurnStatus::Running => {
            activity = Some(doing(read, turn).await?);
        }
        Some(turn) => asks = question(read, turn).await?,
        None => {}
    }
    let last = read.turns().last(c.id).await?;
    if let Some(turn) = last.as_ref().filter(|turn| waits_for_approval(turn)) {
        asks = question(read, turn).await?;
    }
    let messages = read.history().last_seq(c.id).await?;
    let newest = match messages {
        0 => None,
        seq => read.messages().at(c.id, seq).await?,
    };
    let answered = newest.is_some_and(|m| m.message.role == Role::Assistant);
    Ok(ConversationView {
        id: c.id,
        handle: read.conversations().short_handle(&c.handle).await?,
        key: c.key.clone(),
        title: c.title.clone(),
        agent: c.agent.to_string(),
        workdir: c.workdir.clone(),
        permission: c.permission.to_string(),
        scope: c.scope.as_str().into(),
        state,
        created_at: rfc3339(c.created_at),
        updated_at: rfc3339(c.updated_at),
        cost_usd: read.turns().cost_of(c.id).await?.map(Micros::dollars),
        cost_known: c.unpriced == 0,
        turns: c.turns,
        messages,
        activity,
        asks,
        error: last.as_ref().and_then(failure),
        seen: c.seen.min(messages),
        unread: answered && messages > c.seen,
        last_turn: last.map(|t| LastTurnView {
            turn_id: t.id,
            status: t.status.to_string(),
            verdict: t.verdict.map(|v| v.to_string()),
            reason: t.reason.map(|r| r.to_string()),
            agent: t.agent.to_string(),
            summary: t.summary,
            started_at: t.started_at.map(rfc3339),
            ended_at: t.ended_at.map(rfc3339),
        }),
        parent_id: c.parent.map(|p| p.id),
        archived: c.archived_at.is_some(),
        continues: c.continues.clone(),
    })
}

/// Returns the class of failure of a turn that ended without an answer.
fn failure(turn: &StoredTurn) -> Option<String> {
    match turn.status {
        TurnStatus::Failed | TurnStatus::Lost | TurnStatus::Cancelled => {
            let class = turn.error.as_ref().map(|e| e.class.as_str().to_owned());
            class.or_else(|| Some(turn.status.to_string()))
        }
        TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting | TurnStatus::Succeeded => {
            None
        }
    }
}

/// Returns the current action of a running turn, from its newest events.
async fn doing(read: &mut Read, turn: &StoredTurn) -> Result<ActivityView> {
    let begun = turn.started_at.unwrap_or(turn.created_at);
    let mut at = ActivityView {
        doing: "starting".into(),
        tool: None,
        subject: None,
        since: rfc3339(begun),
    };
    for event in read.events().newest_of_turn(turn.id, 20).await? {
        let word = if let EventBody::ToolCall { tool, input, .. } = event.body {
            at.subject = Some(tool_subject(&tool, &input)).filter(|s| !s.is_empty());
            at.tool = Some(tool);
            "tool"
        } else if matches!(
            event.body,
            EventBody::TextDelta { .. } | EventBody::Text { .. }
        ) {
            "writing"
        } else if matches!(
            event.body,
            EventBody::Thinking { .. }
                | EventBody::ToolResult { .. }
                | EventBody::TurnStarted { .. }
        ) {
            "thinking"
        } else {
            continue;
        };
        at.doing = word.into();
        at.since = rfc3339(event.at);
        break;
    }
    Ok(at)
}

async fn question(read: &mut Read, turn: &StoredTurn) -> Result<Option<AsksView>> {
    let asked = read.questions().of(turn.id).await?;
    let first = asked
        .into_iter()
        .find(|q| q.state == QuestionState::Pending);
    Ok(first.map(|q| {
        let text = match q.asked.questions.first() {
            Some(item) => item.text.clone(),
            None => tool_subject(&q.asked.tool, &q.asked.input),
        };
        AsksView {
            question_id: q.id,
            kind: q.asked.kind,
            tool: q.asked.tool,
            text,
            asked_at: rfc3339(q.asked_at),
        }
    }))
}

/// Number of events to read at once, and at most, for the text of an unfinished turn.
const STRETCH: i64 = 256;

/// Returns the newest to-do list of a turn, and its text behind the last event `text`.
pub(crate) async fn unfinished(
    read: &mut Read,
    turn: TurnId,
) -> Result<(Option<Value>, Option<String>)> {
    let todo = read.events().last_todo(turn).await?;
    let todo = todo.and_then(|event| {
        let EventBody::Todo { items } = event.body else {
            return None;
        };
        Some(items)
    });
    let (mut pieces, mut before) = (vec![], i64::MAX);
    'all: loop {
        let texts = read.events().texts_before(turn, before, STRETCH).await?;
        let full = texts.len() as i64 == STRETCH;
        for event in texts {
            before = event.seq;
            if let EventBody::TextDelta { text } = event.body {
                pieces.push(text);
            } else if let EventBody::Text {
                parent_tool: None, ..
            } = event.body
            {
                break 'all;
            }
        }
        if !full {
            break;
        }
    }
    pieces.reverse();
    Ok((todo, Some(pieces.concat()).filter(|text| !text.is_empty())))
}

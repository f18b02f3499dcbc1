//! Scopes of a conversation's history, without loading all of it.
//!
//! Every placed message stores the value of scope `full` up to it. An answer also stores the value
//! of scope `agent` for the agent that wrote it: a run of answers by one agent shares a boundary,
//! so that value too is one fold away from the one before. These queries compute in constant time
//! the results that `rejoin_core::in_scope` computes from a whole history; a property test compares
//! them.

use rejoin_core::{AgentName, ConversationId, Message, MessageId, Role, Scope, ScopeValue};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};
use crate::messages::read;

/// Part of a conversation that one agent sees, up to some position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeState {
    pub boundary: Option<MessageId>,
    /// Position of the boundary; 0 without one. Messages in scope have higher positions.
    pub boundary_seq: i64,
    pub messages: u64,
    pub answered: bool,
    pub value: ScopeValue,
    /// Position of the last message counted.
    pub last_seq: i64,
}

/// Amount to read at a time.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    pub bytes: i64,
    pub messages: i64,
}

/// Values stored with a message.
#[derive(Clone, Copy)]
pub(crate) struct Values {
    pub(crate) full: ScopeValue,
    pub(crate) run: ScopeValue,
    pub(crate) boundary: Option<Boundary>,
}

/// Last answer of another agent before a run of answers: its root and its position.
#[derive(Clone, Copy)]
pub(crate) struct Boundary {
    pub(crate) root: MessageId,
    pub(crate) seq: i64,
}

pub(crate) struct LastAnswer {
    /// The answer itself with its position. It is the boundary for every other agent.
    pub(crate) itself: Boundary,
    pub(crate) agent: String,
    pub(crate) run: ScopeValue,
    pub(crate) boundary: Option<Boundary>,
}

impl LastAnswer {
    /// Returns boundary and start value of the run of an answer by `agent` that follows this one.
    pub(crate) fn followed_by(&self, agent: Option<&str>) -> (Option<Boundary>, ScopeValue) {
        if agent == Some(self.agent.as_str()) {
            return (self.boundary, self.run);
        }
        (Some(self.itself), ScopeValue::begin(Some(self.itself.root)))
    }
}

topic! {
    /// The history in scope: its messages in order, and their digests.
    History, history
}

impl<C: Ask> History<'_, C> {
    /// Returns the scope of `agent` before position `before`.
    pub async fn scope_before(
        &mut self,
        c: ConversationId,
        scope: Scope,
        agent: &AgentName,
        before: i64,
    ) -> Result<ScopeState> {
        scope_before(self.0, c, scope, agent, before).await
    }

    /// Returns the value of a session that has seen the messages up to position `seq`. `None` if
    /// the message there is not an answer within today's scope.
    pub async fn value_through(
        &mut self,
        c: ConversationId,
        scope: Scope,
        today: &ScopeState,
        seq: i64,
    ) -> Result<Option<ScopeValue>> {
        value_through(self.0, c, scope, today, seq).await
    }

    /// Returns the messages between two positions, both exclusive, in order.
    pub async fn messages_between(
        &mut self,
        c: ConversationId,
        after: i64,
        before: i64,
    ) -> Result<Vec<Message>> {
        messages_between(self.0, c, after, before).await
    }

    /// Returns the next older messages, newest first: at least one, and as many as a page holds.
    pub async fn messages_older(
        &mut self,
        c: ConversationId,
        after: i64,
        before: i64,
        page: Page,
    ) -> Result<Vec<Message>> {
        let sizes = "select seq, length(text) as size from messages
            where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null
            order by seq desc limit $4";
        let mut room = page.bytes;
        let mut from = None;
        for row in rows(self.0, sizes, vals![c.uuid(), after, before, page.messages]).await? {
            room -= row.int("size")?;
            if room < 0 && from.is_some() {
                break;
            }
            from = Some(row.int("seq")?);
        }
        let Some(from) = from else { return Ok(vec![]) };
        let sql = "select * from messages where conversation_id = $1 and seq >= $2 and seq < $3 and removed_at is null
            order by seq desc";
        let found = rows(self.0, sql, vals![c.uuid(), from, before]).await?;
        found.iter().map(|r| Ok(read(r)?.message)).collect()
    }

    pub async fn last_seq(&mut self, c: ConversationId) -> Result<i64> {
        last_seq(self.0, c).await
    }
}

async fn last_seq(at: &mut impl Ask, c: ConversationId) -> Result<i64> {
    // Not `max`, which would read all rows.
    let sql = "select seq from messages where conversation_id = $1 and seq is not null and removed_at is null
        order by seq desc limit 1";
    let last = one(at, sql, vals![c.uuid()]).await?;
    last.map_or(Ok(0), |row| row.int("seq"))
}

async fn scope_before(
    at: &mut impl Ask,
    c: ConversationId,
    scope: Scope,
    agent: &AgentName,
    before: i64,
) -> Result<ScopeState> {
    let last = before - 1;
    let answer = last_answer(at, c, before).await?;
    let Some(answer) = answer else {
        let value = full_value(at, c, last).await?;
        return Ok(ScopeState {
            boundary: None,
            boundary_seq: 0,
            messages: last as u64,
            answered: false,
            value,
            last_seq: last,
        });
    };
    if scope == Scope::Full {
        let value = full_value(at, c, last).await?;
        return Ok(ScopeState {
            boundary: None,
            boundary_seq: 0,
            messages: last as u64,
            answered: true,
            value,
            last_seq: last,
        });
    }
    let own = answer.agent == agent.as_str();
    let (boundary, from) = answer.followed_by(Some(agent.as_str()));
    let boundary_seq = boundary.map_or(0, |b| b.seq);
    let rest = messages_between(at, c, answer.itself.seq, before).await?;
    let value = rest.iter().fold(from, |value, m| value.fold(&m.digest()));
    Ok(ScopeState {
        boundary: boundary.map(|b| b.root),
        boundary_seq,
        messages: (last - boundary_seq) as u64,
        answered: own,
        value,
        last_seq: last,
    })
}

async fn value_through(
    at: &mut impl Ask,
    c: ConversationId,
    scope: Scope,
    today: &ScopeState,
    seq: i64,
) -> Result<Option<ScopeValue>> {
    if seq <= today.boundary_seq || seq > today.last_seq {
        return Ok(None);
    }
    let sql = "select value_full, value_run, run_boundary from messages
        where conversation_id = $1 and seq = $2 and removed_at is null and role = 'assistant'";
    let Some(row) = one(at, sql, vals![c.uuid(), seq]).await? else {
        return Ok(None);
    };
    match scope {
        Scope::Full => Ok(Some(ScopeValue(row.hash("value_full")?))),
        Scope::Agent if row.maybe_id("run_boundary")? == today.boundary.map(MessageId::uuid) => {
            Ok(Some(ScopeValue(row.hash("value_run")?)))
        }
        Scope::Agent => Ok(None),
    }
}

/// Returns position and values of a message appended to the history.
pub(crate) async fn values_after(
    tx: &mut Tx,
    c: ConversationId,
    message: &Message,
) -> Result<(i64, Values)> {
    let sql = "select seq, value_full from messages where conversation_id = $1 and seq is not null and removed_at is null
        order by seq desc limit 1";
    let (last, full) = match one(tx, sql, vals![c.uuid()]).await? {
        Some(row) => (row.int("seq")?, ScopeValue(row.hash("value_full")?)),
        None => (0, ScopeValue::begin(None)),
    };
    let (seq, digest) = (last + 1, message.digest());
    let full = full.fold(&digest);
    let plain = Values {
        full,
        run: full,
        boundary: None,
    };
    // Only an answer can be the end of the messages that a session has seen.
    if message.role == Role::User {
        return Ok((seq, plain));
    }
    let Some(last) = last_answer(tx, c, seq).await? else {
        return Ok((seq, plain));
    };
    let (boundary, from) = last.followed_by(message.agent.as_ref().map(AgentName::as_str));
    let between = messages_between(tx, c, last.itself.seq, seq).await?;
    let run = between
        .iter()
        .fold(from, |value, m| value.fold(&m.digest()))
        .fold(&digest);
    Ok((
        seq,
        Values {
            full,
            run,
            boundary,
        },
    ))
}

pub(crate) async fn full_value(
    at: &mut impl Ask,
    c: ConversationId,
    seq: i64,
) -> Result<ScopeValue> {
    if seq == 0 {
        return Ok(ScopeValue::begin(None));
    }
    let sql = "select value_full from messages where conversation_id = $1 and seq = $2 and removed_at is null";
    let row = one(at, sql, vals![c.uuid(), seq]).await?;
    let row = row.ok_or_else(|| Error::Foreign(format!("message {seq} is missing")))?;
    Ok(ScopeValue(row.hash("value_full")?))
}

pub(crate) async fn last_answer(
    at: &mut impl Ask,
    c: ConversationId,
    before: i64,
) -> Result<Option<LastAnswer>> {
    let sql = "select coalesce(root, id) as root, seq, agent, value_run, run_boundary, run_after from messages
        where conversation_id = $1 and role = 'assistant' and seq < $2 and removed_at is null
        order by seq desc limit 1";
    one(at, sql, vals![c.uuid(), before])
        .await?
        .as_ref()
        .map(read_answer)
        .transpose()
}

fn read_answer(row: &Row) -> Result<LastAnswer> {
    let boundary = row.maybe_id("run_boundary")?.map(MessageId::from_uuid);
    let after = row.maybe_int("run_after")?.unwrap_or(0);
    Ok(LastAnswer {
        itself: Boundary {
            root: MessageId::from_uuid(row.id("root")?),
            seq: row.int("seq")?,
        },
        agent: row.maybe_text("agent")?.unwrap_or_default(),
        run: ScopeValue(row.hash("value_run")?),
        boundary: boundary.map(|root| Boundary { root, seq: after }),
    })
}

async fn messages_between(
    at: &mut impl Ask,
    c: ConversationId,
    after: i64,
    before: i64,
) -> Result<Vec<Message>> {
    let sql = "select * from messages where conversation_id = $1 and seq > $2 and seq < $3 and removed_at is null order by seq";
    let found = rows(at, sql, vals![c.uuid(), after, before]).await?;
    found.iter().map(|r| Ok(read(r)?.message)).collect()
}

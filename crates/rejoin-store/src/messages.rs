//! Messages: accepted without a position, placed when their turn is claimed, answered.

use rejoin_core::{
    AgentName, ConversationId, Message, MessageId, MessageState, Role, ToolNote, TurnId,
};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, topic, vals};
use crate::error::{Error, Result};
use crate::history::{Values, values_after};

#[derive(Debug, Clone)]
pub struct NewMessage<'a> {
    pub id: MessageId,
    pub conversation: ConversationId,
    pub turn: TurnId,
    pub role: Role,
    pub agent: Option<&'a AgentName>,
    pub text: &'a str,
    pub trail: &'a [ToolNote],
    /// Origin: `rejoin` or `outside`.
    pub origin: &'a str,
    /// Message that this one is a copy of.
    pub root: Option<MessageId>,
    pub state: MessageState,
    pub now: i64,
}

/// Sent through rejoin.
pub const HERE: &str = "rejoin";
/// Written in the agent's own session by a user of the CLI.
pub const OUTSIDE: &str = "outside";

impl NewMessage<'_> {
    fn message(&self) -> Message {
        Message {
            id: self.id,
            seq: 0,
            role: self.role,
            agent: self.agent.cloned(),
            text: self.text.to_owned(),
            attachments: vec![],
            state: self.state,
            trail: self.trail.to_vec(),
        }
    }
}

/// A message with data that only the store has. `message.seq` is 0 while it has no position.
#[derive(Debug, Clone)]
pub struct StoredMessage {
    pub message: Message,
    pub turn: TurnId,
    pub origin: String,
    pub edited: bool,
    pub removed: bool,
    pub created_at: i64,
}

topic! {
    /// Messages, one by one.
    Messages, messages
}

impl Messages<'_, Tx> {
    /// Stores a user message whose turn is not claimed yet.
    pub async fn accept(&mut self, new: &NewMessage<'_>) -> Result<()> {
        self.insert(new, MessageState::Queued, None).await
    }

    /// Gives a queued message the next position in the history.
    pub async fn place(&mut self, id: MessageId) -> Result<Message> {
        let stored = message(self.0, id).await?.ok_or(Error::Conflict(GONE))?;
        if stored.message.seq > 0 {
            return Ok(stored.message);
        }
        let conversation = conversation_of(self.0, id).await?;
        let conversation = conversation.ok_or(Error::Conflict(GONE))?;
        let placed = self
            .put_in_place(conversation, &stored.message, MessageState::Ok)
            .await?;
        Ok(Message {
            seq: placed,
            state: MessageState::Ok,
            ..stored.message
        })
    }

    /// Adds a message at the next position: an answer, or a message whose turn runs at once.
    pub async fn add_placed(&mut self, new: &NewMessage<'_>) -> Result<Message> {
        let mut message = new.message();
        let (seq, values) = values_after(self.0, new.conversation, &message).await?;
        message.seq = seq;
        self.insert(new, new.state, Some((seq, values))).await?;
        Ok(message)
    }

    pub async fn mark_unanswered(&mut self, id: MessageId, trail: &[ToolNote]) -> Result<()> {
        let sql = "update messages set state = 'unanswered', trail = $2 where id = $1";
        self.0
            .run(sql, vals![id.uuid(), serde_json::to_string(trail)?])
            .await?;
        Ok(())
    }

    /// Deletes a message that never got a position, or whose turn was held before a process ran.
    pub async fn withdraw(&mut self, id: MessageId) -> Result<()> {
        self.0.questions().withdraw_answer(id).await?;
        self.0
            .run("delete from messages where id = $1", vals![id.uuid()])
            .await?;
        Ok(())
    }

    pub async fn id_at(&mut self, c: ConversationId, seq: i64) -> Result<Option<MessageId>> {
        let sql = "select id from messages where conversation_id = $1 and seq = $2 and removed_at is null";
        let row = one(self.0, sql, vals![c.uuid(), seq]).await?;
        row.map(|r| Ok(MessageId::from_uuid(r.id("id")?)))
            .transpose()
    }

    async fn insert(
        &mut self,
        new: &NewMessage<'_>,
        state: MessageState,
        place: Option<(i64, Values)>,
    ) -> Result<()> {
        let sql = "insert into messages (id, conversation_id, turn_id, role, agent, text, attachments, state, origin, edited, trail, created_at,
                seq, value_full, value_run, run_boundary, run_after, root, digest)
            values ($1, $2, $3, $4, $5, $6, '[]', $7, $8, 0, $9, $10, $11, $12, $13, $14, $15, $16, $17)";
        let (seq, values) = place.unzip();
        let boundary = values.and_then(|v| v.boundary);
        let values = vals![
            new.id.uuid(),
            new.conversation.uuid(),
            new.turn.uuid(),
            role_word(new.role),
            new.agent.map(AgentName::as_str),
            new.text,
            state_word(state),
            new.origin,
            serde_json::to_string(new.trail)?,
            new.now,
            seq,
            values.map(|v| v.full.0),
            values.map(|v| v.run.0),
            boundary.map(|b| b.root.uuid()),
            boundary.map(|b| b.seq),
            new.root.map(MessageId::uuid),
            new.message().digest().0,
        ];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Copies a message into another conversation, at the same position and with the same values.
    /// These depend on content and roots, which copies share.
    pub async fn copy(&mut self, id: MessageId, copy: MessageId, to: ConversationId) -> Result<()> {
        let sql = "insert into messages (id, conversation_id, turn_id, seq, role, agent, text, attachments, state, origin, edited,
                trail, value_full, value_run, run_boundary, run_after, digest, root, created_at)
            select $2, $3, turn_id, seq, role, agent, text, attachments, state, origin, edited,
                trail, value_full, value_run, run_boundary, run_after, digest, coalesce(root, id), created_at
            from messages where id = $1";
        self.0
            .must(sql, vals![id.uuid(), copy.uuid(), to.uuid()], GONE)
            .await
    }

    async fn put_in_place(
        &mut self,
        conversation: ConversationId,
        message: &Message,
        state: MessageState,
    ) -> Result<i64> {
        let (seq, values) = values_after(self.0, conversation, message).await?;
        let sql = "update messages set seq = $2, state = $3, value_full = $4, value_run = $5, run_boundary = $6, run_after = $7
            where id = $1 and seq is null";
        let bound = vals![
            message.id.uuid(),
            seq,
            state_word(state),
            values.full.0,
            values.run.0,
            values.boundary.map(|b| b.root.uuid()),
            values.boundary.map(|b| b.seq),
        ];
        self.0
            .must(sql, bound, "the message has a place already")
            .await?;
        Ok(seq)
    }
}

impl<C: Ask> Messages<'_, C> {
    pub async fn get(&mut self, id: MessageId) -> Result<Option<StoredMessage>> {
        message(self.0, id).await
    }

    pub async fn at(
        &mut self,
        conversation: ConversationId,
        seq: i64,
    ) -> Result<Option<StoredMessage>> {
        let sql =
            "select * from messages where conversation_id = $1 and seq = $2 and removed_at is null";
        one(self.0, sql, vals![conversation.uuid(), seq])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }

    pub async fn conversation_of(&mut self, id: MessageId) -> Result<Option<ConversationId>> {
        conversation_of(self.0, id).await
    }

    /// Returns the newest message of the history with this role.
    pub async fn last_of(&mut self, c: ConversationId, role: Role) -> Result<Option<Message>> {
        let sql = "select * from messages where conversation_id = $1 and role = $2 and seq is not null and removed_at is null
            order by seq desc limit 1";
        let row = one(self.0, sql, vals![c.uuid(), role_word(role)]).await?;
        row.map(|r| Ok(read(&r)?.message)).transpose()
    }

    /// Returns a message, removed or not.
    pub async fn get_ever(&mut self, id: MessageId) -> Result<Option<StoredMessage>> {
        let sql = "select * from messages where id = $1";
        one(self.0, sql, vals![id.uuid()])
            .await?
            .as_ref()
            .map(read)
            .transpose()
    }
}

pub(crate) const BY_ID: &str = "select * from messages where id = $1 and removed_at is null";

const GONE: &str = "the message is gone";

/// Returns the conversation of a message, removed or not.
async fn conversation_of(at: &mut impl Ask, id: MessageId) -> Result<Option<ConversationId>> {
    let sql = "select conversation_id from messages where id = $1";
    let row = one(at, sql, vals![id.uuid()]).await?;
    row.map(|r| Ok(ConversationId::from_uuid(r.id("conversation_id")?)))
        .transpose()
}

async fn message(at: &mut impl Ask, id: MessageId) -> Result<Option<StoredMessage>> {
    one(at, BY_ID, vals![id.uuid()])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

pub(crate) fn read(row: &Row) -> Result<StoredMessage> {
    let agent = row.maybe_text("agent")?.map(AgentName::new).transpose();
    let message = Message {
        id: MessageId::from_uuid(row.id("id")?),
        seq: row.maybe_int("seq")?.unwrap_or(0),
        role: role_of(row)?,
        agent: agent.map_err(|e| Error::Foreign(e.to_string()))?,
        text: row.text("text")?,
        attachments: row.json("attachments")?,
        state: match row.text("state")?.as_str() {
            "unanswered" => MessageState::Unanswered,
            "queued" => MessageState::Queued,
            _ => MessageState::Ok,
        },
        trail: row.json("trail")?,
    };
    Ok(StoredMessage {
        message,
        turn: TurnId::from_uuid(row.id("turn_id")?),
        origin: row.text("origin")?,
        edited: row.int("edited")? != 0,
        removed: row.maybe_int("removed_at")?.is_some(),
        created_at: row.int("created_at")?,
    })
}

pub(crate) fn role_of(row: &Row) -> Result<Role> {
    Ok(if row.text("role")? == "assistant" {
        Role::Assistant
    } else {
        Role::User
    })
}

pub(crate) fn role_word(role: Role) -> &'static str {
    match role {
        Role::User => "user",
        Role::Assistant => "assistant",
    }
}

pub(crate) fn state_word(state: MessageState) -> &'static str {
    match state {
        MessageState::Ok => "ok",
        MessageState::Unanswered => "unanswered",
        MessageState::Queued => "queued",
    }
}

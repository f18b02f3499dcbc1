//! Takes messages that a user wrote in an agent's session, with the CLI itself, into the history.
//! Every agent then knows them, and the session continues from there.

use rejoin_agents::SessionMessage;
use rejoin_core::{
    AgentName, ConversationId, FileMark, Message, MessageState, Micros, PermissionMode, Pin,
    PinState, Role, Scope, TurnId,
};
use rejoin_store::{
    Adoption, AgentSettings, Conversation, ExternalWords, NewConversation, NewMessage, OUTSIDE, Tx,
};
use serde_json::Value;

use crate::Hub;
use crate::accept::title_of;
use crate::claim::Claimed;
use crate::error::{Error, Result};

/// Result of taking messages in.
#[derive(Debug, Clone, Default)]
pub struct ExternalImport {
    pub messages: u64,
    /// True if the session has seen the whole history and may continue.
    pub moved: bool,
    /// Message of the claimed turn, at its new position behind the messages taken in.
    pub message: Option<Message>,
}

/// A session made outside rejoin, to become a conversation.
#[derive(Debug, Clone)]
pub struct AdoptedSession {
    pub agent: AgentName,
    pub session_id: String,
    pub workdir: String,
    /// `None`: the beginning of the first message.
    pub title: Option<String>,
    pub said: Vec<SessionMessage>,
    /// Session, if it can be resumed. `adopt` fills in the history that it has seen.
    pub pin: Option<Pin>,
    pub source: Value,
    /// Cost of the session so far, if its files contain it.
    pub cost: Option<Micros>,
    /// Model that the session continues with. `None`: the agent's choice.
    pub model: Option<String>,
    pub permission: PermissionMode,
    pub scope: Scope,
}

/// A session that a user continued by hand, as it was confirmed and as it was read now.
#[derive(Debug, Clone, Copy)]
pub struct ContinuedSession<'a> {
    pub was: &'a Pin,
    pub now: SessionNow<'a>,
}

/// State of a session file that differs from the confirmed one.
#[derive(Debug, Clone, Copy)]
pub enum SessionNow<'a> {
    /// The session continues the confirmed one, and is complete.
    Whole(&'a Pin),
    /// The session continues the confirmed one, but its CLI could not resume it. The pin is
    /// retired.
    Broken(&'a FileMark),
    /// The session continues only an older state, or holds an unconfirmed turn. The pin stays as it
    /// is.
    Copy(&'a FileMark),
}

impl<'a> SessionNow<'a> {
    fn whole(self) -> Option<&'a Pin> {
        match self {
            Self::Whole(pin) => Some(pin),
            Self::Broken(_) | Self::Copy(_) => None,
        }
    }

    /// Returns the file whose messages are taken in without moving the pin.
    fn beside(self) -> Option<&'a FileMark> {
        match self {
            Self::Whole(_) => None,
            Self::Broken(file) | Self::Copy(file) => Some(file),
        }
    }
}

const NOT_WHOLE: &str = "somebody went on with it outside, and did not leave it whole";

impl Hub {
    /// Appends the messages to the history, before the message of the claimed turn. Moves the pin
    /// on if its session has now seen the whole history; otherwise retires that session.
    pub async fn take_in(
        &self,
        c: ConversationId,
        claimed: Option<&Claimed>,
        said: &[SessionMessage],
        session: ContinuedSession<'_>,
    ) -> Result<ExternalImport> {
        let ContinuedSession { was, now: state } = session;
        let pin = state.whole();
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        match claimed {
            Some(claimed) => {
                tx.turns()
                    .check_fence(claimed.turn.id, claimed.turn.fence)
                    .await?;
            }
            None if at_work(&mut tx, c).await? => return Err(Error::Busy),
            None => {}
        }
        let Some(conversation) = tx.conversations().get(c).await? else {
            return Ok(ExternalImport::default());
        };
        if !still_so(&mut tx, was).await? {
            // Another command has already taken the messages in.
            return Ok(ExternalImport::default());
        }
        let said = &unknown(&mut tx, c, said, state.beside().is_none()).await?[..];
        let serves = was.state == PinState::Confirmed;
        if said.is_empty() {
            // The bytes differ but no message is new: the session has seen the same history as
            // before.
            let moved = match pin {
                Some(pin) if serves => tx.pins().confirm(pin, now).await?,
                Some(pin) => {
                    tx.pins().save_read(pin, now).await?;
                    false
                }
                None => false,
            };
            if let Some(file) = state.beside() {
                tx.external().record_read(was.id, file, now).await?;
            }
            tx.commit().await?;
            return Ok(ExternalImport {
                moved,
                ..ExternalImport::default()
            });
        }
        if let Some(claimed) = claimed {
            tx.changes().unplace(claimed.message.id).await?;
        }
        let saw_all = serves && saw_all(&mut tx, &conversation, was).await?;
        self.say(&mut tx, c, &was.agent, said, now).await?;
        let moved = match pin.filter(|_| saw_all) {
            Some(pin) => self.move_on(&mut tx, &conversation, pin, now).await?,
            None => false,
        };
        match state {
            SessionNow::Whole(_) if moved => {}
            SessionNow::Whole(pin) => {
                tx.external().retire_read_on(was.id, now).await?;
                tx.pins().save_read(pin, now).await?;
            }
            SessionNow::Broken(file) => {
                tx.pins().retire(was.id, NOT_WHOLE, now).await?;
                tx.external().record_read(was.id, file, now).await?;
            }
            SessionNow::Copy(file) => tx.external().record_read(was.id, file, now).await?,
        }
        let message = match claimed {
            Some(claimed) => Some(tx.messages().place(claimed.message.id).await?),
            None => None,
        };
        tx.conversations().stamp(c, now).await?;
        tx.commit().await?;
        Ok(ExternalImport {
            messages: said.len() as u64,
            moved,
            message,
        })
    }

    /// Returns the messages of a session that the history does not hold; see [`Self::take_in`].
    pub async fn not_taken_in(
        &self,
        c: ConversationId,
        said: &[SessionMessage],
        now: SessionNow<'_>,
    ) -> Result<Vec<SessionMessage>> {
        let mut read = self.store.read().await?;
        let known = read.external().words(c, earliest(said)).await?;
        Ok(not_in(said, known, now.beside().is_none()))
    }

    /// Creates a conversation from the messages of a session.
    pub async fn adopt(&self, adopted: &AdoptedSession) -> Result<ConversationId> {
        let now = self.clock.now();
        let id = self.clock.conversation_id()?;
        let mut tx = self.store.begin().await?;
        let (agent, session) = (adopted.agent.as_str(), adopted.session_id.as_str());
        if tx.adoptions().get(agent, session).await?.is_some() {
            let text = format!("another command has adopted {session}");
            return Err(Error::Conflict(text));
        }
        let first = adopted.said.first().map_or("", |s| s.text.as_str());
        tx.conversations()
            .add(&NewConversation {
                namespace: self.namespace.to_string(),
                id,
                key: None,
                title: adopted.title.clone().unwrap_or_else(|| title_of(first)),
                agent: adopted.agent.clone(),
                workdir: adopted.workdir.clone(),
                permission: adopted.permission,
                scope: adopted.scope,
                parent: None,
                now,
            })
            .await?;
        if adopted.model.is_some() {
            let settings = AgentSettings {
                model: adopted.model.clone(),
                ..AgentSettings::default()
            };
            let settings = [(adopted.agent.to_string(), settings)].into();
            tx.conversations().set_agent_settings(id, &settings).await?;
        }
        if let Some(cost) = adopted.cost {
            tx.conversations().set_outside_cost(id, cost).await?;
        }
        self.say(&mut tx, id, &adopted.agent, &adopted.said, now)
            .await?;
        let conversation = tx.conversations().get(id).await?;
        if let Some((pin, conversation)) = adopted.pin.as_ref().zip(conversation) {
            tx.pins().add_confirmed(id, pin, now).await?;
            if !self.move_on(&mut tx, &conversation, pin, now).await? {
                tx.pins()
                    .retire(pin.id, "its last message was not answered", now)
                    .await?;
            }
        }
        let adoption = Adoption {
            agent: adopted.agent.to_string(),
            session_id: adopted.session_id.clone(),
            conversation: id,
            source: adopted.source.clone(),
        };
        tx.adoptions().save(&adoption, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Appends messages to the history.
    pub(crate) async fn say(
        &self,
        tx: &mut Tx,
        c: ConversationId,
        agent: &AgentName,
        said: &[SessionMessage],
        now: i64,
    ) -> Result<()> {
        for (at, one) in said.iter().enumerate() {
            let answered = said
                .get(at + 1)
                .is_some_and(|next| next.role == Role::Assistant);
            let state = match one.role {
                Role::User if !answered => MessageState::Unanswered,
                Role::User | Role::Assistant => MessageState::Ok,
            };
            let new = NewMessage {
                id: self.clock.message_id()?,
                conversation: c,
                turn: TurnId::nil(),
                role: one.role,
                agent: (one.role == Role::Assistant).then_some(agent),
                text: &one.text,
                trail: &one.trail,
                origin: OUTSIDE,
                root: None,
                state,
                now: one.at.unwrap_or(now),
            };
            tx.messages().add_placed(&new).await?;
        }
        Ok(())
    }

    /// Confirms that the session has seen the whole history. Returns false if the history does not
    /// end with an answer.
    async fn move_on(
        &self,
        tx: &mut Tx,
        conversation: &Conversation,
        pin: &Pin,
        now: i64,
    ) -> Result<bool> {
        let (c, scope) = (conversation.id, conversation.scope);
        let last = tx.history().last_seq(c).await?;
        let state = tx
            .history()
            .scope_before(c, scope, &pin.agent, last + 1)
            .await?;
        let Some(value) = tx.history().value_through(c, scope, &state, last).await? else {
            return Ok(false);
        };
        let mut pin = pin.clone();
        pin.state = PinState::Confirmed;
        pin.seen.value = value;
        pin.seen.messages = state.messages;
        pin.seen.last_seq = last;
        pin.seen.last = tx.messages().id_at(c, last).await?;
        Ok(tx.pins().confirm(&pin, now).await?)
    }
}

/// Returns the messages that the history does not hold yet. Removed messages count as held.
async fn unknown(
    tx: &mut Tx,
    c: ConversationId,
    said: &[SessionMessage],
    follows: bool,
) -> Result<Vec<SessionMessage>> {
    if said.is_empty() {
        return Ok(vec![]);
    }
    let known = tx.external().words(c, earliest(said)).await?;
    Ok(not_in(said, known, follows))
}

/// Returns the time of the oldest message, or the minimum if a message has none.
fn earliest(said: &[SessionMessage]) -> i64 {
    let times = said.iter().map(|one| one.at.unwrap_or(i64::MIN));
    times.min().unwrap_or(i64::MIN)
}

/// Identifies messages by role and time. Messages without a time are identified by their text,
/// unless they follow the confirmed part (`follows`): then the mark of the session shows that they
/// are new.
fn not_in(
    said: &[SessionMessage],
    mut known: Vec<ExternalWords>,
    follows: bool,
) -> Vec<SessionMessage> {
    let mut new = vec![];
    for one in said {
        let mut one = one.clone();
        let mut found = false;
        while let Some(at) = known.iter().position(|words| {
            let same = match one.at {
                Some(at) => words.at == at,
                None => !follows && words.text == one.text,
            };
            same && words.role == one.role
        }) {
            let words = known.remove(at);
            found = true;
            // An answer that the CLI was still writing at the last read has grown since.
            match one.text.strip_prefix(words.text.as_str()) {
                Some(more) if one.role == Role::Assistant => {
                    one.text = String::from(more.trim());
                }
                Some(_) | None => one.text.clear(),
            }
            if one.text.is_empty() {
                break;
            }
        }
        if !(found && one.text.is_empty()) {
            new.push(one);
        }
    }
    new
}

/// Returns true if the pin has not changed since its session was read.
async fn still_so(tx: &mut Tx, was: &Pin) -> Result<bool> {
    let stored = tx.pins().get(was.id).await?;
    Ok(stored
        .and_then(|s| s.pin)
        .is_some_and(|pin| pin.state == was.state && pin.files == was.files))
}

/// Returns true if a turn runs, or if a message with a position waits for its turn.
pub(crate) async fn at_work(tx: &mut Tx, c: ConversationId) -> Result<bool> {
    Ok(tx.turns().unfinished(c).await?.is_some() || tx.changes().queued_in_place(c).await?)
}

/// Returns true if the session had seen the whole history before the user continued it.
async fn saw_all(tx: &mut Tx, conversation: &Conversation, pin: &Pin) -> Result<bool> {
    let (c, scope) = (conversation.id, conversation.scope);
    let last = tx.history().last_seq(c).await?;
    let state = tx
        .history()
        .scope_before(c, scope, &pin.agent, last + 1)
        .await?;
    let through = tx.history().value_through(c, scope, &state, last).await?;
    Ok(pin.seen.last_seq == last && through == Some(pin.seen.value))
}

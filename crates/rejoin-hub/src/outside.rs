//! What was said in an agent's own session by somebody who used the CLI directly becomes history:
//! nobody forgets it, and the session goes on from there.

use rejoin_agents::Said;
use rejoin_core::{
    AgentName, ConversationId, Message, MessageState, Micros, PermissionMode, Pin, PinState, Role,
    Scope, TurnId,
};
use rejoin_store::{
    Adoption, AgentSettings, Conversation, NewConversation, NewMessage, OUTSIDE, READ_ON, Tx,
};
use serde_json::Value;

use crate::Hub;
use crate::accept::title_of;
use crate::claim::Claimed;
use crate::error::{Error, Result};

/// What taking in came to.
#[derive(Debug, Clone, Default)]
pub struct TakenIn {
    pub messages: u64,
    /// The session has seen all of the history, and may go on.
    pub moved: bool,
    /// The message of the turn in hand, at its new place behind them.
    pub message: Option<Message>,
}

/// A session that was made outside, to become a conversation.
#[derive(Debug, Clone)]
pub struct Adopted {
    pub agent: AgentName,
    pub session_id: String,
    pub workdir: String,
    /// None: the first words.
    pub title: Option<String>,
    pub said: Vec<Said>,
    /// The session, if it can be resumed; what it has seen is filled in here.
    pub pin: Option<Pin>,
    pub source: Value,
    /// What was spent on it so far, if the session says so.
    pub cost: Option<Micros>,
    /// The one it goes on with; none: the agent knows.
    pub model: Option<String>,
    pub permission: PermissionMode,
    pub scope: Scope,
}

/// A session that somebody went on with, as it was confirmed and as it was read now.
#[derive(Debug, Clone, Copy)]
pub struct WentOn<'a> {
    pub was: &'a Pin,
    /// None: it is not to be used again, but what was said there was said.
    pub now: Option<&'a Pin>,
}

const NOT_WHOLE: &str = "somebody went on with it outside, and did not leave it whole";

impl Hub {
    /// Puts what was said at the end of the history, before the message of the turn in hand, and moves
    /// the pin on if its session has now seen all of it; else that session is not used again.
    pub async fn take_in(
        &self,
        c: ConversationId,
        claimed: Option<&Claimed>,
        said: &[Said],
        session: WentOn<'_>,
    ) -> Result<TakenIn> {
        let WentOn { was, now: pin } = session;
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        match claimed {
            Some(claimed) => tx.holds(claimed.turn.id, claimed.turn.fence).await?,
            None if at_work(&mut tx, c).await? => return Err(Error::Busy),
            None => {}
        }
        let Some(conversation) = tx.conversation(c).await? else {
            return Ok(TakenIn::default());
        };
        if !still_so(&mut tx, was).await? {
            // Another command has taken it in.
            return Ok(TakenIn::default());
        }
        let serves = was.state == PinState::Confirmed;
        if said.is_empty() {
            // Other bytes, and not a word more: it has seen what it had seen.
            let moved = match pin {
                Some(pin) if serves => tx.confirm_pin(pin, now).await?,
                Some(pin) => {
                    tx.keep_read(pin, now).await?;
                    false
                }
                None => false,
            };
            tx.commit().await?;
            return Ok(TakenIn {
                moved,
                ..TakenIn::default()
            });
        }
        if let Some(claimed) = claimed {
            tx.unplace(claimed.message.id).await?;
        }
        let saw_all = serves && saw_all(&mut tx, &conversation, was).await?;
        self.say(&mut tx, c, &was.agent, said, now).await?;
        let moved = match pin.filter(|_| saw_all) {
            Some(pin) => self.move_on(&mut tx, &conversation, pin, now).await?,
            None => false,
        };
        if !moved {
            // Only what can be read on from where it ends now is read on.
            let why = pin.map_or(NOT_WHOLE, |_| READ_ON);
            tx.retire_pin(was.id, why, now).await?;
            if let Some(pin) = pin {
                tx.keep_read(pin, now).await?;
            }
        }
        let message = match claimed {
            Some(claimed) => Some(tx.place_message(claimed.message.id).await?),
            None => None,
        };
        tx.stamp_conversation(c, now).await?;
        tx.commit().await?;
        Ok(TakenIn {
            messages: said.len() as u64,
            moved,
            message,
        })
    }

    /// A new conversation from what was said in a session.
    pub async fn adopt(&self, adopted: &Adopted) -> Result<ConversationId> {
        let now = self.clock.now();
        let id = self.clock.conversation_id()?;
        let mut tx = self.store.begin().await?;
        let (agent, session) = (adopted.agent.as_str(), adopted.session_id.as_str());
        if tx.adoption(agent, session).await?.is_some() {
            let text = format!("another command has adopted {session}");
            return Err(Error::Conflict(text));
        }
        let first = adopted.said.first().map_or("", |s| s.text.as_str());
        tx.add_conversation(&NewConversation {
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
            tx.set_agent_settings(id, &settings).await?;
        }
        if let Some(cost) = adopted.cost {
            tx.set_outside_cost(id, cost).await?;
        }
        self.say(&mut tx, id, &adopted.agent, &adopted.said, now)
            .await?;
        let conversation = tx.conversation(id).await?;
        if let Some((pin, conversation)) = adopted.pin.as_ref().zip(conversation) {
            tx.add_confirmed_pin(id, pin, now).await?;
            if !self.move_on(&mut tx, &conversation, pin, now).await? {
                tx.retire_pin(pin.id, "its last message was not answered", now)
                    .await?;
            }
        }
        let adoption = Adoption {
            agent: adopted.agent.to_string(),
            session_id: adopted.session_id.clone(),
            conversation: id,
            source: adopted.source.clone(),
        };
        tx.keep_adoption(&adoption, now).await?;
        tx.commit().await?;
        Ok(id)
    }

    /// Adds what was said to the end.
    pub(crate) async fn say(
        &self,
        tx: &mut Tx,
        c: ConversationId,
        agent: &AgentName,
        said: &[Said],
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
            tx.add_placed(&new).await?;
        }
        Ok(())
    }

    /// Its session has seen everything there is. False: it does not end with an answer.
    async fn move_on(
        &self,
        tx: &mut Tx,
        conversation: &Conversation,
        pin: &Pin,
        now: i64,
    ) -> Result<bool> {
        let (c, scope) = (conversation.id, conversation.scope);
        let last = tx.last_seq(c).await?;
        let state = tx.scope_before(c, scope, &pin.agent, last + 1).await?;
        let Some(value) = tx.value_through(c, scope, &state, last).await? else {
            return Ok(false);
        };
        let mut pin = pin.clone();
        pin.state = PinState::Confirmed;
        pin.seen.value = value;
        pin.seen.messages = state.messages;
        pin.seen.last_seq = last;
        pin.seen.last = tx.id_at(c, last).await?;
        Ok(tx.confirm_pin(&pin, now).await?)
    }
}

/// The pin is as it was when its session was read.
async fn still_so(tx: &mut Tx, was: &Pin) -> Result<bool> {
    let stored = tx.pin(was.id).await?;
    Ok(stored
        .and_then(|s| s.pin)
        .is_some_and(|pin| pin.state == was.state && pin.files == was.files))
}

/// A turn runs, or a message that keeps its place waits for its own.
pub(crate) async fn at_work(tx: &mut Tx, c: ConversationId) -> Result<bool> {
    Ok(tx.unfinished_turn(c).await?.is_some() || tx.queued_in_place(c).await?)
}

/// Had the session seen the whole history before somebody went on with it?
async fn saw_all(tx: &mut Tx, conversation: &Conversation, pin: &Pin) -> Result<bool> {
    let (c, scope) = (conversation.id, conversation.scope);
    let last = tx.last_seq(c).await?;
    let state = tx.scope_before(c, scope, &pin.agent, last + 1).await?;
    let through = tx.value_through(c, scope, &state, last).await?;
    Ok(pin.seen.last_seq == last && through == Some(pin.seen.value))
}

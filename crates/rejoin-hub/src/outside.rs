//! What was said in an agent's own session by somebody who used the CLI directly becomes history:
//! nobody forgets it, and the session goes on from there.

use rejoin_agents::Said;
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

/// A session that a user continued by hand, as it was confirmed and as it was read now.
#[derive(Debug, Clone, Copy)]
pub struct WentOn<'a> {
    pub was: &'a Pin,
    pub now: SessionNow<'a>,
}

/// State of a session file that is not as it was confirmed.
#[derive(Debug, Clone, Copy)]
pub enum SessionNow<'a> {
    /// The session follows from what was confirmed, and is whole.
    Whole(&'a Pin),
    /// It follows, but its CLI could not continue it: the pin is retired.
    Broken(&'a FileMark),
    /// It follows from an older state only, or holds a turn that was not confirmed: the pin stays.
    Copy(&'a FileMark),
}

impl<'a> SessionNow<'a> {
    fn whole(self) -> Option<&'a Pin> {
        match self {
            Self::Whole(pin) => Some(pin),
            Self::Broken(_) | Self::Copy(_) => None,
        }
    }

    /// A file whose words are taken in without moving the pin.
    fn beside(self) -> Option<&'a FileMark> {
        match self {
            Self::Whole(_) => None,
            Self::Broken(file) | Self::Copy(file) => Some(file),
        }
    }
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
        let WentOn { was, now: state } = session;
        let pin = state.whole();
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
        let said = &unknown(&mut tx, c, said, state.beside().is_none()).await?[..];
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
            if let Some(file) = state.beside() {
                tx.note_read(was.id, file, now).await?;
            }
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
        match state {
            SessionNow::Whole(_) if moved => {}
            SessionNow::Whole(pin) => {
                tx.retire_read_on(was.id, now).await?;
                tx.keep_read(pin, now).await?;
            }
            SessionNow::Broken(file) => {
                tx.retire_pin(was.id, NOT_WHOLE, now).await?;
                tx.note_read(was.id, file, now).await?;
            }
            SessionNow::Copy(file) => tx.note_read(was.id, file, now).await?,
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

    /// Returns the words of a session that the history does not hold; see [`Self::take_in`].
    pub async fn not_taken_in(
        &self,
        c: ConversationId,
        said: &[Said],
        now: SessionNow<'_>,
    ) -> Result<Vec<Said>> {
        let mut read = self.store.read().await?;
        let known = read.external_words(c, earliest(said)).await?;
        Ok(not_in(said, known, now.beside().is_none()))
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

/// Returns the words that the history does not hold yet, removed messages included.
async fn unknown(
    tx: &mut Tx,
    c: ConversationId,
    said: &[Said],
    follows: bool,
) -> Result<Vec<Said>> {
    if said.is_empty() {
        return Ok(vec![]);
    }
    let known = tx.external_words(c, earliest(said)).await?;
    Ok(not_in(said, known, follows))
}

/// Returns the time of the oldest words; the least there is if some have none.
fn earliest(said: &[Said]) -> i64 {
    let times = said.iter().map(|one| one.at.unwrap_or(i64::MIN));
    times.min().unwrap_or(i64::MIN)
}

/// Words are known by who said them and when. Those without a time are known by their text, unless
/// they follow (`follows`) what was confirmed: then the mark of the session tells that they are new.
fn not_in(said: &[Said], mut known: Vec<ExternalWords>, follows: bool) -> Vec<Said> {
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
            // An answer that was being written when it was read has grown since.
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

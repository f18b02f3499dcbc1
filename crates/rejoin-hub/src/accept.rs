//! Accepts a message: one transaction, before anything is started for it.

use std::fmt::Write as _;

use rejoin_core::{
    AgentName, ConversationId, EventBody, Message, MessageId, MessageState, Role, Scope, TurnId,
};
use rejoin_store::{Conversation, HERE, NewConversation, NewMessage, NewTurn, StoredTurn, Tx};
use serde_json::Value;

use crate::Hub;
use crate::change::Continues;
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::hold::Hold;
use crate::lease::Lease;
use crate::questions::LateAnswer;
use crate::request::{TurnFlags, TurnRequest, check_model};

/// A message as it comes in.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// What its turn is called if it can be run at once: something waits for it under that name already.
    pub turn: Option<TurnId>,
    pub target: Target,
    pub text: String,
    /// None: the agent of the newest turn, or `default_agent` in a new conversation.
    pub agent: Option<AgentName>,
    pub default_agent: AgentName,
    /// Where a new conversation lives, if its flags name no folder.
    pub here: String,
    pub title: Option<String>,
    pub scope: Scope,
    /// In a new conversation they become its own.
    pub flags: TurnFlags,
    pub request: TurnRequest,
    pub client_key: Option<String>,
    pub refuse_if_busy: bool,
    /// Refused if it would have to wait behind so many messages of the store. None: it waits.
    pub queue_limit: Option<u64>,
    /// Somebody said yes to going on with a conversation that asks.
    pub confirmed: bool,
    /// The message answers a question whose process is gone.
    pub answers: Option<Box<LateAnswer>>,
}

#[derive(Debug, Clone)]
pub enum Target {
    New,
    Conversation(ConversationId),
    /// Continues the conversation with that key, or starts it.
    Key(String),
}

#[derive(Debug, Clone)]
pub struct Accepted {
    pub conversation: ConversationId,
    pub turn: TurnId,
    /// The same key came before: this is that turn as it stands.
    pub replayed: bool,
    /// The conversation was made for this message.
    pub created: bool,
    /// Nothing else was to be run first, so the sender has it in hand already.
    pub claimed: Option<Box<Claimed>>,
}

const TITLE: usize = 60;

/// Turns are in the order of their ids: one that was made before others were accepted is of no use.
async fn comes_last(tx: &mut Tx, turn: TurnId, c: ConversationId) -> Result<bool> {
    let last = tx.last_turn(c).await?;
    Ok(last.is_none_or(|last| last.id < turn))
}

impl Hub {
    /// `holder`: who will run it, if nothing has to run before it; none: it is only queued.
    pub async fn accept(&self, incoming: &Incoming, holder: Option<&str>) -> Result<Accepted> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        if let Some(key) = &incoming.client_key
            && let Some(before) = tx.turn_by_key(&self.namespace, key).await?
        {
            return self.replay(&mut tx, &before, incoming, key).await;
        }
        let known = match &incoming.target {
            Target::New => None,
            Target::Key(key) => tx.conversation_by_key(&self.namespace, key).await?,
            Target::Conversation(id) => {
                let found = tx.conversation(*id).await?;
                let found = found.filter(|c| *c.namespace == *self.namespace);
                let found = found.ok_or_else(|| no_conversation(*id))?;
                Some(found)
            }
        };
        let known = match known {
            Some(found) => Some(led_on(&mut tx, found).await?),
            None => None,
        };
        let created = known.is_none();
        let conversation = match known {
            Some(conversation) => conversation,
            None => self.start_conversation(&mut tx, incoming, now).await?,
        };
        if !created {
            may_continue(&mut tx, &conversation, incoming.confirmed).await?;
        }
        let busy = !created && tx.is_busy(conversation.id).await?;
        if incoming.refuse_if_busy && busy {
            return Err(Error::Busy);
        }
        let agent = incoming
            .agent
            .clone()
            .unwrap_or_else(|| conversation.agent.clone());
        let wishes = &incoming.request;
        let mut request =
            settle_request(&mut tx, &incoming.flags, wishes, &conversation, &agent).await?;
        self.may_run(&agent, &request)?;
        request.digest = (incoming.client_key.as_ref()).map(|_| digest_of(&incoming.text));
        let holder = holder.filter(|_| !busy);
        if conversation.opened_by.is_some() && incoming.refuse_if_busy {
            return Err(Error::Busy);
        }
        let holder = holder.filter(|_| conversation.opened_by.is_none());
        if let Some(most) = incoming.queue_limit.filter(|_| holder.is_none())
            && tx.queued().await? >= most
        {
            return Err(Error::QueueFull { most });
        }
        let turn = match incoming.turn.filter(|_| holder.is_some()) {
            Some(turn) if comes_last(&mut tx, turn, conversation.id).await? => turn,
            Some(_) | None => self.clock.turn_id()?,
        };
        let message = self.clock.message_id()?;
        if let Some(answer) = &incoming.answers {
            answer.store(&mut tx, message, now).await?;
        }
        let new = NewMessage {
            id: message,
            conversation: conversation.id,
            turn,
            role: Role::User,
            agent: None,
            text: &incoming.text,
            trail: &[],
            origin: HERE,
            root: None,
            state: MessageState::Ok,
            now,
        };
        let placed = match holder {
            Some(_) => Some(tx.add_placed(&new).await?),
            None => {
                tx.accept_message(&new).await?;
                None
            }
        };
        tx.add_turn(&NewTurn {
            id: turn,
            conversation: conversation.id,
            message,
            agent: &agent,
            request: to_json(&request)?,
            client_key: incoming.client_key.as_deref(),
            machine: &self.machine,
            holder,
            now,
        })
        .await?;
        tx.touch_conversation(conversation.id, &agent, &request.workdir, now)
            .await?;
        let event = EventBody::TurnAccepted {
            message_id: message,
        };
        tx.add_events(conversation.id, turn, now, &[event]).await?;
        let id = conversation.id;
        let lease = match holder {
            Some(holder) => self.first_lease(&mut tx, turn, holder).await?,
            None => Lease::default(),
        };
        let hold = Hold::new(turn);
        let claimed = match (placed, tx.turn(turn).await?) {
            (Some(message), Some(turn)) => Some(Box::new(Claimed {
                turn,
                conversation,
                message,
                request,
                attempts: vec![],
                taken_from: None,
                lease,
                since: Some(self.clock.since_boot()),
                hold,
            })),
            _ => None,
        };
        tx.commit().await?;
        Ok(Accepted {
            conversation: id,
            turn,
            replayed: false,
            created,
            claimed,
        })
    }

    /// A replay returns the same turn and never runs again; another message under the key is refused.
    /// What became of message and conversation since does not matter.
    async fn replay(
        &self,
        tx: &mut Tx,
        before: &StoredTurn,
        incoming: &Incoming,
        key: &str,
    ) -> Result<Accepted> {
        let asked: Option<TurnRequest> = serde_json::from_value(before.request.clone()).ok();
        let same_text = match asked.and_then(|asked| asked.digest) {
            Some(digest) => digest == digest_of(&incoming.text),
            None => {
                (tx.message(before.message).await?).is_some_and(|m| m.message.text == incoming.text)
            }
        };
        let target = match &incoming.target {
            Target::New => None,
            Target::Conversation(id) => tx.conversation(*id).await?,
            Target::Key(key) => tx.conversation_by_key(&self.namespace, key).await?,
        };
        let same_target = match target {
            Some(found) => led_on(tx, found).await?.id == before.conversation,
            None => matches!(incoming.target, Target::New),
        };
        if !(same_text && same_target) {
            return Err(Error::KeyReused(key.to_owned()));
        }
        Ok(Accepted {
            conversation: before.conversation,
            turn: before.id,
            replayed: true,
            created: false,
            claimed: None,
        })
    }

    async fn start_conversation(
        &self,
        tx: &mut Tx,
        incoming: &Incoming,
        now: i64,
    ) -> Result<Conversation> {
        let id = self.clock.conversation_id()?;
        let new = NewConversation {
            id,
            namespace: self.namespace.to_string(),
            key: match &incoming.target {
                Target::Key(key) => Some(key.clone()),
                Target::New | Target::Conversation(_) => None,
            },
            title: incoming
                .title
                .clone()
                .unwrap_or_else(|| title_of(&incoming.text)),
            agent: incoming
                .agent
                .clone()
                .unwrap_or_else(|| incoming.default_agent.clone()),
            workdir: incoming
                .flags
                .workdir
                .clone()
                .unwrap_or_else(|| incoming.here.clone()),
            permission: incoming.flags.permission.unwrap_or_default(),
            scope: incoming.scope,
            parent: None,
            now,
        };
        tx.add_conversation(&new).await?;
        tx.conversation(id)
            .await?
            .ok_or_else(|| Error::Internal("a new conversation is gone".into()))
    }
}

/// The first turn with an agent settles model and tools for it.
pub(crate) async fn settle_request(
    tx: &mut Tx,
    flags: &TurnFlags,
    request: &TurnRequest,
    c: &Conversation,
    agent: &AgentName,
) -> Result<TurnRequest> {
    check_model(flags.model.as_deref())?;
    check_model(flags.default_model.as_deref())?;
    if !c.settings.contains_key(agent.as_str()) {
        let mut settings = c.settings.clone();
        settings.insert(agent.to_string(), flags.settled());
        tx.set_agent_settings(c.id, &settings).await?;
    }
    Ok(flags.over(c, agent, request))
}

/// Holds a new turn to the conversation's own policy.
pub(crate) async fn may_continue(tx: &mut Tx, c: &Conversation, confirmed: bool) -> Result<()> {
    let asks = c.continues == Continues::Ask.as_str() && !confirmed;
    let never = c.continues == Continues::Never.as_str();
    if !asks && !never {
        return Ok(());
    }
    let handle = tx.short_handle(&c.handle).await?;
    Err(if never {
        Error::NeverContinues(handle)
    } else {
        Error::MustConfirm(handle)
    })
}

/// The conversation that this one was merged into, and that one, and so on.
pub(crate) async fn led_on(tx: &mut Tx, mut c: Conversation) -> Result<Conversation> {
    while let Some(next) = c.redirect_to {
        c = tx
            .conversation(next)
            .await?
            .ok_or_else(|| no_conversation(next))?;
    }
    Ok(c)
}

fn no_conversation(id: ConversationId) -> Error {
    Error::NotFound(format!("there is no conversation {id}"))
}

/// Stands for what was sent, whatever the message says later.
fn digest_of(text: &str) -> String {
    let message = Message {
        id: MessageId::nil(),
        seq: 0,
        role: Role::User,
        agent: None,
        text: text.to_owned(),
        attachments: vec![],
        state: MessageState::Ok,
        trail: vec![],
    };
    let bytes = message.digest().0;
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

pub(crate) fn title_of(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean: String = line.chars().filter(|c| !c.is_control()).collect();
    if clean.chars().count() <= TITLE {
        return clean;
    }
    let cut: String = clean.chars().take(TITLE).collect();
    let end = cut
        .rfind(' ')
        .filter(|at| *at > TITLE / 2)
        .unwrap_or(cut.len());
    format!("{}…", &cut[..end])
}

pub(crate) fn to_json(value: &impl serde::Serialize) -> Result<Value> {
    serde_json::to_value(value).map_err(|e| Error::Internal(e.to_string()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rejoin_store::Store;

    use super::*;
    use crate::clock::Clock;

    fn message(turn: Option<TurnId>) -> Incoming {
        Incoming {
            turn,
            target: Target::Key("k".into()),
            text: "hello".into(),
            agent: None,
            default_agent: AgentName::new("demo").unwrap(),
            here: "/".into(),
            title: None,
            scope: Scope::Full,
            flags: TurnFlags::default(),
            request: TurnRequest::default(),
            client_key: None,
            refuse_if_busy: false,
            queue_limit: None,
            confirmed: true,
            answers: None,
        }
    }

    /// Whatever was made ahead, turns stand in the order in which they were accepted.
    #[tokio::test]
    async fn ids_in_the_order_of_acceptance() {
        let dir = tempfile::tempdir().unwrap();
        let hub = Hub {
            namespace: "".into(),
            store: Store::open_sqlite(&dir.path().join("s.db")).await.unwrap(),
            clock: Clock,
            machine: "m".into(),
            vault: None,
            ceiling: None,
        };
        let earlier = TurnId::from_parts(1, [0; 10]);
        let ahead = hub.clock.turn_id().unwrap();
        let first = hub.accept(&message(Some(ahead)), Some("me")).await.unwrap();
        assert_eq!(first.turn, ahead);
        // While something runs it is only queued: nothing waits for it.
        let second = hub
            .accept(&message(Some(earlier)), Some("me"))
            .await
            .unwrap();
        assert!(second.turn > first.turn && second.claimed.is_none());
        hub.cancel_unrun(&first.claimed.unwrap()).await.unwrap();
        let claimed = hub.claim(second.turn, "me").await.unwrap();
        hub.cancel_unrun(&claimed).await.unwrap();
        let third = hub
            .accept(&message(Some(earlier)), Some("me"))
            .await
            .unwrap();
        assert!(third.turn > second.turn && third.claimed.is_some());
    }
}

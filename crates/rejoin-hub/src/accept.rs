//! Accepts a message: one transaction, before anything is started for it.

use rejoin_core::{
    AgentName, ConversationId, EventBody, Message, MessageId, MessageState, Role, Scope, TurnId,
    hex,
};
use rejoin_store::{Conversation, HERE, NewConversation, NewMessage, NewTurn, StoredTurn, Tx};
use serde_json::Value;

use crate::Hub;
use crate::active::ActiveTurn;
use crate::change::Continues;
use crate::claim::Claimed;
use crate::climb::{BY_SCHEDULE, BY_USER};
use crate::error::{Error, Result};
use crate::lease::Lease;
use crate::questions::LateAnswer;
use crate::request::{IfBusy, TurnFlags, TurnRequest, check_model};
use crate::schedules::DueOccurrence;

/// A message to be accepted.
#[derive(Debug, Clone)]
pub struct Incoming {
    /// Turn id to use if the turn can run at once. The caller has already started a shim under this
    /// id.
    pub turn: Option<TurnId>,
    pub target: Target,
    pub text: String,
    /// `None`: the agent of the newest turn, or `default_agent` in a new conversation.
    pub agent: Option<AgentName>,
    pub default_agent: AgentName,
    /// Working directory of a new conversation if `flags` name none.
    pub here: String,
    pub title: Option<String>,
    pub scope: Scope,
    /// Options of the turn. A new conversation takes its folder and permission mode from them.
    pub flags: TurnFlags,
    pub request: TurnRequest,
    pub client_key: Option<String>,
    pub if_busy: IfBusy,
    /// Refuses the message if it would have to wait and the store already has this many queued
    /// messages. `None`: no limit.
    pub queue_limit: Option<u64>,
    /// True if the caller confirmed continuing a conversation whose policy is `ask`.
    pub confirmed: bool,
    /// Set if the message answers a question whose process is gone.
    pub answers: Option<Box<LateAnswer>>,
    /// Occurrence of a schedule that the message is. It is recorded with the turn, or the message is
    /// refused because it is recorded already.
    pub occurrence: Option<DueOccurrence>,
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
    /// True if a turn with this idempotency key exists already; the other fields then describe that
    /// turn.
    pub replayed: bool,
    /// True if the conversation was created for this message.
    pub created: bool,
    /// Set if no other turn had to run first; the sender then holds the turn already.
    pub claimed: Option<Box<Claimed>>,
}

const TITLE: usize = 60;

/// Returns true if `turn` sorts after every turn of the conversation. Turns run in the order of
/// their ids, so an id that was generated before other turns were accepted cannot be used.
async fn comes_last(tx: &mut Tx, turn: TurnId, c: ConversationId) -> Result<bool> {
    let last = tx.turns().last(c).await?;
    Ok(last.is_none_or(|last| last.id < turn))
}

impl Hub {
    /// Stores a message and its turn in one transaction. If nothing else of the conversation is
    /// queued or running, `holder` claims the turn in the same transaction; without a holder it is
    /// only queued.
    pub async fn accept(&self, incoming: &Incoming, holder: Option<&str>) -> Result<Accepted> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        if let Some(key) = &incoming.client_key
            && let Some(before) = tx.turns().by_key(&self.namespace, key).await?
        {
            return self.replay(&mut tx, &before, incoming, key).await;
        }
        let known = match &incoming.target {
            Target::New => None,
            Target::Key(key) => tx.conversations().by_key(&self.namespace, key).await?,
            Target::Conversation(id) => {
                let found = tx.conversations().get(*id).await?;
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
        let busy = !created && tx.turns().is_busy(conversation.id).await?;
        if incoming.if_busy == IfBusy::Fail && busy {
            return Err(Error::Busy);
        }
        let agent = incoming
            .agent
            .clone()
            .unwrap_or_else(|| conversation.agent.clone());
        let asked = &incoming.request;
        let mut request =
            settle_request(&mut tx, &incoming.flags, asked, &conversation, &agent).await?;
        self.may_run(&agent, &request)?;
        if let Some(tier) = &mut request.tier {
            tier.ceiling = self.ceiling;
        }
        self.limit_request(&mut tx, &conversation.namespace, &mut request, now)
            .await?;
        request.digest = (incoming.client_key.as_ref()).map(|_| digest_of(&incoming.text));
        let holder = holder.filter(|_| !busy);
        if conversation.opened_by.is_some() && incoming.if_busy == IfBusy::Fail {
            return Err(Error::Busy);
        }
        let holder = holder.filter(|_| conversation.opened_by.is_none());
        if let Some(most) = incoming.queue_limit.filter(|_| holder.is_none())
            && tx.turns().count_queued().await? >= most
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
            Some(_) => Some(tx.messages().add_placed(&new).await?),
            None => {
                tx.messages().accept(&new).await?;
                None
            }
        };
        tx.turns()
            .add(&NewTurn {
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
        self.reserve_calls(&mut tx, &conversation.namespace, turn, &request)
            .await?;
        let trigger = match &incoming.occurrence {
            Some(due) => {
                self.record_run(&mut tx, due, (conversation.id, turn), now)
                    .await?;
                BY_SCHEDULE
            }
            None => BY_USER,
        };
        self.begin_chain(&mut tx, turn, &request, trigger).await?;
        tx.conversations()
            .touch(conversation.id, &agent, &request.workdir, now)
            .await?;
        let event = EventBody::TurnAccepted {
            message_id: message,
        };
        tx.events()
            .add(conversation.id, turn, now, &[event])
            .await?;
        let id = conversation.id;
        let lease = match holder {
            Some(holder) => self.first_lease(&mut tx, turn, holder).await?,
            None => Lease::default(),
        };
        let active = ActiveTurn::new(turn);
        let claimed = match (placed, tx.turns().get(turn).await?) {
            (Some(message), Some(turn)) => Some(Box::new(Claimed {
                turn,
                conversation,
                message,
                request,
                attempts: vec![],
                taken_from: None,
                lease,
                since: Some(self.clock.since_boot()),
                active,
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

    /// Returns the turn that an earlier request created under the same key; it never runs again.
    /// Refuses another text or another conversation under the key. Later changes to message and
    /// conversation do not matter.
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
            None => (tx.messages().get(before.message).await?)
                .is_some_and(|m| m.message.text == incoming.text),
        };
        let target = match &incoming.target {
            Target::New => None,
            Target::Conversation(id) => tx.conversations().get(*id).await?,
            Target::Key(key) => tx.conversations().by_key(&self.namespace, key).await?,
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
        tx.conversations().add(&new).await?;
        tx.conversations()
            .get(id)
            .await?
            .ok_or_else(|| Error::Internal("a new conversation is gone".into()))
    }
}

/// Resolves the options of a turn against its conversation. The first turn with an agent fixes the
/// agent's model and tools.
pub(crate) async fn settle_request(
    tx: &mut Tx,
    flags: &TurnFlags,
    request: &TurnRequest,
    c: &Conversation,
    agent: &AgentName,
) -> Result<TurnRequest> {
    check_model(flags.model.as_deref())?;
    check_model(flags.default_model.as_deref())?;
    // A tier is of one turn, so it fixes nothing.
    if flags.tier.is_none() && !c.settings.contains_key(agent.as_str()) {
        let mut settings = c.settings.clone();
        settings.insert(agent.to_string(), flags.settled());
        tx.conversations()
            .set_agent_settings(c.id, &settings)
            .await?;
    }
    Ok(flags.over(c, agent, request))
}

/// Refuses a new turn that the conversation's `continues` policy does not allow.
pub(crate) async fn may_continue(tx: &mut Tx, c: &Conversation, confirmed: bool) -> Result<()> {
    let asks = c.continues == Continues::Ask.as_str() && !confirmed;
    let never = c.continues == Continues::Never.as_str();
    if !asks && !never {
        return Ok(());
    }
    let handle = tx.conversations().short_handle(&c.handle).await?;
    Err(if never {
        Error::NeverContinues(handle)
    } else {
        Error::MustConfirm(handle)
    })
}

/// Follows merges: returns the conversation into which `c` was merged, over any number of steps.
pub(crate) async fn led_on(tx: &mut Tx, mut c: Conversation) -> Result<Conversation> {
    while let Some(next) = c.redirect_to {
        c = tx
            .conversations()
            .get(next)
            .await?
            .ok_or_else(|| no_conversation(next))?;
    }
    Ok(c)
}

fn no_conversation(id: ConversationId) -> Error {
    Error::NotFound(format!("there is no conversation {id}"))
}

/// Digest of the text as sent, independent of later edits of the message.
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
    hex(&message.digest().0)
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
            if_busy: IfBusy::Wait,
            queue_limit: None,
            confirmed: true,
            answers: None,
            occurrence: None,
        }
    }

    /// Turns are in the order in which they were accepted, even if an id was generated ahead.
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
        // While another turn runs, the message is only queued, so the prepared id is not used.
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

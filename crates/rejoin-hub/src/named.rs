//! What somebody named, with what a command needs of it; messages by their words; why a turn went as
//! it did. The same in one process and over HTTP.

use rejoin_core::{ConversationId, Envelope, MessageId, Micros, Role, Sent, TurnId, TurnStatus};
use rejoin_store::{Conversation, HIT_BEGINS, HIT_ENDS, Hit, Search, StoredMessage, StoredTurn};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::list::ListWish;
use crate::view::{ConversationView, TurnView};

/// What a name is to mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Want {
    Conversation,
    /// A message, or a conversation without one.
    Message,
    /// A message; of a conversation the last that a person sent.
    Said,
    /// A turn; of a conversation its last.
    Turn,
}

/// What was found.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NamedView {
    pub conversation: ConversationView,
    /// How many messages its history has.
    pub messages: i64,
    /// The number in `tmqx:4`, whether or not there is such a message.
    pub number: Option<i64>,
    pub message: Option<PlaceView>,
    pub turn: Option<TurnView>,
}

/// A message and its place.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PlaceView {
    pub id: MessageId,
    /// 0: it is still queued.
    pub seq: i64,
}

impl NamedView {
    /// The message as people call it.
    pub fn called(&self, message: PlaceView) -> String {
        let handle = &self.conversation.handle;
        match message.seq {
            0 => handle.clone(),
            seq => format!("{handle}:{seq}"),
        }
    }
}

/// A message that holds the words.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HitView {
    pub conversation_id: ConversationId,
    pub message_id: MessageId,
    pub handle: String,
    pub title: String,
    pub seq: i64,
    pub role: Role,
    pub agent: Option<String>,
    pub created_at: String,
    pub snippet: String,
    /// Where the words stand in it, in characters: from, to.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Vec<usize>>))]
    pub marks: Vec<(usize, usize)>,
}

/// Messages that hold the words, best first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HitsView {
    pub messages: Vec<HitView>,
}

/// What to look for.
#[derive(Debug, Clone, Default)]
pub struct SearchWish {
    pub words: String,
    pub agent: Option<String>,
    pub workdir: Option<String>,
    pub limit: i64,
}

/// A turn, and what explains it besides.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainView {
    pub turn: TurnView,
    /// What it was allowed to do.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub envelope: Envelope,
    /// What it would have cost, had its session been resumed.
    pub resumed_estimate_usd: Option<f64>,
    /// Would the next turn resume its session, as far as it knows? None: it is not the newest, or has not
    /// ended.
    pub goes_on: Option<bool>,
}

/// What would happen if one sent now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextView {
    /// None: nothing would be run.
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub checks: Value,
    pub sent: Option<Sent>,
    pub cost_estimate_usd: Option<f64>,
    pub handle: String,
    pub agent: String,
    pub version: Option<String>,
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    pub envelope: Envelope,
    /// Why the agent cannot be held to that.
    pub cannot: Option<String>,
    /// What was said outside and is taken in first.
    pub note: Option<String>,
}

impl Hub {
    /// `folders`: where `last` looks, nearest first; none: everywhere.
    pub async fn named(&self, name: &str, want: Want, folders: &[String]) -> Result<NamedView> {
        let meant = self.newest_if_last(name, folders).await?;
        let name = meant.as_deref().unwrap_or(name);
        let (conversation, number, message, turn) = match want {
            Want::Conversation => {
                let found = self.find(name, folders).await?;
                (found.conversation, found.message, None, None)
            }
            Want::Message | Want::Said => {
                let named = self.find_message(name, folders).await?;
                let message = match (named.message, want) {
                    (None, Want::Said) => Some(self.last_said(&named.conversation).await?),
                    (message, _) => message,
                };
                let place = message.map(|m| PlaceView {
                    id: m.message.id,
                    seq: m.message.seq,
                });
                (named.conversation, None, place, None)
            }
            Want::Turn => {
                let turn = self.find_turn(name, folders).await?;
                let mut read = self.store.read().await?;
                let c = read.conversation(turn.conversation).await?;
                let c = c.ok_or_else(gone)?;
                (c, None, None, Some(turn.id))
            }
        };
        let messages = self.store.read().await?.last_seq(conversation.id).await?;
        Ok(NamedView {
            conversation: self.conversation_view(&conversation).await?,
            messages,
            number,
            message,
            turn: match turn {
                Some(id) => Some(self.turn_view(id).await?),
                None => None,
            },
        })
    }

    /// Where nobody is in a folder, `last` is the one that was used last of all.
    async fn newest_if_last(&self, name: &str, folders: &[String]) -> Result<Option<String>> {
        let number = match name.strip_prefix("last") {
            Some(rest) if folders.is_empty() && (rest.is_empty() || rest.starts_with(':')) => rest,
            Some(_) | None => return Ok(None),
        };
        let wish = ListWish {
            limit: 1,
            ..ListWish::default()
        };
        let (newest, _) = self.page(&wish).await?;
        let newest = newest.first().ok_or(Error::NoneYet)?;
        Ok(Some(format!("{}{number}", newest.id)))
    }

    async fn last_said(&self, c: &Conversation) -> Result<StoredMessage> {
        let mut read = self.store.read().await?;
        let handle = read.short_handle(&c.handle).await?;
        let last = read.last_of(c.id, Role::User).await?;
        let last = last.ok_or_else(|| Error::NotFound(format!("{handle} has no message yet")))?;
        let stored = read.message(last.id).await?;
        stored.ok_or_else(gone)
    }

    pub async fn search(&self, wish: &SearchWish) -> Result<HitsView> {
        if !wish.words.chars().any(char::is_alphanumeric) {
            return Err(Error::Usage("there is no word to look for".into()));
        }
        let search = Search {
            namespace: self.namespace.to_string(),
            text: wish.words.clone(),
            agent: wish.agent.clone(),
            workdir: wish.workdir.clone(),
            limit: wish.limit.clamp(1, 1000),
        };
        let hits = self.store.read().await?.search(&search).await?;
        let mut messages = vec![];
        for hit in hits {
            let mut read = self.store.read().await?;
            if let Some(c) = read.conversation(hit.conversation).await? {
                let handle = read.short_handle(&c.handle).await?;
                messages.push(hit_view(hit, &handle, c.title));
            }
        }
        Ok(HitsView { messages })
    }

    pub async fn explain(&self, turn: TurnId) -> Result<ExplainView> {
        let stored = self.store.read().await?.turn(turn).await?;
        let stored = stored.ok_or_else(|| Error::NotFound(format!("there is no turn {turn}")))?;
        let view = self.turn_view(turn).await?;
        let mut envelope: Envelope =
            serde_json::from_value(stored.request["envelope"].clone()).unwrap_or_default();
        // What was in force, where that differs from what was asked for.
        let mode = view.policy["permission"].as_str();
        if let Some(mode) = mode.and_then(|mode| mode.parse().ok()) {
            envelope.mode = mode;
        }
        let mut resumed = None;
        if stored.status.ended() {
            resumed = self.estimate_resumed(&stored).await?;
        }
        Ok(ExplainView {
            envelope,
            resumed_estimate_usd: resumed.map(Micros::dollars),
            goes_on: self.goes_on(&stored, &view).await?,
            turn: view,
        })
    }

    async fn goes_on(&self, turn: &StoredTurn, view: &TurnView) -> Result<Option<bool>> {
        let newest = self
            .store
            .read()
            .await?
            .last_turn(turn.conversation)
            .await?;
        if !TurnStatus::ended(turn.status) || newest.is_none_or(|newest| newest.id != turn.id) {
            return Ok(None);
        }
        let sessions = self.session_views(turn.conversation).await?;
        let used = |id: &String| Some(id) == view.session_id.as_ref();
        let confirmed = |s: &crate::SessionView| used(&s.session_id) && s.state == "confirmed";
        Ok(Some(sessions.iter().any(confirmed)))
    }
}

fn hit_view(hit: Hit, handle: &str, title: String) -> HitView {
    let (mut snippet, mut marks, mut from) = (String::new(), vec![], 0);
    let mut at = 0;
    for c in hit.snippet.chars() {
        match c {
            HIT_BEGINS => from = at,
            HIT_ENDS => marks.push((from, at)),
            other => {
                snippet.push(other);
                at += 1;
            }
        }
    }
    HitView {
        conversation_id: hit.conversation,
        message_id: hit.message,
        handle: format!("{handle}:{}", hit.seq),
        title,
        seq: hit.seq,
        role: hit.role,
        agent: hit.agent,
        created_at: rfc3339(hit.created_at),
        snippet,
        marks,
    }
}

fn gone() -> Error {
    Error::NotFound("the conversation is gone".into())
}

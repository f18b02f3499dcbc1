//! Resolves names for commands, to the views they print. The same code serves one process and HTTP.

use rejoin_core::{MessageId, Role};
use rejoin_store::{Conversation, StoredMessage};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::error::{Error, Result};
use crate::list::ListQuery;
use crate::view::{ConversationView, TurnView};

/// The kind of object that a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum NameKind {
    Conversation,
    /// A message, or a conversation without one.
    Message,
    /// A message; of a conversation the last that a person sent.
    Said,
    /// A turn; of a conversation its last.
    Turn,
}

/// The object found.
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
    /// Formats the message as users name it, such as `tmqx:4`.
    pub fn called(&self, message: PlaceView) -> String {
        let handle = &self.conversation.handle;
        match message.seq {
            0 => handle.clone(),
            seq => format!("{handle}:{seq}"),
        }
    }
}

impl Hub {
    /// Resolves a name. `folders` are searched for `last`, nearest first; an empty list means all
    /// folders.
    pub async fn named(&self, name: &str, want: NameKind, folders: &[String]) -> Result<NamedView> {
        let meant = self.newest_if_last(name, folders).await?;
        let name = meant.as_deref().unwrap_or(name);
        let (conversation, number, message, turn) = match want {
            NameKind::Conversation => {
                let found = self.find(name, folders).await?;
                (found.conversation, found.message, None, None)
            }
            NameKind::Message | NameKind::Said => {
                let named = self.find_message(name, folders).await?;
                let message = match (named.message, want) {
                    (None, NameKind::Said) => Some(self.last_said(&named.conversation).await?),
                    (message, _) => message,
                };
                let place = message.map(|m| PlaceView {
                    id: m.message.id,
                    seq: m.message.seq,
                });
                (named.conversation, None, place, None)
            }
            NameKind::Turn => {
                let turn = self.find_turn(name, folders).await?;
                let mut read = self.store.read().await?;
                let c = read.conversations().get(turn.conversation).await?;
                let c = c.ok_or_else(gone)?;
                (c, None, None, Some(turn.id))
            }
        };
        let messages = self
            .store
            .read()
            .await?
            .history()
            .last_seq(conversation.id)
            .await?;
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

    /// Resolves `last` without a folder to the most recently used conversation. `None` for any
    /// other name.
    async fn newest_if_last(&self, name: &str, folders: &[String]) -> Result<Option<String>> {
        let number = match name.strip_prefix("last") {
            Some(rest) if folders.is_empty() && (rest.is_empty() || rest.starts_with(':')) => rest,
            Some(_) | None => return Ok(None),
        };
        let query = ListQuery {
            limit: 1,
            ..ListQuery::default()
        };
        let (newest, _) = self.page(&query).await?;
        let newest = newest.first().ok_or(Error::NoneYet)?;
        Ok(Some(format!("{}{number}", newest.id)))
    }

    async fn last_said(&self, c: &Conversation) -> Result<StoredMessage> {
        let mut read = self.store.read().await?;
        let handle = read.conversations().short_handle(&c.handle).await?;
        let last = read.messages().last_of(c.id, Role::User).await?;
        let last = last.ok_or_else(|| Error::NotFound(format!("{handle} has no message yet")))?;
        let stored = read.messages().get(last.id).await?;
        stored.ok_or_else(gone)
    }
}

fn gone() -> Error {
    Error::NotFound("the conversation is gone".into())
}

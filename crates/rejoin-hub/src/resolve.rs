//! Resolves a name: an id, a handle, a unique prefix, `last`, or a key.

mod view;

use rejoin_core::{ConversationId, Handle, HandleRef, MessageId, TurnId};
use rejoin_store::{Conversation, ListFilter, Read, StoredMessage, StoredTurn};

use crate::Hub;
use crate::error::{Error, Result};

pub use view::{NameKind, NamedView, PlaceView};

/// Number of conversations to search for a similar name after a typing error.
const LATELY: i64 = 500;

/// Minimum number of letters of a handle that users see.
const SHOWN: usize = 4;

/// A conversation and, if the name includes one, the position of a message.
#[derive(Debug, Clone)]
pub struct NamedConversation {
    pub conversation: Conversation,
    pub message: Option<i64>,
}

/// A conversation and, if the name includes one, the message itself.
#[derive(Debug, Clone)]
pub struct NamedMessage {
    pub conversation: Conversation,
    pub message: Option<StoredMessage>,
}

impl Hub {
    /// Resolves the name of a conversation or message. `folders` are searched for `last`, nearest
    /// first.
    pub async fn find(&self, name: &str, folders: &[String]) -> Result<NamedConversation> {
        let parsed = HandleRef::parse(name);
        if let Some(conversation) = self
            .conversation_named(parsed.conversation, folders)
            .await?
        {
            return Ok(NamedConversation {
                conversation,
                message: parsed.message,
            });
        }
        if parsed.message.is_some()
            && let Some(conversation) = self.conversation_named(name, folders).await?
        {
            return Ok(NamedConversation {
                conversation,
                message: None,
            });
        }
        if !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit()) {
            let text = format!("there is no conversation `{name}`; a message is CONV:N");
            return Err(Error::NotFound(text));
        }
        Err(Error::NotFound(
            match self.nearest(parsed.conversation).await? {
                None => format!("there is no conversation `{name}`"),
                Some(near) => format!("there is no conversation `{name}`; did you mean `{near}`?"),
            },
        ))
    }

    /// Returns the most similar handle or key among the recently used conversations.
    async fn nearest(&self, name: &str) -> Result<Option<String>> {
        if name.len() > 64 {
            return Ok(None);
        }
        let mut read = self.store.read().await?;
        let filter = ListFilter {
            namespace: self.namespace.to_string(),
            limit: LATELY,
            ..ListFilter::default()
        };
        let typed = name.len().clamp(4, 18);
        let mut best: Option<(usize, String)> = None;
        for conversation in read.listing(&filter).await? {
            let letters = conversation.handle.letters();
            let handle = letters[..typed.min(letters.len())].to_owned();
            for (known, is_handle) in [(Some(handle), true), (conversation.key.clone(), false)] {
                let Some(known) = known else { continue };
                let far = strsim::damerau_levenshtein(name, &known);
                if far <= (name.len() / 4).max(1) && best.as_ref().is_none_or(|(b, _)| far < *b) {
                    let shown = if is_handle {
                        read.conversations()
                            .short_handle(&conversation.handle)
                            .await?
                    } else {
                        known
                    };
                    best = Some((far, shown));
                }
            }
        }
        Ok(best.map(|(_, name)| name))
    }

    /// Resolves a turn: by its id, by one of its messages, or the last turn of a conversation.
    pub async fn find_turn(&self, name: &str, folders: &[String]) -> Result<StoredTurn> {
        let mut read = self.store.read().await?;
        if let Ok(id) = name.parse::<TurnId>() {
            if let Some(turn) = self.own_turn(&mut read, id).await? {
                return Ok(turn);
            }
            if let Some(message) = read.messages().get(MessageId::from_uuid(id.uuid())).await? {
                let turn = self.own_turn(&mut read, message.turn).await?;
                return turn.ok_or_else(|| no_turn(name));
            }
        }
        let found = self.find(name, folders).await?;
        let turn = match found.message {
            None => read.turns().last(found.conversation.id).await?,
            Some(seq) => match read.messages().at(found.conversation.id, seq).await? {
                Some(message) => read.turns().get(message.turn).await?,
                None => None,
            },
        };
        turn.ok_or_else(|| no_turn(name))
    }

    /// Returns a turn of this namespace. A turn of another one counts as missing.
    async fn own_turn(&self, read: &mut Read, id: TurnId) -> Result<Option<StoredTurn>> {
        let Some(turn) = read.turns().get(id).await? else {
            return Ok(None);
        };
        let c = read.conversations().get(turn.conversation).await?;
        Ok(c.is_some_and(|c| self.owns(&c)).then_some(turn))
    }

    fn owns(&self, c: &Conversation) -> bool {
        *c.namespace == *self.namespace
    }

    /// Resolves a message: by its id, or as `tmqx:4`. The name of a conversation alone yields no
    /// message.
    pub async fn find_message(&self, name: &str, folders: &[String]) -> Result<NamedMessage> {
        if let Ok(id) = name.parse::<MessageId>() {
            let mut read = self.store.read().await?;
            if let Some(message) = read.messages().get_ever(id).await? {
                let c = read.messages().conversation_of(id).await?;
                let c = match c {
                    Some(c) => read.conversations().get(c).await?,
                    None => None,
                };
                let c = c.filter(|c| self.owns(c));
                if c.is_none() {
                    return Err(Error::NotFound(format!("there is no message {id}")));
                }
                if message.removed {
                    return Err(Error::NotFound(
                        "the message was removed; `rejoin undo` may bring it back".into(),
                    ));
                }
                return match c {
                    Some(conversation) => Ok(NamedMessage {
                        conversation,
                        message: Some(message),
                    }),
                    None => Err(Error::NotFound(format!("there is no message {id}"))),
                };
            }
        }
        let found = self.find(name, folders).await?;
        let mut read = self.store.read().await?;
        let message = match found.message {
            None => None,
            Some(seq) => {
                let stored = read.messages().at(found.conversation.id, seq).await?;
                let last = read.history().last_seq(found.conversation.id).await?;
                let handle = read
                    .conversations()
                    .short_handle(&found.conversation.handle)
                    .await?;
                Some(stored.ok_or_else(|| Error::NoMessage {
                    what: format!("has no message {seq}; its last is {last}"),
                    handle,
                })?)
            }
        };
        Ok(NamedMessage {
            conversation: found.conversation,
            message,
        })
    }

    async fn conversation_named(
        &self,
        name: &str,
        folders: &[String],
    ) -> Result<Option<Conversation>> {
        let found = self.conversation_called(name, folders).await?;
        let Some(mut found) = found else {
            return Ok(None);
        };
        let mut read = self.store.read().await?;
        while let Some(next) = found.redirect_to {
            let Some(there) = read.conversations().get(next).await? else {
                return Ok(None);
            };
            found = there;
        }
        Ok(Some(found))
    }

    async fn conversation_called(
        &self,
        name: &str,
        folders: &[String],
    ) -> Result<Option<Conversation>> {
        let mut read = self.store.read().await?;
        if let Ok(id) = name.parse::<ConversationId>() {
            let found = read.conversations().get(id).await?;
            return Ok(found.filter(|c| self.owns(c)));
        }
        if name == "last" {
            for folder in folders {
                if let Some(found) = read
                    .conversations()
                    .last_in(&self.namespace, folder)
                    .await?
                {
                    return Ok(Some(found));
                }
            }
            return Err(self.no_last().await?);
        }
        // A few letters may begin any handle, and more handles tomorrow, so an equal key takes
        // precedence.
        if name.len() < SHOWN
            && let Some(keyed) = read.conversations().by_key(&self.namespace, name).await?
        {
            return Ok(Some(keyed));
        }
        if Handle::looks_like(name) {
            let mut found = read
                .conversations()
                .by_handle(&self.namespace, name)
                .await?;
            if found.len() > 1 {
                let mut choices = vec![];
                for one in &found {
                    choices.push(read.conversations().short_handle(&one.handle).await?);
                }
                return Err(Error::Ambiguous {
                    text: name.into(),
                    choices: choices.join(", "),
                });
            }
            if let Some(one) = found.pop() {
                return Ok(Some(one));
            }
        }
        Ok(read.conversations().by_key(&self.namespace, name).await?)
    }

    async fn no_last(&self) -> Result<Error> {
        let mut read = self.store.read().await?;
        let newest = read
            .listing(&ListFilter {
                namespace: self.namespace.to_string(),
                limit: 1,
                ..ListFilter::default()
            })
            .await?;
        Ok(match newest.first() {
            None => Error::NoneYet,
            Some(c) => Error::NotFound(format!(
                "no conversation was used in this folder; the newest elsewhere is {} in {}",
                read.conversations().short_handle(&c.handle).await?,
                c.workdir
            )),
        })
    }
}

fn no_turn(name: &str) -> Error {
    Error::NotFound(format!("there is no turn `{name}`"))
}

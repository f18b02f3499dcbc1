//! Forks a conversation: a new one with a copy of the history up to a message.

use rejoin_core::{ConversationId, MessageState, PermissionMode, Role};
use rejoin_store::{NewConversation, Parent};
use serde::{Deserialize, Serialize};

use super::gone;
use crate::Hub;
use crate::error::{Error, Result};

/// Options of the new conversation.
#[derive(Debug, Clone, Default)]
pub struct ForkRequest {
    /// Last message to copy. `None`: the whole history.
    pub at: Option<i64>,
    pub permission: Option<PermissionMode>,
    pub title: Option<String>,
    pub key: Option<String>,
    /// Idempotency key: a second request with it returns the first fork.
    pub client_key: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ForkView {
    pub conversation_id: ConversationId,
    pub parent_id: ConversationId,
    pub handle: String,
    pub messages: u64,
}

impl Hub {
    /// Copies the history of `c` into a new conversation. A turn of the parent may be running: its
    /// message is copied as unanswered. Queued messages are not part of the history and are not
    /// copied.
    pub async fn fork(&self, c: ConversationId, request: &ForkRequest) -> Result<ForkView> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        let parent = tx.conversations().get(c).await?.ok_or_else(gone)?;
        if let Some(key) = &request.client_key
            && let Some(before) = tx.conversations().made_for(&self.namespace, key).await?
        {
            let Some(of) = before.parent.filter(|parent| parent.id == c) else {
                return Err(Error::KeyReused(key.clone()));
            };
            return Ok(ForkView {
                conversation_id: before.id,
                parent_id: c,
                handle: tx.conversations().short_handle(&before.handle).await?,
                messages: of.seq as u64,
            });
        }
        let last = tx.history().last_seq(c).await?;
        let through = request.at.unwrap_or(last);
        if through < 1 || through > last {
            return Err(Error::NoMessage {
                handle: tx.conversations().short_handle(&parent.handle).await?,
                what: format!("has no message {through} to fork at; its last is {last}"),
            });
        }
        if let Some(key) = &request.key
            && tx
                .conversations()
                .by_key(&self.namespace, key)
                .await?
                .is_some()
        {
            return Err(Error::Conflict(format!(
                "another conversation has the key `{key}`"
            )));
        }
        let id = self.clock.conversation_id()?;
        let title = request.title.clone();
        tx.conversations()
            .add(&NewConversation {
                namespace: parent.namespace.clone(),
                id,
                key: request.key.clone(),
                title: title.unwrap_or_else(|| format!("{} (fork)", parent.title)),
                agent: parent.agent.clone(),
                workdir: parent.workdir.clone(),
                permission: request.permission.unwrap_or(parent.permission),
                scope: parent.scope,
                parent: Some(Parent {
                    id: c,
                    seq: through,
                }),
                now,
            })
            .await?;
        if let Some(mut child) = tx.conversations().get(id).await? {
            child.settings.clone_from(&parent.settings);
            child.fresh = parent.fresh;
            self.may_have(&child)?;
            tx.conversations().save(&child).await?;
        }
        if let Some(key) = &request.client_key {
            tx.conversations().set_key(id, key).await?;
        }
        let messages = tx.merge().owned_rows(c).await?.messages;
        let copied = messages.into_iter().take(through as usize);
        let (mut newest, mut answered_by) = (None, None);
        for message in copied {
            if let Some(stored) = tx.messages().get(message).await? {
                answered_by = stored.message.agent.or(answered_by);
            }
            let copy = self.clock.message_id()?;
            tx.messages().copy(message, copy, id).await?;
            newest = Some(copy);
        }
        // The answer to the last message, if it had one, is not part of the copied history.
        if let Some(newest) = newest
            && let Some(stored) = tx.messages().get(newest).await?
            && (stored.message.role, stored.message.state) == (Role::User, MessageState::Ok)
        {
            tx.messages().mark_unanswered(newest, &[]).await?;
        }
        // The next message goes to the agent that answered last in the copied history.
        if through < last
            && let Some(agent) = answered_by
            && let Some(mut child) = tx.conversations().get(id).await?
        {
            child.agent = agent;
            tx.conversations().save(&child).await?;
        }
        tx.commit().await?;
        let child = self.store.read().await?.conversations().get(id).await?;
        let child = child.ok_or_else(gone)?;
        Ok(ForkView {
            conversation_id: id,
            parent_id: c,
            handle: self
                .store
                .read()
                .await?
                .conversations()
                .short_handle(&child.handle)
                .await?,
            messages: through as u64,
        })
    }
}

//! A new conversation with the same history, up to a message.

use rejoin_core::{ConversationId, MessageState, PermissionMode, Role};
use rejoin_store::{NewConversation, Parent};
use serde::{Deserialize, Serialize};

use super::gone;
use crate::Hub;
use crate::error::{Error, Result};

/// What the new conversation is to be.
#[derive(Debug, Clone, Default)]
pub struct ForkWish {
    /// Through this place; none: all of it.
    pub at: Option<i64>,
    pub permission: Option<PermissionMode>,
    pub title: Option<String>,
    pub key: Option<String>,
    /// The same again gives the same conversation.
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
    /// Also while a turn of the parent runs: its message is copied, unanswered. What is queued is not
    /// history yet.
    pub async fn fork(&self, c: ConversationId, wish: &ForkWish) -> Result<ForkView> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        let parent = tx.conversation(c).await?.ok_or_else(gone)?;
        if let Some(key) = &wish.client_key
            && let Some(before) = tx.conversation_made_for(&self.namespace, key).await?
        {
            let Some(of) = before.parent.filter(|parent| parent.id == c) else {
                return Err(Error::KeyReused(key.clone()));
            };
            return Ok(ForkView {
                conversation_id: before.id,
                parent_id: c,
                handle: tx.short_handle(&before.handle).await?,
                messages: of.seq as u64,
            });
        }
        let last = tx.last_seq(c).await?;
        let through = wish.at.unwrap_or(last);
        if through < 1 || through > last {
            return Err(Error::NoMessage {
                handle: tx.short_handle(&parent.handle).await?,
                what: format!("has no message {through} to fork at; its last is {last}"),
            });
        }
        if let Some(key) = &wish.key
            && tx
                .conversation_by_key(&self.namespace, key)
                .await?
                .is_some()
        {
            return Err(Error::Conflict(format!(
                "another conversation has the key `{key}`"
            )));
        }
        let id = self.clock.conversation_id()?;
        let title = wish.title.clone();
        tx.add_conversation(&NewConversation {
            namespace: parent.namespace.clone(),
            id,
            key: wish.key.clone(),
            title: title.unwrap_or_else(|| format!("{} (fork)", parent.title)),
            agent: parent.agent.clone(),
            workdir: parent.workdir.clone(),
            permission: wish.permission.unwrap_or(parent.permission),
            scope: parent.scope,
            parent: Some(Parent {
                id: c,
                seq: through,
            }),
            now,
        })
        .await?;
        if let Some(mut child) = tx.conversation(id).await? {
            child.settings.clone_from(&parent.settings);
            child.fresh = parent.fresh;
            self.may_have(&child)?;
            tx.keep_conversation(&child).await?;
        }
        if let Some(key) = &wish.client_key {
            tx.set_conversation_key(id, key).await?;
        }
        let messages = tx.belongings(c).await?.messages;
        let copied = messages.into_iter().take(through as usize);
        let mut newest = None;
        for message in copied {
            let copy = self.clock.message_id()?;
            tx.copy_message(message, copy, id).await?;
            newest = Some(copy);
        }
        // Its answer, if it had one, is not in this history.
        if let Some(newest) = newest
            && let Some(stored) = tx.message(newest).await?
            && (stored.message.role, stored.message.state) == (Role::User, MessageState::Ok)
        {
            tx.mark_unanswered(newest, &[]).await?;
        }
        tx.commit().await?;
        let child = self.store.read().await?.conversation(id).await?;
        let child = child.ok_or_else(gone)?;
        Ok(ForkView {
            conversation_id: id,
            parent_id: c,
            handle: self.store.read().await?.short_handle(&child.handle).await?,
            messages: through as u64,
        })
    }
}

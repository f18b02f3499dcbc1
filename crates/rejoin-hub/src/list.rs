//! Conversations: made without a message, listed page by page.

use rejoin_core::{AgentName, ConversationId, PermissionMode, Scope};
use rejoin_store::{AgentSettings, Conversation, ListFilter, NewConversation, Search};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::ceiling::Beyond;
use crate::error::{Error, Result};
use crate::request::check_model;
use crate::view::ConversationView;

/// Most that one page holds.
const MOST: i64 = 1000;
/// Of a search, so many messages are looked at.
const HITS: i64 = 200;

/// A conversation that is to be made.
#[derive(Debug, Clone)]
pub struct NewWish {
    pub key: Option<String>,
    pub title: Option<String>,
    pub agent: AgentName,
    pub model: Option<String>,
    pub workdir: String,
    pub permission: PermissionMode,
    pub scope: Scope,
    pub client_key: Option<String>,
}

/// Which to list. A cursor is what an earlier page gave.
#[derive(Debug, Clone, Default)]
pub struct ListWish {
    pub workdir: Option<String>,
    pub agent: Option<String>,
    pub state: Option<String>,
    pub archived: bool,
    pub cursor: Option<String>,
    pub limit: i64,
    /// Only those in which these words were said.
    pub words: Option<String>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ListView {
    pub conversations: Vec<ConversationView>,
    pub next_cursor: Option<String>,
}

impl Hub {
    /// Makes one in which nothing was said yet. The same key again gives the same one.
    pub async fn create(&self, wish: &NewWish) -> Result<(Conversation, bool)> {
        let mut tx = self.store.begin().await?;
        if let Some(key) = &wish.client_key
            && let Some(before) = tx.conversation_made_for(&self.namespace, key).await?
        {
            let same = before.key == wish.key;
            return if same {
                Ok((before, false))
            } else {
                Err(Error::KeyReused(key.clone()))
            };
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
        self.may(Beyond::Turn, wish.permission)?;
        check_model(wish.model.as_deref())?;
        let id = self.clock.conversation_id()?;
        tx.add_conversation(&NewConversation {
            id,
            namespace: self.namespace.to_string(),
            key: wish.key.clone(),
            title: wish.title.clone().unwrap_or_default(),
            agent: wish.agent.clone(),
            workdir: wish.workdir.clone(),
            permission: wish.permission,
            scope: wish.scope,
            parent: None,
            now: self.clock.now(),
        })
        .await?;
        if let Some(model) = &wish.model {
            let own = AgentSettings {
                model: Some(model.clone()),
                ..AgentSettings::default()
            };
            let settings = [(wish.agent.to_string(), own)].into_iter().collect();
            tx.set_agent_settings(id, &settings).await?;
        }
        if let Some(key) = &wish.client_key {
            tx.set_conversation_key(id, key).await?;
        }
        let made = tx.conversation(id).await?;
        tx.commit().await?;
        let made = made.ok_or_else(|| Error::Internal("a new conversation is gone".into()))?;
        Ok((made, true))
    }

    /// Newest first.
    pub async fn list(&self, wish: &ListWish) -> Result<ListView> {
        let (page, next_cursor) = match &wish.words {
            Some(words) => (self.said(wish, words).await?, None),
            None => self.page(wish).await?,
        };
        let mut conversations = vec![];
        for conversation in &page {
            conversations.push(self.conversation_view(conversation).await?);
        }
        Ok(ListView {
            conversations,
            next_cursor,
        })
    }

    /// One page, and where the next begins.
    pub async fn page(&self, wish: &ListWish) -> Result<(Vec<Conversation>, Option<String>)> {
        let limit = wish.limit.clamp(1, MOST);
        let filter = ListFilter {
            namespace: self.namespace.to_string(),
            workdir: wish.workdir.clone(),
            agent: wish.agent.clone(),
            state: wish.state.clone(),
            archived: wish.archived,
            after: wish.cursor.as_deref().map(cursor).transpose()?,
            // One more tells whether there is a next page.
            limit: limit + 1,
        };
        let mut page = self.store.read().await?.list_conversations(&filter).await?;
        let more = page.len() as i64 > limit;
        page.truncate(limit as usize);
        let last = page.last().filter(|_| more);
        let next = last.map(|c| format!("{}.{}", c.updated_at, c.id));
        Ok((page, next))
    }

    /// Those in which these words were said, best first.
    async fn said(&self, wish: &ListWish, words: &str) -> Result<Vec<Conversation>> {
        let search = Search {
            namespace: self.namespace.to_string(),
            text: words.to_owned(),
            agent: wish.agent.clone(),
            workdir: wish.workdir.clone(),
            limit: HITS,
        };
        let mut read = self.store.read().await?;
        let mut found: Vec<Conversation> = vec![];
        for hit in read.search(&search).await? {
            if found.len() as i64 >= wish.limit.clamp(1, MOST) {
                break;
            }
            if found.iter().all(|c| c.id != hit.conversation)
                && let Some(c) = read.conversation(hit.conversation).await?
            {
                found.push(c);
            }
        }
        Ok(found)
    }
}

fn cursor(text: &str) -> Result<(i64, ConversationId)> {
    let parts = text
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parts.ok_or(Error::Cursor)
}

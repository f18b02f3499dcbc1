//! Creates conversations without a message, and lists conversations page by page.

use rejoin_core::{AgentName, ConversationId, PermissionMode, Scope};
use rejoin_store::{AgentSettings, Conversation, ListFilter, NewConversation, Read, Search};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::ceiling::LimitedPart;
use crate::error::{Error, Result};
use crate::request::check_model;
use crate::row::{CountsView, conversation_view, counts};
use crate::view::ConversationView;

/// Largest page size.
const MOST: i64 = 1000;
/// Number of messages that a search examines.
const HITS: i64 = 200;
/// Number of conversations that a filter by title examines for one page of the list.
const EXAMINED: usize = 10_000;

/// Options of a new conversation.
#[derive(Debug, Clone)]
pub struct CreateRequest {
    pub key: Option<String>,
    pub title: Option<String>,
    pub agent: AgentName,
    pub model: Option<String>,
    pub workdir: String,
    pub permission: PermissionMode,
    pub scope: Scope,
    pub client_key: Option<String>,
}

/// Filters for a list. `cursor` comes from an earlier page.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    pub workdir: Option<String>,
    pub agent: Option<String>,
    pub state: Option<String>,
    pub archived: bool,
    pub cursor: Option<String>,
    pub limit: i64,
    /// Restricts the list to conversations whose messages contain this text.
    pub words: Option<String>,
    /// Restricts the list to titles that contain this text, in any case.
    pub title: Option<String>,
    /// Restricts the list to conversations used at this time or later (microseconds since 1970).
    pub since: Option<i64>,
    /// True to add the number of conversations by state.
    pub counts: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ListView {
    pub conversations: Vec<ConversationView>,
    pub next_cursor: Option<String>,
    /// Number of the last event that this view contains: a stream with `after` and this number continues exactly here.
    #[serde(default)]
    pub as_of: i64,
    /// Number of conversations of the namespace by state, whatever else is filtered. Only on request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsView>,
}

impl Hub {
    /// Creates a conversation without messages. A second request with the same `client_key` returns
    /// the first one, and false.
    pub async fn create(&self, request: &CreateRequest) -> Result<(Conversation, bool)> {
        let mut tx = self.store.begin().await?;
        if let Some(key) = &request.client_key
            && let Some(before) = tx.conversations().made_for(&self.namespace, key).await?
        {
            let same = before.key == request.key;
            return if same {
                Ok((before, false))
            } else {
                Err(Error::KeyReused(key.clone()))
            };
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
        self.may(LimitedPart::Turn, request.permission)?;
        check_model(request.model.as_deref())?;
        let id = self.clock.conversation_id()?;
        tx.conversations()
            .add(&NewConversation {
                id,
                namespace: self.namespace.to_string(),
                key: request.key.clone(),
                title: request.title.clone().unwrap_or_default(),
                agent: request.agent.clone(),
                workdir: request.workdir.clone(),
                permission: request.permission,
                scope: request.scope,
                parent: None,
                now: self.clock.now(),
            })
            .await?;
        if let Some(model) = &request.model {
            let own = AgentSettings {
                model: Some(model.clone()),
                ..AgentSettings::default()
            };
            let settings = [(request.agent.to_string(), own)].into_iter().collect();
            tx.conversations().set_agent_settings(id, &settings).await?;
        }
        if let Some(key) = &request.client_key {
            tx.conversations().set_key(id, key).await?;
        }
        let made = tx.conversations().get(id).await?;
        tx.commit().await?;
        let made = made.ok_or_else(|| Error::Internal("a new conversation is gone".into()))?;
        Ok((made, true))
    }

    /// Lists conversations, newest first; the result of a search best first.
    pub async fn list(&self, query: &ListQuery) -> Result<ListView> {
        let mut read = self.store.read_consistent().await?;
        let as_of = read.events().last().await?;
        let (page, next_cursor) = match &query.words {
            Some(words) => (self.said(&mut read, query, words).await?, None),
            None => self.page_of(&mut read, query).await?,
        };
        let mut conversations = vec![];
        for conversation in &page {
            conversations.push(conversation_view(&mut read, conversation).await?);
        }
        let counts = if query.counts {
            Some(counts(&mut read, &self.namespace).await?)
        } else {
            None
        };
        read.finish().await;
        Ok(ListView {
            conversations,
            next_cursor,
            as_of,
            counts,
        })
    }

    /// Returns one page and the cursor of the next.
    pub async fn page(&self, query: &ListQuery) -> Result<(Vec<Conversation>, Option<String>)> {
        let mut read = self.store.read().await?;
        self.page_of(&mut read, query).await
    }

    async fn page_of(
        &self,
        read: &mut Read,
        query: &ListQuery,
    ) -> Result<(Vec<Conversation>, Option<String>)> {
        let limit = query.limit.clamp(1, MOST) as usize;
        let title = query.title.as_ref().map(|title| title.to_lowercase());
        let fits = |c: &Conversation| {
            (title.as_ref()).is_none_or(|title| c.title.to_lowercase().contains(title))
        };
        // One more, to find out if there is a next page.
        let step = if title.is_some() {
            MOST as usize
        } else {
            limit + 1
        };
        let mut filter = ListFilter {
            namespace: self.namespace.to_string(),
            workdir: query.workdir.clone(),
            agent: query.agent.clone(),
            state: query.state.clone(),
            archived: query.archived,
            after: query.cursor.as_deref().map(cursor).transpose()?,
            limit: step as i64,
        };
        let (mut page, mut examined) = (vec![], 0);
        loop {
            let found = read.listing(&filter).await?;
            let more = found.len() == step;
            for conversation in found {
                // Newest first: only older ones follow.
                if query
                    .since
                    .is_some_and(|since| conversation.updated_at < since)
                {
                    return Ok((page, None));
                }
                if page.len() == limit {
                    return Ok((page, filter.after.map(next_cursor)));
                }
                filter.after = Some((conversation.updated_at, conversation.id));
                examined += 1;
                if fits(&conversation) {
                    page.push(conversation);
                }
            }
            if !more {
                return Ok((page, None));
            }
            if examined >= EXAMINED {
                return Ok((page, filter.after.map(next_cursor)));
            }
        }
    }

    /// Returns the conversations whose messages contain this text, best match first.
    async fn said(
        &self,
        read: &mut Read,
        query: &ListQuery,
        words: &str,
    ) -> Result<Vec<Conversation>> {
        let search = Search {
            namespace: self.namespace.to_string(),
            text: words.to_owned(),
            agent: query.agent.clone(),
            workdir: query.workdir.clone(),
            limit: HITS,
        };
        let mut found: Vec<Conversation> = vec![];
        for hit in read.search(&search).await? {
            if found.len() as i64 >= query.limit.clamp(1, MOST) {
                break;
            }
            if found.iter().all(|c| c.id != hit.conversation)
                && let Some(c) = read.conversations().get(hit.conversation).await?
            {
                found.push(c);
            }
        }
        Ok(found)
    }
}

fn next_cursor((at, id): (i64, ConversationId)) -> String {
    format!("{at}.{id}")
}

fn cursor(text: &str) -> Result<(i64, ConversationId)> {
    let parts = text
        .split_once('.')
        .and_then(|(at, id)| Some((at.parse().ok()?, id.parse().ok()?)));
    parts.ok_or(Error::Cursor)
}

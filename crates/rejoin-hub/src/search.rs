//! Searches messages by words.

use rejoin_core::{ConversationId, MessageId, Role};
use rejoin_store::{HIT_BEGINS, HIT_ENDS, Hit, Search};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};

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
    /// Positions of the words in the text, in characters: from, to.
    #[cfg_attr(feature = "schema", schema(value_type = Vec<Vec<usize>>))]
    pub marks: Vec<(usize, usize)>,
}

/// Messages that hold the words, best first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct HitsView {
    pub messages: Vec<HitView>,
}

/// Parameters of a search.
#[derive(Debug, Clone, Default)]
pub struct SearchQuery {
    pub words: String,
    pub agent: Option<String>,
    pub workdir: Option<String>,
    pub limit: i64,
}

impl Hub {
    pub async fn search(&self, query: &SearchQuery) -> Result<HitsView> {
        if !query.words.chars().any(char::is_alphanumeric) {
            return Err(Error::Usage("there is no word to look for".into()));
        }
        let search = Search {
            namespace: self.namespace.to_string(),
            text: query.words.clone(),
            agent: query.agent.clone(),
            workdir: query.workdir.clone(),
            limit: query.limit.clamp(1, 1000),
        };
        let hits = self.store.read().await?.search(&search).await?;
        let mut messages = vec![];
        for hit in hits {
            let mut read = self.store.read().await?;
            if let Some(c) = read.conversations().get(hit.conversation).await? {
                let handle = read.conversations().short_handle(&c.handle).await?;
                messages.push(hit_view(hit, &handle, c.title));
            }
        }
        Ok(HitsView { messages })
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

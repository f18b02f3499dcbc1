//! Links that show a conversation to readers without a token, without its secrets.

use rejoin_core::{ConversationId, Role, ToolNote, without_secrets};
use rejoin_store::{NewShare, Share};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::page::PageRequest;

/// Begin of every secret of a link.
const PREFIX: &str = "share_";
/// Longest time for which a link may be open, in microseconds: a year.
const LONGEST: i64 = 366 * 24 * 3600 * 1_000_000;

/// Options of a new link.
#[derive(Debug, Clone, Default)]
pub struct ShareRequest {
    /// Time for which the link is open, in microseconds. `None`: until it is closed.
    pub expires_in: Option<i64>,
    /// True to show messages that are added later.
    pub follow: bool,
    /// Author of the link, for display.
    pub by: String,
}

/// A link that shows a conversation without a token.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ShareView {
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub id: Uuid,
    pub conversation_id: ConversationId,
    /// `open`, `closed` or `expired`.
    pub state: String,
    /// Last message that is shown; null: later ones too.
    pub through: Option<i64>,
    pub created_by: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub views: i64,
    pub viewed_at: Option<String>,
    /// Path of the link below the daemon's address. Only in the answer that creates it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// Links of a conversation, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharesView {
    pub shares: Vec<ShareView>,
}

/// A shared conversation, as a reader without a token sees it: no ids, no folder, no secrets.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedView {
    pub title: String,
    pub created_at: String,
    pub expires_at: Option<String>,
    pub messages: Vec<SharedMessage>,
    /// Number of secrets that were removed from these messages.
    pub secrets_removed: usize,
    /// There are earlier messages: ask with `before` and this number.
    pub older: Option<i64>,
    /// There are later messages: ask with `after` and this number.
    pub newer: Option<i64>,
}

/// A message of a shared conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SharedMessage {
    pub seq: i64,
    pub role: Role,
    pub agent: Option<String>,
    pub text: String,
    pub created_at: String,
    /// Actions of the turn's tools, in short.
    pub tools: Vec<ToolNote>,
}

impl Hub {
    /// Creates a link to a conversation. It shows the messages up to now, unless the request
    /// follows it.
    pub async fn share(&self, c: ConversationId, request: &ShareRequest) -> Result<ShareView> {
        if request
            .expires_in
            .is_some_and(|t| !(1..=LONGEST).contains(&t))
        {
            return Err(Error::Usage("a link is open for a year at most".into()));
        }
        let now = self.clock.now();
        let secret = PREFIX.to_owned() + &rejoin_core::hex(&self.clock.secret()?);
        let mut tx = self.store.begin().await?;
        let last = tx.history().last_seq(c).await?;
        let id = self.clock.turn_id()?.uuid();
        tx.shares()
            .add(&NewShare {
                id,
                conversation: c,
                hash: hash(&secret),
                through: (!request.follow).then_some(last),
                by: &request.by,
                now,
                expires_at: request.expires_in.map(|time| now.saturating_add(time)),
            })
            .await?;
        let share = tx.shares().get(id).await?;
        tx.commit().await?;
        let share = share.ok_or_else(|| Error::Internal("a new link is gone".into()))?;
        Ok(ShareView {
            path: Some(format!("/s/{secret}")),
            ..view(share, now)
        })
    }

    /// Lists the links of a conversation, also closed and expired ones.
    pub async fn shares(&self, c: ConversationId) -> Result<SharesView> {
        let now = self.clock.now();
        let found = self.store.read().await?.shares().of(c).await?;
        let shares = found.into_iter().map(|share| view(share, now)).collect();
        Ok(SharesView { shares })
    }

    /// Closes a link of this namespace for good.
    pub async fn close_share(&self, id: Uuid) -> Result<ShareView> {
        let none = || Error::NotFound("there is no such link".into());
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        let share = tx.shares().get(id).await?.ok_or_else(none)?;
        let of = tx.conversations().get(share.conversation).await?;
        of.filter(|c| *c.namespace == *self.namespace)
            .ok_or_else(none)?;
        tx.shares().close(id, now).await?;
        let share = tx.shares().get(id).await?.ok_or_else(none)?;
        tx.commit().await?;
        Ok(view(share, now))
    }

    /// Returns a page of the conversation that a link shows, and counts the view. A closed, expired
    /// and unknown link give the same error.
    pub async fn shared(&self, secret: &str, page: &PageRequest) -> Result<SharedView> {
        let none =
            || Error::NotFound("this link shows nothing: it was closed, or has expired".into());
        let now = self.clock.now();
        let given = hash(secret);
        let found = self.store.read().await?.shares().by_hash(&given).await?;
        // Found by an index, and still compared in constant time.
        let same = |share: &Share| blake3::Hash::from(share.hash) == blake3::Hash::from(given);
        let share = found.filter(|share| same(share) && share.is_open(now));
        let share = share.ok_or_else(none)?;
        let mut read = self.store.read().await?;
        let c = read.conversations().get(share.conversation).await?;
        let c = c.ok_or_else(none)?;
        drop(read);
        let shown = |seq: i64| share.through.is_none_or(|last| seq <= last);
        let end = share.through.map(|last| last.saturating_add(1));
        let before = match (end, page.before) {
            (Some(end), Some(before)) => Some(end.min(before)),
            // A page that begins after a message is read forward, and cut below.
            (_, None) if page.after.is_some() => None,
            (end, before) => end.or(before),
        };
        let first = page.before.is_none() && page.after.is_none() && page.around.is_none();
        let page = PageRequest {
            before,
            all: false,
            ..*page
        };
        let whole = self.page_view(&c, &page).await?;
        if first {
            let mut tx = self.store.begin().await?;
            tx.shares().count_view(share.id, now).await?;
            tx.commit().await?;
        }
        let mut removed = 0;
        let mut clean = |text: &str| {
            let (kept, found) = without_secrets(text);
            removed += found;
            kept
        };
        let title = clean(&whole.conversation.title);
        let mut messages = vec![];
        for message in whole.messages {
            let Some(seq) = message.seq.filter(|seq| shown(*seq)) else {
                continue;
            };
            let tools = message.tools.into_iter().map(|note| ToolNote {
                subject: clean(&note.subject),
                ..note
            });
            let tools = tools.collect();
            messages.push(SharedMessage {
                seq,
                role: message.role,
                agent: message.agent,
                text: clean(&message.text),
                created_at: message.created_at,
                tools,
            });
        }
        let newer = whole.newer.filter(|seq| shown(seq.saturating_add(1)));
        Ok(SharedView {
            title,
            created_at: whole.conversation.created_at,
            expires_at: share.expires_at.map(rfc3339),
            messages,
            secrets_removed: removed,
            older: whole.older,
            newer,
        })
    }
}

fn view(share: Share, now: i64) -> ShareView {
    let state = match share.closed_at {
        Some(_) => "closed",
        None if share.is_open(now) => "open",
        None => "expired",
    };
    ShareView {
        id: share.id,
        conversation_id: share.conversation,
        state: state.into(),
        through: share.through,
        created_by: share.by,
        created_at: rfc3339(share.created_at),
        expires_at: share.expires_at.map(rfc3339),
        views: share.views,
        viewed_at: share.viewed_at.map(rfc3339),
        path: None,
    }
}

/// Hashes a secret. A secret is random, so no slower hash is needed.
fn hash(secret: &str) -> [u8; 32] {
    blake3::derive_key("rejoin 2026 share", secret.as_bytes())
}

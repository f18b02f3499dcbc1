//! A conversation with some of its messages, and the turns that belong to them.

use rejoin_core::TurnId;
use rejoin_store::{Conversation, MessageRange, RangeEnd, Read, StoredMessage};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::Result;
use crate::row::conversation_view;
use crate::session_view::{SessionView, session_views};
use crate::view::{ConversationView, MessageView, TurnView, VersionView, message_view, turn_view};

/// Maximum number of messages per page.
pub const LARGEST_PAGE: i64 = 1000;
/// Number of messages per page if the request has no limit.
const DEFAULT_PAGE: i64 = 100;
/// Number of turns per page in addition to two for each message.
const RETRIES: i64 = 50;

/// Selection of messages. Without a position: the newest.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageRequest {
    /// Messages before this position.
    pub before: Option<i64>,
    /// Messages after this position.
    pub after: Option<i64>,
    /// The message at this position and its neighbours on both sides.
    pub around: Option<i64>,
    /// Maximum number of messages. `None`: [`DEFAULT_PAGE`].
    pub limit: Option<i64>,
    /// True to include removed messages and earlier texts.
    pub all: bool,
}

/// A conversation with a page of its messages, and the turns and sessions that belong to it.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct WholeView {
    pub conversation: ConversationView,
    pub messages: Vec<MessageView>,
    pub turns: Vec<TurnView>,
    pub sessions: Vec<SessionView>,
    /// There are earlier messages: ask with `before` and this number.
    #[serde(default)]
    pub older: Option<i64>,
    /// There are later messages: ask with `after` and this number.
    #[serde(default)]
    pub newer: Option<i64>,
    /// Number of the last event that this view contains: a stream with `after` and this number continues exactly here.
    #[serde(default)]
    pub as_of: i64,
}

impl Hub {
    /// Returns a page of a conversation.
    pub async fn page_view(&self, c: &Conversation, page: &PageRequest) -> Result<WholeView> {
        let mut read = self.store.read_consistent().await?;
        let as_of = read.events().last().await?;
        let found = read.conversations().get(c.id).await?;
        let c = found.as_ref().unwrap_or(c);
        let conversation = conversation_view(&mut read, c).await?;
        let last = read.turns().last(c.id).await?.map(|turn| turn.id);
        let mut unplaced = read.pages().unplaced(c.id, page.all).await?;
        let mut stored = placed(&mut read, c, page).await?;
        let ends = read.history().last_seq(c.id).await?;
        let seqs = || stored.iter().map(|m| m.message.seq);
        let older = seqs().min().filter(|first| *first > 1);
        let newer = seqs().max().filter(|last| *last < ends);
        let turns = match last {
            Some(last) => {
                let around = (older, newer);
                turns(&mut read, c, &stored, around, last, &conversation.handle).await?
            }
            None => vec![],
        };
        if newer.is_none() {
            unplaced.retain(|one| stored.iter().all(|m| m.message.id != one.message.id));
            stored.extend(unplaced);
        }
        let mut messages = vec![];
        for one in stored {
            let mut view = message_view(one);
            if page.all {
                let versions = read.changes().versions(view.id).await?.into_iter();
                view.versions = versions
                    .map(|v| VersionView {
                        text: v.text,
                        replaced_at: rfc3339(v.replaced_at),
                    })
                    .collect();
            }
            messages.push(view);
        }
        let sessions = session_views(&mut read, c.id).await?;
        read.finish().await;
        Ok(WholeView {
            conversation,
            messages,
            turns,
            sessions,
            older,
            newer,
            as_of,
        })
    }
}

/// Returns the messages of a page that have a position.
async fn placed(
    read: &mut Read,
    c: &Conversation,
    page: &PageRequest,
) -> Result<Vec<StoredMessage>> {
    let limit = page.limit.unwrap_or(DEFAULT_PAGE).clamp(1, LARGEST_PAGE);
    let span = |after, before, end| MessageRange {
        after,
        before,
        end,
        removed: page.all,
    };
    let after = page.after.unwrap_or(0);
    let before = page.before.unwrap_or(i64::MAX);
    let Some(around) = page.around else {
        let end = match (page.after, page.before) {
            (Some(_), None) => RangeEnd::Oldest,
            _ => RangeEnd::Newest,
        };
        return Ok(read
            .pages()
            .messages(c.id, span(after, before, end), limit)
            .await?);
    };
    let later = (limit - 1) / 2;
    let until = span(after, around.saturating_add(1), RangeEnd::Newest);
    let mut found = read.pages().messages(c.id, until, limit - later).await?;
    if later > 0 {
        let from = span(around.max(after), before, RangeEnd::Oldest);
        found.extend(read.pages().messages(c.id, from, later).await?);
    }
    Ok(found)
}

/// Returns the turns of these messages, and turns between them whose messages were removed.
async fn turns(
    read: &mut Read,
    c: &Conversation,
    messages: &[StoredMessage],
    (older, newer): (Option<i64>, Option<i64>),
    last: TurnId,
    handle: &str,
) -> Result<Vec<TurnView>> {
    let ids = || messages.iter().map(|m| m.turn).filter(|id| !id.is_nil());
    let first = TurnId::from_uuid(uuid::Uuid::nil());
    // Starts behind the turn of the previous message: a retry may have left turns in between.
    let before = match older {
        Some(seq) => read.messages().at(c.id, seq - 1).await?.map(|m| m.turn),
        None => None,
    };
    let from = before.or(older.and_then(|_| ids().min())).unwrap_or(first);
    let to = newer.and_then(|_| ids().max()).unwrap_or(last);
    // A message may have been retried: more turns than messages are possible.
    let limit = 2 * messages.len() as i64 + RETRIES;
    let mut views = vec![];
    for turn in read.pages().turns(c.id, from, to, limit).await? {
        if Some(turn.id) == before && ids().all(|id| id != turn.id) {
            continue;
        }
        views.push(turn_view(read, handle, turn).await?);
    }
    Ok(views)
}

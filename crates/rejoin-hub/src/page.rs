//! A conversation with some of its messages, and the turns that belong to them.

use rejoin_core::TurnId;
use rejoin_store::{Conversation, End, Read, Span, StoredMessage};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::Result;
use crate::view::{
    ConversationView, MessageView, SessionView, TurnView, VersionView, message_view, turn_view,
};

/// Most messages of a page.
pub const LARGEST_PAGE: i64 = 1000;

/// Which messages to show. Without a place: the newest.
#[derive(Debug, Clone, Copy, Default)]
pub struct PageRequest {
    /// Those before this message.
    pub before: Option<i64>,
    /// Those after it.
    pub after: Option<i64>,
    /// It, and those on both sides.
    pub around: Option<i64>,
    /// How many at most; none: [`LARGEST_PAGE`].
    pub limit: Option<i64>,
    /// With removed messages and earlier texts.
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
}

impl Hub {
    /// Returns a page of a conversation.
    pub async fn page_view(&self, c: &Conversation, page: &PageRequest) -> Result<WholeView> {
        // In this order: a conversation that is idle here has no turn below that was running then. Turns that are
        // accepted from here on are left out, so that none is shown without its message; a message that gets its
        // place meanwhile is not missed.
        let conversation = self.conversation_view(c).await?;
        let mut read = self.store.read().await?;
        let last = read.last_turn(c.id).await?.map(|turn| turn.id);
        let mut unplaced = read.messages_unplaced(c.id, page.all).await?;
        let mut stored = placed(&mut read, c, page).await?;
        let ends = read.last_seq(c.id).await?;
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
                let versions = read.versions(view.id).await?.into_iter();
                view.versions = versions
                    .map(|v| VersionView {
                        text: v.text,
                        replaced_at: rfc3339(v.replaced_at),
                    })
                    .collect();
            }
            messages.push(view);
        }
        drop(read);
        Ok(WholeView {
            conversation,
            messages,
            turns,
            sessions: self.session_views(c.id).await?,
            older,
            newer,
        })
    }
}

/// The messages of a page that have a place.
async fn placed(
    read: &mut Read,
    c: &Conversation,
    page: &PageRequest,
) -> Result<Vec<StoredMessage>> {
    let limit = page.limit.unwrap_or(LARGEST_PAGE).clamp(1, LARGEST_PAGE);
    let span = |after, before, end| Span {
        after,
        before,
        end,
        removed: page.all,
    };
    let after = page.after.unwrap_or(0);
    let before = page.before.unwrap_or(i64::MAX);
    let Some(around) = page.around else {
        let end = match (page.after, page.before) {
            (Some(_), None) => End::Oldest,
            _ => End::Newest,
        };
        return Ok(read
            .messages_in(c.id, span(after, before, end), limit)
            .await?);
    };
    let later = (limit - 1) / 2;
    let until = span(after, around.saturating_add(1), End::Newest);
    let mut found = read.messages_in(c.id, until, limit - later).await?;
    if later > 0 {
        let from = span(around.max(after), before, End::Oldest);
        found.extend(read.messages_in(c.id, from, later).await?);
    }
    Ok(found)
}

/// The turns of these messages, and those between them whose messages were removed.
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
    // From behind the turn of the message before: a retry may have left turns in between.
    let before = match older {
        Some(seq) => read.message_at(c.id, seq - 1).await?.map(|m| m.turn),
        None => None,
    };
    let from = before.or(older.and_then(|_| ids().min())).unwrap_or(first);
    let to = newer.and_then(|_| ids().max()).unwrap_or(last);
    let mut views = vec![];
    for turn in read.turns_between(c.id, from, to, 2 * LARGEST_PAGE).await? {
        if Some(turn.id) == before && ids().all(|id| id != turn.id) {
            continue;
        }
        views.push(turn_view(read, handle, turn).await?);
    }
    Ok(views)
}

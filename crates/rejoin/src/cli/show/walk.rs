//! Pages of a conversation, one after the other.

use rejoin_core::ConversationId;
use rejoin_hub::PageRequest;

use super::Shown;
use crate::hub_client::HubClient;
use rejoin_errors::Result;

/// Number of messages per page.
const PAGE: i64 = 100;

/// Reads messages from a first to a last position. Holds one page at a time.
pub(super) struct Walk<'a> {
    at: HubClient<'a>,
    id: ConversationId,
    page: PageRequest,
    /// Next page, which is read ahead.
    ready: Option<Shown>,
    /// Position after which the page behind that begins.
    after: Option<i64>,
    to: i64,
    total: usize,
}

impl<'a> Walk<'a> {
    /// Walks over one page that was read before.
    pub(super) fn of_page(at: HubClient<'a>, shown: Shown) -> Self {
        Self {
            at,
            id: shown.conversation.id,
            page: PageRequest::default(),
            total: present(&shown),
            ready: Some(shown),
            after: None,
            to: 0,
        }
    }

    /// Walks over the newest messages.
    pub(super) async fn newest(
        at: HubClient<'a>,
        id: ConversationId,
        page: PageRequest,
        count: i64,
    ) -> Result<Self> {
        let limit = Some(count);
        let shown = at.page(id, &PageRequest { limit, ..page }).await?;
        let seqs = || shown.messages.iter().filter_map(|m| m.seq);
        let (first, last) = (seqs().min().unwrap_or(0), seqs().max().unwrap_or(0));
        // A page holds fewer messages if they are long.
        if shown.older.is_none() || last - first + 1 >= count {
            return Ok(Self::of_page(at, shown));
        }
        Self::from(at, id, page, (last - count + 1, i64::MAX - 1)).await
    }

    /// Walks from a position to another, both inclusive.
    pub(super) async fn from(
        at: HubClient<'a>,
        id: ConversationId,
        page: PageRequest,
        (from, to): (i64, i64),
    ) -> Result<Self> {
        let mut walk = Self {
            at,
            id,
            page,
            ready: None,
            after: Some(from.max(1) - 1),
            to,
            total: 0,
        };
        walk.read().await?;
        let first = walk.ready.as_ref();
        walk.total = match (first, walk.after) {
            (Some(first), None) => present(first),
            (_, _) => {
                let limit = Some(1);
                let newest = at.page(id, &PageRequest { limit, ..page }).await?;
                let last = newest.messages.iter().filter_map(|m| m.seq).max();
                let queued = newest
                    .messages
                    .iter()
                    .filter(|m| m.seq.is_none() && !m.removed);
                let queued = if to > last.unwrap_or(0) {
                    queued.count()
                } else {
                    0
                };
                let placed = last.unwrap_or(0).min(to) - from.max(1) + 1;
                usize::try_from(placed).unwrap_or(0) + queued
            }
        };
        Ok(walk)
    }

    /// Returns the number of messages on all pages, without removed ones.
    pub(super) fn total(&self) -> usize {
        self.total
    }

    /// Returns true if the next page is the only one.
    pub(super) fn is_one_page(&self) -> bool {
        self.after.is_none()
    }

    pub(super) async fn next(&mut self) -> Result<Option<Shown>> {
        if self.ready.is_none() {
            self.read().await?;
        }
        Ok(self.ready.take())
    }

    async fn read(&mut self) -> Result<()> {
        let Some(after) = self.after.take() else {
            return Ok(());
        };
        let left = self.to.saturating_sub(after).clamp(1, PAGE);
        let next = PageRequest {
            after: Some(after),
            limit: Some(left),
            ..self.page
        };
        let shown = self.at.page(self.id, &next).await?;
        self.after = shown.newer.filter(|last| *last < self.to);
        self.ready = Some(shown);
        Ok(())
    }
}

fn present(shown: &Shown) -> usize {
    shown.messages.iter().filter(|m| !m.removed).count()
}

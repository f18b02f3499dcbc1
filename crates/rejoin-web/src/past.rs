//! Earlier events, for watchers that catch up. They are read and encoded once for all that do so at
//! the same time, and by few readers at once, so that requests which only send a message need not
//! wait.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rejoin_core::ConversationId;
use rejoin_store::Store;
use tokio::sync::Semaphore;

use crate::page::Page;
use crate::problem::Result;

/// Size of a page in event numbers.
const PAGE: i64 = 512;
/// Limit for simultaneous readers; the store has a few connections for all.
const READERS: usize = 2;
/// Limit for the encoded bytes of cached pages.
const KEPT: usize = 8 << 20;
/// Longest time for which deleted events are still served from the cache.
const FRESH: Duration = Duration::from_secs(2);

pub(crate) struct Past {
    store: Store,
    readers: Semaphore,
    kept: Mutex<VecDeque<Kept>>,
}

struct Kept {
    from: i64,
    page: Arc<Page>,
    since: Instant,
}

/// Next part of the earlier events.
pub(crate) struct Stretch {
    pub(crate) page: Arc<Page>,
    /// Number up to which everything was read.
    pub(crate) to: i64,
    /// True if there may be more.
    pub(crate) more: bool,
}

impl Past {
    pub(crate) fn new(store: Store) -> Self {
        let (readers, kept) = (Semaphore::new(READERS), Mutex::default());
        Self {
            store,
            readers,
            kept,
        }
    }

    /// Returns the events after `after`; `head` is the number of the newest one.
    pub(crate) async fn anywhere(&self, after: i64, head: i64) -> Result<Stretch> {
        let from = after.max(0) / PAGE * PAGE;
        if from + PAGE > head {
            return self.end(after, None).await;
        }
        let page = match self.known(from) {
            Some(page) => page,
            None => self.read(from).await?,
        };
        Ok(Stretch {
            page,
            to: from + PAGE,
            more: true,
        })
    }

    pub(crate) async fn within(&self, c: ConversationId, after: i64) -> Result<Stretch> {
        self.end(after, Some(c)).await
    }

    async fn end(&self, after: i64, of: Option<ConversationId>) -> Result<Stretch> {
        let _reader = self.readers.acquire().await;
        let mut read = self.store.read().await?;
        let rows = match of {
            Some(c) => read.events().of_conversation(c, after, PAGE).await?,
            None => read.events().after(after, PAGE).await?,
        };
        drop(read);
        let more = rows.len() as i64 == PAGE;
        let to = rows.last().map_or(after, |row| row.seq);
        let page = Arc::new(Page::of(rows)?);
        Ok(Stretch { page, to, more })
    }

    fn known(&self, from: i64) -> Option<Arc<Page>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.retain(|kept| kept.since.elapsed() < FRESH);
        let found = kept.iter().find(|kept| kept.from == from)?;
        Some(Arc::clone(&found.page))
    }

    /// Reads a complete page, or returns it from the cache.
    async fn read(&self, from: i64) -> Result<Arc<Page>> {
        let _reader = self.readers.acquire().await;
        // The previous reader may have read the same page.
        if let Some(page) = self.known(from) {
            return Ok(page);
        }
        let mut rows = self.store.read().await?.events().after(from, PAGE).await?;
        rows.retain(|row| row.seq <= from + PAGE);
        let page = Arc::new(Page::of(rows)?);
        self.keep(from, &page);
        Ok(page)
    }

    fn keep(&self, from: i64, page: &Arc<Page>) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back(Kept {
            from,
            page: Arc::clone(page),
            since: Instant::now(),
        });
        let mut size: usize = kept.iter().map(|kept| kept.page.size()).sum();
        while size > KEPT
            && let Some(oldest) = kept.pop_front()
        {
            size -= oldest.page.size();
        }
    }
}

//! Publishes committed events to watchers.
//!
//! One task reads new rows once for all watchers, including those of other processes on the same
//! store. A watcher that has fallen behind, or wants earlier events, reads the store itself. A watcher
//! never receives an event that is not committed: a reload and a live view cannot disagree.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{Stream, stream};
use rejoin_core::{ConversationId, TurnId};
use rejoin_runner::Runner;
use rejoin_store::Store;
use tokio::sync::{broadcast, watch};

use crate::page::{Page, Told};
use crate::past::{Past, Stretch};
use crate::problem::Result;

/// Time within which rows of other processes are seen.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Pause before the next attempt when the store could not be read.
const AWAY: Duration = Duration::from_secs(1);
/// Number of pages that a watcher may be behind before it reads the store instead.
const BEHIND: usize = 128;
/// Number of rows that are read, and published, at a time.
const PAGE: i64 = 128;
/// Kind of the event that ends a turn.
const ENDED: &str = "turn.ended";

pub(crate) struct Live {
    store: Store,
    past: Past,
    told: broadcast::Sender<Arc<Page>>,
    /// Number of the newest event that was published.
    head: watch::Sender<i64>,
}

/// Filter for events.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) namespace: Arc<str>,
    /// Conversation; None means all of the namespace.
    pub(crate) conversation: Option<ConversationId>,
    /// Turn, if only its events are wanted, until it has ended.
    pub(crate) turn: Option<TurnId>,
    /// Types; None means all.
    pub(crate) types: Option<Arc<[&'static str]>>,
}

impl Wanted {
    fn fits(&self, told: &Told) -> bool {
        let here = match self.conversation {
            Some(c) => told.conversation == c,
            None => *told.namespace == *self.namespace,
        };
        let typed = self.types.as_ref();
        here && self.of_turn(told) && typed.is_none_or(|types| types.contains(&told.kind))
    }

    fn of_turn(&self, told: &Told) -> bool {
        self.turn.is_none_or(|turn| told.turn == turn)
    }

    /// Returns true if the event ends the watched turn, so that nothing follows it.
    fn ends_with(&self, told: &Told) -> bool {
        self.turn.is_some() && self.of_turn(told) && told.kind == ENDED
    }
}

impl Live {
    pub(crate) async fn new(store: Store) -> Result<Self> {
        let newest = store.read().await?.events().last().await?;
        Ok(Self {
            past: Past::new(store.clone()),
            store,
            told: broadcast::Sender::new(BEHIND),
            head: watch::Sender::new(newest),
        })
    }

    pub(crate) fn head(&self) -> watch::Receiver<i64> {
        self.head.subscribe()
    }

    /// Reads new rows and publishes them, for ever.
    pub(crate) async fn tell(&self, runner: &Runner) {
        let mut wake = runner.wake.subscribe();
        loop {
            let pause = match self.tell_new().await {
                Ok(()) => LOOK_AGAIN,
                Err(_) => AWAY,
            };
            tokio::select! {
                changed = wake.changed() => if changed.is_err() { return },
                () = tokio::time::sleep(pause) => {}
            }
        }
    }

    async fn tell_new(&self) -> Result<()> {
        loop {
            let after = *self.head.borrow();
            let page = self.store.read().await?.events().after(after, PAGE).await?;
            let Some(last) = page.last().map(|row| row.seq) else {
                return Ok(());
            };
            let full = page.len() as i64 == PAGE;
            // Without receivers nothing needs to be encoded.
            if self.told.receiver_count() > 0 {
                let _heard = self.told.send(Arc::new(Page::of(page)?));
            }
            self.head.send_replace(last);
            if !full {
                return Ok(());
            }
        }
    }

    /// Returns new events, or those after `after`, encoded for an event stream: in pieces of one
    /// event or more.
    pub(crate) fn watch(
        self: &Arc<Self>,
        wanted: Wanted,
        after: Option<i64>,
    ) -> impl Stream<Item = Bytes> + Send + use<> {
        let heard = self.told.subscribe();
        let at = after.unwrap_or_else(|| *self.head.borrow());
        let watching = Watching {
            live: Arc::clone(self),
            wanted,
            at,
            heard,
            // Starts with the store, which also has the events published in between.
            reading: true,
            over: false,
            page: Arc::default(),
            seen: 0,
        };
        stream::unfold(watching, |mut watching| async move {
            let next = watching.next().await?;
            Some((next, watching))
        })
    }
}

struct Watching {
    live: Arc<Live>,
    wanted: Wanted,
    /// Number of the last event that was delivered or skipped.
    at: i64,
    heard: broadcast::Receiver<Arc<Page>>,
    /// True if the watcher is behind and reads the store.
    reading: bool,
    /// True if nothing more can come.
    over: bool,
    page: Arc<Page>,
    /// Number of events of the page that were processed.
    seen: usize,
}

impl Watching {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if self.over {
                return None;
            }
            if let Some(words) = self.of_page() {
                return Some(words);
            }
            // The last event may be of a type that is not wanted.
            if self.over {
                return None;
            }
            if self.reading {
                // A watcher that catches up could run for long, so others get their turn.
                tokio::task::yield_now().await;
                let stretch = self.read().await.ok()?;
                self.reading = stretch.more;
                // Numbers of deleted events are skipped.
                if stretch.page.last().is_none_or(|last| last <= self.at) {
                    self.at = self.at.max(stretch.to);
                }
                self.look_at(stretch.page);
                continue;
            }
            match self.heard.recv().await {
                Ok(page) => self.look_at(page),
                Err(broadcast::error::RecvError::Lagged(_)) => self.reading = true,
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }

    fn look_at(&mut self, page: Arc<Page>) {
        self.page = page;
        self.seen = 0;
    }

    /// Returns the wanted events of the page, as one piece as far as they are adjacent: the bytes
    /// are shared, not copied.
    fn of_page(&mut self) -> Option<Bytes> {
        let mut piece = None;
        while let Some(told) = self.page.events.get(self.seen) {
            let new = told.seq > self.at;
            let wanted = new && self.wanted.fits(told);
            if !wanted && piece.is_some() {
                break;
            }
            if new {
                self.at = told.seq;
            }
            if wanted {
                piece = Some((piece.map_or(self.seen, |(from, _)| from), self.seen));
            }
            self.over = new && self.wanted.ends_with(told);
            self.seen += 1;
            if self.over {
                break;
            }
        }
        piece.map(|(from, to)| self.page.words(from, to))
    }

    async fn read(&self) -> Result<Stretch> {
        let past = &self.live.past;
        let head = *self.live.head.borrow();
        match self.wanted.conversation {
            Some(c) => past.within(c, self.at).await,
            None => past.anywhere(self.at, head).await,
        }
    }
}

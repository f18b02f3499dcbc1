//! What was committed, told to whoever watches.
//!
//! One task reads new rows once, for all: also those of other processes on the same store. A watcher
//! that has fallen behind, or asks for what was before, reads the store itself, and is never told
//! anything that is not there: a reload and a live view cannot disagree.

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

/// Rows of other processes are seen within this time.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// The store could not be asked: tried again after this.
const AWAY: Duration = Duration::from_secs(1);
/// Pages that a watcher may be behind before it reads the store instead.
const BEHIND: usize = 128;
/// Rows read, and told, at a time.
const PAGE: i64 = 128;
/// What ends a turn.
const ENDED: &str = "turn.ended";

pub(crate) struct Live {
    store: Store,
    past: Past,
    told: broadcast::Sender<Arc<Page>>,
    /// Of the newest event that was told.
    head: watch::Sender<i64>,
}

/// Whose events one wants.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) namespace: Arc<str>,
    /// None: all of the namespace.
    pub(crate) conversation: Option<ConversationId>,
    /// This turn alone, until it has ended.
    pub(crate) turn: Option<TurnId>,
}

impl Wanted {
    fn fits(&self, told: &Told) -> bool {
        let here = match self.conversation {
            Some(c) => told.conversation == c,
            None => *told.namespace == *self.namespace,
        };
        here && self.turn.is_none_or(|turn| told.turn == turn)
    }

    /// Nothing is wanted after it, and nobody waits for another to come first.
    fn ends_with(&self, told: &Told) -> bool {
        self.turn.is_some() && told.kind == ENDED
    }
}

impl Live {
    pub(crate) async fn new(store: Store) -> Result<Self> {
        let newest = store.read().await?.last_event().await?;
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

    /// Reads what is new and tells it, for ever.
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
            let page = self.store.read().await?.events_after(after, PAGE).await?;
            let Some(last) = page.last().map(|row| row.seq) else {
                return Ok(());
            };
            let full = page.len() as i64 == PAGE;
            // Nobody there to hear it is no trouble.
            if self.told.receiver_count() > 0 {
                let _heard = self.told.send(Arc::new(Page::of(page)?));
            }
            self.head.send_replace(last);
            if !full {
                return Ok(());
            }
        }
    }

    /// What happens from now on, or after `after`, in the words of an event stream: pieces of one event or
    /// more.
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
            // What was told between is there too.
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
    /// The last event that was given out, or passed over.
    at: i64,
    heard: broadcast::Receiver<Arc<Page>>,
    /// It is behind, and reads the store.
    reading: bool,
    /// Nothing more can come.
    over: bool,
    page: Arc<Page>,
    /// How many events of the page were seen.
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
            if self.reading {
                // Those who catch up could go on for long: others get their turn.
                tokio::task::yield_now().await;
                let stretch = self.read().await.ok()?;
                self.reading = stretch.more;
                // Numbers that are gone are passed over.
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

    /// What it wants of the page, in one piece as far as that goes: words are shared, not copied.
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
                self.over = self.wanted.ends_with(told);
            }
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

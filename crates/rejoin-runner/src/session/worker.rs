//! Async versions of the work on sessions, for callers that must not block: a small file is handled
//! at once, a large one and a database on another thread.

use std::io;
use std::path::Path;

use rejoin_agents::Reading;
use rejoin_core::{FileMark, SessionFact};

use super::Sessions;
use crate::foreign_file::LARGE;
use crate::marks;
use crate::worker_thread::on_worker;

impl Sessions<'_> {
    /// Runs `work` on the session in that file.
    pub(crate) async fn on_worker<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(Sessions<'_>) -> T + Send + 'static,
    ) -> T {
        let meta = fs_err::metadata(self.home.join(path));
        // The work may have to wait for the lock of a database.
        let large = self.is_database() || meta.is_ok_and(|meta| meta.len() >= LARGE);
        if !large {
            return work(*self);
        }
        let (adapter, home) = (self.adapter, self.home.to_owned());
        let work = move || {
            let home = &home;
            work(Sessions { adapter, home })
        };
        on_worker(work).await
    }

    /// Runs [`Sessions::compare`] without blocking.
    pub(crate) async fn compare_async(&self, mark: &FileMark) -> SessionFact {
        if !self.is_database() && marks::is_untouched(self.home, mark) {
            return SessionFact::Untouched;
        }
        let mark = mark.clone();
        let path = mark.path.clone();
        self.on_worker(&path, move |s| s.compare(&mark)).await
    }

    /// Runs [`Sessions::confirmed`] without blocking.
    pub(crate) async fn confirmed_async(&self, mark: &FileMark) -> SessionFact {
        let mark = mark.clone();
        let path = mark.path.clone();
        self.on_worker(&path, move |s| s.confirmed(&mark)).await
    }

    /// Runs [`Sessions::read_on`] without blocking.
    pub(crate) async fn read_async(
        &self,
        path: &str,
        before: Option<&FileMark>,
        cursor: Option<&str>,
    ) -> io::Result<(FileMark, Reading)> {
        let (before, cursor) = (before.cloned(), cursor.map(str::to_owned));
        let file = path.to_owned();
        let read = move |s: Sessions<'_>| s.read_on(&file, before.as_ref(), cursor.as_deref());
        self.on_worker(path, read).await
    }

    /// Runs [`Sessions::mend`] without blocking.
    pub(crate) async fn repair_async(&self, path: &str) -> io::Result<()> {
        let file = path.to_owned();
        self.on_worker(path, move |s| s.repair(&file)).await
    }

    /// Runs [`Sessions::cut_back`] without blocking.
    pub(crate) async fn cut_back_async(&self, mark: &FileMark, run: &Path) -> io::Result<FileMark> {
        let (mark, run) = (mark.clone(), run.to_owned());
        let path = mark.path.clone();
        self.on_worker(&path, move |s| s.cut_back(&mark, &run))
            .await
    }

    /// Runs [`Sessions::save`] without blocking.
    pub(crate) async fn save_async(&self, mark: &FileMark, run: &Path) -> io::Result<()> {
        let (mark, run) = (mark.clone(), run.to_owned());
        let path = mark.path.clone();
        self.on_worker(&path, move |s| s.save(&mark, &run)).await
    }
}

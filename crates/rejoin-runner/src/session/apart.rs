//! The same work on a session for those who must not be held up by it: a small file is read at once, a large
//! one and a database on another thread.

use std::io;
use std::path::Path;

use rejoin_agents::Reading;
use rejoin_core::{FileMark, SessionFact};

use super::Sessions;
use crate::apart::apart;
use crate::foreign_file::LARGE;
use crate::marks;

impl Sessions<'_> {
    /// Does work on the session in that file.
    pub(crate) async fn apart<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(Sessions<'_>) -> T + Send + 'static,
    ) -> T {
        let meta = fs_err::metadata(self.home.join(path));
        // The lock of a database may have to be waited for.
        let large = self.is_database() || meta.is_ok_and(|meta| meta.len() >= LARGE);
        if !large {
            return work(*self);
        }
        let (adapter, home) = (self.adapter, self.home.to_owned());
        let work = move || {
            let home = &home;
            work(Sessions { adapter, home })
        };
        apart(work).await
    }

    /// [`Sessions::compare`]
    pub(crate) async fn compare_apart(&self, mark: &FileMark) -> SessionFact {
        if !self.is_database() && marks::is_untouched(self.home, mark) {
            return SessionFact::Untouched;
        }
        let mark = mark.clone();
        let path = mark.path.clone();
        self.apart(&path, move |s| s.compare(&mark)).await
    }

    /// [`Sessions::confirmed`]
    pub(crate) async fn confirmed_apart(&self, mark: &FileMark) -> SessionFact {
        let mark = mark.clone();
        let path = mark.path.clone();
        self.apart(&path, move |s| s.confirmed(&mark)).await
    }

    /// [`Sessions::read_on`]
    pub(crate) async fn read_apart(
        &self,
        path: &str,
        before: Option<&FileMark>,
        cursor: Option<&str>,
    ) -> io::Result<(FileMark, Reading)> {
        let (before, cursor) = (before.cloned(), cursor.map(str::to_owned));
        let file = path.to_owned();
        let read = move |s: Sessions<'_>| s.read_on(&file, before.as_ref(), cursor.as_deref());
        self.apart(path, read).await
    }

    /// [`Sessions::mend`]
    pub(crate) async fn mend_apart(&self, path: &str) -> io::Result<()> {
        let file = path.to_owned();
        self.apart(path, move |s| s.mend(&file)).await
    }

    /// [`Sessions::cut_back`]
    pub(crate) async fn cut_back_apart(&self, mark: &FileMark, run: &Path) -> io::Result<FileMark> {
        let (mark, run) = (mark.clone(), run.to_owned());
        let path = mark.path.clone();
        self.apart(&path, move |s| s.cut_back(&mark, &run)).await
    }

    /// [`Sessions::save`]
    pub(crate) async fn save_apart(&self, mark: &FileMark, run: &Path) -> io::Result<()> {
        let (mark, run) = (mark.clone(), run.to_owned());
        let path = mark.path.clone();
        self.apart(&path, move |s| s.save(&mark, &run)).await
    }
}

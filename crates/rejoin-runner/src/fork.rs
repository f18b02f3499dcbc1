//! Start of the first turn of a forked conversation: a copy of its parent's session as it was
//! confirmed, made before anything else. The CLI never reads the parent's session itself, so its
//! owner may continue it at the same moment, and neither sees the writes of the other.

use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rejoin_agents::{
    Adapter, Fork, Forking, Moving, ProofRow, ProofState, Reading, SessionAt, SessionPath,
};
use rejoin_core::{FileMark, Permissions, SessionSource, TurnPlan};

use crate::atomic_file::put_copy;
use crate::binary::Binary;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::foreign_file;
use crate::inspect::{Inspection, SessionInspection};
use crate::marks;
use crate::session::Sessions;

/// Name of the copy in the folder of the turn. A CLI that takes a file for a session goes by the
/// extension.
const ORIGIN: &str = "origin.jsonl";
/// Name of the copy under the id of the new session.
const RENAMED: &str = "renamed.jsonl";

pub(crate) fn forks(plan: &TurnPlan) -> bool {
    plan.session()
        .is_some_and(|s| s.way() == SessionSource::Fork)
}

/// Returns true if the session of another conversation can be forked. Otherwise it is ignored.
pub(crate) fn can_fork(
    adapter: &dyn Adapter,
    permissions: &Permissions,
    binary: &Binary,
    session: &SessionInspection,
) -> bool {
    let rows = &binary.facts.rows;
    let broken = |row: &ProofRow| row.what == "fork" && row.state == ProofState::Broken;
    let forks = |fork: &dyn Fork| fork.forks(permissions);
    adapter.capabilities().fork.is_some_and(forks)
        && session.fact.usable()
        && !rows.iter().any(broken)
}

impl Inspection {
    /// Copies the parent's session into `folder`. Returns false if the session is gone by now; then
    /// it is dropped from the facts.
    pub(crate) async fn copy_parent(&mut self, folder: &Path) -> Result<bool> {
        let Some(mark) = self.session.as_ref().and_then(|s| s.mark.clone()) else {
            return Ok(true);
        };
        let (path, folder) = (mark.path.clone(), folder.to_owned());
        let work = move |s: Sessions<'_>| copy_confirmed(&s, &mark, &folder);
        match self.sessions().on_worker(&path, work).await {
            Err(e) if [ErrorKind::InvalidData, ErrorKind::NotFound].contains(&e.kind()) => {
                self.session = None;
                Ok(false)
            }
            done => done
                .map(|()| true)
                .map_err(Error::io("copying the session")),
        }
    }
}

/// Copies the confirmed bytes, and nothing after them. Fails with `InvalidData` or `NotFound` if
/// they are not there any more.
pub(crate) fn copy_confirmed(
    sessions: &Sessions<'_>,
    mark: &FileMark,
    folder: &Path,
) -> io::Result<()> {
    make_private(folder)?;
    sessions.copy_confirmed(mark, &folder.join(ORIGIN))
}

/// Reads the whole copy of the parent's session.
pub(crate) async fn read_origin(sessions: &Sessions<'_>, folder: &Path) -> io::Result<Reading> {
    let aside = Sessions {
        adapter: sessions.adapter,
        home: folder,
    };
    Ok(aside.read_async(ORIGIN, None, None).await?.1)
}

/// Session that is about to be created.
pub(crate) struct ForkCopy<'a> {
    pub(crate) sessions: Sessions<'a>,
    /// Folder of the turn, which holds the copy.
    pub(crate) folder: &'a Path,
    /// Identity of the new session.
    pub(crate) at: SessionAt<'a>,
}

impl ForkCopy<'_> {
    fn forking(&self) -> Option<Forking> {
        self.sessions.adapter.capabilities().fork.map(Fork::forking)
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.folder.join(ORIGIN)
    }

    /// Returns the path of the new session, or None if it is unknown until the CLI has chosen its
    /// id.
    pub(crate) fn place(&self) -> Option<String> {
        let adapter = self.sessions.adapter;
        match (self.forking(), adapter.place(&self.at)) {
            (Some(Forking::ByCopy(_)), place) => place.of_copy(),
            (_, SessionPath::At(path)) => Some(path),
            (_, SessionPath::Find { .. }) => None,
        }
    }

    /// Runs [`ForkCopy::rename`] without blocking the thread.
    pub(crate) async fn rewrite_id_async(&self, place: &str) -> io::Result<Option<FileMark>> {
        let place = place.to_owned();
        self.on_worker(move |seed| seed.rewrite_id(&place)).await
    }

    /// Runs [`ForkCopy::install`] without blocking the thread.
    pub(crate) async fn install_async(&self, place: Option<&str>, now: i64) -> io::Result<()> {
        let place = place.map(str::to_owned);
        self.on_worker(move |seed| seed.install(place.as_deref(), now))
            .await
    }

    async fn on_worker<T: Send + 'static>(
        &self,
        work: impl FnOnce(ForkCopy<'_>) -> T + Send + 'static,
    ) -> T {
        let (turn, folder) = (self.folder.to_owned(), self.at.folder.to_owned());
        let (session, pin) = (self.at.session.clone(), self.at.pin.to_owned());
        let origin = self.origin().display().to_string();
        let work = move |sessions: Sessions<'_>| {
            work(ForkCopy {
                sessions,
                folder: &turn,
                at: SessionAt {
                    folder: &folder,
                    session: &session,
                    pin: &pin,
                },
            })
        };
        // The path is absolute, so it replaces the home.
        self.sessions.on_worker(&origin, work).await
    }

    /// Gives the copy its new id, for CLIs whose sessions are forked by copying the file; otherwise
    /// returns None. Puts nothing into the CLI's home yet.
    pub(crate) fn rewrite_id(&self, place: &str) -> io::Result<Option<FileMark>> {
        let Some(Forking::ByCopy(rename)) = self.forking() else {
            return Ok(None);
        };
        let mut from = BufReader::new(fs_err::File::open(self.origin())?);
        let mut first = vec![];
        from.read_until(b'\n', &mut first)?;
        let ended = first.pop_if(|byte| *byte == b'\n').is_some();
        let renamed = rename(&first, self.at.session);
        let renamed = renamed.ok_or_else(|| io::Error::other("it does not say which it is"))?;
        let mut to = BufWriter::new(private(&self.folder.join(RENAMED))?);
        to.write_all(&renamed)?;
        to.write_all(if ended { b"\n" } else { b"" })?;
        io::copy(&mut from, &mut to)?;
        to.flush()?;
        let mark = marks::read_on(self.folder, RENAMED, None, |_| {})?;
        let path = place.to_owned();
        Ok(Some(FileMark { path, ..mark }))
    }

    /// Puts the files that the CLI needs where it will look for them; `now` is in milliseconds
    /// since 1970.
    pub(crate) fn install(&self, place: Option<&str>, now: i64) -> io::Result<()> {
        let from = match self.forking() {
            None | Some(Forking::FromFile(_)) => return Ok(()),
            Some(Forking::Within(_)) => self.origin(),
            Some(Forking::ByCopy(_)) => self.folder.join(RENAMED),
        };
        let place = place.ok_or_else(|| io::Error::other("it has no place"))?;
        let target = foreign_file::beneath(self.sessions.home, place)?;
        put_copy(&from, &target)?;
        let read = |file: &str| foreign_file::read_setting(self.sessions.home.join(file));
        let Moving::Rewrite(statements) = self.sessions.adapter.moving(&self.at, &read) else {
            return Ok(());
        };
        let mark = FileMark {
            path: place.to_owned(),
            length: 0,
            hash: String::new(),
            stat: (0, 0, 0, 0),
        };
        let moved = self.sessions.rewrite(mark, statements, self.at.folder);
        self.sessions.make_ready(moved?, now)?;
        Ok(())
    }
}

/// Creates a file that only its owner may read.
pub(crate) fn private(path: &Path) -> io::Result<fs_err::File> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

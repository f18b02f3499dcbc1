//! What the first turn of a forked conversation begins with: its parent's session as it was
//! confirmed, copied aside before anything else. The CLI never reads the session itself, so its owner
//! may go on with it at the same moment, and neither ever writes what the other does.

use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use fs_err::os::unix::fs::OpenOptionsExt;
use rejoin_agents::{Adapter, Forking, Moving, Place, ProofRow, ProofState, Reading, SessionAt};
use rejoin_core::{AgentName, Envelope, FileMark, TurnPlan, Way, decide};
use rejoin_hub::TurnRequest;

use crate::binary::Binary;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::foreign_file;
use crate::look::{Looked, SessionLook};
use crate::marks;
use crate::session::Sessions;
use crate::whole::put_copy;

/// In the folder of the turn. A CLI that takes a file for a session goes by the ending.
const ORIGIN: &str = "origin.jsonl";
/// The same under the id of the new session.
const RENAMED: &str = "renamed.jsonl";

pub(crate) fn forks(plan: &TurnPlan) -> bool {
    plan.session().is_some_and(|s| s.way() == Way::Fork)
}

/// Can a session of another conversation serve? Else it is as if there were none.
pub(crate) fn can_fork(
    adapter: &dyn Adapter,
    envelope: &Envelope,
    binary: &Binary,
    session: &SessionLook,
) -> bool {
    let rows = &binary.facts.rows;
    let broken = |row: &ProofRow| row.what == "fork" && row.state == ProofState::Broken;
    adapter.forks(envelope) && session.fact.usable() && !rows.iter().any(broken)
}

impl Looked {
    /// If it comes to a fork, what it begins with is copied now. If that is gone meanwhile, there is
    /// no session to go on with.
    pub(crate) async fn set_aside(
        &mut self,
        agent: &AgentName,
        request: &TurnRequest,
        folder: &Path,
    ) -> Result<()> {
        let plan = decide(&self.situation(agent, request)).plan;
        let mark = self.session.as_ref().and_then(|s| s.mark.as_ref());
        let Some(mark) = mark.filter(|_| plan.is_ok_and(|plan| forks(&plan))) else {
            return Ok(());
        };
        let (path, mark, folder) = (mark.path.clone(), mark.clone(), folder.to_owned());
        let work = move |s: Sessions<'_>| set_aside(&s, &mark, &folder);
        match self.sessions().apart(&path, work).await {
            Err(e) if [ErrorKind::InvalidData, ErrorKind::NotFound].contains(&e.kind()) => {
                self.session = None;
                Ok(())
            }
            done => done.map_err(Error::io("copying the session")),
        }
    }
}

/// Copies the confirmed bytes, and nothing that follows them. Fails with `InvalidData` or `NotFound`
/// if they are not there any more.
pub(crate) fn set_aside(sessions: &Sessions<'_>, mark: &FileMark, folder: &Path) -> io::Result<()> {
    make_private(folder)?;
    sessions.copy_confirmed(mark, &folder.join(ORIGIN))
}

/// Everything that was said in what was set aside.
pub(crate) async fn read_origin(sessions: &Sessions<'_>, folder: &Path) -> io::Result<Reading> {
    let aside = Sessions {
        adapter: sessions.adapter,
        home: folder,
    };
    Ok(aside.read_apart(ORIGIN, None, None).await?.1)
}

/// A session that is about to be made.
pub(crate) struct Seed<'a> {
    pub(crate) sessions: Sessions<'a>,
    /// Of the turn, with what was set aside in it.
    pub(crate) folder: &'a Path,
    /// The new one.
    pub(crate) at: SessionAt<'a>,
}

impl Seed<'_> {
    fn forking(&self) -> Forking {
        self.sessions.adapter.forking()
    }

    pub(crate) fn origin(&self) -> PathBuf {
        self.folder.join(ORIGIN)
    }

    /// Where it will lie, if that is known before the CLI has chosen its id.
    pub(crate) fn place(&self) -> Option<String> {
        let adapter = self.sessions.adapter;
        match (self.forking(), adapter.place(&self.at)) {
            (Forking::ByCopy, _) => adapter.copy_place(&self.at),
            (_, Place::At(path)) => Some(path),
            (_, Place::Find { .. }) => None,
        }
    }

    /// [`Seed::rename`] for those who must not be held up.
    pub(crate) async fn rename_apart(&self, place: &str) -> io::Result<Option<FileMark>> {
        let place = place.to_owned();
        self.apart(move |seed| seed.rename(&place)).await
    }

    /// [`Seed::plant`] for those who must not be held up.
    pub(crate) async fn plant_apart(&self, place: Option<&str>, now: i64) -> io::Result<()> {
        let place = place.map(str::to_owned);
        self.apart(move |seed| seed.plant(place.as_deref(), now))
            .await
    }

    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(Seed<'_>) -> T + Send + 'static,
    ) -> T {
        let (turn, folder) = (self.folder.to_owned(), self.at.folder.to_owned());
        let (session, pin) = (self.at.session.clone(), self.at.pin.to_owned());
        let origin = self.origin().display().to_string();
        let work = move |sessions: Sessions<'_>| {
            work(Seed {
                sessions,
                folder: &turn,
                at: SessionAt {
                    folder: &folder,
                    session: &session,
                    pin: &pin,
                },
            })
        };
        // The path is whole: it takes the place of the home.
        self.sessions.apart(&origin, work).await
    }

    /// Gives the copy its new id, where it is a session by that alone. Nothing is put into the CLI's
    /// home yet.
    pub(crate) fn rename(&self, place: &str) -> io::Result<Option<FileMark>> {
        if self.forking() != Forking::ByCopy {
            return Ok(None);
        }
        let mut from = BufReader::new(fs_err::File::open(self.origin())?);
        let mut first = vec![];
        from.read_until(b'\n', &mut first)?;
        let ended = first.pop_if(|byte| *byte == b'\n').is_some();
        let adapter = self.sessions.adapter;
        let renamed = adapter.renamed(&first, self.at.session);
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

    /// Puts what the CLI must find where it will look; `now` in milliseconds since 1970.
    pub(crate) fn plant(&self, place: Option<&str>, now: i64) -> io::Result<()> {
        let from = match self.forking() {
            Forking::Never | Forking::FromFile(_) => return Ok(()),
            Forking::Within(_) => self.origin(),
            Forking::ByCopy => self.folder.join(RENAMED),
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

/// A file that only its owner may read.
pub(crate) fn private(path: &Path) -> io::Result<fs_err::File> {
    let mut options = fs_err::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    options.open(path)
}

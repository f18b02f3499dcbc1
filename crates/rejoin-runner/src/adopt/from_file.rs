//! Adopts a session that came as a file from elsewhere: puts it where its CLI will look for it
//! first.

use std::io::{self, Read, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rejoin_agents::{SessionAt, SessionPath};
use rejoin_core::SessionId;

use super::{Adoption, SessionFilter, Terms};
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::in_use::in_use;
use crate::inspect::environment;
use crate::turn::Runner;

/// Relation of the new file to the file that exists at its place.
#[derive(Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// The existing file is a beginning of the new one.
    GoesOn,
    /// The new file is a beginning of the existing one.
    Holds,
    Other,
}

impl Runner {
    /// Puts the session from `from` in its place and adopts it. `terms.here` is the folder in which
    /// it is to continue. The caller checks the content of `from` while it is read: an error from
    /// it leaves nothing behind.
    pub async fn adopt_arrived(
        &self,
        agent: &str,
        session: &SessionId,
        from: &mut (dyn Read + Send),
        terms: &Terms,
    ) -> Result<Adoption> {
        let Some(adapter) = self.config.adapter(agent) else {
            return Err(Error::UnknownAgent(agent.into()));
        };
        let env = environment(&self.config, adapter);
        let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let none = || Error::Internal(format!("{agent} has no home: HOME is not set"));
        let home = adapter.home(&var).ok_or_else(none)?;
        let pin = self.hub.clock.pin_id()?.to_string();
        let at = SessionAt {
            folder: &terms.here,
            session,
            pin: &pin,
        };
        let SessionPath::At(path) = adapter.place(&at) else {
            return Err(Error::DoesNotTravel(agent.into()));
        };
        if let Some(pid) = in_use(adapter, &home, session, Some(&path)) {
            return Err(Error::InUse { pid });
        }
        let placed = |error| Error::io("putting the session in its place")(error);
        let target = foreign_file::beneath(&home, &path).map_err(placed)?;
        let put = put(&target, from).map_err(placed)?;
        if put == Beside::Other {
            return Err(Error::OtherSession(session.to_string()));
        }
        let adopted = self.adopt_at(agent, session, &path, terms).await;
        if adopted.is_err() && put == Beside::Nothing {
            let _gone = fs_err::remove_file(&target);
        }
        adopted
    }

    /// Returns an error unless a session of this agent is a single file with a known path.
    pub fn travels(&self, agent: &str, session: &SessionId) -> Result<()> {
        let Some(adapter) = self.config.adapter(agent) else {
            return Err(Error::UnknownAgent(agent.into()));
        };
        let at = SessionAt {
            folder: "/",
            session,
            pin: "",
        };
        match adapter.place(&at) {
            SessionPath::At(_) => Ok(()),
            SessionPath::Find { .. } => Err(Error::DoesNotTravel(agent.into())),
        }
    }

    async fn adopt_at(
        &self,
        agent: &str,
        session: &SessionId,
        path: &str,
        terms: &Terms,
    ) -> Result<Adoption> {
        let wanted = SessionFilter {
            agent: Some(agent.into()),
            folder: None,
        };
        let all = self.outside_sessions(&wanted).await?;
        let it = all
            .into_iter()
            .find(|s| s.head.session == *session && s.found.path == path);
        let mut it = it.ok_or_else(|| Error::NothingSaid(session.to_string()))?;
        // The session continues here, wherever it was made.
        it.head.folder = Some(terms.here.clone());
        self.adopt(&it, terms).await
    }
}

/// Writes the file, and replaces an existing one only if that is a beginning of it.
fn put(target: &Path, from: &mut (dyn Read + Send)) -> io::Result<Beside> {
    if let Some(parent) = target.parent() {
        let mut builder = std::fs::DirBuilder::new();
        builder.recursive(true).mode(0o700).create(parent)?;
    }
    let temp = Temp(target.with_extension("jsonl.rejoin-tmp"));
    let mut file = foreign_file::create_temporary(&temp.0)?;
    io::copy(from, &mut file)?;
    file.flush()?;
    file.sync_all()?;
    let beside = compare(target, &temp.0)?;
    if matches!(beside, Beside::Nothing | Beside::GoesOn) {
        fs_err::rename(&temp.0, target)?;
    }
    Ok(beside)
}

/// Temporary file that is removed on drop, unless it was moved.
struct Temp(PathBuf);

impl Drop for Temp {
    fn drop(&mut self) {
        let _gone = fs_err::remove_file(&self.0);
    }
}

fn compare(there: &Path, came: &Path) -> io::Result<Beside> {
    let mut there = match foreign_file::open(there) {
        Ok(there) => there,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Beside::Nothing),
        Err(e) => return Err(e),
    };
    let mut came = foreign_file::open(came)?;
    let (old, new) = (there.metadata()?.len(), came.metadata()?.len());
    let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
    let mut left = old.min(new);
    while left > 0 {
        let now = left.min(one.len() as u64) as usize;
        there.read_exact(&mut one[..now])?;
        came.read_exact(&mut other[..now])?;
        if one[..now] != other[..now] {
            return Ok(Beside::Other);
        }
        left -= now as u64;
    }
    Ok(if new > old {
        Beside::GoesOn
    } else {
        Beside::Holds
    })
}

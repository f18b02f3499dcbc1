//! A session that came as a file from elsewhere: put where its CLI will look for it, then adopted.

use std::io::{self, Read, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use rejoin_agents::{Place, SessionAt};
use rejoin_core::SessionId;

use super::{Adoption, Terms, Wanted};
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::in_use::in_use;
use crate::look::environment;
use crate::turn::Runner;

/// How what came stands to what lies there.
#[derive(Debug, PartialEq, Eq)]
enum Beside {
    Nothing,
    /// What lies there is its beginning.
    GoesOn,
    /// It is the beginning of what lies there.
    Holds,
    Other,
}

impl Runner {
    /// `terms.here`: the folder in which it is to go on. What comes out of `from` is checked by whoever
    /// gives it: an error of it leaves nothing behind.
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
        let Place::At(path) = adapter.place(&at) else {
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

    /// Is a session of this agent one file at a place that is known?
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
            Place::At(_) => Ok(()),
            Place::Find { .. } => Err(Error::DoesNotTravel(agent.into())),
        }
    }

    async fn adopt_at(
        &self,
        agent: &str,
        session: &SessionId,
        path: &str,
        terms: &Terms,
    ) -> Result<Adoption> {
        let wanted = Wanted {
            agent: Some(agent.into()),
            folder: None,
        };
        let all = self.outside_sessions(&wanted).await?;
        let it = all
            .into_iter()
            .find(|s| s.head.session == *session && s.found.path == path);
        let mut it = it.ok_or_else(|| Error::NothingSaid(session.to_string()))?;
        // Wherever it was made, it goes on here.
        it.head.folder = Some(terms.here.clone());
        self.adopt(&it, terms).await
    }
}

/// Never over another one: only what it begins with is replaced by it.
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

/// Gone with whoever made it, unless it was moved.
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

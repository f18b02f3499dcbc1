//! Puts a session back from a snapshot: fetched and checked beside its place first, then moved there.
//!
//! A manifest is not trusted: its paths are evidence. Where files go is derived anew from what the
//! adapter says of today's folder.

use std::io::{self, Read as _, Write};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Moving, Place, Records, SessionAt};
use rejoin_core::{AgentName, FileMark, Pin, PinState, SnapshotFact, Way, decide};
use rejoin_hub::{TurnRequest, fault, rfc3339};
use rejoin_store::{Lost, Manifest, ManifestFile, Snapshot, Unusable, Vault};

use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::fork::private;
use crate::look::Looked;
use crate::marks::{self, Folded};
use crate::session::Sessions;
use crate::session::database::beside_it;

/// What is restored waits here, in the folder of the turn.
const STAGED: &str = "restored";

/// A snapshot whose bytes are here, checked.
#[derive(Debug, Clone)]
pub struct Staged {
    pub(crate) snapshot: Snapshot,
    pub(crate) manifest: Manifest,
    /// Its files lie here, by their number; none: they were only looked at.
    folder: Option<PathBuf>,
    /// What other snapshots of the session hold: length and hash.
    known: Vec<(u64, String)>,
}

/// A session that was put back.
pub(crate) struct Restored {
    /// As it was confirmed then, and where it is now.
    pub(crate) pin: Pin,
    /// What lay there before and was kept.
    pub(crate) aside: Option<String>,
}

enum Bad {
    Damaged,
    Unreachable(&'static str),
    Here(io::Error),
}

impl From<Lost> for Bad {
    fn from(lost: Lost) -> Self {
        match lost {
            Lost::Missing | Lost::Damaged(_) => Self::Damaged,
            Lost::WrongKey { .. } => {
                Self::Unreachable("there is a snapshot, sealed with a key that is not here")
            }
            Lost::Unavailable(_) => {
                Self::Unreachable("there is a snapshot, but where it lies does not answer")
            }
            Lost::Io(error) => Self::Here(error),
        }
    }
}

impl Looked {
    /// If it comes to a snapshot, its bytes are fetched and checked now: into `folder`, or for a
    /// prediction nowhere. The newest that is whole serves.
    pub async fn check_snapshot(
        &mut self,
        agent: &AgentName,
        request: &TurnRequest,
        vault: Option<&Vault>,
        folder: Option<&Path>,
    ) -> Result<()> {
        let plan = decide(&self.situation(agent, request)).plan;
        let restores = |s: &rejoin_core::TrustedSession| s.way() == Way::Snapshot;
        let wanted = plan.is_ok_and(|plan| plan.session().is_some_and(restores));
        let Some(vault) = vault.filter(|_| wanted) else {
            return Ok(());
        };
        self.snapshot = SnapshotFact::None;
        let main = |manifest: Manifest| manifest.files.into_iter().next();
        let whole = self.offers.iter().filter_map(|s| s.manifest().ok());
        let known: Vec<_> = whole
            .filter_map(main)
            .map(|file| (file.length, file.hash))
            .collect();
        for snapshot in std::mem::take(&mut self.offers) {
            let staging = folder.map(|folder| folder.join(STAGED));
            match stage(vault, &snapshot, staging.as_deref()).await {
                Ok(manifest) => {
                    let seen = snapshot.seen(&manifest);
                    self.snapshot = SnapshotFact::Usable { seen };
                    self.staged = Some(Staged {
                        snapshot,
                        manifest,
                        folder: staging,
                        known,
                    });
                    return Ok(());
                }
                Err(Bad::Here(error)) => {
                    return Err(Error::io("restoring the session")(error));
                }
                Err(Bad::Damaged) => self.snapshot = SnapshotFact::Damaged,
                Err(Bad::Unreachable(why)) => {
                    self.snapshot = SnapshotFact::Unreachable(why);
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

/// Fetches every file of a snapshot and compares it with what was captured.
async fn stage(
    vault: &Vault,
    snapshot: &Snapshot,
    folder: Option<&Path>,
) -> std::result::Result<Manifest, Bad> {
    let manifest = snapshot.manifest().map_err(|unusable| match unusable {
        Unusable::Newer => Bad::Unreachable("there is a snapshot, written by a newer rejoin"),
        Unusable::Damaged | Unusable::Expired => Bad::Damaged,
    })?;
    if let Some(folder) = folder {
        make_private(folder).map_err(Bad::Here)?;
    }
    for (n, file) in manifest.files.iter().enumerate() {
        fault::point("restoring");
        let to = folder.map(|folder| folder.join(n.to_string()));
        let mut to = to.map(|to| private(&to)).transpose().map_err(Bad::Here)?;
        let mut sink = io::sink();
        let out: &mut (dyn Write + Send) = match &mut to {
            Some(file) => file,
            None => &mut sink,
        };
        let hash = if file.part.is_empty() {
            let mut out = Folded::new(out);
            vault.fetch(file, &mut out).await?;
            out.finish()
        } else {
            let mut out = Hashed(blake3::Hasher::new(), out);
            vault.fetch(file, &mut out).await?;
            out.0.finalize().to_hex().to_string()
        };
        if hash != file.hash {
            return Err(Bad::Damaged);
        }
        if let Some(file) = to {
            file.sync_all().map_err(Bad::Here)?;
        }
    }
    if manifest
        .files
        .first()
        .is_none_or(|main| !main.part.is_empty())
    {
        return Err(Bad::Damaged);
    }
    Ok(manifest)
}

struct Hashed<'a>(blake3::Hasher, &'a mut (dyn Write + Send));

impl Write for Hashed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let wrote = self.1.write(bytes)?;
        self.0.update(&bytes[..wrote]);
        Ok(wrote)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.1.flush()
    }
}

impl Staged {
    /// For the verdict line.
    pub(crate) fn told(&self, moved: bool) -> String {
        let at = rfc3339(self.snapshot.taken_at);
        let time = at.get(11..16).unwrap_or_default();
        let moved = if moved { ", folder moved" } else { "" };
        format!("from snapshot {time} by {}{moved}", self.snapshot.machine)
    }

    /// The session as the snapshot has it, in today's folder: what is written ahead before anything
    /// is put in its place.
    pub(crate) fn pin(&self, looked: &Looked, now: &Pin, machine: &str) -> Result<Pin> {
        let was = self.manifest.files.first();
        let main = was.ok_or_else(|| Error::Internal("a snapshot without a session".into()))?;
        let at = SessionAt {
            folder: &looked.folder.path,
            session: &now.session,
            pin: &now.id.to_string(),
        };
        let read = |file: &str| fs_err::read(looked.home.join(file)).ok();
        let place = place(looked.adapter, &at, &main.path, &read);
        let path = place.ok_or_else(|| Error::Internal("a session without a place".into()))?;
        let state = PinState::Confirmed;
        let pin = self.snapshot.pin(&self.manifest, &state, now.failures);
        Ok(Pin {
            folder: looked.folder.clone(),
            machine: machine.to_owned(),
            home: looked.home.display().to_string(),
            files: vec![FileMark {
                path,
                length: main.length,
                hash: main.hash.clone(),
                stat: (0, 0, 0, 0),
            }],
            ..pin
        })
    }

    /// Moves its files where the CLI will look: the session itself last, so that where it is, all of
    /// it is.
    pub(crate) fn put_in_place(&self, looked: &Looked, mut pin: Pin) -> io::Result<Restored> {
        let gone = || io::Error::other("it was only looked at");
        let staging = self.folder.as_deref().ok_or_else(gone)?;
        let at = SessionAt {
            folder: &looked.folder.path,
            session: &pin.session,
            pin: &pin.id.to_string(),
        };
        let parts = looked.adapter.parts(&at);
        for (n, file) in self.manifest.files.iter().enumerate().skip(1) {
            let part = parts.iter().find(|(part, _)| *part == file.part);
            let Some((_, folder)) = part.filter(|_| is_plain(&file.path)) else {
                continue;
            };
            let root = looked.home.join(folder);
            if leads_out(&root, &file.path) {
                continue;
            }
            let target = root.join(&file.path);
            if hash_of(&target).is_none_or(|hash| hash != file.hash) {
                put(&staging.join(n.to_string()), &target, file.mode, true)?;
            }
        }
        fault::point("before_place");
        let mark = pin.files.pop().ok_or_else(gone)?;
        let sessions = looked.sessions();
        let target = looked.home.join(&mark.path);
        let staged = staging.join("0");
        let same = marks::read_on(&looked.home, &mark.path, None, |_| {})
            .is_ok_and(|here| (here.length, &here.hash) == (mark.length, &mark.hash));
        let mut aside = None;
        if !same {
            let keep = !held_elsewhere(&sessions, &mark, &staged, &self.known);
            aside = keep_aside(&target, looked.adapter.records(), keep)?;
            let mode = self.manifest.files.first().map_or(0o600, |file| file.mode);
            put(&staged, &target, mode, false)?;
        }
        fault::point("after_place");
        let here = marks::read_on(&looked.home, &mark.path, None, |_| {})?;
        if (here.length, &here.hash) != (mark.length, &mark.hash) {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "what was restored is not what was captured",
            ));
        }
        pin.files = vec![here];
        Ok(Restored { pin, aside })
    }
}

/// Where the session itself goes: where the CLI will look for it in this folder, under the name it had
/// if that is one the CLI would give.
fn place(
    adapter: &dyn Adapter,
    at: &SessionAt<'_>,
    recorded: &str,
    read: &dyn Fn(&str) -> Option<Vec<u8>>,
) -> Option<String> {
    let (folders, begins, ends) = match adapter.place(at) {
        Place::At(path) => return Some(path),
        Place::Find {
            folders,
            begins,
            ends,
        } => (folders, begins, ends),
    };
    let plain = Some(recorded).filter(|path| is_plain(path));
    let named = plain.and_then(|path| path.rsplit_once('/'));
    let named = named.filter(|(_, name)| {
        let long = name.len() >= begins.len() + ends.len();
        long && name.starts_with(&begins) && name.ends_with(&ends)
    });
    match (adapter.moving(at, read), named) {
        (Moving::Into(folder), Some((_, name))) => Some(format!("{folder}/{name}")),
        (Moving::Into(folder), None) => Some(format!("{folder}/{begins}restored{ends}")),
        (Moving::To(path), _) => Some(path),
        (Moving::Stays | Moving::Rewrite(_), Some((folder, _)))
            if folders.iter().any(|pattern| fits(folder, pattern)) =>
        {
            Some(recorded.to_owned())
        }
        (Moving::Stays | Moving::Rewrite(_), _) => adapter.copy_place(at),
    }
}

/// Is it one of the folders meant by one of which parts may be `*`?
fn fits(folder: &str, pattern: &str) -> bool {
    let (mut parts, mut meant) = (folder.split('/'), pattern.split('/'));
    loop {
        match (parts.next(), meant.next()) {
            (None, None) => return true,
            (Some(_), Some("*")) => {}
            (Some(part), Some(name)) if part == name => {}
            (Some(_) | None, Some(_) | None) => return false,
        }
    }
}

/// A path that stays where it is put.
fn is_plain(path: &str) -> bool {
    let name = |name: &str| !matches!(name, "" | "." | "..") && name.len() < 256;
    path.len() < 4096 && !path.contains('\0') && path.split('/').all(name)
}

/// Is there a link on the way?
fn leads_out(root: &Path, path: &str) -> bool {
    let mut at = root.to_path_buf();
    let is_link = |path: &Path| {
        let meta = fs_err::symlink_metadata(path);
        meta.is_ok_and(|meta| meta.file_type().is_symlink())
    };
    path.split('/').any(|name| {
        at.push(name);
        is_link(&at)
    })
}

fn hash_of(path: &Path) -> Option<String> {
    let mut hasher = blake3::Hasher::new();
    let mut file = fs_err::File::open(path).ok()?;
    io::copy(&mut file, &mut hasher).ok()?;
    Some(hasher.finalize().to_hex().to_string())
}

/// Is everything in what lies there also in what is put there, or in another snapshot of it?
fn held_elsewhere(
    sessions: &Sessions<'_>,
    mark: &FileMark,
    staged: &Path,
    known: &[(u64, String)],
) -> bool {
    let target = sessions.home.join(&mark.path);
    let begins = || -> io::Result<bool> {
        let mut here = fs_err::File::open(&target)?;
        let mut there = fs_err::File::open(staged)?.take(here.metadata()?.len());
        let (mut one, mut other) = (vec![0; 64 * 1024], vec![0; 64 * 1024]);
        loop {
            let got = here.read(&mut one)?;
            if got == 0 {
                return Ok(true);
            }
            if there.read_exact(&mut other[..got]).is_err() || one[..got] != other[..got] {
                return Ok(false);
            }
        }
    };
    let lines = matches!(sessions.adapter.records(), Records::Lines);
    if lines && begins().unwrap_or(false) {
        return true;
    }
    let logged = fs_err::metadata(beside_it(&target, "-wal")).is_ok_and(|log| log.len() > 0);
    let here = marks::read_on(sessions.home, &mark.path, None, |_| {});
    !logged && here.is_ok_and(|here| known.contains(&(here.length, here.hash)))
}

/// Makes room: what lies there is moved aside, with its log, or goes. Gives its new name.
fn keep_aside(target: &Path, records: Records, keep: bool) -> io::Result<Option<String>> {
    if fs_err::symlink_metadata(target).is_err() {
        return Ok(None);
    }
    let mut n = 0;
    let free = loop {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".aside-{n}"));
        let free = PathBuf::from(name);
        if fs_err::symlink_metadata(&free).is_err() {
            break free;
        }
        n += 1;
    };
    if let Records::Database { .. } = records {
        for ending in ["-wal", "-shm"] {
            let log = beside_it(target, ending);
            let moved = if keep && ending == "-wal" {
                fs_err::rename(log, beside_it(&free, ending))
            } else {
                fs_err::remove_file(log)
            };
            match moved {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    if !keep {
        return Ok(None);
    }
    fs_err::rename(target, &free)?;
    Ok(Some(free.display().to_string()))
}

/// Moves a file to its place, whole or not at all.
fn put(from: &Path, target: &Path, mode: u32, others_read: bool) -> io::Result<()> {
    let folder = target
        .parent()
        .ok_or_else(|| io::Error::other("it has no folder"))?;
    make_private(folder)?;
    let mut temp = target.as_os_str().to_owned();
    temp.push(".rejoin-tmp");
    let temp = PathBuf::from(temp);
    // On another disk it cannot be moved, only copied.
    if fs_err::rename(from, &temp).is_err() {
        fs_err::copy(from, &temp)?;
    }
    // Never wider than its owner; and never so that its owner cannot go on with it.
    let mode = 0o600 | (mode & if others_read { 0o755 } else { 0o700 });
    fs_err::set_permissions(&temp, std::fs::Permissions::from_mode(mode))?;
    fs_err::File::open(&temp)?.sync_all()?;
    fs_err::rename(&temp, target)?;
    fs_err::File::open(folder)?.sync_all()
}

/// A manifest's file, for whoever lists them.
pub fn describe(file: &ManifestFile) -> String {
    if file.part.is_empty() {
        return file.path.clone();
    }
    format!("{}/{}", file.part, file.path)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_plain_paths_stay_where_they_are_put() {
        for good in ["a", "a/b.jsonl", "subagents/agent-1.meta.json", "..a/b.."] {
            assert!(is_plain(good), "{good}");
        }
        let long = "x".repeat(256);
        for bad in ["", "/a", "a/", "a//b", "..", "a/../b", "./a", "a\0b", &long] {
            assert!(!is_plain(bad), "{bad:?}");
        }
    }

    #[test]
    fn patterns_mean_whole_names() {
        assert!(fits("sessions/2026/11/15", "sessions/*/*/*"));
        assert!(!fits("sessions/2026/11", "sessions/*/*/*"));
        assert!(!fits("sessions/2026/11/15/x", "sessions/*/*/*"));
        assert!(!fits("other/2026/11/15", "sessions/*/*/*"));
    }

    #[test]
    fn a_link_on_the_way_is_seen() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs_err::create_dir_all(root.join("a")).unwrap();
        fs_err::os::unix::fs::symlink("/tmp", root.join("out")).unwrap();
        assert!(!leads_out(&root, "a/b/c"));
        assert!(leads_out(&root, "out/b"));
        assert!(leads_out(&root, "out"));
    }

    #[test]
    fn what_is_put_is_whole_and_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (from, to) = (dir.path().join("from"), dir.path().join("x/y/to"));
        fs_err::write(&from, "bytes").unwrap();
        put(&from, &to, 0o777, false).unwrap();
        assert_eq!(fs_err::read(&to).unwrap(), b"bytes");
        let mode = fs_err::metadata(&to).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        let kept = keep_aside(&to, Records::Lines, true).unwrap().unwrap();
        assert_eq!(fs_err::read(kept).unwrap(), b"bytes");
        assert!(!to.exists());
    }
}

//! Restores a session from a snapshot: fetches and checks it beside its place first, then moves it.
//!
//! A manifest is not trusted: its paths are only hints. The places of the files are derived again
//! from the adapter's rules for the present folder.

mod destination;
mod on_demand;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Records, SessionAt};
use rejoin_core::{FileMark, Pin, PinId, PinState, SessionSource, SnapshotFact, TurnPlan};
use rejoin_hub::{fault, rfc3339};
use rejoin_store::{ChunkError, Manifest, ManifestFile, Snapshot, Unusable, Vault};

use crate::atomic_file::{keep_aside, put};
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::foreign_file;
use crate::fork::private;
use crate::inspect::Inspection;
use crate::marks::{self, Folded};
use crate::session::Sessions;
use crate::session::checked::Looked;
use crate::worker_thread::on_worker;

use destination::{hash_of, held_elsewhere, is_plain, logged, place};
pub use on_demand::{Now, Unwritten, written_to};

/// Folder for restored files, in the folder of the turn.
const STAGED: &str = "restored";
const REFUSED: &str = "there is a snapshot, but it would lead the turn elsewhere";
/// Number of recent snapshots that are searched for one of an unfinished turn.
const OPEN: i64 = 4;

/// Snapshot whose bytes were fetched and checked.
#[derive(Debug, Clone)]
pub struct Staged {
    pub(crate) snapshot: Snapshot,
    pub(crate) manifest: Manifest,
    /// Folder with its files, named by their number; None if they were only checked.
    folder: Option<PathBuf>,
    /// Length and hash of the session in its other snapshots.
    known: Vec<(u64, String)>,
}

/// Session that was restored.
pub(crate) struct Restored {
    /// Pin as confirmed in the snapshot, with its present place.
    pub(crate) pin: Pin,
    /// New name of a file that was in the way and was moved aside.
    pub(crate) aside: Option<String>,
}

enum Bad {
    Damaged,
    Unreachable(&'static str),
    Here(io::Error),
}

impl From<ChunkError> for Bad {
    fn from(lost: ChunkError) -> Self {
        match lost {
            ChunkError::Missing | ChunkError::Damaged(_) => Self::Damaged,
            ChunkError::WrongKey { .. } => {
                Self::Unreachable("there is a snapshot, sealed with a key that is not here")
            }
            ChunkError::Elsewhere { .. } => Self::Unreachable(
                "there is a snapshot, but it lies in another place than the one configured here",
            ),
            ChunkError::Unavailable(_) => {
                Self::Unreachable("there is a snapshot, but where it lies does not answer")
            }
            ChunkError::Io(error) => Self::Here(error),
        }
    }
}

impl Inspection {
    /// Fetches and checks the bytes of the newest complete snapshot: into `folder`, or without
    /// storing them. Replaces the fact about the snapshot.
    pub(crate) async fn check_snapshot(
        &mut self,
        vault: &Vault,
        folder: Option<&Path>,
    ) -> Result<()> {
        self.snapshot = SnapshotFact::None;
        let main = |manifest: Manifest| manifest.files.into_iter().next();
        // A snapshot of an unfinished turn will be removed.
        let staying = self.offers.iter().filter(|s| !s.open);
        let whole = staying.filter_map(|s| s.manifest().ok());
        let known: Vec<_> = whole
            .filter_map(main)
            .map(|file| (file.length, file.hash))
            .collect();
        for snapshot in std::mem::take(&mut self.offers) {
            let staging = folder.map(|folder| folder.join(STAGED));
            match stage(vault, self.adapter, &snapshot, staging.as_deref()).await {
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

impl Inspection {
    /// Returns the hash of the standing instructions that the planned session holds: for a snapshot
    /// its own, which may be older than the pin.
    pub(crate) fn instructions_of(&self, plan: &TurnPlan) -> Option<String> {
        let pinned = self.outlook.best().and_then(|c| c.stored.pin.as_ref());
        match (plan.session()?.way(), &self.staged) {
            (
                SessionSource::Snapshot,
                Some(Staged {
                    snapshot, manifest, ..
                }),
            ) => snapshot.pin(manifest, &PinState::Confirmed, 0).instructions,
            (
                SessionSource::Snapshot
                | SessionSource::InPlace
                | SessionSource::Live
                | SessionSource::Fork,
                _,
            ) => pinned?.instructions.clone(),
        }
    }

    /// Restores a session from the middle of a turn, with the content `mark`: not the confirmed
    /// state, but the one in which a question was deferred. Returns a description of the snapshot,
    /// or None if there is no matching one.
    pub(crate) async fn put_back_whole(
        &self,
        pin: PinId,
        mark: &FileMark,
        vault: Option<&Vault>,
        folder: &Path,
    ) -> Result<Option<String>> {
        let Some(vault) = vault else {
            return Ok(None);
        };
        let found = {
            let mut read = vault.store.read().await.map_err(rejoin_hub::Error::from)?;
            let found = read.snapshots().of_pin(pin, OPEN).await;
            found.map_err(rejoin_hub::Error::from)?
        };
        for snapshot in found.into_iter().filter(|s| s.open) {
            let Ok(manifest) = snapshot.manifest() else {
                continue;
            };
            let same = |file: &ManifestFile| (file.length, &file.hash) == (mark.length, &mark.hash);
            if !manifest.files.first().is_some_and(same) {
                continue;
            }
            let staging = folder.join(STAGED);
            match fetch(vault, Some(self.adapter), &manifest, Some(&staging)).await {
                Ok(()) => {}
                Err(Bad::Here(error)) => return Err(Error::io("restoring the session")(error)),
                Err(Bad::Damaged | Bad::Unreachable(_)) => continue,
            }
            let mut was = snapshot.pin(&manifest, &PinState::Confirmed, 0);
            was.files = vec![mark.clone()];
            let staged = Staged {
                snapshot,
                manifest,
                folder: Some(staging),
                known: vec![],
            };
            staged
                .put_in_place(self, was)
                .await
                .map_err(Error::io("restoring the session"))?;
            return Ok(Some(staged.told(false)));
        }
        Ok(None)
    }
}

/// Fetches every file of a snapshot and compares it with its recorded hash. Staged files need not
/// survive a crash: they are synced when they are put in place.
async fn stage(
    vault: &Vault,
    adapter: &'static dyn Adapter,
    snapshot: &Snapshot,
    folder: Option<&Path>,
) -> std::result::Result<Manifest, Bad> {
    let manifest = manifest_of(snapshot)?;
    // Content that an unfinished turn had added is not part of the conversation.
    let manifest = if snapshot.open {
        manifest.cut_back().ok_or(Bad::Damaged)?
    } else {
        manifest
    };
    fetch(vault, Some(adapter), &manifest, folder).await?;
    Ok(manifest)
}

fn manifest_of(snapshot: &Snapshot) -> std::result::Result<Manifest, Bad> {
    snapshot.manifest().map_err(|unusable| match unusable {
        Unusable::Newer => Bad::Unreachable("there is a snapshot, written by a newer rejoin"),
        Unusable::Damaged | Unusable::Expired => Bad::Damaged,
    })
}

/// Fetches every file of a snapshot. With an adapter, the session is not taken if its CLI would take
/// more from it than what was said.
async fn fetch(
    vault: &Vault,
    adapter: Option<&'static dyn Adapter>,
    manifest: &Manifest,
    folder: Option<&Path>,
) -> std::result::Result<(), Bad> {
    if let Some(folder) = folder {
        make_private(folder).map_err(Bad::Here)?;
    }
    let mut refused = None;
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
            match adapter.filter(|known| matches!(known.profile().records, Records::Lines)) {
                None => folded(vault, file, out).await?,
                Some(adapter) => {
                    let mut looked = Looked::new(adapter, out);
                    let hash = folded(vault, file, &mut looked).await?;
                    refused = refused.or(looked.finish());
                    hash
                }
            }
        } else {
            let mut out = Hashed(blake3::Hasher::new(), out);
            vault.fetch(file, &mut out).await?;
            out.0.finalize().to_hex().to_string()
        };
        if hash != file.hash {
            return Err(Bad::Damaged);
        }
    }
    if manifest
        .files
        .first()
        .is_none_or(|main| !main.part.is_empty())
    {
        return Err(Bad::Damaged);
    }
    match refused {
        None => Ok(()),
        Some(why) => {
            tracing::warn!(why, "A session of a snapshot is not continued");
            Err(Bad::Unreachable(REFUSED))
        }
    }
}

async fn folded(
    vault: &Vault,
    file: &ManifestFile,
    out: &mut (dyn Write + Send),
) -> std::result::Result<String, Bad> {
    let mut out = Folded::new(out);
    vault.fetch(file, &mut out).await?;
    Ok(out.finish())
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
    /// Describes the snapshot for the verdict line.
    pub(crate) fn told(&self, moved: bool) -> String {
        let at = rfc3339(self.snapshot.taken_at);
        let time = at.get(11..16).unwrap_or_default();
        let moved = if moved { ", folder moved" } else { "" };
        format!("from snapshot {time} by {}{moved}", self.snapshot.machine)
    }

    /// Returns the pin of the restored session in the present folder. It is written ahead before
    /// any file is put in place.
    pub(crate) fn pin(&self, inspection: &Inspection, now: &Pin, machine: &str) -> Result<Pin> {
        let was = self.manifest.files.first();
        let main = was.ok_or_else(|| Error::Internal("a snapshot without a session".into()))?;
        let at = SessionAt {
            folder: &inspection.folder.path,
            session: &now.session,
            pin: &now.id.to_string(),
        };
        let read = |file: &str| foreign_file::read_setting(inspection.home.join(file));
        let place = place(inspection.adapter, &at, &main.path, &read);
        let path = place.ok_or_else(|| Error::Internal("a session without a place".into()))?;
        let state = PinState::Confirmed;
        let pin = self.snapshot.pin(&self.manifest, &state, now.failures);
        Ok(Pin {
            folder: inspection.folder.clone(),
            machine: machine.to_owned(),
            home: inspection.home.display().to_string(),
            files: vec![FileMark {
                path,
                length: main.length,
                hash: main.hash.clone(),
                stat: (0, 0, 0, 0),
            }],
            ..pin
        })
    }

    /// Moves the files to where the CLI will look for them. The session itself comes last, so that
    /// it exists only when it is complete.
    pub(crate) async fn put_in_place(
        &self,
        inspection: &Inspection,
        pin: Pin,
    ) -> io::Result<Restored> {
        let (adapter, home) = (inspection.adapter, inspection.home.clone());
        let (staged, folder) = (self.clone(), inspection.folder.path.clone());
        let work = move || {
            let home = &home;
            staged.put_there(&Sessions { adapter, home }, &folder, pin)
        };
        let large = |file: &ManifestFile| file.length >= foreign_file::LARGE;
        if self.manifest.files.iter().any(large) {
            return on_worker(work).await;
        }
        work()
    }

    fn put_there(
        &self,
        sessions: &Sessions<'_>,
        folder: &str,
        mut pin: Pin,
    ) -> io::Result<Restored> {
        let Sessions { adapter, home } = *sessions;
        let gone = || io::Error::other("it was only looked at");
        let staging = self.folder.as_deref().ok_or_else(gone)?;
        let at = SessionAt {
            folder,
            session: &pin.session,
            pin: &pin.id.to_string(),
        };
        let parts = adapter.capabilities().side_folders;
        let parts = parts.map_or_else(Vec::new, |folders| folders.parts(&at));
        for (n, file) in self.manifest.files.iter().enumerate().skip(1) {
            let part = parts.iter().find(|(part, _)| *part == file.part);
            let Some((_, folder)) = part.filter(|_| is_plain(&file.path)) else {
                continue;
            };
            let Ok(target) = foreign_file::beneath(home, &format!("{folder}/{}", file.path)) else {
                continue;
            };
            if fs_err::symlink_metadata(&target).is_ok_and(|meta| meta.is_symlink()) {
                continue;
            }
            if hash_of(&target).is_none_or(|hash| hash != file.hash) {
                keep_aside(&target, Records::Lines, true)?;
                put(&staging.join(n.to_string()), &target, file.mode, true)?;
            }
        }
        fault::point("before_place");
        let mark = pin.files.pop().ok_or_else(gone)?;
        let target = foreign_file::beneath(home, &mark.path)?;
        let staged = staging.join("0");
        // Content in the log of a database is not in the file.
        let same = !logged(&target)
            && marks::read_on(home, &mark.path, None, |_| {})
                .is_ok_and(|here| (here.length, &here.hash) == (mark.length, &mark.hash));
        let mut aside = None;
        if !same {
            let keep = !held_elsewhere(sessions, &mark, &staged, &self.known);
            aside = keep_aside(&target, adapter.profile().records, keep)?;
            let mode = self.manifest.files.first().map_or(0o600, |file| file.mode);
            put(&staged, &target, mode, false)?;
        }
        fault::point("after_place");
        let here = marks::read_on(home, &mark.path, None, |_| {})?;
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

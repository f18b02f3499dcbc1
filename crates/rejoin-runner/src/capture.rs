//! Saves snapshots of confirmed sessions, so that they can be restored where they are missing. A
//! failure here never fails the turn: it is recorded, and the snapshot is tried again later.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rejoin_agents::{Adapter, Records, SessionAt};
use rejoin_core::{FileMark, Pin, PinId, SessionFact};
use rejoin_hub::{FAILED, PinEnd, STORED, Settled, fault, metrics};
use rejoin_store::{
    Blobs, CaptureMode, CapturedSession, ChunkList, ChunkRef, GRACE, Manifest, ManifestFile,
    Snapshot, Vault,
};

use crate::error::Result;
use crate::foreign_file;
use crate::marks;
use crate::session::Sessions;
use crate::turn::Runner;
use crate::worker_thread::on_worker;

/// Number of bytes up to which chunks are written in the transaction that ends the turn.
const WITH_THE_TURN: u64 = 1024 * 1024;
/// Time that an answer waits for its session to be saved; new bytes of a large session add to it.
const MAY_TAKE: Duration = Duration::from_secs(20);
/// Number of new bytes of a session that allow one more second.
const PER_SECOND: u64 = 20 * 1024 * 1024;
/// Largest number of files beside a session that are saved.
const MOST_FILES: usize = 10_000;
const OTHERS_MAY_TAKE: Duration = Duration::from_secs(3);
/// Number of other sessions that are tried again once the store answers.
const TRY_AGAIN: usize = 4;

impl Runner {
    /// Captures the session that a turn has confirmed.
    pub(crate) async fn capture(
        &self,
        adapter: &'static dyn Adapter,
        before: Option<&FileMark>,
        settled: &mut Settled,
    ) {
        let (Some(vault), PinEnd::Confirm(pin)) = (&self.hub.vault, &settled.pin) else {
            return;
        };
        let capture = Capture {
            vault,
            adapter,
            pin,
            before,
            now: self.hub.clock.now(),
            open: None,
        };
        let began = Instant::now();
        let captured = capture.bounded().await;
        let (result, added) = match &captured {
            Ok(captured) => (STORED, captured.added),
            Err(_) => (FAILED, 0),
        };
        metrics::captured(result, added, began.elapsed());
        match captured {
            Ok(captured) => {
                settled.saved = STORED.into();
                settled.snapshot = Some(captured);
            }
            Err(why) => {
                tracing::warn!(session = %pin.session, why, "the session could not be saved");
                settled.saved = FAILED.into();
                settled.record.notes.push(format!("not saved: {why}"));
                settled.unsaved = Some(why);
            }
        }
        fault::point("after_capture");
    }

    /// Saves a confirmed session now. The inner error is the reason if it could not be saved.
    pub async fn save(&self, pin: &Pin) -> Result<std::result::Result<(), String>> {
        self.save_since(pin, None).await
    }

    /// Saves a session like [`Self::save`]; `before` is the mark of the bytes that it was confirmed
    /// to continue.
    pub async fn save_since(
        &self,
        pin: &Pin,
        before: Option<&FileMark>,
    ) -> Result<std::result::Result<(), String>> {
        let name = pin.agent.as_str();
        let (Some(vault), Some(adapter)) = (&self.hub.vault, self.config.adapter(name)) else {
            return Ok(Err("snapshots are switched off".into()));
        };
        let capture = Capture {
            vault,
            adapter,
            pin,
            before,
            now: self.hub.clock.now(),
            open: None,
        };
        match capture.patient().await {
            Ok(captured) => Ok(self.hub.add_snapshot(pin, &captured).await?),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Tries to save the other unsaved sessions after one was saved. Bounded in time; failures are
    /// tried another time.
    pub(crate) async fn save_the_others(&self, saved: PinId) {
        drop(tokio::time::timeout(OTHERS_MAY_TAKE, self.try_the_others(saved)).await);
    }

    /// Saves a session that was confirmed before a turn without success and that could not be saved
    /// then.
    pub(crate) async fn save_again(&self, pin: PinId) {
        let saving = async {
            let unsaved = self.hub.unsaved_pins().await?;
            if !unsaved.contains(&pin) {
                return Ok(());
            }
            let stored = self.hub.stored_pin(pin).await?;
            if let Some(pin) = stored.and_then(|stored| stored.pin) {
                let _tried = self.save(&pin).await?;
            }
            Ok::<_, crate::error::Error>(())
        };
        drop(tokio::time::timeout(OTHERS_MAY_TAKE, saving).await);
    }

    async fn try_the_others(&self, saved: PinId) -> Result<()> {
        let others = self.hub.unsaved_pins().await?.into_iter();
        let others = others.filter(|pin| *pin != saved);
        for id in others.take(TRY_AGAIN) {
            let stored = self.hub.stored_pin(id).await?;
            let Some(pin) = stored.and_then(|stored| stored.pin) else {
                continue;
            };
            // A session on another machine can only be saved there.
            let here = pin.machine == self.hub.machine && Path::new(&pin.home).exists();
            if here {
                let _tried = self.save(&pin).await?;
            }
        }
        Ok(())
    }
}

pub(crate) struct Capture<'a> {
    pub(crate) vault: &'a Vault,
    pub(crate) adapter: &'static dyn Adapter,
    /// Pin as confirmed, with its mark.
    pub(crate) pin: &'a Pin,
    /// Mark of the bytes that the session was known to begin with when it was confirmed.
    pub(crate) before: Option<&'a FileMark>,
    pub(crate) now: i64,
    /// Present content of the session, if a turn is running on it, instead of the confirmed
    /// content.
    pub(crate) open: Option<OpenSession>,
}

/// Session in the middle of a turn.
pub(crate) struct OpenSession {
    pub(crate) file: PathBuf,
    pub(crate) mark: FileMark,
    /// Start of the turn: other files of the session are saved only if they are older. None means
    /// that all of them are saved, confirmed or not.
    pub(crate) begun: Option<SystemTime>,
}

impl Capture<'_> {
    fn mark(&self) -> Option<&FileMark> {
        let open = self.open.as_ref().map(|open| &open.mark);
        open.or(self.pin.files.first())
    }

    pub(crate) async fn bounded(&self) -> std::result::Result<CapturedSession, String> {
        let length = self.mark().map_or(0, |mark| mark.length);
        let new = length.saturating_sub(self.before.map_or(0, |mark| mark.length));
        let may_take = MAY_TAKE + Duration::from_secs(new / PER_SECOND);
        self.within(may_take).await
    }

    /// Captures for a caller that wants nothing else: waits until the result would be too late to
    /// be added.
    async fn patient(&self) -> std::result::Result<CapturedSession, String> {
        self.within(Duration::from_micros(GRACE.unsigned_abs() / 2))
            .await
    }

    async fn within(&self, time: Duration) -> std::result::Result<CapturedSession, String> {
        let done = tokio::time::timeout(time, self.take()).await;
        done.unwrap_or_else(|_| Err("the store of snapshots takes too long".into()))
    }

    async fn take(&self) -> std::result::Result<CapturedSession, String> {
        let mark = self.mark().ok_or("it has no file")?;
        let base = self.base().await?;
        let mut captured = CapturedSession {
            key: self.vault.sealer.key_id(),
            ..CapturedSession::default()
        };
        let main = self.session(mark, base.as_ref(), &mut captured).await?;
        captured.files.push(main);
        fault::point("after_chunks");
        let at = SessionAt {
            folder: &self.pin.folder.path,
            session: &self.pin.session,
            pin: &self.pin.id.to_string(),
        };
        let parts = self.adapter.capabilities().side_folders;
        let parts = parts.map_or_else(Vec::new, |folders| folders.parts(&at));
        for (part, folder) in parts {
            self.part(part, &folder, base.as_ref(), &mut captured)
                .await?;
        }
        if self.open.is_some() {
            return Ok(captured);
        }
        self.log(&captured);
        let sessions = Sessions {
            adapter: self.adapter,
            home: Path::new(&self.pin.home),
        };
        match sessions.compare_async(mark).await {
            SessionFact::Untouched | SessionFact::Verified => Ok(captured),
            SessionFact::Missing
            | SessionFact::Dirty
            | SessionFact::Damaged
            | SessionFact::Changed
            | SessionFact::Unknown => Err("it was changed meanwhile".into()),
        }
    }

    fn log(&self, captured: &CapturedSession) {
        let (session, files) = (&self.pin.session, &captured.files);
        tracing::info!(%session, files = files.len(), "Found session files");
        for file in files {
            let (path, bytes) = (&file.path, file.length);
            tracing::info!(%session, path, bytes, "Session file stats");
        }
    }

    /// Returns the newest snapshot of the session that a new one can build on.
    async fn base(&self) -> std::result::Result<Option<(Snapshot, Manifest)>, String> {
        let read = self.vault.store.read().await;
        let mut read = read.map_err(|e| e.to_string())?;
        // A snapshot of a running turn is removed when the turn ends.
        let newest = read.snapshots().of_pin(self.pin.id, 4).await;
        let mut newest = newest.map_err(|e| e.to_string())?.into_iter();
        let newest = newest.find(|snapshot| !snapshot.open);
        let whole = newest.and_then(|s| s.manifest().ok().map(|manifest| (s, manifest)));
        drop(read);
        let key = self.vault.sealer.key_id();
        let Some((snapshot, manifest)) = whole.filter(|(_, manifest)| manifest.key == key) else {
            return Ok(None);
        };
        // Chunks that were lost since, or that are in another place, must be written again.
        let files = manifest.files.iter();
        let chunks: Vec<ChunkRef> = files.flat_map(|file| file.chunks.0.clone()).collect();
        let holds = self.vault.holds(&chunks).await;
        let holds = holds.map_err(|e| e.to_string())?;
        Ok(holds.then_some((snapshot, manifest)))
    }

    async fn session(
        &self,
        mark: &FileMark,
        base: Option<&(Snapshot, Manifest)>,
        captured: &mut CapturedSession,
    ) -> std::result::Result<ManifestFile, String> {
        let path = match &self.open {
            Some(open) => open.file.clone(),
            None => Path::new(&self.pin.home).join(&mark.path),
        };
        let unreadable = |e: std::io::Error| format!("it cannot be read: {e}");
        let lines = matches!(self.adapter.profile().records, Records::Lines);
        let was = base.and_then(|(_, manifest)| manifest.files.first());
        let known = match was.filter(|was| lines && was.length <= mark.length) {
            Some(was) if self.begins_with(was, &path).await => all_but_the_last(&was.chunks),
            Some(_) | None => vec![],
        };
        captured.based_on = base.filter(|_| !known.is_empty()).map(|(s, _)| s.id);
        let from = ChunkList(known.clone()).length();
        let open = move || {
            let mut file = foreign_file::open(&path)?;
            let mode = file.metadata()?.mode() & 0o777;
            file.seek(SeekFrom::Start(from))?;
            Ok((file, mode))
        };
        let large = mark.length >= foreign_file::LARGE;
        let opened = if large { on_worker(open).await } else { open() };
        let (file, mode) = opened.map_err(unreadable)?;
        let rest = mark.length.saturating_sub(from);
        let here = matches!(self.vault.blobs, Blobs::Database);
        let keeping = if lines && rest <= WITH_THE_TURN && here {
            CaptureMode::Later
        } else {
            CaptureMode::of(rest)
        };
        let file = file.take(rest);
        let kept = self.vault.keep(file, known, captured, keeping, self.now);
        let chunks = kept.await.map_err(|e| e.to_string())?;
        if chunks.length() != mark.length {
            return Err("it was changed meanwhile".into());
        }
        Ok(ManifestFile {
            part: String::new(),
            path: mark.path.clone(),
            length: mark.length,
            mode,
            hash: mark.hash.clone(),
            chunks,
        })
    }

    /// Returns true if the file begins with the content of that snapshot. If it was confirmed to
    /// continue exactly that content, it is not read again.
    async fn begins_with(&self, was: &ManifestFile, path: &Path) -> bool {
        let same = |before: &FileMark| (before.length, &before.hash) == (was.length, &was.hash);
        let mark = FileMark {
            path: String::new(),
            length: was.length,
            hash: was.hash.clone(),
            stat: (0, 0, 0, 0),
        };
        if self.before.is_some_and(same) {
            return true;
        }
        let (path, large) = (path.to_owned(), mark.length >= foreign_file::LARGE);
        let read = move || marks::begins_with(&path, &mark).unwrap_or(false);
        if large { on_worker(read).await } else { read() }
    }

    /// Saves the other files of the session. A file that did not change since the last snapshot is
    /// not read.
    async fn part(
        &self,
        part: &'static str,
        folder: &str,
        base: Option<&(Snapshot, Manifest)>,
        captured: &mut CapturedSession,
    ) -> std::result::Result<(), String> {
        let home = Path::new(&self.pin.home);
        let root = home.join(folder);
        // Files that are reached through a link are not the session's.
        if foreign_file::beneath(home, &format!("{folder}/x")).is_err() {
            return Ok(());
        }
        let mut found = vec![];
        files_in(&root, "", &mut found);
        for path in found {
            let whole = root.join(&path);
            let Ok(meta) = fs_err::symlink_metadata(&whole) else {
                continue;
            };
            let late = |open: &OpenSession| {
                let begun = open.begun;
                begun.is_some_and(|begun| meta.modified().is_ok_and(|at| at >= begun))
            };
            if self.open.as_ref().is_some_and(late) {
                continue;
            }
            let known = base.and_then(|(snapshot, manifest)| {
                let it = |f: &&ManifestFile| f.part == part && f.path == path;
                let file = manifest.files.iter().find(it)?;
                let before = snapshot.taken_at / 1_000_000 - 2;
                let old = meta.mtime() < before && meta.ctime() < before;
                (old && file.length == meta.len()).then(|| file.clone())
            });
            if let (Some(known), Some((snapshot, _))) = (known, base) {
                captured.based_on = Some(snapshot.id);
                captured.files.push(known);
                continue;
            }
            // A file that disappears meanwhile was not needed.
            let open = move || foreign_file::open(&whole);
            let large = meta.len() >= foreign_file::LARGE;
            let Ok(file) = (if large { on_worker(open).await } else { open() }) else {
                continue;
            };
            let hasher = Arc::new(Mutex::new(blake3::Hasher::new()));
            let hashed = Hashed {
                file,
                hasher: Arc::clone(&hasher),
            };
            let keeping = CaptureMode::of(meta.len());
            let kept = self.vault.keep(hashed, vec![], captured, keeping, self.now);
            let chunks = kept.await.map_err(|e| e.to_string())?;
            captured.files.push(ManifestFile {
                part: part.into(),
                path,
                length: chunks.length(),
                mode: meta.mode() & 0o777,
                hash: locked(&hasher).finalize().to_hex().to_string(),
                chunks,
            });
        }
        Ok(())
    }
}

/// Returns all chunks but the last one, which ends where the file ended and not at a boundary that
/// its content defines.
fn all_but_the_last(chunks: &ChunkList) -> Vec<ChunkRef> {
    let all = chunks.0.split_last().map(|(_, before)| before);
    all.unwrap_or_default().to_vec()
}

/// Collects the regular files below a folder as paths relative to it. Does not follow links.
fn files_in(root: &Path, beneath: &str, found: &mut Vec<String>) {
    let mut names: Vec<_> = fs_err::read_dir(root.join(beneath))
        .into_iter()
        .flatten()
        .flatten()
        .collect();
    names.sort_by_key(fs_err::DirEntry::file_name);
    for entry in names {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let path = match beneath {
            "" => name,
            above => format!("{above}/{name}"),
        };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && path.split('/').count() < 16 => {
                files_in(root, &path, found);
            }
            Ok(kind) if kind.is_file() && found.len() < MOST_FILES => found.push(path),
            Ok(_) | Err(_) => {}
        }
    }
}

struct Hashed {
    file: fs_err::File,
    hasher: Arc<Mutex<blake3::Hasher>>,
}

fn locked(hasher: &Mutex<blake3::Hasher>) -> MutexGuard<'_, blake3::Hasher> {
    hasher.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::io::Read for Hashed {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let got = self.file.read(buffer)?;
        locked(&self.hasher).update(&buffer[..got]);
        Ok(got)
    }
}

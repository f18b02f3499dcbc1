//! Keeps what a confirmed session is, so that it can be put back where it is not. What goes wrong
//! here never spoils the turn: it is said, and tried again later.

use std::io::{Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rejoin_agents::{Adapter, Records, SessionAt};
use rejoin_core::{FileMark, Pin, PinId, SessionFact};
use rejoin_hub::{FAILED, PinEnd, STORED, Settled, fault, figures};
use rejoin_store::{
    Blobs, Captured, ChunkList, ChunkRef, GRACE, Keeping, Manifest, ManifestFile, Snapshot, Vault,
};

use crate::apart::apart;
use crate::error::Result;
use crate::foreign_file;
use crate::marks;
use crate::session::Sessions;
use crate::turn::Runner;

/// Up to so many bytes are written in the transaction that ends the turn.
const WITH_THE_TURN: u64 = 1024 * 1024;
/// An answer does not wait longer for its session to be saved, but for what is new of a large one.
const MAY_TAKE: Duration = Duration::from_secs(20);
/// New bytes of a session that may take a second more.
const PER_SECOND: u64 = 20 * 1024 * 1024;
/// Files beside a session that are kept, at most.
const MOST_FILES: usize = 10_000;
const OTHERS_MAY_TAKE: Duration = Duration::from_secs(3);
/// How many other sessions are tried again once the store answers.
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
            lying: None,
        };
        let began = Instant::now();
        let captured = capture.bounded().await;
        let (result, added) = match &captured {
            Ok(captured) => (STORED, captured.added),
            Err(_) => (FAILED, 0),
        };
        figures::captured(result, added, began.elapsed());
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

    /// Saves a confirmed session now. The text says why it could not be.
    pub async fn save(&self, pin: &Pin) -> Result<std::result::Result<(), String>> {
        self.save_since(pin, None).await
    }

    /// The same of one that was confirmed as the continuation of these bytes.
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
            lying: None,
        };
        match capture.patient().await {
            Ok(captured) => Ok(self.hub.add_snapshot(pin, &captured).await?),
            Err(why) => Ok(Err(why)),
        }
    }

    /// Once one session was saved the others are tried again; nobody waits long for that, and what
    /// goes wrong is tried another time.
    pub(crate) async fn save_the_others(&self, saved: PinId) {
        drop(tokio::time::timeout(OTHERS_MAY_TAKE, self.try_the_others(saved)).await);
    }

    /// What was confirmed before a turn that came to nothing, and could not be saved then.
    pub(crate) async fn save_again(&self, pin: PinId) {
        let saving = async {
            let unsaved = self.hub.store.read().await?.unsaved().await?;
            if !unsaved.iter().any(|(_, id, _)| *id == pin) {
                return Ok(());
            }
            let stored = self.hub.store.read().await?.pin(pin).await?;
            if let Some(pin) = stored.and_then(|stored| stored.pin) {
                let _tried = self.save(&pin).await?;
            }
            Ok::<_, crate::error::Error>(())
        };
        drop(tokio::time::timeout(OTHERS_MAY_TAKE, saving).await);
    }

    async fn try_the_others(&self, saved: PinId) -> Result<()> {
        let unsaved = {
            let mut read = self.hub.store.read().await?;
            read.unsaved().await?
        };
        let others = unsaved.into_iter().filter(|(_, pin, _)| *pin != saved);
        for (_, id, _) in others.take(TRY_AGAIN) {
            let stored = self.hub.store.read().await?.pin(id).await?;
            let Some(pin) = stored.and_then(|stored| stored.pin) else {
                continue;
            };
            // What is not on this machine is for another to save.
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
    /// As confirmed, with its mark.
    pub(crate) pin: &'a Pin,
    /// What its bytes were known to begin with when it was confirmed.
    pub(crate) before: Option<&'a FileMark>,
    pub(crate) now: i64,
    /// A turn is at it: not what was confirmed, but what lies there.
    pub(crate) lying: Option<Lying>,
}

/// A session in the middle of a turn.
pub(crate) struct Lying {
    pub(crate) file: PathBuf,
    pub(crate) mark: FileMark,
    /// What else belongs to it was confirmed with it if it was there before this; none: all of it is
    /// wanted, confirmed or not.
    pub(crate) begun: Option<SystemTime>,
}

impl Capture<'_> {
    fn mark(&self) -> Option<&FileMark> {
        let lying = self.lying.as_ref().map(|lying| &lying.mark);
        lying.or(self.pin.files.first())
    }

    pub(crate) async fn bounded(&self) -> std::result::Result<Captured, String> {
        let length = self.mark().map_or(0, |mark| mark.length);
        let new = length.saturating_sub(self.before.map_or(0, |mark| mark.length));
        let may_take = MAY_TAKE + Duration::from_secs(new / PER_SECOND);
        self.within(may_take).await
    }

    /// For whoever asks for nothing else: until it would come too late to be added.
    async fn patient(&self) -> std::result::Result<Captured, String> {
        self.within(Duration::from_micros(GRACE.unsigned_abs() / 2))
            .await
    }

    async fn within(&self, time: Duration) -> std::result::Result<Captured, String> {
        let done = tokio::time::timeout(time, self.take()).await;
        done.unwrap_or_else(|_| Err("the store of snapshots takes too long".into()))
    }

    async fn take(&self) -> std::result::Result<Captured, String> {
        let mark = self.mark().ok_or("it has no file")?;
        let base = self.base().await?;
        let mut captured = Captured {
            key: self.vault.sealer.key_id(),
            ..Captured::default()
        };
        let main = self.session(mark, base.as_ref(), &mut captured).await?;
        captured.files.push(main);
        fault::point("after_chunks");
        let at = SessionAt {
            folder: &self.pin.folder.path,
            session: &self.pin.session,
            pin: &self.pin.id.to_string(),
        };
        for (part, folder) in self.adapter.parts(&at) {
            self.part(part, &folder, base.as_ref(), &mut captured)
                .await?;
        }
        if self.lying.is_some() {
            return Ok(captured);
        }
        self.log(&captured);
        let sessions = Sessions {
            adapter: self.adapter,
            home: Path::new(&self.pin.home),
        };
        match sessions.compare_apart(mark).await {
            SessionFact::Untouched | SessionFact::Verified => Ok(captured),
            SessionFact::Missing
            | SessionFact::Dirty
            | SessionFact::Damaged
            | SessionFact::Changed
            | SessionFact::Unknown => Err("it was changed meanwhile".into()),
        }
    }

    fn log(&self, captured: &Captured) {
        let (session, files) = (&self.pin.session, &captured.files);
        tracing::info!(%session, files = files.len(), "Found session files");
        for file in files {
            let (path, bytes) = (&file.path, file.length);
            tracing::info!(%session, path, bytes, "Session file stats");
        }
    }

    /// The newest snapshot of it that can be built upon.
    async fn base(&self) -> std::result::Result<Option<(Snapshot, Manifest)>, String> {
        let read = self.vault.store.read().await;
        let mut read = read.map_err(|e| e.to_string())?;
        // One of a turn that runs goes when that ends.
        let newest = read.snapshots_of_pin(self.pin.id, 4).await;
        let mut newest = newest.map_err(|e| e.to_string())?.into_iter();
        let newest = newest.find(|snapshot| !snapshot.open);
        let whole = newest.and_then(|s| s.manifest().ok().map(|manifest| (s, manifest)));
        drop(read);
        let key = self.vault.sealer.key_id();
        let Some((snapshot, manifest)) = whole.filter(|(_, manifest)| manifest.key == key) else {
            return Ok(None);
        };
        // What was lost since, or lies in another place, is to be written again.
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
        captured: &mut Captured,
    ) -> std::result::Result<ManifestFile, String> {
        let path = match &self.lying {
            Some(lying) => lying.file.clone(),
            None => Path::new(&self.pin.home).join(&mark.path),
        };
        let unreadable = |e: std::io::Error| format!("it cannot be read: {e}");
        let lines = matches!(self.adapter.records(), Records::Lines);
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
        let opened = if large { apart(open).await } else { open() };
        let (file, mode) = opened.map_err(unreadable)?;
        let rest = mark.length.saturating_sub(from);
        let here = matches!(self.vault.blobs, Blobs::Database);
        let keeping = if lines && rest <= WITH_THE_TURN && here {
            Keeping::Later
        } else {
            Keeping::of(rest)
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

    /// Does the file begin with what that snapshot holds? If it was confirmed as the continuation of
    /// just that, nobody needs to read it again.
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
        if large { apart(read).await } else { read() }
    }

    /// What else belongs to it. A file that was not touched since the last snapshot is not read.
    async fn part(
        &self,
        part: &'static str,
        folder: &str,
        base: Option<&(Snapshot, Manifest)>,
        captured: &mut Captured,
    ) -> std::result::Result<(), String> {
        let home = Path::new(&self.pin.home);
        let root = home.join(folder);
        // Files of others are not taken for the session's.
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
            let late = |lying: &Lying| {
                let begun = lying.begun;
                begun.is_some_and(|begun| meta.modified().is_ok_and(|at| at >= begun))
            };
            if self.lying.as_ref().is_some_and(late) {
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
            // One that goes away meanwhile was not needed.
            let open = move || foreign_file::open(&whole);
            let large = meta.len() >= foreign_file::LARGE;
            let Ok(file) = (if large { apart(open).await } else { open() }) else {
                continue;
            };
            let hasher = Arc::new(Mutex::new(blake3::Hasher::new()));
            let hashed = Hashed {
                file,
                hasher: Arc::clone(&hasher),
            };
            let keeping = Keeping::of(meta.len());
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

/// The last one ends where the file ended, not where its content says.
fn all_but_the_last(chunks: &ChunkList) -> Vec<ChunkRef> {
    let all = chunks.0.split_last().map(|(_, before)| before);
    all.unwrap_or_default().to_vec()
}

/// Regular files beneath a folder, by their path there. Links are not followed.
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

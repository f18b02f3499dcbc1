//! Sweeps on the real store: whatever happened before and meanwhile, every manifest that is there
//! can be fetched. (B-12, B-25)

mod walk;

use std::collections::BTreeMap;

use rejoin_core::{AgentName, ConversationId, PermissionMode, Pin, Scope, SnapshotId};
use rejoin_store::{
    Blobs, BlobsConfig, CaptureMode, CapturedSession, ChunkList, GRACE, ManifestFile,
    NewConversation, NewSnapshot, Retention, Sealer, Snapshot, Store, SweepPlan, SweepResult,
    Vault,
};

use super::engines;
use super::pins::pin;

const HOUR: i64 = 60 * 60 * 1_000_000;
const DAY: i64 = 24 * HOUR;
const NEVER: Retention = Retention {
    latest: None,
    older: None,
};
const OLDER_AT_ONCE: Retention = Retention {
    latest: None,
    older: Some(0),
};

/// A store, its chunks in it or in a folder beside it, and a clock.
struct Place {
    engine: engines::Place,
    folder: tempfile::TempDir,
    vault: Vault,
    now: i64,
    /// What was captured, by what holds it.
    held: BTreeMap<SnapshotId, Vec<u8>>,
    captures: u64,
}

impl Place {
    /// Every engine that is here, with chunks in it and beside it.
    async fn all() -> Vec<Self> {
        let mut all = vec![];
        for in_folder in [false, true] {
            all.push(Self::new(engines::Place::file(), in_folder).await);
            if let Some(server) = engines::Place::server() {
                all.push(Self::new(server, in_folder).await);
            }
        }
        all
    }

    async fn new(engine: engines::Place, in_folder: bool) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = engine.open().await;
        let url = if in_folder {
            format!("file:{}/objects", folder.path().display())
        } else {
            "db:".to_owned()
        };
        let blobs = Blobs::open(&BlobsConfig {
            url,
            ..BlobsConfig::default()
        });
        let vault = Vault::new(store, blobs.unwrap(), Sealer::plain());
        // Files carry the time of this machine, so the clock begins there.
        let clock = fs_err::metadata(folder.path()).unwrap().modified().unwrap();
        let clock = clock.duration_since(std::time::UNIX_EPOCH).unwrap();
        Self {
            engine,
            folder,
            vault,
            now: clock.as_micros() as i64,
            held: BTreeMap::new(),
            captures: 0,
        }
    }

    async fn conversation(&self, n: u8) -> ConversationId {
        let c = ConversationId::from_parts(1, [n; 10]);
        let mut tx = self.vault.store.begin().await.unwrap();
        if tx.conversations().get(c).await.unwrap().is_none() {
            let agent = AgentName::new("demo").unwrap();
            let new = NewConversation {
                namespace: String::new(),
                id: c,
                key: None,
                title: "t".into(),
                agent,
                workdir: "/w".into(),
                permission: PermissionMode::Edit,
                scope: Scope::Full,
                parent: None,
                now: self.now,
            };
            tx.conversations().add(&new).await.unwrap();
            tx.commit().await.unwrap();
        }
        c
    }

    /// Chunks are kept; nothing names them yet.
    async fn capture(&self, text: &[u8]) -> CapturedSession {
        let mut captured = CapturedSession::default();
        let from = std::io::Cursor::new(text.to_vec());
        let keep = self
            .vault
            .keep(from, vec![], &mut captured, CaptureMode::Here, self.now);
        let chunks = keep.await.unwrap();
        captured.files.push(file(text.len(), chunks));
        captured
    }

    /// A manifest names them; none: too late.
    async fn add(
        &mut self,
        n: u8,
        captured: &CapturedSession,
        text: Vec<u8>,
    ) -> Option<SnapshotId> {
        let conversation = self.conversation(n).await;
        self.captures += 1;
        let id = SnapshotId::from_parts(self.captures, [n; 10]);
        let pin = Pin {
            id: rejoin_core::PinId::from_parts(7, [n; 10]),
            ..pin(n)
        };
        let new = NewSnapshot {
            id,
            conversation,
            pin: &pin,
            captured,
            open: false,
            now: self.now,
        };
        let mut tx = self.vault.store.begin().await.unwrap();
        let added = tx.snapshots().add(&new).await.unwrap();
        tx.commit().await.unwrap();
        if added {
            self.held.insert(id, text);
        }
        added.then_some(id)
    }

    async fn save(&mut self, n: u8, text: &[u8]) -> SnapshotId {
        let captured = self.capture(text).await;
        self.add(n, &captured, text.to_vec()).await.unwrap()
    }

    async fn plan(&self, keep: Retention) -> SweepPlan {
        self.vault
            .plan_sweep(keep, self.now, &|_| {})
            .await
            .unwrap()
    }

    async fn sweep(&self, keep: Retention) -> SweepResult {
        let plan = self.plan(keep).await;
        self.vault.sweep(&plan, &|_| {}).await.unwrap()
    }

    /// Everything that is there can be fetched; gives how many those are.
    async fn verify(&self) -> usize {
        let mut there = 0;
        for (id, text) in &self.held {
            let snapshot = self
                .vault
                .store
                .read()
                .await
                .unwrap()
                .snapshots()
                .get(*id)
                .await;
            let Some(snapshot) = snapshot.unwrap().filter(|s| s.expired.is_none()) else {
                continue;
            };
            there += 1;
            let manifest = snapshot.manifest().unwrap();
            let mut fetched = vec![];
            let done = self.vault.fetch(&manifest.files[0], &mut fetched).await;
            done.unwrap_or_else(|lost| panic!("{id:?}: {lost}"));
            assert!(fetched == *text, "{id:?} has other bytes");
        }
        there
    }

    fn objects(&self) -> usize {
        count(&self.folder.path().join("objects"))
    }
}

fn count(folder: &std::path::Path) -> usize {
    let entries = fs_err::read_dir(folder).into_iter().flatten().flatten();
    let entry = |path: std::path::PathBuf| if path.is_dir() { count(&path) } else { 1 };
    entries.map(|e| entry(e.path())).sum()
}

pub(super) fn file(length: usize, chunks: ChunkList) -> ManifestFile {
    ManifestFile {
        part: String::new(),
        path: "p".into(),
        length: length as u64,
        mode: 0o600,
        hash: String::new(),
        chunks,
    }
}

/// A snapshot of them, in a conversation of its own.
pub(super) async fn add(store: &Store, captured: &CapturedSession, now: i64) -> Snapshot {
    try_add(store, captured, now).await.unwrap()
}

/// None: its chunks are not there.
pub(super) async fn try_add(
    store: &Store,
    captured: &CapturedSession,
    now: i64,
) -> Option<Snapshot> {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(1);
    let n = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let conversation = ConversationId::from_parts(n, [n as u8; 10]);
    let id = SnapshotId::from_parts(n, [9; 10]);
    let mut tx = store.begin().await.unwrap();
    let new = NewConversation {
        namespace: String::new(),
        id: conversation,
        key: None,
        title: "t".into(),
        agent: AgentName::new("demo").unwrap(),
        workdir: "/w".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now,
    };
    tx.conversations().add(&new).await.unwrap();
    let new = NewSnapshot {
        id,
        conversation,
        pin: &pin(9),
        captured,
        open: false,
        now,
    };
    tx.snapshots().add(&new).await.unwrap();
    let added = tx.snapshots().get(id).await.unwrap();
    tx.commit().await.unwrap();
    added
}

/// Some chunks' worth, shared with what begins alike.
pub(super) fn text(n: u8, length: usize) -> Vec<u8> {
    let mut bytes = vec![0; length];
    blake3::Hasher::new()
        .update(&[n])
        .finalize_xof()
        .fill(&mut bytes);
    bytes
}

#[tokio::test]
async fn what_only_the_expired_named_goes_and_a_tombstone_stays() {
    for mut place in Place::all().await {
        let old = place.save(1, &text(1, 100_000)).await;
        let new = place.save(1, &text(2, 100_000)).await;
        place.now += 2 * HOUR;
        let plan = place.plan(OLDER_AT_ONCE).await;
        assert_eq!(
            plan.expiring.iter().map(|e| e.id).collect::<Vec<_>>(),
            [old]
        );
        assert!(plan.chunks > 0 && plan.bytes > 90_000 && plan.staying == 1);
        assert_eq!(place.verify().await, 2, "a plan changes nothing");

        let swept = place.sweep(OLDER_AT_ONCE).await;
        assert_eq!(
            (swept.expired, swept.chunks, swept.bytes),
            (1, plan.chunks, plan.bytes)
        );
        assert_eq!((swept.left, swept.strays), (0, 0));
        assert_eq!(place.verify().await, 1);
        let mut read = place.vault.store.read().await.unwrap();
        let gone = read.snapshots().get(old).await.unwrap().unwrap();
        let (at, why) = gone.expired.unwrap();
        assert_eq!(at, place.now);
        assert!(why.contains("keep_older"), "{why}");
        assert!(
            read.snapshots()
                .get(new)
                .await
                .unwrap()
                .unwrap()
                .expired
                .is_none()
        );
        drop(read);
        let again = place.plan(OLDER_AT_ONCE).await;
        assert_eq!(
            (again.expiring.len(), again.chunks, again.waiting),
            (0, 0, 0)
        );
    }
}

/// Concurrent writers: what was kept a moment ago stays, whether or not anything names it yet.
#[tokio::test]
async fn what_a_capture_relies_on_stays() {
    for mut place in Place::all().await {
        let shared = text(1, 100_000);
        place.save(1, &shared).await;
        place.save(1, &text(2, 50_000)).await;
        place.now += 2 * DAY;
        // It finds its chunks there already; then what named them is given up.
        let captured = place.capture(&shared).await;
        let swept = place.sweep(OLDER_AT_ONCE).await;
        assert_eq!((swept.expired, swept.chunks), (1, 0));
        place.now += GRACE / 4;
        place.sweep(OLDER_AT_ONCE).await;
        place.add(2, &captured, shared).await.unwrap();
        place.now += 2 * DAY;
        place.sweep(OLDER_AT_ONCE).await;
        assert_eq!(place.verify().await, 2);
    }
}

/// A machine that slept between keeping chunks and naming them finds them swept: it must begin anew.
#[tokio::test]
async fn a_capture_that_took_too_long_is_not_added() {
    let mut place = Place::new(engines::Place::file(), true).await;
    let captured = place.capture(&text(1, 50_000)).await;
    place.now += 2 * GRACE;
    assert!(place.sweep(NEVER).await.chunks > 0);
    assert_eq!(place.add(1, &captured, vec![]).await, None);
}

#[tokio::test]
async fn a_capture_builds_only_upon_what_is_there() {
    let mut place = Place::new(engines::Place::file(), false).await;
    let base = place.save(1, &text(1, 100_000)).await;
    place.save(1, &text(2, 10_000)).await;
    let chunks = {
        let mut read = place.vault.store.read().await.unwrap();
        let base = read.snapshots().get(base).await.unwrap().unwrap();
        base.manifest().unwrap().files[0].chunks.clone()
    };
    let captured = CapturedSession {
        files: vec![file(100_000, chunks)],
        based_on: Some(base),
        ..CapturedSession::default()
    };
    place.now += 2 * DAY;
    assert!(place.add(1, &captured, text(1, 100_000)).await.is_some());
    place.sweep(OLDER_AT_ONCE).await;
    assert_eq!(
        place.verify().await,
        1,
        "the base is gone, what was built upon it is not"
    );
    assert_eq!(place.add(1, &captured, vec![]).await, None);
}

#[tokio::test]
async fn what_the_user_keeps_stays_and_what_is_deleted_goes() {
    for mut place in Place::all().await {
        let kept = place.save(1, &text(1, 60_000)).await;
        place.save(1, &text(2, 60_000)).await;
        place.save(2, &text(3, 60_000)).await;
        let mut tx = place.vault.store.begin().await.unwrap();
        assert!(tx.snapshots().keep(kept, true).await.unwrap());
        tx.conversations()
            .delete(ConversationId::from_parts(1, [2; 10]), 1)
            .await
            .unwrap();
        tx.commit().await.unwrap();
        place.now += 400 * DAY;
        let all_at_once = Retention {
            latest: Some(0),
            older: Some(0),
        };
        let swept = place.sweep(all_at_once).await;
        assert_eq!(swept.expired, 1);
        assert_eq!(place.verify().await, 1);
        if place.objects() > 0 {
            let mut read = place.vault.store.read().await.unwrap();
            let kept = read.snapshots().get(kept).await.unwrap().unwrap();
            assert_eq!(
                place.objects(),
                kept.manifest().unwrap().files[0].chunks.0.len()
            );
        }
    }
}

/// What is named while a sweep reads the manifests is seen before anything goes.
#[tokio::test]
async fn a_snapshot_that_is_added_meanwhile_is_seen() {
    for mut place in Place::all().await {
        let text = text(1, 50_000);
        let mut captured = place.capture(&text).await;
        // As from somebody who looks at no clock.
        captured.began = None;
        place.now += 2 * DAY;
        let plan = place.plan(NEVER).await;
        assert!(plan.chunks > 0);
        let conversation = place.conversation(1).await;
        let (engine, now) = (&place.engine, place.now);
        let id = SnapshotId::from_parts(1, [1; 10]);
        let add = || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let mut tx = engine.open().await.begin().await.unwrap();
                let (pin, captured) = (&pin(1), &captured);
                let open = false;
                let new = NewSnapshot {
                    id,
                    conversation,
                    pin,
                    captured,
                    open,
                    now,
                };
                assert!(tx.snapshots().add(&new).await.unwrap());
                tx.commit().await.unwrap();
            });
        };
        let added = std::sync::Once::new();
        let watch = |_| added.call_once(|| std::thread::scope(|s| s.spawn(add).join().unwrap()));
        let swept = place.vault.sweep(&plan, &watch).await.unwrap();
        assert!(added.is_completed());
        assert_eq!(swept.chunks, 0);
        place.held.insert(id, text);
        assert_eq!(place.verify().await, 1);
    }
}

/// The user may want one kept that was planned to go.
#[tokio::test]
async fn what_is_pinned_meanwhile_stays() {
    for mut place in Place::all().await {
        let old = place.save(1, &text(1, 50_000)).await;
        place.save(1, &text(2, 50_000)).await;
        place.now += 2 * DAY;
        let plan = place.plan(OLDER_AT_ONCE).await;
        assert_eq!(plan.expiring.len(), 1);
        let mut tx = place.vault.store.begin().await.unwrap();
        assert!(tx.snapshots().keep(old, true).await.unwrap());
        tx.commit().await.unwrap();
        let swept = place.vault.sweep(&plan, &|_| {}).await.unwrap();
        assert_eq!((swept.expired, swept.chunks), (0, 0));
        assert_eq!(place.verify().await, 2);
    }
}

/// Killed after the rows went, or before any came: the next sweep finds the objects.
#[tokio::test]
async fn objects_without_a_row_go_once_nobody_can_be_writing_them() {
    let mut place = Place::new(engines::Place::file(), true).await;
    place.save(1, &text(1, 30_000)).await;
    let objects = place.vault.objects().await.unwrap().unwrap();
    let there = place.objects();
    let stray = rejoin_store::ObjectName::new([1; 32]).unwrap();
    objects.put(&stray, vec![1, 2, 3]).await.unwrap();
    // Another copy of a chunk that has a row.
    let listed = objects.list(None).await.unwrap();
    let one = listed.iter().find(|l| l.name != stray).unwrap().name;
    let twin = rejoin_store::ObjectName::new(one.chunk).unwrap();
    objects.put(&twin, vec![1, 2, 3]).await.unwrap();
    let root = place.folder.path().join("objects");
    let store = fs_err::read_dir(&root).unwrap().next().unwrap().unwrap();
    let unfinished = store.path().join("chunks/01/.unfinished-0123");
    fs_err::write(&unfinished, "x").unwrap();

    assert_eq!(
        place.sweep(NEVER).await.strays,
        0,
        "somebody may be writing them"
    );
    assert_eq!(place.objects(), there + 3);
    place.now += 2 * HOUR;
    assert_eq!(place.sweep(NEVER).await.strays, 2);
    assert_eq!(place.objects(), there);
    assert_eq!(place.verify().await, 1);
}

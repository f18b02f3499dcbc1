//! Chunks lie where they were written: a store that is configured otherwise says so, writes them
//! again, and leaves alone what is not its own. (B-12, B-24, B-25)

use std::io;
use std::path::Path;

use rejoin_store::{
    Blobs, BlobsConfig, CaptureMode, CapturedSession, CheckedChunks, ChunkError, ChunkList, GRACE,
    Retention, Sealer, SnapshotFlaw, Store, Vault, VerifyDepth,
};

use super::engines::Place;
use super::sweep::{add, file, text};

const NEVER: Retention = Retention {
    latest: None,
    older: None,
};

fn vault(store: &Store, url: &str) -> Vault {
    let blobs = Blobs::open(&BlobsConfig {
        url: url.into(),
        ..BlobsConfig::default()
    });
    Vault::new(store.clone(), blobs.unwrap(), Sealer::plain())
}

fn folder(at: &Path) -> String {
    format!("file:{}", at.display())
}

fn now() -> i64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_micros() as i64
}

async fn keep(vault: &Vault, text: &[u8], captured: &mut CapturedSession) -> ChunkList {
    let from = std::io::Cursor::new(text.to_vec());
    let kept = vault.keep(from, vec![], captured, CaptureMode::Here, now());
    kept.await.unwrap()
}

async fn fetch(vault: &Vault, text: &[u8], chunks: &ChunkList) -> Result<(), ChunkError> {
    let mut got = vec![];
    let file = file(text.len(), chunks.clone());
    vault.fetch(&file, &mut got).await?;
    assert!(got == text);
    Ok(())
}

async fn stores_that_share_a_folder_never_meet(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let ours = vault(&place.open().await, &folder(dir.path()));
    let other = Place::file();
    let theirs = vault(&other.open().await, &folder(dir.path()));
    let text = text(1, 50_000);
    let chunks = keep(&theirs, &text, &mut CapturedSession::default()).await;
    let later = now() + 3 * GRACE;
    let plan = ours.plan_sweep(NEVER, later, &|_| {}).await.unwrap();
    assert_eq!(plan.strays.len(), 0);
    ours.sweep(&plan, &|_| {}).await.unwrap();
    fetch(&theirs, &text, &chunks).await.unwrap();
}

async fn another_place_is_said_and_written_anew(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let store = place.open().await;
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let first = vault(&store, &folder(&one));
    let text = text(1, 100_000);
    let mut captured = CapturedSession::default();
    let chunks = keep(&first, &text, &mut captured).await;
    captured.files.push(file(text.len(), chunks.clone()));
    let snapshot = add(&store, &captured, now()).await;
    assert!(first.holds(&chunks.0).await.unwrap());
    for url in [folder(&two), "db:".to_owned()] {
        let other = vault(&store, &url);
        assert!(!other.holds(&chunks.0).await.unwrap(), "{url}");
        let lost = fetch(&other, &text, &chunks).await.unwrap_err();
        assert!(
            matches!(lost, ChunkError::Elsewhere { .. }),
            "{url}: {lost}"
        );
        assert!(!lost.for_good());
        for depth in [VerifyDepth::Present, VerifyDepth::Data] {
            let mut checked = CheckedChunks::default();
            let flaws = other.verify(&snapshot, depth, &mut checked, &|_| {}).await;
            assert!(
                matches!(&flaws.unwrap()[..], [SnapshotFlaw::Elsewhere(_)]),
                "{url}"
            );
        }
        // What lies out of reach is not ours to forget.
        let later = now() + 3 * GRACE;
        let plan = other.plan_sweep(NEVER, later, &|_| {}).await.unwrap();
        other.sweep(&plan, &|_| {}).await.unwrap();
        let mut again = CapturedSession::default();
        assert_eq!(keep(&other, &text, &mut again).await, chunks);
        assert!(again.added > 90_000, "{url}");
        assert!(other.holds(&chunks.0).await.unwrap(), "{url}");
        fetch(&other, &text, &chunks).await.unwrap();
    }
    fetch(&first, &text, &chunks).await.unwrap();
}

/// Moved as a whole: nothing is lost, whatever it is called now.
async fn a_place_that_was_moved_is_found(place: Place) {
    let dir = tempfile::tempdir().unwrap();
    let store = place.open().await;
    let (one, two) = (dir.path().join("one"), dir.path().join("two"));
    let text = text(1, 50_000);
    let chunks = keep(
        &vault(&store, &folder(&one)),
        &text,
        &mut CapturedSession::default(),
    )
    .await;
    fs_err::rename(&one, &two).unwrap();
    let moved = vault(&store, &folder(&two));
    fetch(&moved, &text, &chunks).await.unwrap();
    let later = now() + 3 * GRACE;
    let plan = moved.plan_sweep(NEVER, later, &|_| {}).await.unwrap();
    assert_eq!(plan.strays.len(), 0);
}

async fn what_is_gone_is_written_again(place: Place) {
    for depth in [VerifyDepth::Present, VerifyDepth::Data] {
        let dir = tempfile::tempdir().unwrap();
        let store = place.open().await;
        let (root, aside) = (dir.path().join("objects"), dir.path().join("aside"));
        let vault = vault(&store, &folder(&root));
        let text = text(depth as u8, 100_000);
        let mut captured = CapturedSession::default();
        let chunks = keep(&vault, &text, &mut captured).await;
        captured.files.push(file(text.len(), chunks.clone()));
        let snapshot = add(&store, &captured, now()).await;
        fs_err::rename(&root, &aside).unwrap();
        let check = async || {
            let mut checked = CheckedChunks::default();
            let flaws = vault.verify(&snapshot, depth, &mut checked, &|_| {}).await;
            flaws.unwrap().len()
        };
        for _ in 0..2 {
            assert_eq!(check().await, chunks.0.len());
            assert!(!vault.holds(&chunks.0).await.unwrap());
        }
        // It was only away: what was missed is found, and is nobody's stray.
        fs_err::rename(&aside, &root).unwrap();
        assert_eq!(check().await, 0);
        let later = now() + 3 * GRACE;
        let plan = vault.plan_sweep(NEVER, later, &|_| {}).await.unwrap();
        assert_eq!((plan.strays.len(), plan.chunks), (0, 0));

        fs_err::remove_dir_all(&root).unwrap();
        let mut again = CapturedSession::default();
        keep(&vault, &text, &mut again).await;
        assert!(again.added > 90_000);
        assert_eq!(check().await, 0);
        fetch(&vault, &text, &chunks).await.unwrap();
    }
}

/// Whatever a clock said to whoever swept: a manifest never names what has no row.
async fn a_snapshot_without_its_chunks_is_not_added(place: Place) {
    let store = place.open().await;
    let vault = vault(&store, "db:");
    let mut captured = CapturedSession::default();
    let chunks = keep(&vault, &text(1, 50_000), &mut captured).await;
    captured.files.push(file(50_000, chunks));
    let ahead = now() + 3 * GRACE;
    let plan = vault.plan_sweep(NEVER, ahead, &|_| {}).await.unwrap();
    assert!(vault.sweep(&plan, &|_| {}).await.unwrap().chunks > 0);
    assert!(
        super::sweep::try_add(&store, &captured, now())
            .await
            .is_none()
    );
}

/// Writes to the store whenever it gets bytes.
struct Busy<'a>(&'a Store);

impl io::Write for Busy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let write = || {
            let mut runtime = tokio::runtime::Builder::new_current_thread();
            runtime.enable_all().build().unwrap().block_on(async {
                let begun = self.0.begin();
                let patience = std::time::Duration::from_secs(10);
                let tx = tokio::time::timeout(patience, begun).await.unwrap();
                tx.unwrap().commit().await.unwrap();
            });
        };
        std::thread::scope(|s| s.spawn(write).join())
            .map_err(|_| io::Error::other("the writer is held"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn who_fetches_does_not_hold_the_writer() {
    let place = Place::file();
    let store = place.open().await;
    let vault = vault(&store, "db:");
    let chunks = keep(&vault, &text(1, 100_000), &mut CapturedSession::default()).await;
    let fetched = vault.fetch(&file(100_000, chunks), &mut Busy(&store)).await;
    fetched.unwrap();
}

on_both_engines!(
    stores_that_share_a_folder_never_meet,
    another_place_is_said_and_written_anew,
    a_place_that_was_moved_is_found,
    what_is_gone_is_written_again,
    a_snapshot_without_its_chunks_is_not_added,
);

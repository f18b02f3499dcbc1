//! Sessions of any size go through an archive unchanged, and never through the memory as a whole.

use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use rejoin_core::{
    ConversationId, PermissionMode, Pin, Scope, ScopeValue, SeenPrefix, SnapshotId, TurnId,
};
use rejoin_store::{
    Blobs, CaptureMode, CapturedSession, Generation, Header, ImportParams, ManifestFile,
    NewConversation, NewSnapshot, Sealer, SnapshotSelection, Store, Vault, check,
};

use super::pins;

/// Bytes that nothing can be saved on, always the same.
struct Noise {
    from: blake3::OutputReader,
    left: u64,
}

impl Noise {
    fn of(length: u64) -> Self {
        Self {
            from: blake3::Hasher::new().finalize_xof(),
            left: length,
        }
    }
}

impl Read for Noise {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let now = to
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        self.from.fill(&mut to[..now]);
        self.left -= now as u64;
        Ok(now)
    }
}

/// Compares what is written into it with the noise.
struct Same(Noise);

impl Write for Same {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; bytes.len()];
        self.0.read_exact(&mut expected)?;
        assert_eq!(bytes, expected);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

const C: u64 = 1;

/// As the session is captured here: it marks no file.
fn pin() -> Pin {
    Pin {
        seen: SeenPrefix {
            summarised: 0,
            value: ScopeValue([1; 32]),
            ..pins::pin(2).seen
        },
        files: vec![],
        cursor: None,
        ..pins::pin(2)
    }
}

async fn vault(at: &Path, sealer: Sealer) -> Vault {
    let store = Store::open_sqlite(at).await.unwrap();
    Vault::new(store, Blobs::Database, sealer)
}

/// A conversation whose session is so long.
async fn with_session(vault: &Vault, length: u64) -> Header {
    let conversation = ConversationId::from_parts(C, [1; 10]);
    let pin = pin();
    let mut captured = CapturedSession {
        key: vault.sealer.key_id(),
        ..CapturedSession::default()
    };
    let noise = Noise::of(length);
    let kept = vault.keep(noise, vec![], &mut captured, CaptureMode::Apart, 1);
    let chunks = kept.await.unwrap();
    captured.files.push(ManifestFile {
        part: String::new(),
        path: "sessions/s.jsonl".into(),
        length,
        mode: 0o600,
        hash: "whole".into(),
        chunks,
    });
    let mut tx = vault.store.begin().await.unwrap();
    let new = NewConversation {
        namespace: String::new(),
        id: conversation,
        key: None,
        title: "t".into(),
        agent: pin.agent.clone(),
        workdir: "/".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    };
    tx.conversations().add(&new).await.unwrap();
    let turn = TurnId::from_parts(1, [1; 10]);
    tx.pins()
        .open_new(pin.id, conversation, &pin.agent, &pin.session, turn, 1)
        .await
        .unwrap();
    assert!(tx.pins().confirm(&pin, 1).await.unwrap());
    let snapshot = NewSnapshot {
        id: SnapshotId::from_parts(9, [9; 10]),
        conversation,
        pin: &pin,
        captured: &captured,
        open: false,
        now: 1,
    };
    assert!(tx.snapshots().add(&snapshot).await.unwrap());
    tx.commit().await.unwrap();
    Header {
        conversation,
        rejoin: "test".into(),
        machine: "m".into(),
        made_at: 1,
        generation: Generation::default(),
    }
}

async fn goes_through(length: u64) {
    let dir = tempfile::tempdir().unwrap();
    let sealed = Sealer::with_keys(&[5; 32], &[]);
    let from = vault(&dir.path().join("from.db"), sealed).await;
    let header = with_session(&from, length).await;
    let file = dir.path().join("archive");
    let mut to = BufWriter::new(std::fs::File::create(&file).unwrap());
    let exported = from
        .export(&header, SnapshotSelection::All, &mut to, |_| {})
        .await;
    let exported = exported.unwrap();
    to.flush().unwrap();
    assert_eq!(
        (exported.totals.snapshots, exported.totals.bytes),
        (1, length)
    );
    from.store.close().await;
    std::fs::remove_file(dir.path().join("from.db")).unwrap();

    let open = || BufReader::new(std::fs::File::open(&file).unwrap());
    let contents = check(open(), 0).unwrap();
    assert_eq!(contents.totals, exported.totals);
    let into = vault(&dir.path().join("into.db"), Sealer::plain()).await;
    let arrival = ImportParams {
        namespace: String::new(),
        over: None,
        copy: None,
        key: None,
        workdir: "/".into(),
        permission: PermissionMode::Edit,
        end: contents.end,
        now: 2,
        reached: |_| {},
    };
    into.import(open(), &arrival).await.unwrap();
    let mut read = into.store.read().await.unwrap();
    let snapshot = read
        .snapshots()
        .of(header.conversation)
        .await
        .unwrap()
        .remove(0);
    drop(read);
    let manifest = snapshot.manifest().unwrap();
    assert_eq!(manifest.key, None);
    let mut same = Same(Noise::of(length));
    into.fetch(&manifest.files[0], &mut same).await.unwrap();
    assert_eq!(same.0.left, 0);
}

#[tokio::test]
async fn sessions_of_all_sizes() {
    for length in [0, 1, 100_000, 12 << 20] {
        goes_through(length).await;
    }
}

#[tokio::test]
#[ignore = "only with --long"]
async fn a_gibibyte_in_128_mebibytes() {
    goes_through(1 << 30).await;
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let most = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    let kib: u64 = most.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 128 * 1024, "{most}");
}

//! A snapshot of a turn that runs: what was confirmed before it can be had of it, to the byte.

use rejoin_core::{ConversationId, FileMark, Pin, SnapshotId};
use rejoin_store::{Blobs, CaptureMode, CapturedSession, NewSnapshot, Sealer, Snapshot, Vault};

use super::engines::Place;
use super::pins::pin;
use super::sweep::{add, file, text};

on_both_engines!(cut_back_to_any_byte);

const LENGTH: usize = 300_000;

async fn captured(vault: &Vault) -> CapturedSession {
    let mut captured = CapturedSession::default();
    let all = text(1, LENGTH);
    let from = std::io::Cursor::new(all.clone());
    let keep = vault.keep(from, vec![], &mut captured, CaptureMode::Here, 1);
    let chunks = keep.await.unwrap();
    assert!(chunks.0.len() > 1);
    captured.files.push(file(LENGTH, chunks));
    captured
}

/// Of a session of which so many bytes were confirmed.
async fn open(vault: &Vault, c: ConversationId, n: u64, confirmed: u64) -> Snapshot {
    let mark = FileMark {
        path: "p".into(),
        length: confirmed,
        hash: "as confirmed".into(),
        stat: (0, 0, 0, 0),
    };
    let pin = Pin {
        files: vec![mark],
        ..pin(9)
    };
    let id = SnapshotId::from_parts(1000 + n, [8; 10]);
    let captured = captured(vault).await;
    let mut tx = vault.store.begin().await.unwrap();
    tx.snapshots().forget_open(pin.id, true).await.unwrap();
    let new = NewSnapshot {
        id,
        conversation: c,
        pin: &pin,
        captured: &captured,
        open: true,
        now: 1,
    };
    assert!(tx.snapshots().add(&new).await.unwrap());
    let added = tx.snapshots().get(id).await.unwrap();
    tx.commit().await.unwrap();
    added.unwrap()
}

async fn cut_back_to_any_byte(place: Place) {
    let vault = Vault::new(place.open().await, Blobs::Database, Sealer::plain());
    let c = add(&vault.store, &captured(&vault).await, 1)
        .await
        .conversation;
    let all = text(1, LENGTH);
    let manifest = open(&vault, c, 0, 0).await.manifest().unwrap();
    let first = u64::from(manifest.files[0].chunks.0[0].length);
    let lengths = [0, 1, first - 1, first, first + 1, LENGTH as u64];
    for (n, length) in (1..).zip(lengths) {
        let snapshot = open(&vault, c, n, length).await;
        assert!(snapshot.open);
        let back = snapshot.manifest().unwrap().cut_back().unwrap();
        let file = &back.files[0];
        assert_eq!((file.length, file.hash.as_str()), (length, "as confirmed"));
        let mut fetched = vec![];
        vault.fetch(file, &mut fetched).await.unwrap();
        assert!(fetched == all[..length as usize], "{length}");
    }
    let more = open(&vault, c, 99, LENGTH as u64 + 1).await;
    assert_eq!(more.manifest().unwrap().cut_back(), None);
    // Each replaced the one before; a confirmed one of the same history replaces the last.
    let mut tx = vault.store.begin().await.unwrap();
    tx.snapshots().forget_open(pin(9).id, false).await.unwrap();
    tx.commit().await.unwrap();
    let mut read = vault.store.read().await.unwrap();
    let left = read.snapshots().of(c).await.unwrap();
    assert_eq!(left.len(), 1);
    assert!(!left[0].open);
}

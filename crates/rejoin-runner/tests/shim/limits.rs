//! The limits that the shim keeps by itself.

use rejoin_runner::shim::{Spec, Why};

use crate::turn::{Turn, sh};

#[test]
fn wall() {
    let mut turn = Turn::start(&Spec {
        wall_ms: Some(300),
        ..sh("while :; do echo x; done")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (Why::Wall, Some(2)));
}

#[test]
fn idle() {
    let script =
        "for i in 1 2 3 4 5 6; do echo $i; sleep 0.3; echo $i >&2; sleep 0.3; done; exec sleep 60";
    let mut turn = Turn::start(&Spec {
        idle_ms: Some(1500),
        ..sh(script)
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (Why::Idle, Some(2)));
    assert!(
        turn.file("err").ends_with("6\n"),
        "ended before it was idle"
    );
}

#[test]
fn spool_full() {
    let mut turn = Turn::start(&Spec {
        spool_bytes: 100_000,
        ..sh("exec yes")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (Why::SpoolFull, Some(2)));
    assert!(turn.file("out").len() > 100_000);
}

#[test]
fn disk_full() {
    let mut turn = Turn::start(&Spec {
        min_free_bytes: u64::MAX,
        ..sh("exec sleep 60")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (Why::DiskFull, Some(2)));
}

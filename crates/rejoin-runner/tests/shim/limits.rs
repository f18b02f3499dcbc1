//! The limits that the shim keeps by itself.

use rejoin_hub::Clock;
use rejoin_runner::shim::{Order, Spec, StopReason};
use rejoin_runner::shim_link::ShimLink;

use crate::turn::{Turn, sh};

#[test]
fn wall() {
    let mut turn = Turn::start(&Spec {
        wall_ms: Some(300),
        ..sh("while :; do echo x; done")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (StopReason::Wall, Some(2)));
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
    assert_eq!((end.why, end.signal), (StopReason::Idle, Some(2)));
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
    assert_eq!((end.why, end.signal), (StopReason::SpoolFull, Some(2)));
    assert!(turn.file("out").len() > 100_000);
}

#[test]
fn disk_full() {
    let mut turn = Turn::start(&Spec {
        min_free_bytes: u64::MAX,
        ..sh("exec sleep 60")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (StopReason::DiskFull, Some(2)));
}

/// In so many milliseconds, on the boot clock.
fn from_now(ms: u64) -> u64 {
    Clock.since_boot().as_millis() as u64 + ms
}

/// Whoever began it never came back.
#[test]
fn a_lease_that_nobody_renews() {
    let mut turn = Turn::start(&Spec {
        lease_ms: Some(from_now(300)),
        ..sh("exec sleep 60")
    });
    let end = turn.end();
    assert_eq!((end.why, end.signal), (StopReason::LeaseRanOut, Some(2)));
}

/// Renewed, it goes on past the first deadline; then it is not renewed any more.
#[tokio::test]
async fn a_lease_is_renewed_by_an_order() {
    let mut turn = Turn::start(&Spec {
        lease_ms: Some(from_now(60_000)),
        ..sh("echo begun; exec sleep 60")
    });
    turn.until_out("begun");
    let mut link = ShimLink::connect(&turn.folder).await.unwrap().unwrap();
    for until_ms in [from_now(120_000), from_now(60_000)] {
        link.order(Order::Lease { until_ms }).await.unwrap();
    }
    link.order(Order::Ping).await.unwrap();
    let until_ms = from_now(0);
    link.order(Order::Lease { until_ms }).await.unwrap();
    assert_eq!(turn.end().why, StopReason::LeaseRanOut);
}

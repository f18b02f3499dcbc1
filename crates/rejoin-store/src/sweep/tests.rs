//! Tests of the choice of expiring snapshots. Tests with chunks are in `tests/suite/sweep.rs`.

use super::*;

const DAY: i64 = 24 * 60 * 60 * 1_000_000;
const NOW: i64 = 1000 * DAY;

/// A snapshot of session `pin`, that many days old.
fn snapshot(n: u8, pin: u8, days: i64) -> Living {
    Living {
        id: SnapshotId::from_parts(u64::from(n), [n; 10]),
        conversation: ConversationId::from_parts(1, [1; 10]),
        pin: PinId::from_parts(1, [pin; 10]),
        agent: AgentName::new("demo").unwrap(),
        open: false,
        kept: false,
        length: 1,
        taken_at: NOW - days * DAY,
    }
}

fn over(living: &[Living], latest: Option<i64>, older: Option<i64>) -> Vec<u8> {
    let days = |days: Option<i64>| days.map(|days| days * DAY);
    let keep = Retention {
        latest: days(latest),
        older: days(older),
    };
    let over = expiring(living.to_vec(), keep, NOW);
    over.iter().map(|e| e.id.uuid().as_bytes()[15]).collect()
}

#[test]
fn the_newest_of_each_session_and_the_others_have_their_own_time() {
    let all = [
        snapshot(9, 1, 5),
        snapshot(8, 2, 40),
        snapshot(7, 1, 50),
        snapshot(6, 2, 60),
        snapshot(5, 1, 70),
    ];
    assert_eq!(over(&all, None, None), [0; 0]);
    assert_eq!(over(&all, None, Some(30)), [7, 6, 5]);
    assert_eq!(over(&all, None, Some(55)), [6, 5]);
    assert_eq!(over(&all, Some(30), Some(65)), [8, 5]);
    assert_eq!(over(&all, Some(0), Some(0)), [9, 8, 7, 6, 5]);
    assert_eq!(over(&all, Some(0), None), [9, 8]);
}

#[test]
fn what_the_user_wants_kept_stays() {
    let mut all = [snapshot(9, 1, 5), snapshot(8, 1, 40), snapshot(7, 1, 50)];
    all[2].kept = true;
    assert_eq!(over(&all, Some(0), Some(0)), [9, 8]);
}

/// A snapshot of a running turn is no reason to expire the last confirmed one.
#[test]
fn an_open_one_stands_beside_the_newest_confirmed_one() {
    let mut all = [
        snapshot(9, 1, 1),
        snapshot(8, 1, 2),
        snapshot(7, 1, 3),
        snapshot(6, 1, 4),
    ];
    all[0].open = true;
    all[2].open = true;
    assert_eq!(over(&all, None, Some(0)), [7, 6]);
}

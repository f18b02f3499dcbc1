//! A schedule under every clock and at every end of a daemon.

use std::collections::BTreeMap;

use rejoin_core::{AgentName, Scope, TurnId};
use rejoin_store::{Store, StoredOccurrence};

use super::*;
use crate::accept::{Incoming, Target};
use crate::clock::Clock;
use crate::request::{TurnFlags, TurnRequest};

const EVERY: i64 = 900 * 1_000_000;
const CYCLES: u64 = 400;

fn hub(store: Store) -> Hub {
    Hub {
        namespace: "".into(),
        store,
        clock: Clock,
        machine: "m".into(),
        vault: None,
        ceiling: None,
    }
}

fn schedule() -> Schedule {
    Schedule {
        name: "health".into(),
        rhythm: Rhythm::every(EVERY).unwrap(),
        timezone: "UTC".into(),
        tier: None,
        climb: false,
        prompt: "check".into(),
        workdir: None,
        key: Some("health".into()),
        overlap: Overlap::Skip,
    }
}

fn message(due: DueOccurrence) -> Incoming {
    Incoming {
        turn: None,
        target: Target::Key("health".into()),
        text: "check".into(),
        agent: None,
        default_agent: AgentName::new("demo").unwrap(),
        here: "/".into(),
        title: None,
        scope: Scope::Full,
        flags: TurnFlags::default(),
        request: TurnRequest::default(),
        client_key: None,
        if_busy: IfBusy::Fail,
        queue_limit: None,
        confirmed: true,
        answers: None,
        occurrence: Some(due),
    }
}

async fn recorded(hub: &Hub) -> Vec<StoredOccurrence> {
    let mut read = hub.store.read().await.unwrap();
    let key = hub.schedule_key("health");
    let all = read.schedules().occurrences(key, i64::MAX, 100_000).await;
    all.unwrap()
}

/// Kills, refusals, overlaps, and clocks that jump both ways: each occurrence is recorded once, and
/// none begins two turns.
#[tokio::test]
async fn each_occurrence_is_recorded_once_under_any_clock() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(&dir.path().join("s.db")).await.unwrap();
    let (hub, schedule) = (hub(store), schedule());
    hub.begin_schedule(&schedule).await.unwrap();
    let since = hub.clock.now();
    let (mut now, mut up_since) = (since, since);
    let (mut earliest, mut latest) = (since, since);
    let mut dice: u64 = 20_261_119;
    let mut roll = |n: u64| {
        dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (dice >> 33) % n
    };
    let mut ran: BTreeMap<i64, TurnId> = BTreeMap::new();
    let mut running: Option<Box<crate::claim::Claimed>> = None;
    for _ in 0..CYCLES {
        now += match roll(12) {
            0 => -(EVERY * roll(20).cast_signed()),
            1 => EVERY * roll(100).cast_signed(),
            _ => EVERY / 4 * roll(8).cast_signed(),
        };
        (earliest, latest) = (earliest.min(now), latest.max(now));
        if roll(6) == 0 {
            up_since = now;
        }
        if roll(2) == 0
            && let Some(claimed) = running.take()
        {
            hub.cancel_unrun(&claimed).await.unwrap();
        }
        let due = hub
            .due_occurrence(&schedule, (up_since.min(now), now))
            .await;
        let Some(due) = due.unwrap() else { continue };
        assert!(due.at <= now && now - due.at < EVERY, "{due:?} at {now}");
        match roll(5) {
            // The daemon is killed before it accepts the message.
            0 => {}
            1 => {
                let why = SkipReason::Refused("no agent".into());
                hub.skip_occurrence(&due, &why).await.unwrap();
            }
            _ => {
                let accepted = hub.accept(&message(due.clone()), Some("me")).await.unwrap();
                assert_eq!(ran.insert(due.at, accepted.turn), None, "{due:?} ran twice");
                running = accepted.claimed;
                // Another daemon, a moment later.
                let again = hub.accept(&message(due), Some("me")).await;
                assert!(matches!(
                    again,
                    Err(Error::Busy | Error::OccurrenceRecorded(_))
                ));
            }
        }
    }
    now = latest.max(now) + 2 * EVERY;
    let last = hub.due_occurrence(&schedule, (now, now)).await.unwrap();
    if let Some(due) = last {
        let why = SkipReason::Refused("the end".into());
        hub.skip_occurrence(&due, &why).await.unwrap();
    }
    let all = recorded(&hub).await;
    let times: Vec<i64> = all.iter().rev().map(|it| it.at).collect();
    let first = earliest.div_euclid(EVERY) + 1;
    let expected: Vec<i64> = (first..=now.div_euclid(EVERY)).map(|n| n * EVERY).collect();
    assert_eq!(times, expected, "each once, none left out");
    let began: BTreeMap<i64, TurnId> = all
        .iter()
        .filter_map(|it| Some((it.at, it.turn?)))
        .collect();
    assert_eq!(began, ran);
    let statuses = |status: &str| all.iter().filter(|it| it.status == status).count();
    let (started, missed, skipped) = (statuses(STARTED), statuses(MISSED), statuses(SKIPPED));
    assert!(
        started > 20 && missed > 20 && skipped > 20,
        "{started} {missed} {skipped}"
    );
    assert_eq!(started + missed + skipped, all.len());
}

/// A paused schedule skips its occurrences, a changed rule begins the schedule anew.
#[tokio::test]
async fn a_paused_schedule_skips_and_a_changed_one_begins_anew() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open_sqlite(&dir.path().join("s.db")).await.unwrap();
    let (hub, mut schedule) = (hub(store), schedule());
    hub.pause_schedule(&schedule, true).await.unwrap();
    let now = hub.clock.now();
    let due = |schedule: Schedule, now: i64| {
        let hub = hub.clone();
        async move { hub.due_occurrence(&schedule, (now, now)).await.unwrap() }
    };
    assert_eq!(due(schedule.clone(), now + 3 * EVERY).await, None);
    let all = recorded(&hub).await;
    assert_eq!(all.len(), 3);
    assert!(
        all.iter()
            .all(|it| it.status == SKIPPED && it.reason.is_some())
    );
    hub.pause_schedule(&schedule, false).await.unwrap();
    let next = due(schedule.clone(), now + 4 * EVERY).await.unwrap();
    assert_eq!(next.at.rem_euclid(EVERY), 0);
    schedule.rhythm = Rhythm::every(EVERY * 2).unwrap();
    hub.begin_schedule(&schedule).await.unwrap();
    assert_eq!(due(schedule, hub.clock.now()).await, None);
}

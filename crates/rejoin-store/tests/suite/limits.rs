//! Calls of limited tools: reserved for a turn, made, and kept beyond it.

use rejoin_core::TurnId;
use rejoin_store::{LimitKey, Store};

use super::engines::Place;
use super::turns::store_with;

on_both_engines!(
    a_reservation_lasts_until_its_turn_ends,
    made_calls_count_within_their_time,
);

const KEY: LimitKey<'_> = LimitKey {
    namespace: "",
    tool: "Bash(make:*)",
};

async fn reserved(store: &Store, now: i64) -> u64 {
    let mut tx = store.begin().await.unwrap();
    tx.limits().tidy(KEY, 0, now).await.unwrap();
    let found = tx.limits().reserved(KEY).await.unwrap();
    tx.commit().await.unwrap();
    found
}

async fn made(store: &Store, since: i64) -> Vec<i64> {
    let mut read = store.read().await.unwrap();
    read.limits().made(KEY, since, 10).await.unwrap()
}

async fn a_reservation_lasts_until_its_turn_ends(place: Place) {
    let (store, _, turns) = store_with(&place, 2).await;
    let mut tx = store.begin().await.unwrap();
    tx.limits().reserve(KEY, turns[0], 2).await.unwrap();
    tx.limits().take(turns[0], KEY.tool, 5).await.unwrap();
    assert_eq!(tx.limits().left(turns[0], KEY.tool).await.unwrap(), 1);
    tx.commit().await.unwrap();
    assert_eq!(
        (reserved(&store, 6).await, made(&store, 0).await),
        (1, vec![5])
    );
    // A withdrawn turn is gone, and its calls count all the same.
    let mut tx = store.begin().await.unwrap();
    tx.turns().withdraw(turns[0]).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(
        (reserved(&store, 7).await, made(&store, 0).await),
        (0, vec![5])
    );
    // More calls than were reserved are not made by the turn: they were denied.
    let mut tx = store.begin().await.unwrap();
    tx.limits().reserve(KEY, turns[1], 1).await.unwrap();
    for now in [8, 9] {
        tx.limits().take(turns[1], KEY.tool, now).await.unwrap();
    }
    tx.commit().await.unwrap();
    assert_eq!(made(&store, 0).await, [5, 8]);
}

async fn made_calls_count_within_their_time(place: Place) {
    let (store, _, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    for now in [10, 20, 30] {
        tx.limits().add(KEY, turns[0], now).await.unwrap();
    }
    let other = LimitKey {
        namespace: "team",
        ..KEY
    };
    tx.limits().add(other, TurnId::nil(), 25).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(made(&store, 10).await, [20, 30]);
    let mut read = store.read().await.unwrap();
    assert_eq!(read.limits().made(KEY, 0, 2).await.unwrap(), [20, 30]);
    drop(read);
    let mut tx = store.begin().await.unwrap();
    tx.limits().tidy(KEY, 20, 40).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(made(&store, 0).await, [20, 30]);
}

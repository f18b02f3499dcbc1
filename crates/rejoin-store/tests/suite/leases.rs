//! Until when a turn is its holder's.

use rejoin_store::Error;

use super::engines::Place;
use super::turns::store_with;

on_both_engines!(
    a_lease_is_renewed_by_its_holder_only,
    so_is_that_of_a_conversation_that_is_open,
    the_clock_is_todays,
);

async fn a_lease_is_renewed_by_its_holder_only(place: Place) {
    let (store, _, turns) = store_with(&place, 1).await;
    let turn = turns[0];
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turn, "me", 2).await.unwrap();
    let mine = tx.turns().get(turn).await.unwrap().unwrap().fence;
    tx.leases()
        .set_place(turn, Some("here"), Some(100))
        .await
        .unwrap();
    let early = tx.leases().check_expired(turn, 99).await;
    assert!(matches!(early, Err(Error::Conflict(_))), "{early:?}");
    tx.leases().check_expired(turn, 100).await.unwrap();
    assert!(tx.leases().renew(turn, mine, 200).await.unwrap());
    assert!(tx.leases().check_expired(turn, 199).await.is_err());
    tx.commit().await.unwrap();

    let mut tx = store.begin().await.unwrap();
    tx.turns().take_over(turn, mine, "you").await.unwrap();
    assert!(!tx.leases().renew(turn, mine, 300).await.unwrap());
    assert!(tx.leases().renew(turn, mine + 1, 300).await.unwrap());
    tx.commit().await.unwrap();
    let stored = store.read().await.unwrap().turns().get(turn).await.unwrap();
    let stored = stored.unwrap();
    // Whoever holds it, its folder lies where it lay.
    assert_eq!(stored.place.as_deref(), Some("here"));
    assert_eq!(stored.lease_until, Some(300));
}

async fn so_is_that_of_a_conversation_that_is_open(place: Place) {
    let (store, c, _) = store_with(&place, 0).await;
    let mut tx = store.begin().await.unwrap();
    tx.conversations()
        .set_opened_by(c, None, Some("me"))
        .await
        .unwrap();
    tx.leases().renew_open(c, "me", Some(100)).await.unwrap();
    let other = tx.leases().renew_open(c, "you", Some(200)).await;
    assert!(matches!(other, Err(Error::Conflict(_))), "{other:?}");
    tx.commit().await.unwrap();
    let opened = store
        .read()
        .await
        .unwrap()
        .conversations()
        .opened()
        .await
        .unwrap();
    let held: Vec<_> = opened
        .iter()
        .map(|c| (c.id, c.opened_by.as_deref(), c.opened_until))
        .collect();
    assert_eq!(held, [(c, Some("me"), Some(100))]);
    // Given back, nothing of it is left.
    let mut tx = store.begin().await.unwrap();
    tx.conversations()
        .set_opened_by(c, Some("me"), None)
        .await
        .unwrap();
    let after = tx.conversations().get(c).await.unwrap().unwrap();
    assert_eq!((after.opened_by, after.opened_until), (None, None));
}

async fn the_clock_is_todays(place: Place) {
    let store = place.open().await;
    let ours = || {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        now.unwrap().as_micros() as i64
    };
    // Of the same machine, if not to the microsecond.
    let near = |theirs: i64, before: i64| (before - 10_000..ours() + 10_000).contains(&theirs);
    let before = ours();
    let read = store.read().await.unwrap().leases().clock().await.unwrap();
    assert!(near(read, before), "{read}");
    let mut tx = store.begin().await.unwrap();
    let in_tx = tx.leases().clock().await.unwrap();
    assert!(in_tx >= read - 10_000 && near(in_tx, before), "{in_tx}");
}

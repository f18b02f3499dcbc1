//! Events are written many at a time, and read back one by one as they were given.

use rejoin_core::EventBody;

use super::engines::Place;
use super::turns::store_with;

on_both_engines!(however_many_come_at_once_they_keep_their_order);

async fn however_many_come_at_once_they_keep_their_order(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    // Less than, as many as, and more than one statement of each size holds.
    let mut given = vec![];
    for many in [0, 1, 7, 8, 9, 63, 64, 65, 64 + 8 + 1, 3 * 64 + 2 * 8 + 5] {
        let bodies = (0..many).map(|n| EventBody::warning(format!("{n} of {many}")));
        let bodies: Vec<EventBody> = bodies.collect();
        let mut tx = store.begin().await.unwrap();
        tx.events().add(c, turns[0], 7, &bodies).await.unwrap();
        tx.commit().await.unwrap();
        given.extend(bodies);
    }
    let mut read = store.read().await.unwrap();
    let found = read.events().of_turn(turns[0], 0, 10_000).await.unwrap();
    assert!(found.is_sorted_by(|a, b| a.seq < b.seq));
    assert!(found.iter().all(|it| it.conversation == c && it.at == 7));
    let found: Vec<EventBody> = found.into_iter().map(|it| it.body).collect();
    assert_eq!(found, given);
}

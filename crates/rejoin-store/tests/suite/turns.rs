//! One writer: claims, fences, one running turn per conversation.

use std::task::Poll;

use rejoin_core::{
    AgentName, ConversationId, MessageId, MessageState, PermissionMode, Role, Scope, TurnId,
};
use rejoin_store::{Error, HERE, NewConversation, NewMessage, NewTurn, Store};

use super::engines::Place;

on_both_engines!(
    only_one_turn_of_a_conversation_runs,
    who_lost_the_fence_writes_nothing,
    a_client_key_is_used_once,
    a_dropped_transaction_never_was,
    a_failed_transaction_is_not_kept,
    a_transaction_given_up_at_any_moment_blocks_nobody,
    a_newer_schema_is_refused,
);

pub(super) async fn store_with(place: &Place, turns: u8) -> (Store, ConversationId, Vec<TurnId>) {
    let store = place.open().await;
    let c = ConversationId::from_parts(1, [1; 10]);
    let agent = AgentName::new("demo").unwrap();
    let mut tx = store.begin().await.unwrap();
    let new = NewConversation {
        namespace: String::new(),
        id: c,
        key: Some("k".into()),
        title: "t".into(),
        agent: agent.clone(),
        workdir: "/".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    };
    tx.conversations().add(&new).await.unwrap();
    let mut ids = vec![];
    for n in 0..turns {
        let (turn, message) = (
            TurnId::from_parts(u64::from(n), [n; 10]),
            MessageId::from_parts(u64::from(n), [n; 10]),
        );
        let new = NewMessage {
            id: message,
            conversation: c,
            turn,
            role: Role::User,
            agent: None,
            text: "x",
            trail: &[],
            origin: HERE,
            root: None,
            state: MessageState::Ok,
            now: 1,
        };
        tx.messages().accept(&new).await.unwrap();
        let key = format!("key-{n}");
        let new = NewTurn {
            id: turn,
            conversation: c,
            message,
            agent: &agent,
            request: serde_json::json!({}),
            client_key: Some(&key),
            machine: "m",
            holder: None,
            now: 1,
        };
        tx.turns().add(&new).await.unwrap();
        ids.push(turn);
    }
    tx.commit().await.unwrap();
    (store, c, ids)
}

async fn only_one_turn_of_a_conversation_runs(place: Place) {
    let (store, c, turns) = store_with(&place, 2).await;
    let mut tx = store.begin().await.unwrap();
    assert_eq!(tx.turns().oldest_queued(c).await.unwrap(), Some(turns[0]));
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = store.begin().await.unwrap();
    let second = tx.turns().claim(turns[1], "you", 2).await;
    assert!(matches!(second, Err(Error::Conflict(_))), "{second:?}");
    drop(tx);
    let mut tx = store.begin().await.unwrap();
    let again = tx.turns().claim(turns[0], "you", 2).await;
    assert!(matches!(again, Err(Error::Conflict(_))), "{again:?}");
}

async fn who_lost_the_fence_writes_nothing(place: Place) {
    let (store, _, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let mine = tx.turns().get(turns[0]).await.unwrap().unwrap().fence;
    tx.turns().take_over(turns[0], mine, "you").await.unwrap();
    assert!(matches!(
        tx.turns().check_fence(turns[0], mine).await,
        Err(Error::Conflict(_))
    ));
    assert!(matches!(
        tx.turns().requeue(turns[0], mine).await,
        Err(Error::Conflict(_))
    ));
    assert!(tx.turns().check_fence(turns[0], mine + 1).await.is_ok());
}

async fn a_client_key_is_used_once(place: Place) {
    let (store, c, _) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    let agent = AgentName::new("demo").unwrap();
    let (turn, message) = (
        TurnId::from_parts(9, [9; 10]),
        MessageId::from_parts(9, [9; 10]),
    );
    let new = NewTurn {
        id: turn,
        conversation: c,
        message,
        agent: &agent,
        request: serde_json::json!({}),
        client_key: Some("key-0"),
        machine: "m",
        holder: None,
        now: 1,
    };
    assert!(matches!(
        tx.turns().add(&new).await,
        Err(Error::Conflict(_))
    ));
}

async fn a_dropped_transaction_never_was(place: Place) {
    let (store, c, turns) = store_with(&place, 1).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    drop(tx);
    assert!(
        store
            .read()
            .await
            .unwrap()
            .turns()
            .unfinished(c)
            .await
            .unwrap()
            .is_none()
    );
}

/// What the engine refused takes everything along, on PostgreSQL even without a word.
async fn a_failed_transaction_is_not_kept(place: Place) {
    let (store, c, turns) = store_with(&place, 2).await;
    let mut tx = store.begin().await.unwrap();
    tx.turns().claim(turns[0], "me", 2).await.unwrap();
    let refused = tx.turns().claim(turns[1], "me", 2).await;
    assert!(matches!(refused, Err(Error::Conflict(_))), "{refused:?}");
    let kept = tx.commit().await;
    assert!(matches!(kept, Err(Error::Failed)), "{kept:?}");
    let mut read = store.read().await.unwrap();
    assert!(read.turns().unfinished(c).await.unwrap().is_none());
}

/// A caller may be cancelled at any of its waits, also while a transaction begins or ends.
async fn a_transaction_given_up_at_any_moment_blocks_nobody(place: Place) {
    let (store, ..) = store_with(&place, 1).await;
    for polls in 0..12 {
        let mut writes = Box::pin(async { store.begin().await?.commit().await });
        let mut left = polls;
        let given_up = std::future::poll_fn(|cx| {
            if left == 0 {
                return Poll::Ready(());
            }
            left -= 1;
            writes.as_mut().poll(cx).map(drop)
        });
        given_up.await;
        drop(writes);
        store.begin().await.unwrap().commit().await.unwrap();
    }
}

/// A database of a newer rejoin is not touched.
async fn a_newer_schema_is_refused(place: Place) {
    let (store, ..) = store_with(&place, 0).await;
    store.close().await;
    match &place {
        Place::File(dir) => {
            let path = dir.path().join("s.db");
            // `user_version` is the big-endian number at offset 60 of a SQLite file.
            let mut newer = std::fs::read(&path).unwrap();
            newer[60..64].copy_from_slice(&999_u32.to_be_bytes());
            std::fs::write(&path, newer).unwrap();
        }
        Place::Server(database) => drop(database.psql("update rejoin_schema set version = 999")),
    }
    let opened = place.try_open().await;
    assert!(
        matches!(opened, Err(Error::Newer { found: 999, .. })),
        "{opened:?}"
    );
}

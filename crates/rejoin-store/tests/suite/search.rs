//! The same words are found on both engines.

use rejoin_core::{
    AgentName, ConversationId, MessageId, MessageState, PermissionMode, Role, Scope, TurnId,
};
use rejoin_store::{HERE, HIT_BEGINS, HIT_ENDS, NewConversation, NewMessage, Search, Store};

use super::engines::Place;

on_both_engines!(
    words_are_found,
    other_namespaces_do_not_change_the_order,
    each_namespace_finds_its_own_messages,
    every_text_is_kept_as_it_is,
    what_is_edited_and_deleted_is_found_no_more,
);

const TEXTS: [&str; 6] = [
    "The harbour at dawn, and the boats.",
    "see crates/store/src/harbour_master.rs:12 please",
    "Ein Café am Hafen",
    "it's the harbourmaster's \"two words\" again",
    "nothing | of & the ! kind: (x) <-> y",
    "harbour harbour harbour",
];

async fn told(store: &Store, texts: &[&str]) -> (ConversationId, Vec<MessageId>) {
    told_in(store, "", 1, texts).await
}

async fn told_in(
    store: &Store,
    namespace: &str,
    number: u8,
    texts: &[&str],
) -> (ConversationId, Vec<MessageId>) {
    let c = ConversationId::from_parts(1, [number; 10]);
    let agent = AgentName::new("demo").unwrap();
    let mut tx = store.begin().await.unwrap();
    let new = NewConversation {
        namespace: namespace.into(),
        id: c,
        key: None,
        title: "t".into(),
        agent,
        workdir: "/w".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    };
    tx.conversations().add(&new).await.unwrap();
    let mut ids = vec![];
    for (n, text) in texts.iter().enumerate() {
        let id = MessageId::from_parts(u64::from(number) * 1000 + n as u64, [n as u8; 10]);
        let new = NewMessage {
            id,
            conversation: c,
            turn: TurnId::from_parts(1, [1; 10]),
            role: Role::User,
            agent: None,
            text,
            trail: &[],
            origin: HERE,
            root: None,
            state: MessageState::Ok,
            now: 1,
        };
        tx.messages().add_placed(&new).await.unwrap();
        ids.push(id);
    }
    tx.commit().await.unwrap();
    (c, ids)
}

/// The places of what is found, in order.
async fn found(store: &Store, text: &str) -> Vec<i64> {
    let search = Search {
        text: text.into(),
        limit: 99,
        ..Search::default()
    };
    let hits = store.read().await.unwrap().search(&search).await.unwrap();
    for hit in &hits {
        let (begins, ends) = (hit.snippet.find(HIT_BEGINS), hit.snippet.find(HIT_ENDS));
        assert!(begins.is_some() && begins < ends, "{text}: {hit:?}");
    }
    let mut places: Vec<i64> = hits.iter().map(|hit| hit.seq).collect();
    places.sort_unstable();
    places
}

async fn words_are_found(place: Place) {
    let store = place.open().await;
    told(&store, &TEXTS).await;
    let table: [(&str, &[i64]); 14] = [
        ("harbour", &[1, 2, 4, 6]),
        ("HARB", &[1, 2, 4, 6]),
        ("harbour boats", &[1]),
        ("master", &[2]),
        ("harbour_master.rs", &[2]),
        ("src/harbour", &[2]),
        ("cafe", &[3]),
        ("café hafen", &[3]),
        ("\"two words\"", &[4]),
        ("\"words two\"", &[]),
        ("it's", &[4]),
        ("nothing & | kind", &[5]),
        ("' ) & !", &[]),
        ("arbour", &[]),
    ];
    for (text, places) in table {
        assert_eq!(found(&store, text).await, places, "{text}");
    }
    // One that says it three times comes first.
    let search = Search {
        text: "harbour".into(),
        limit: 1,
        ..Search::default()
    };
    let best = store.read().await.unwrap().search(&search).await.unwrap();
    assert_eq!(best[0].seq, 6);
    let marked = format!("{HIT_BEGINS}harbour{HIT_ENDS}");
    assert!(best[0].snippet.contains(&marked), "{best:?}");
}

/// A tenant learns nothing about the words of others by the order of its own hits.
async fn other_namespaces_do_not_change_the_order(place: Place) {
    let store = place.open().await;
    told_in(&store, "mine", 1, &["alpha alpha beta", "alpha beta beta"]).await;
    let order = async || {
        let search = Search {
            namespace: "mine".into(),
            text: "alpha beta".into(),
            limit: 9,
            ..Search::default()
        };
        let hits = store.read().await.unwrap().search(&search).await.unwrap();
        hits.iter().map(|hit| hit.seq).collect::<Vec<_>>()
    };
    let before = order().await;
    told_in(&store, "other", 2, &["alpha"; 40]).await;
    let alphas = order().await;
    told_in(&store, "other", 3, &["beta"; 200]).await;
    assert_eq!((alphas, order().await), (before.clone(), before));
}

/// Messages of several namespaces that are added in turns, then edited.
async fn each_namespace_finds_its_own_messages(place: Place) {
    let store = place.open().await;
    let found = async |namespace: &str, agent: Option<&str>, text: &str| {
        let search = Search {
            namespace: namespace.into(),
            text: text.into(),
            agent: agent.map(str::to_owned),
            limit: 9,
            ..Search::default()
        };
        let hits = store.read().await.unwrap().search(&search).await.unwrap();
        let mut found: Vec<u8> = hits
            .iter()
            .map(|hit| hit.conversation.uuid().as_bytes()[15])
            .collect();
        found.sort_unstable();
        found
    };
    assert_eq!(found("one", None, "river").await, [0_u8; 0]);
    let mut first = None;
    for (number, namespace) in (1..).zip(["one", "two", "", "two", "one", "two"]) {
        let (_, ids) = told_in(&store, namespace, number, &["the river", "the hill"]).await;
        first.get_or_insert(ids[0]);
    }
    assert_eq!(found("one", None, "river").await, [1, 5]);
    assert_eq!(found("two", None, "riv").await, [2, 4, 6]);
    assert_eq!(found("", None, "hill river").await, [0_u8; 0]);
    assert_eq!(found("", None, "hill").await, [3]);
    assert_eq!(found("two", Some("demo"), "river").await, [0_u8; 0]);
    assert_eq!(found("three", None, "river").await, [0_u8; 0]);
    let mut tx = store.begin().await.unwrap();
    let mut message = tx
        .messages()
        .get(first.unwrap())
        .await
        .unwrap()
        .unwrap()
        .message;
    message.text = "the lake".into();
    tx.changes()
        .rewrite_message(&message, true, 2)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(found("one", None, "river").await, [5]);
    assert_eq!(found("one", None, "lake").await, [1]);
}

/// PostgreSQL's text holds no NUL, and a row of its words no more than a mebibyte.
async fn every_text_is_kept_as_it_is(place: Place) {
    let store = place.open().await;
    let many: String = (0..400_000).fold(String::new(), |mut text, n| {
        use std::fmt::Write as _;
        let _ = write!(text, "w{n} ");
        text
    });
    // Words of four bytes a letter, none twice.
    let wide: String = (0..120_000_u32)
        .flat_map(|n| [0x20000 + n % 40_000, 0x20000 + n / 40_000, 32])
        .filter_map(char::from_u32)
        .collect();
    let long = "x".repeat(3_000_000);
    let odd = "a\0b \u{10fffd}0 \u{10fffd}\0 \u{2}\u{3}";
    let texts = [odd, "", "\0", &many, &wide, &long, "\u{feff}\r\n\u{1b}[0m"];
    let (c, _) = told(&store, &texts).await;
    let mut read = store.read().await.unwrap();
    for (n, text) in texts.iter().enumerate() {
        let stored = read.messages().at(c, n as i64 + 1).await.unwrap().unwrap();
        assert!(stored.message.text == **text, "text {n} came back changed");
    }
    drop(read);
    assert_eq!(found(&store, "w7").await, [4]);
    assert_eq!(found(&store, "\u{20001}").await, [5]);
}

async fn what_is_edited_and_deleted_is_found_no_more(place: Place) {
    let store = place.open().await;
    let (c, ids) = told(&store, &["the harbour", "the mountain"]).await;
    let mut tx = store.begin().await.unwrap();
    let mut message = tx.messages().get(ids[0]).await.unwrap().unwrap().message;
    message.text = "the river".into();
    tx.changes()
        .rewrite_message(&message, true, 2)
        .await
        .unwrap();
    tx.commit().await.unwrap();
    assert_eq!(found(&store, "harbour").await, [0_i64; 0]);
    assert_eq!(found(&store, "river").await, [1]);
    let mut tx = store.begin().await.unwrap();
    tx.conversations().delete(c, 1).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(found(&store, "river").await, [0_i64; 0]);
}

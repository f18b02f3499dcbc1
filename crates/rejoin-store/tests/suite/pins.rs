//! What a pin was when earlier turns were confirmed, for forks.

use rejoin_core::{
    AgentName, ConversationId, FileMark, Folder, PermissionMode, Pin, PinId, PinState, Runtime,
    Scope, ScopeValue, SeenPrefix, SessionId, TurnId, Version,
};
use rejoin_store::NewConversation;

use super::engines::Place;

pub(crate) fn pin(n: u8) -> Pin {
    Pin {
        id: PinId::from_parts(7, [7; 10]),
        agent: AgentName::new("demo").unwrap(),
        session: SessionId::new("s").unwrap(),
        state: PinState::Confirmed,
        seen: SeenPrefix {
            summarised: 0,
            value: ScopeValue([n; 32]),
            messages: u64::from(n),
            last_seq: i64::from(n),
            last: None,
        },
        folder: Folder {
            path: "/w".into(),
            device: 1,
            inode: 2,
            checkout: None,
        },
        runtime: Runtime {
            product: "demo".into(),
            version: Version("1".into()),
        },
        machine: "m".into(),
        home: String::new(),
        files: vec![FileMark {
            path: "p".into(),
            length: u64::from(n),
            hash: "h".into(),
            stat: (1, 2, 3, 4),
        }],
        cursor: Some(n.to_string()),
        total: None,
        usage: None,
        context: None,
        model: None,
        provider: None,
        failures: 0,
        compacted: false,
        instructions: None,
    }
}

on_both_engines!(the_newest_sixteen_ends_are_kept);

async fn the_newest_sixteen_ends_are_kept(place: Place) {
    let store = place.open().await;
    let c = ConversationId::from_parts(1, [1; 10]);
    let agent = AgentName::new("demo").unwrap();
    let mut tx = store.begin().await.unwrap();
    let new = NewConversation {
        namespace: String::new(),
        id: c,
        key: None,
        title: "t".into(),
        agent: agent.clone(),
        workdir: "/".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    };
    tx.conversations().add(&new).await.unwrap();
    let turn = TurnId::from_parts(1, [1; 10]);
    let first = pin(1);
    tx.pins()
        .open_new(first.id, c, &agent, &first.session, turn, 1)
        .await
        .unwrap();
    for n in 1..=20 {
        assert!(tx.pins().confirm(&pin(n), 1).await.unwrap());
    }
    // Other bytes and not a word more is no other end; nor is what was put back.
    let mut again = pin(20);
    again.files[0].length = 99;
    assert!(tx.pins().confirm(&again, 1).await.unwrap());
    tx.pins()
        .put_back(again.id, &again.files, 1, 1)
        .await
        .unwrap();
    tx.commit().await.unwrap();

    let mut read = store.read().await.unwrap();
    let stored = read.pins().of(c, &agent).await.unwrap().remove(0);
    let now = stored.pin.clone().unwrap();
    assert_eq!((now.seen.messages, now.files[0].length), (20, 99));
    let earlier = read.pins().earlier(&stored).await.unwrap();
    let lengths: Vec<u64> = earlier.iter().map(|pin| pin.files[0].length).collect();
    assert_eq!(lengths, (4..=19).rev().collect::<Vec<_>>());
    let mut expected = pin(19);
    expected.failures = 1;
    assert_eq!(earlier[0], expected);
}

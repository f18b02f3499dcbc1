//! What the queries say of a history in constant time is what the core says of all of it.

use proptest::prelude::*;
use rejoin_core::{
    AgentName, ConversationId, Message, MessageId, MessageState, PermissionMode, Role, Scope,
    TurnId, in_scope,
};
use rejoin_store::{HERE, NewConversation, NewMessage, Store};

use super::engines::Place;

const AGENTS: [&str; 3] = ["claude", "codex", "demo"];

/// Who speaks: the user, or one of the agents.
fn speakers() -> impl Strategy<Value = Vec<Option<usize>>> {
    proptest::collection::vec(proptest::option::of(0..AGENTS.len()), 0..14)
}

fn agent(n: usize) -> AgentName {
    AgentName::new(AGENTS[n]).unwrap()
}

async fn told(store: &Store, speakers: &[Option<usize>]) -> (ConversationId, Vec<Message>) {
    let c = ConversationId::from_parts(1, [7; 10]);
    let mut tx = store.begin().await.unwrap();
    let new = NewConversation {
        namespace: String::new(),
        id: c,
        key: None,
        title: "t".into(),
        agent: agent(0),
        workdir: "/".into(),
        permission: PermissionMode::Edit,
        scope: Scope::Full,
        parent: None,
        now: 1,
    };
    tx.conversations().add(&new).await.unwrap();
    let mut history = vec![];
    for (at, speaker) in speakers.iter().enumerate() {
        let id = MessageId::from_parts(at as u64 + 1, [at as u8; 10]);
        let (agent, text) = (speaker.map(agent), format!("message {at}"));
        let role = if agent.is_some() {
            Role::Assistant
        } else {
            Role::User
        };
        let new = NewMessage {
            id,
            conversation: c,
            turn: TurnId::from_parts(1, [1; 10]),
            role,
            agent: agent.as_ref(),
            text: &text,
            trail: &[],
            origin: HERE,
            root: None,
            state: MessageState::Ok,
            now: 1,
        };
        match role {
            Role::Assistant => drop(tx.messages().add_placed(&new).await.unwrap()),
            Role::User => {
                tx.messages().accept(&new).await.unwrap();
                tx.messages().place(id).await.unwrap();
            }
        }
        history.push(Message {
            id,
            seq: at as i64 + 1,
            role,
            agent,
            text,
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        });
    }
    tx.commit().await.unwrap();
    (c, history)
}

/// A change of a history: other words in a message, or all from one on removed.
#[derive(Debug, Clone, Copy)]
enum Change {
    Edit(usize),
    Cut(usize),
    CutAndBack(usize),
}

fn changes() -> impl Strategy<Value = Vec<Change>> {
    let one = prop_oneof![
        (0..14usize).prop_map(Change::Edit),
        (0..14usize).prop_map(Change::Cut),
        (0..14usize).prop_map(Change::CutAndBack),
    ];
    proptest::collection::vec(one, 0..4)
}

/// The same in the store and in the list.
async fn change(store: &Store, c: ConversationId, history: &mut Vec<Message>, change: Change) {
    let mut tx = store.begin().await.unwrap();
    let (Change::Edit(at) | Change::Cut(at) | Change::CutAndBack(at)) = change;
    let Some(seq) = history.get(at).map(|m| m.seq) else {
        return;
    };
    match change {
        Change::Edit(_) => {
            history[at].text.push_str(", edited");
            tx.changes()
                .rewrite_message(&history[at], true, 1)
                .await
                .unwrap();
            tx.recompute(c, seq).await.unwrap();
        }
        Change::Cut(_) => {
            let removed = tx.changes().remove_from(c, seq, 1).await.unwrap();
            assert_eq!(removed.len(), history.len() - at);
            history.truncate(at);
        }
        Change::CutAndBack(_) => {
            for id in tx.changes().remove_from(c, seq, 1).await.unwrap() {
                tx.changes().restore_message(id).await.unwrap();
            }
            tx.recompute(c, seq).await.unwrap();
        }
    }
    tx.commit().await.unwrap();
}

async fn compare(place: Place, speakers: Vec<Option<usize>>, changes: Vec<Change>) {
    let store = place.open().await;
    let (c, mut history) = told(&store, &speakers).await;
    for one in changes {
        change(&store, c, &mut history, one).await;
    }
    let mut read = store.read().await.unwrap();
    for (scope, who) in [Scope::Full, Scope::Agent]
        .into_iter()
        .flat_map(|s| (0..AGENTS.len()).map(move |a| (s, agent(a))))
    {
        for before in 1..=history.len() + 1 {
            let expected = in_scope(scope, &who, &history[..before - 1]);
            let state = read
                .history()
                .scope_before(c, scope, &who, before as i64)
                .await
                .unwrap();
            assert_eq!(state.boundary, expected.boundary);
            assert_eq!(state.messages, expected.messages.len() as u64);
            assert_eq!(state.answered, expected.answered());
            assert_eq!(
                state.value,
                expected.value(),
                "{scope:?} {who} before {before}"
            );
            let between = read
                .history()
                .messages_between(c, state.boundary_seq, before as i64)
                .await
                .unwrap();
            assert_eq!(between, expected.messages);
            for seq in 1..=history.len() {
                let is_own = history[seq - 1].agent.as_ref() == Some(&who);
                let inside = seq < before && seq as i64 > state.boundary_seq;
                if !is_own {
                    continue;
                }
                let value = read
                    .history()
                    .value_through(c, scope, &state, seq as i64)
                    .await
                    .unwrap();
                let wanted = inside.then(|| expected.value_at(seq - state.boundary_seq as usize));
                assert_eq!(
                    value, wanted,
                    "{scope:?} {who} before {before} through {seq}"
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// A-26..A-28, A-62
    #[test]
    fn queries_and_core_agree(speakers in speakers(), changes in changes()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(compare(Place::file(), speakers, changes));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(12))]
    /// A-26..A-28, A-62
    #[test]
    fn queries_and_core_agree_on_a_server(speakers in speakers(), changes in changes()) {
        if let Some(place) = Place::server() {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(compare(place, speakers, changes));
        }
    }
}

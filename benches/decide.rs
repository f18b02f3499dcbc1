//! The decision and the folding of a message into a scope value, in nanoseconds; and how the record
//! of a long history is built. `cargo bench --profile dist -p rejoin --bench decide`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints"
)]

use std::hint::black_box;
use std::time::Instant;

use rejoin_core::{
    AgentName, Budget, Capability, FileMark, Folder, FolderFact, HistoryFacts, Message, MessageId,
    MessageState, PermissionsFact, Pin, PinFacts, PinId, PinState, Policy, Prefix, Request, Role,
    Runtime, ScopeValue, SeenPrefix, SessionFact, SessionId, Situation, SnapshotFact,
    TranscriptBuilder, Version, decide,
};

fn main() {
    let agent = AgentName::new("claude").unwrap();
    let runtime = Runtime {
        product: "Claude Code".into(),
        version: Version("2.1.325".into()),
    };
    let pin = Pin {
        instructions: None,
        id: PinId::from_parts(1, [1; 10]),
        agent: agent.clone(),
        session: SessionId::new("b731fd0c-68de-4452-a02a-ef7d040b8069").unwrap(),
        state: PinState::Confirmed,
        seen: SeenPrefix {
            summarised: 0,
            value: ScopeValue::begin(None),
            messages: 1000,
            last_seq: 1000,
            last: None,
        },
        folder: Folder {
            path: "/w".into(),
            device: 1,
            inode: 1,
            checkout: None,
        },
        runtime: runtime.clone(),
        machine: "m".into(),
        home: String::new(),
        files: vec![FileMark {
            path: "p".into(),
            length: 1,
            hash: String::new(),
            stat: (0, 0, 0, 0),
        }],
        cursor: None,
        total: None,
        usage: None,
        context: None,
        model: Some("sonnet".into()),
        provider: None,
        failures: 0,
        compacted: false,
    };
    for messages in [1_000, 1_000_000] {
        let situation = Situation {
            agent: &agent,
            request: Request::default(),
            policy: Policy::default(),
            history: HistoryFacts {
                messages,
                answered: true,
            },
            runtime: &runtime,
            capability: Capability::Proven,
            model: Some("sonnet"),
            window: None,
            permissions: PermissionsFact::Expressible,
            pin: Some(PinFacts {
                pin: &pin,
                prefix: Prefix::Holds,
                folder: FolderFact::Same,
                has_provider: true,
                session: SessionFact::Untouched,
                snapshot: SnapshotFact::None,
                elsewhere: false,
                in_use: None,
                writers_visible: true,
                forked_from: None,
            }),
        };
        time(
            &format!("decide, history of {messages} messages"),
            1_000_000,
            || {
                black_box(decide(black_box(&situation)));
            },
        );
    }
    let message = |seq: i64, text: String| Message {
        id: MessageId::from_parts(seq as u64, [1; 10]),
        seq,
        role: Role::User,
        agent: None,
        text,
        attachments: vec![],
        state: MessageState::Ok,
        trail: vec![],
    };
    let one = message(1, "x".repeat(1_000));
    let value = ScopeValue::begin(None);
    time("digest of a 1 KB message, folded", 200_000, || {
        black_box(value.fold(&black_box(&one).digest()));
    });
    let long: Vec<Message> = (1..=2_000)
        .map(|n| message(n, "word ".repeat(5_000)))
        .collect();
    time("record of 2,000 messages of 25 KB, 80k tokens", 20, || {
        let mut builder = TranscriptBuilder::new(Budget { tokens: 80_000 });
        let told = long.iter().rev().take_while(|m| builder.push(m)).count();
        black_box((told, builder.finish(2_000, &[])));
    });
}

fn time(what: &str, rounds: u32, mut work: impl FnMut()) {
    let start = Instant::now();
    for _ in 0..rounds {
        work();
    }
    let each = start.elapsed() / rounds;
    println!("{what}: {each:?}");
}

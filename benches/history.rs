//! A long conversation: 2,000 turns, 50 MB. What it takes to tell it again, to change its beginning,
//! to search it. `cargo bench --profile dist -p rejoin --bench history`
//!
//! Each row is measured in a process of its own, so that its memory is its own; the alternative, which
//! loads everything, stands beside it.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and starts itself"
)]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use rejoin_core::{
    AgentName, Budget, ConversationId, MessageId, MessageState, PermissionMode, Role, Scope,
    TranscriptBuilder, TurnId,
};
use rejoin_hub::{ChangeMode, Clock, Hub};
use rejoin_store::{HERE, NewConversation, NewMessage, Search, Store};

const MESSAGES: u64 = 4_000;
const BYTES: usize = 12_500;
const ROUNDS: usize = 15;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().filter(|a| a != "--bench").collect();
    if let [_, what, path] = &args[..] {
        return measure(what, Path::new(path)).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rejoin.db");
    fill(&path).await;
    println!("| what | median | peak memory |\n|---|--:|--:|");
    let rows = [
        ("nothing", "the store opened, nothing read"),
        ("record", "the record, within 80k tokens"),
        ("all", "the same from all messages, loaded"),
        ("edit", "an edit of the first message, taken back again"),
        (
            "search",
            "a search for a word that half of the messages hold",
        ),
    ];
    for (what, words) in rows {
        let done = Command::new(std::env::current_exe().unwrap())
            .args([what, path.to_str().unwrap()])
            .output()
            .unwrap();
        let said = String::from_utf8(done.stdout).unwrap();
        println!("| {words} | {}", said.trim());
    }
}

fn conversation() -> ConversationId {
    ConversationId::from_parts(1, [7; 10])
}

fn agent() -> AgentName {
    AgentName::new("claude").unwrap()
}

async fn open(path: &Path) -> Hub {
    Hub {
        namespace: "".into(),
        ceiling: None,
        store: Store::open_sqlite(path).await.unwrap(),
        clock: Clock,
        machine: "bench".into(),
        vault: None,
    }
}

async fn fill(path: &Path) {
    let hub = open(path).await;
    let mut tx = hub.store.begin().await.unwrap();
    let (c, agent) = (conversation(), agent());
    tx.conversations()
        .add(&NewConversation {
            namespace: String::new(),
            id: c,
            key: None,
            title: "long".into(),
            agent: agent.clone(),
            workdir: "/".into(),
            permission: PermissionMode::Edit,
            scope: Scope::Full,
            parent: None,
            now: 1,
        })
        .await
        .unwrap();
    for n in 1..=MESSAGES {
        let by_agent = n % 2 == 0;
        let word = if by_agent { "harbour" } else { "river" };
        let line = format!(
            "message {n}: the {word} at {} o'clock is what it is.\n",
            n * 7919 % 24
        );
        let text = line.repeat(BYTES / line.len());
        let new = NewMessage {
            id: MessageId::from_parts(n, [1; 10]),
            conversation: c,
            turn: TurnId::nil(),
            role: if by_agent {
                Role::Assistant
            } else {
                Role::User
            },
            agent: by_agent.then_some(&agent),
            text: &text,
            trail: &[],
            origin: HERE,
            root: None,
            state: MessageState::Ok,
            now: 1,
        };
        tx.messages().add_placed(&new).await.unwrap();
    }
    tx.commit().await.unwrap();
    hub.store.close().await;
}

async fn measure(what: &str, path: &Path) {
    let hub = open(path).await;
    let c = conversation();
    let budget = Budget { tokens: 80_000 };
    let mut times = vec![];
    for round in 0..ROUNDS {
        let begun = Instant::now();
        match what {
            "record" => {
                let outlook = hub.outlook(c, Scope::Full, &agent(), None).await.unwrap();
                let text = hub.transcript(c, &outlook, budget).await.unwrap();
                std::hint::black_box(text);
            }
            "all" => {
                let all = hub
                    .store
                    .read()
                    .await
                    .unwrap()
                    .history()
                    .messages_between(c, 0, i64::MAX)
                    .await
                    .unwrap();
                let mut builder = TranscriptBuilder::new(budget);
                let told = all.iter().rev().take_while(|m| builder.push(m));
                let _told = told.count();
                std::hint::black_box(builder.finish(MESSAGES, &[]));
            }
            "edit" => {
                let first = MessageId::from_parts(1, [1; 10]);
                let text = format!("round {round}");
                hub.edit(first, &text, ChangeMode::Now).await.unwrap();
                hub.undo(c, ChangeMode::Now).await.unwrap();
            }
            "search" => {
                let search = Search {
                    text: "harbour".into(),
                    limit: 20,
                    ..Search::default()
                };
                let found = hub
                    .store
                    .read()
                    .await
                    .unwrap()
                    .search(&search)
                    .await
                    .unwrap();
                assert_eq!(found.len(), 20);
            }
            _ => {}
        }
        times.push(begun.elapsed());
    }
    times.sort();
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let peak = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .unwrap();
    let peak: f64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    println!(
        "{:.1} ms | {:.0} MiB |",
        times[ROUNDS / 2].as_secs_f64() * 1e3,
        peak / 1024.0
    );
}

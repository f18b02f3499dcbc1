//! A turn in a process that stayed up, beside one in a new process, through the daemon, interleaved in
//! one run against the same scripted model. `cargo bench --profile dist -p rejoin --bench warm [-- ROUNDS]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and fails loudly"
)]

use std::time::{Duration, Instant};

use rejoin_testkit::{CLAUDE_197, CLAUDE_325, CODEX_166, Cli, Daemon, GEMINI_061, OPENCODE, World};
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn main() {
    let rounds = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(15);
    let agents: [(&str, &'static dyn Cli, &str); 5] = [
        ("Claude Code 2.1.197", &CLAUDE_197, "edit"),
        ("Claude Code 2.1.325", &CLAUDE_325, "edit"),
        ("Codex, asking", &CODEX_166, "ask"),
        ("Gemini CLI, asking", &GEMINI_061, "ask"),
        ("OpenCode", &OPENCODE, "edit"),
    ];
    println!(
        "| | `resumed`, `[serve] warm = 0` | `resumed`, process may stay | `live` | live / resumed |\n|---|--:|--:|--:|--:|"
    );
    for (name, cli, mode) in agents {
        let Some(warm) = World::of(REJOIN, cli) else {
            println!("{name} is not installed");
            continue;
        };
        let mut cold = World::of(REJOIN, cli).unwrap();
        cold.set("REJOIN_SERVE_WARM", "0");
        let (with, without) = (warm.serve(&[]), cold.serve(&[]));
        let mut took = [vec![], vec![], vec![]];
        for round in 0..=rounds {
            let expected = |verdict| if round == 0 { "started" } else { verdict };
            took[0].push(turn(&cold, &without, "k", mode, expected("resumed")));
            took[1].push(turn(&warm, &with, "anew", mode, expected("resumed")));
            took[2].push(turn(&warm, &with, "live", mode, expected("live")));
            with.post("/api/conversations/anew/reload", &json!({})).ok();
        }
        let [plain, anew, live] = took.map(|mut all| {
            // The first one begins the session.
            all.remove(0);
            all.sort();
            all[all.len() / 2].as_secs_f64() * 1e3
        });
        println!(
            "| {name} ({rounds} rounds) | {plain:.0} ms | {anew:.0} ms | {live:.0} ms | {:.2} |",
            live / plain
        );
    }
}

/// From the request to the end of the turn.
fn turn(world: &World, daemon: &Daemon, key: &str, mode: &str, verdict: &str) -> Duration {
    let workdir = world.work();
    let workdir = workdir.to_str().unwrap();
    let body = json!({"key": key, "text": "hello #s:a1", "workdir": workdir, "permission": mode});
    let since = Instant::now();
    let turn = daemon.post("/api/send?wait=true", &body).ok();
    let took = since.elapsed();
    assert_eq!(turn["verdict"], verdict, "{turn}");
    took
}

//! What rejoin adds to a turn: the bare CLI and `rejoin send`, interleaved in one run against the
//! same model. `cargo bench --profile dist -p rejoin --bench turn [-- ROUNDS]`
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and fails loudly"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, World, wait_for};
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn main() {
    let rounds = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(25);
    println!("| what | bare, median | rejoin, median | added | share |\n|---|--:|--:|--:|--:|");
    demo(rounds * 4);
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        claude(version, rounds);
    }
    version(rounds * 4);
    prompt(rounds * 4);
    for n in [10, 400] {
        demo_at(n, rounds);
    }
    shim();
}

/// The demo agent answers at once: what remains is ours.
fn demo(rounds: usize) {
    let world = World::new(REJOIN);
    let session = "00000000-0000-4000-8000-000000000001";
    let prompt =
        |n: usize| json!({"id": format!("p{n}"), "context": null, "message": "hello"}).to_string();
    bare(
        &world,
        &[REJOIN, "demo-agent", "--session-id", session],
        &prompt(0),
    );
    world
        .run(&["send", "-q", "-k", "k", "-a", "demo", "hello"])
        .ok();
    let pairs = (1..=rounds).map(|n| {
        let alone = bare(
            &world,
            &[REJOIN, "demo-agent", "--resume", session],
            &prompt(n),
        );
        let with = timed(|| drop(world.run(&["send", "-q", "-k", "k", "hello"]).ok()));
        (alone, with)
    });
    row("demo agent, a turn", &pairs.collect::<Vec<_>>());
}

/// Turn N of a long conversation costs what turn 10 costs.
fn demo_at(turns: usize, rounds: usize) {
    let world = World::new(REJOIN);
    for _ in 0..turns {
        // A fresh agent session each time, so that only rejoin's own share can grow.
        world
            .run(&["send", "-q", "-k", "k", "-a", "demo", "hello"])
            .ok();
    }
    let session = "00000000-0000-4000-8000-000000000002";
    let prompt =
        |n: usize| json!({"id": format!("p{n}"), "context": null, "message": "hello"}).to_string();
    bare(
        &world,
        &[REJOIN, "demo-agent", "--session-id", session],
        &prompt(0),
    );
    for n in 1..turns {
        bare(
            &world,
            &[REJOIN, "demo-agent", "--resume", session],
            &prompt(n),
        );
    }
    let pairs = (1..=rounds).map(|n| {
        let alone = bare(
            &world,
            &[REJOIN, "demo-agent", "--resume", session],
            &prompt(turns + n),
        );
        let with = timed(|| drop(world.run(&["send", "-q", "-k", "k", "hello"]).ok()));
        (alone, with)
    });
    row(
        &format!("demo agent, after {turns} turns"),
        &pairs.collect::<Vec<_>>(),
    );
}

fn claude(version: &str, rounds: usize) {
    let Some(world) = World::claude(REJOIN, version) else {
        return;
    };
    let first = world.say(1, &["-m", "sonnet"]);
    let second = world.say(2, &[]);
    // The same command, on a session of its own.
    let own = "11111111-1111-4111-8111-111111111111";
    let theirs = first["session_id"].as_str().unwrap();
    let argv = |turn: &Value| -> Vec<String> {
        let args = turn["command"]
            .as_array()
            .unwrap()
            .iter()
            .map(|a| a.as_str().unwrap().replace(theirs, own));
        args.collect()
    };
    let line = |text: &str| {
        json!({"type": "user", "message": {"role": "user", "content": [{"type": "text", "text": text}]}}).to_string()
    };
    let (start, resume) = (argv(&first), argv(&second));
    let run = |argv: &[String], text: &str| {
        bare(
            &world,
            &argv.iter().map(String::as_str).collect::<Vec<_>>(),
            &line(text),
        )
    };
    run(&start, "hello #s:a1");
    run(&resume, "hello #s:a2");
    let rounds = (0..rounds).map(|_| {
        let alone = run(&resume, "hello #s:a3");
        let held = held(&world, &resume, &line("hello #s:a3"));
        let with = timed(|| drop(world.run(&["send", "-q", "-k", "k", "hello #s:a3"]).ok()));
        ((alone, with), (held, with))
    });
    let (alone, held): (Vec<_>, Vec<_>) = rounds.unzip();
    row(&format!("Claude Code {version}, a resumed turn"), &alone);
    row("the same, its input open until the result", &held);
}

/// As whoever answers what it asks has to: its input is closed when it has said its last word.
fn held(world: &World, argv: &[String], stdin: &str) -> Duration {
    timed(|| {
        let mut child = command(world, &argv[0]).args(&argv[1..]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        writeln!(input, "{stdin}").unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let last = lines.find(|line| {
            line.as_ref()
                .is_ok_and(|l| l.contains("\"type\":\"result\""))
        });
        assert!(last.is_some(), "it said nothing");
        drop(input);
        lines.for_each(drop);
        assert!(child.wait().unwrap().success());
    })
}

/// What a shell waits for before each of its lines.
fn prompt(rounds: usize) {
    let world = World::new(REJOIN);
    world
        .run(&["send", "-q", "-k", "k", "-a", "demo", "hello"])
        .ok();
    let pairs = (0..rounds).map(|_| {
        let alone = bare(&world, &["/bin/true"], "");
        (alone, timed(|| drop(world.run(&["prompt"]).ok())))
    });
    row(
        "`rejoin prompt` (bare: /bin/true)",
        &pairs.collect::<Vec<_>>(),
    );
}

fn version(rounds: usize) {
    let world = World::new(REJOIN);
    let pairs = (0..rounds).map(|_| {
        let alone = bare(&world, &["/bin/true"], "");
        (alone, timed(|| drop(world.run(&["--version"]).ok())))
    });
    row(
        "`rejoin --version` (bare: /bin/true)",
        &pairs.collect::<Vec<_>>(),
    );
}

fn shim() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let mut child = world.spawn(&["send", "-q", "#s:slow"]);
    let shim = wait_for("the shim", 20, || {
        world
            .leftovers()
            .into_iter()
            .find(|(_, command)| command.contains(" shim "))
            .map(|(pid, _)| pid)
    });
    std::thread::sleep(Duration::from_secs(2));
    let status = std::fs::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let kib = |name: &str| {
        status
            .lines()
            .find(|l| l.starts_with(name))
            .and_then(|l| l.split_whitespace().nth(1)?.parse::<f64>().ok())
            .unwrap_or(0.0)
    };
    println!(
        "\nshim of a running turn: {:.1} MiB resident, of which {:.1} MiB its own (anonymous)",
        kib("VmRSS") / 1024.0,
        kib("RssAnon") / 1024.0
    );
    child.kill().unwrap();
    child.wait().unwrap();
}

fn bare(world: &World, argv: &[&str], stdin: &str) -> Duration {
    timed(|| {
        let mut child = command(world, argv[0]).args(&argv[1..]).spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let _gone = writeln!(input, "{stdin}");
        drop(input);
        let output = child.wait_with_output().unwrap();
        assert!(
            output.status.success(),
            "{argv:?}: {}",
            String::from_utf8_lossy(&output.stdout)
        );
    })
}

fn command(world: &World, program: &str) -> Command {
    let mut command = Command::new(program);
    command
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .env("CLAUDE_CODE_EAGER_FLUSH", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn row(what: &str, pairs: &[(Duration, Duration)]) {
    let median = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    };
    let ms = |d: &Duration| d.as_secs_f64() * 1e3;
    let alone = median(pairs.iter().map(|(a, _)| ms(a)).collect());
    let with = median(pairs.iter().map(|(_, b)| ms(b)).collect());
    let added = median(pairs.iter().map(|(a, b)| ms(b) - ms(a)).collect());
    println!(
        "| {what} ({} pairs) | {alone:.1} ms | {with:.1} ms | {added:.1} ms | {:.1} % |",
        pairs.len(),
        added * 100.0 / alone
    );
}

//! Cost that does not grow: commands and requests on stores of 100 to 100,000 conversations, and turns 10 to 10,000
//! of one conversation. `cargo bench --profile dist -p rejoin --bench scale [-- [--postgres] [SIZE…]]`
//!
//! For each: the median of the wall time, of the processor time, and the reads of the database file (by `strace`,
//! where it is installed), of which a store with more in it must not need more.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and fails loudly"
)]

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::resource::{UsageWho, getrusage};
use rejoin_testkit::World;
use rejoin_testkit::populate::{COMMON, MIDDLING, Population, RARE};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
const ROUNDS: usize = 15;
const SIZES: [u64; 4] = [100, 1_000, 10_000, 100_000];
const TURNS: [u64; 3] = [10, 1_000, 10_000];

fn main() {
    let args: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let postgres = args.iter().any(|arg| arg == "--postgres");
    let sizes: Vec<u64> = args.iter().filter_map(|arg| arg.parse().ok()).collect();
    let sizes = if sizes.is_empty() {
        SIZES.to_vec()
    } else {
        sizes
    };
    println!("| store | what | median | processor | reads |\n|---|---|--:|--:|--:|");
    for conversations in sizes {
        let world = world(
            Population {
                conversations,
                messages: 20,
                long: 0,
            },
            postgres,
        );
        commands(&world, &format!("{conversations} conversations"), &listed());
        requests(&world, &format!("{conversations} conversations"), &PATHS);
    }
    for long in TURNS {
        let world = world(
            Population {
                conversations: 100,
                messages: 20,
                long,
            },
            postgres,
        );
        let last = format!("long:{}", 2 * long);
        let show = vec!["show", &last];
        commands(
            &world,
            &format!("turn {long}"),
            &[
                show,
                vec!["show", "long", "-n", "20"],
                vec!["send", "-q", "-k", "long", "-w", ".", "next"],
                vec!["explain", "long", "--next"],
                vec!["retry", "-q", "long"],
            ],
        );
        requests(
            &world,
            &format!("turn {long}"),
            &[
                "/api/conversations/long?limit=50",
                "/api/conversations/long",
            ],
        );
    }
}

fn world(population: Population, postgres: bool) -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    if postgres {
        world = world.on_server().unwrap();
    }
    world.run(&["list"]);
    match world.database() {
        Some(server) => population.fill_postgres(&server).unwrap(),
        None => population
            .fill_sqlite(&world.data().join("rejoin.db"))
            .unwrap(),
    }
    world
}

fn listed() -> Vec<Vec<&'static str>> {
    vec![
        vec!["list"],
        vec!["list", "--state", "idle"],
        vec!["search", RARE],
        vec!["search", COMMON],
        vec!["search", COMMON, MIDDLING],
        vec!["search", "commo"],
        vec!["show", "key-0"],
        vec!["explain", "key-0", "--next", "-w", "."],
        vec!["send", "-q", "-k", "key-0", "-w", ".", "-a", "demo", "next"],
        vec!["send", "-q", "-k", "new", "next"],
        vec!["retry", "-q", "new"],
        vec!["inbox"],
    ]
}

const PATHS: [&str; 8] = [
    "/api/conversations",
    "/api/conversations?state=running",
    "/api/conversations?agent=codex",
    "/api/conversations?q=rarely",
    "/api/conversations/key-0",
    "/api/search?q=common",
    "/api/inbox",
    "/metrics",
];

fn commands(world: &World, store: &str, all: &[Vec<&str>]) {
    for args in all {
        world.run(args).ok();
        let mut wall = vec![];
        let mut processor = vec![];
        for _ in 0..ROUNDS {
            let (before, began) = (used(), Instant::now());
            world.run(args).ok();
            wall.push(began.elapsed());
            processor.push(used().saturating_sub(before));
        }
        let reads = reads(world, args).map_or("-".to_owned(), |reads| reads.to_string());
        row(
            store,
            &format!("`rejoin {}`", args.join(" ")),
            wall,
            Some(processor),
            &reads,
        );
    }
}

fn requests(world: &World, store: &str, paths: &[&str]) {
    let daemon = world.serve(&[]);
    for path in paths {
        daemon.get(path);
        let mut wall = vec![];
        for _ in 0..4 * ROUNDS {
            let began = Instant::now();
            let answer = daemon.get(path);
            wall.push(began.elapsed());
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        wall.sort_unstable();
        let p99 = wall[wall.len() * 99 / 100];
        row(
            store,
            &format!("`GET {path}`, p99 {}", ms(p99)),
            wall,
            None,
            "",
        );
    }
    daemon.stop();
}

fn row(
    store: &str,
    what: &str,
    wall: Vec<Duration>,
    processor: Option<Vec<Duration>>,
    reads: &str,
) {
    let processor = processor.map_or(String::new(), |it| ms(median(it)));
    println!(
        "| {store} | {what} | {} | {processor} | {reads} |",
        ms(median(wall))
    );
}

fn median(mut all: Vec<Duration>) -> Duration {
    all.sort_unstable();
    all[all.len() / 2]
}

fn ms(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1000.0)
}

/// The processor time of all commands so far.
fn used() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    let time = |t: nix::sys::time::TimeVal| {
        Duration::from_secs(t.tv_sec() as u64) + Duration::from_micros(t.tv_usec() as u64)
    };
    time(usage.user_time()) + time(usage.system_time())
}

/// Reads at a place in a file, which are those of SQLite.
fn reads(world: &World, args: &[&str]) -> Option<usize> {
    let command = world.command(args);
    let mut traced = Command::new("strace");
    traced
        .args(["-f", "-qq", "-e", "trace=pread64", "-e", "signal=none"])
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir()?)
        .env_clear()
        .envs(
            command
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .stdout(Stdio::null());
    let done = traced.output().ok()?;
    let text = String::from_utf8_lossy(&done.stderr);
    Some(
        text.lines()
            .filter(|line| line.contains("pread64("))
            .count(),
    )
}

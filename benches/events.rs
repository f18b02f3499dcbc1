//! Events: how many a daemon commits in a second from 64 conversations at once, and what is left of that
//! while 100 watchers catch up on 100,000. `cargo bench --profile dist -p rejoin --bench events [-- ROUNDS]`
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and fails loudly"
)]

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use rejoin_testkit::{Daemon, World};
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
const CONVERSATIONS: usize = 64;
const WATCHERS: usize = 100;
/// Lines that each conversation's agent prints, each an event: as fast as it can.
const LINES: usize = 6000;

fn main() {
    let rounds = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(3);
    println!("| | events/s | beside it |\n|---|--:|--:|");
    for _ in 0..rounds {
        round();
    }
}

fn round() {
    let mut world = World::new(REJOIN);
    let flood = format!(
        "[agents.flood]\nkind = \"command\"\nbin = \"/bin/sh\"\n\
         args = [\"-c\", \"cat >/dev/null; seq -f 'line %.0f of what it says' {LINES}\"]\npermission.edit = []\n"
    );
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, flood).unwrap();
    world.set("REJOIN_DEFAULT_AGENT", "flood");
    world.set("REJOIN_LOG_LEVEL", "off");
    let daemon = world.serve(&[]);
    let alone = rate(&world, &daemon, "a");
    println!("| nobody watches | {:.0} | |", alone.per_second);
    while last_event(&daemon) < 100_000 {
        rate(&world, &daemon, "b");
    }
    let known = last_event(&daemon);
    let watchers: Vec<_> = (0..WATCHERS).map(|_| watch(&daemon, known)).collect();
    let since = Instant::now();
    let watched = rate(&world, &daemon, "c");
    let mut behind: Vec<Duration> = watchers.into_iter().map(|w| w.join().unwrap()).collect();
    behind.sort();
    println!(
        "| {WATCHERS} watchers catch up on {known} | {:.0} | {:.2} of it; the last had all after {:.1} s, {:.0} events/s were sent |",
        watched.per_second,
        watched.per_second / alone.per_second,
        behind.last().unwrap().as_secs_f64(),
        known as f64 * WATCHERS as f64 / since.elapsed().min(*behind.last().unwrap()).as_secs_f64(),
    );
    println!("| resident afterwards | {:.0} MiB | |", resident(&daemon));
}

struct Rate {
    per_second: f64,
}

/// All conversations say something at once; until the last has ended.
fn rate(world: &World, daemon: &Daemon, name: &str) -> Rate {
    let before = last_event(daemon);
    let since = Instant::now();
    for n in 0..CONVERSATIONS {
        let workdir = world.work();
        let body = json!({"key": format!("{name}{n}"), "text": "go", "workdir": workdir.to_str().unwrap()});
        let accepted = daemon.post("/api/send", &body);
        assert_eq!(accepted.status, 202, "{accepted:?}");
    }
    loop {
        let page = daemon.get("/metrics").body;
        let open: u64 = page
            .lines()
            .filter(|line| line.starts_with("rejoin_turns_now{"))
            .map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap())
            .sum();
        if open == 0 {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let took = since.elapsed().as_secs_f64();
    let per_second = (last_event(daemon) - before) as f64 / took;
    Rate { per_second }
}

fn last_event(daemon: &Daemon) -> u64 {
    let page = daemon.get("/metrics").body;
    let line = page.lines().find(|l| l.starts_with("rejoin_events_last "));
    line.unwrap().rsplit(' ').next().unwrap().parse().unwrap()
}

/// How long it takes until the event with this number has come.
fn watch(daemon: &Daemon, until: u64) -> std::thread::JoinHandle<Duration> {
    let mut stream = daemon.connect();
    let request = format!(
        "GET /api/events HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nLast-Event-ID: 0\r\n\r\n",
        daemon.address, daemon.token
    );
    stream.write_all(request.as_bytes()).unwrap();
    std::thread::spawn(move || {
        let since = Instant::now();
        let (mut buffer, mut kept) = (vec![0; 256 << 10], 0);
        loop {
            let n = stream.read(&mut buffer[kept..]).unwrap();
            assert!(n > 0, "hung up after {:?}", since.elapsed());
            let read = &buffer[..kept + n];
            if newest(read).is_some_and(|id| id >= until) {
                return since.elapsed();
            }
            // A number may be cut in two.
            let tail = read.len().saturating_sub(64)..read.len();
            kept = tail.len();
            buffer.copy_within(tail, 0);
        }
    })
}

/// The last number in what came: they only grow. Looked for from the end, so that readers cost little.
fn newest(read: &[u8]) -> Option<u64> {
    let from = read.windows(5).rposition(|w| w == b"\nid: ")? + 5;
    let to = from + read[from..].iter().position(|b| *b == b'\n')?;
    str::from_utf8(&read[from..to]).ok()?.parse().ok()
}

fn resident(daemon: &Daemon) -> f64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", daemon.pid())).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let kib: f64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib / 1024.0
}

//! The daemon at rest, beside others of its kind, and a turn through it beside one in a process of its
//! own. `REJOIN_BENCH_PEERS=FOLDER cargo bench --profile dist -p rejoin --bench daemon [-- ROUNDS]`, where FOLDER is one in
//! which `npm i --ignore-scripts @sandbox-agent/cli@0.4.2 @twsxtd/hapi@0.30.7` was run.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and fails loudly"
)]

use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rejoin_testkit::{World, free_port};
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
/// By then it has come to rest.
const REST: Duration = Duration::from_secs(3);

fn main() {
    let rounds = std::env::args().find_map(|a| a.parse().ok()).unwrap_or(7);
    println!("| daemon | ready, median | resident at rest | program |\n|---|--:|--:|--:|");
    let mut daemons = vec![rejoin()];
    daemons.extend(peers());
    for daemon in &daemons {
        let mut ready = vec![];
        let mut resident = 0;
        for _ in 0..rounds {
            let (took, mib) = daemon.start();
            ready.push(took);
            resident = resident.max(mib);
        }
        ready.sort();
        let size = std::fs::metadata(&daemon.program).unwrap().len() >> 20;
        let median = ready[ready.len() / 2].as_secs_f64() * 1e3;
        println!(
            "| {} | {median:.0} ms | {:.1} MiB | {size} MiB |",
            daemon.name,
            f64::from(resident) / 1024.0
        );
    }
    println!("\n| a turn of the demo agent | median |\n|---|--:|");
    turns(rounds * 8);
}

struct Daemon {
    name: &'static str,
    program: PathBuf,
    args: Vec<String>,
    env: Vec<(String, String)>,
    port: u16,
    _home: tempfile::TempDir,
}

impl Daemon {
    /// How long until it can be reached, and what it then holds, in KiB.
    fn start(&self) -> (Duration, u32) {
        let since = Instant::now();
        let mut child = Command::new(&self.program)
            .args(&self.args)
            .env_clear()
            .envs(self.env.iter().cloned())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(since.elapsed() < Duration::from_mins(1), "{}", self.name);
            std::thread::sleep(Duration::from_millis(1));
        }
        let took = since.elapsed();
        std::thread::sleep(REST);
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
        let resident = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        (took, resident)
    }
}

fn of(name: &'static str, program: PathBuf, args: &[&str], port: u16) -> Daemon {
    let home = tempfile::tempdir().unwrap();
    let at = home.path().to_str().unwrap().to_owned();
    let env = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", at.clone()),
        ("REJOIN_HOME", at),
    ];
    Daemon {
        name,
        program,
        args: args.iter().map(ToString::to_string).collect(),
        env: env.map(|(n, v)| (n.to_owned(), v)).into(),
        port,
        _home: home,
    }
}

fn rejoin() -> Daemon {
    let port = free_port();
    of(
        "rejoin serve",
        REJOIN.into(),
        &["serve", "--listen", &format!("127.0.0.1:{port}")],
        port,
    )
}

fn peers() -> Vec<Daemon> {
    let Some(folder) = std::env::var_os("REJOIN_BENCH_PEERS").map(PathBuf::from) else {
        return vec![];
    };
    let at = |path: &str| folder.join("node_modules").join(path);
    let port = free_port();
    vec![
        of(
            "sandbox-agent 0.4.2",
            at("@sandbox-agent/cli-linux-x64/bin/sandbox-agent"),
            &[
                "server",
                "--no-token",
                "--no-telemetry",
                "--port",
                &port.to_string(),
            ],
            port,
        ),
        of(
            "hapi hub 0.30.7",
            at("@twsxtd/hapi-linux-x64/bin/hapi"),
            &["hub"],
            3006,
        ),
    ]
}

/// Interleaved, so that both see the same neighbours.
fn turns(rounds: usize) {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    let daemon = world.serve(&[]);
    let here = world.work();
    daemon.say("a", "hello", &[("workdir", json!(here.to_str().unwrap()))]);
    let alone = World::new(REJOIN);
    alone
        .run(&["send", "-q", "-a", "demo", "-k", "b", "hello"])
        .ok();
    let (mut through, mut own) = (vec![], vec![]);
    for _ in 0..rounds {
        let since = Instant::now();
        daemon.say("a", "hello", &[]);
        through.push(since.elapsed());
        let since = Instant::now();
        alone.run(&["send", "-q", "-k", "b", "hello"]).ok();
        own.push(since.elapsed());
    }
    for (what, mut times) in [
        ("POST /api/send?wait=true", through),
        ("`rejoin send`", own),
    ] {
        times.sort();
        println!(
            "| {what} | {:.1} ms |",
            times[times.len() / 2].as_secs_f64() * 1e3
        );
    }
}

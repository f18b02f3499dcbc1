//! Nothing is left running.

use std::io::Write;
use std::os::unix::net::UnixStream;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rejoin_runner::shim::{Spec, StopReason};

use crate::turn::{Turn, is_running, python, sh, until};

/// Every way to get away from a parent.
const DAEMONS: &str = "
sleep 71 & setsid sleep 72 & (setsid sh -c 'sleep 73 & exit 0' &)
env -i $(command -v sleep) 74 & nohup sleep 75 >/dev/null 2>&1 &
read go
";

fn daemons() -> Spec {
    Spec {
        hold_stdin: true,
        ..sh(DAEMONS)
    }
}

/// Waits until all five run below the shim, then lets the CLI end.
fn let_go(turn: &Turn) {
    let shim = turn.shim_holder().pid;
    until("five sleeps", || sleeps_below(shim) == 5);
    let mut client = UnixStream::connect(turn.folder.join("s")).unwrap();
    client.write_all(b"{\"order\":\"close_stdin\"}\n").unwrap();
    until("the CLI's end", || !turn.cli().is_alive());
}

fn sleeps_below(root: i32) -> usize {
    let parent = |pid: i32| -> Option<i32> {
        let stat = fs_err::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(')')?
            .1
            .split_whitespace()
            .nth(1)?
            .parse()
            .ok()
    };
    let pids = fs_err::read_dir("/proc").unwrap();
    pids.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<i32>().ok())
        .filter(|pid| {
            let command = fs_err::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command);
            ["71", "72", "73", "74", "75"]
                .iter()
                .any(|it| command.ends_with(&format!("sleep\0{it}\0")))
        })
        .filter(|pid| {
            std::iter::successors(Some(*pid), |pid| parent(*pid))
                .take(20)
                .any(|it| it == root)
        })
        .count()
}

#[test]
fn detached_processes_are_listed_and_gone() {
    let mut turn = Turn::start(&daemons());
    let_go(&turn);
    let end = turn.end();
    assert_eq!((end.why, end.error), (StopReason::Exited, None));
    assert_eq!(
        (end.leftovers.len(), end.killed),
        (5, 5),
        "{:?}",
        end.leftovers
    );
    for left in &end.leftovers {
        assert!(left.command.contains("sleep 7"), "{left:?}");
        assert!(!is_running(left.pid), "{left:?}");
    }
}

#[test]
fn kept_ones_are_listed_and_live() {
    let mut turn = Turn::start(&Spec {
        keep_background: true,
        ..daemons()
    });
    let_go(&turn);
    let end = turn.end();
    assert_eq!(
        (end.leftovers.len(), end.killed),
        (5, 0),
        "{:?}",
        end.leftovers
    );
    for left in &end.leftovers {
        assert!(is_running(left.pid), "{left:?}");
        kill(Pid::from_raw(left.pid), Signal::SIGKILL).unwrap();
    }
}

#[test]
fn who_ends_in_time_is_not_listed() {
    let mut turn = Turn::start(&sh("(sleep 0.02; echo late) & echo early"));
    let end = turn.end();
    assert_eq!((end.leftovers, end.killed), (vec![], 0));
    assert_eq!(turn.file("out"), "early\nlate\n");
}

#[test]
fn orphans_are_reaped_while_the_cli_runs() {
    let script = "
import os, sys
for _ in range(20):
    if os.fork() == 0:
        if os.fork() == 0: os._exit(0)
        os._exit(0)
    os.wait()
print('up')
sys.stdin.read()
";
    let mut turn = Turn::start(&Spec {
        hold_stdin: true,
        ..python(script)
    });
    turn.until_out("up");
    let shim = turn.shim_holder().pid;
    until("no zombies", || {
        let path = format!("/proc/{shim}/task/{shim}/children");
        fs_err::read_to_string(path)
            .unwrap()
            .split_whitespace()
            .count()
            == 1
    });
    turn.signal_shim(Signal::SIGINT);
    turn.end();
}

/// Forks and ends at once, again and again: each process lives for a moment only.
const RELAY: &str = "
import os, sys, time
if os.fork():
    time.sleep(0.5)
    sys.exit()
os.setsid()
deadline = time.time() + 120
while time.time() < deadline:
    if os.fork():
        os._exit(0)
    os.write(1, b'.')
";

#[test]
fn a_process_that_forks_faster_than_a_list_is_read_is_gone() {
    let mut turn = Turn::start(&python(RELAY));
    turn.until_out("....");
    let end = turn.end();
    assert_eq!((end.why, end.error), (StopReason::Exited, None));
    assert!(end.killed > 0);
    // A survivor would go on writing.
    let written = turn.file("out").len();
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(turn.file("out").len(), written);
}

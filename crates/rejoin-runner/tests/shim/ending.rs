//! Interrupt, stop, and CLIs that do not want to end.

use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rejoin_runner::process::ShimExit;
use rejoin_runner::shim::{Order, Spec, StopReason};
use rejoin_runner::shim_link::ShimLink;

use crate::turn::{Turn, is_running, python, sh, until};

pub(crate) const POLITE: &str =
    "trap 'echo bye; exit 42' INT; echo up; while :; do sleep 0.05; done";
const STUBBORN: &str = "
import signal, subprocess, time
signal.signal(signal.SIGINT, signal.SIG_IGN)
signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(['setsid', 'sleep', '71'])
print(child.pid)
print('up')
while True: time.sleep(60)
";

async fn tell(turn: &Turn, order: Order) {
    turn.cli();
    let mut link = ShimLink::connect(&turn.folder).await.unwrap().unwrap();
    link.order(order).await.unwrap();
}

#[tokio::test]
async fn a_polite_cli_ends_by_itself() {
    let mut turn = Turn::start(&sh(POLITE));
    turn.until_out("up");
    tell(&turn, Order::Interrupt).await;
    let end = turn.end();
    assert_eq!((end.code, end.why), (Some(42), StopReason::Interrupted));
    assert!(turn.file("out").ends_with("bye\n"));
}

#[tokio::test]
async fn a_stubborn_one_is_killed_with_its_children() {
    let mut turn = Turn::start(&Spec {
        grace_ms: 100,
        ..python(STUBBORN)
    });
    turn.until_out("up");
    let child: i32 = turn.file("out").lines().next().unwrap().parse().unwrap();
    let begin = Instant::now();
    tell(&turn, Order::Interrupt).await;
    let end = turn.end();
    assert_eq!((end.signal, end.why), (Some(9), StopReason::Interrupted));
    // TERM after 100 ms, KILL 2 s later.
    let took = begin.elapsed();
    assert!(
        took > Duration::from_secs(2) && took < Duration::from_secs(10),
        "{took:?}"
    );
    assert!(!is_running(child));
}

#[tokio::test]
async fn stop_is_quicker_and_the_first_cause_stays() {
    let mut turn = Turn::start(&Spec {
        grace_ms: 60_000,
        ..python(STUBBORN)
    });
    turn.until_out("up");
    let begin = Instant::now();
    tell(&turn, Order::Interrupt).await;
    tell(&turn, Order::Stop).await;
    let end = turn.end();
    assert_eq!((end.signal, end.why), (Some(9), StopReason::Interrupted));
    assert!(begin.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_terminated_shim_interrupts() {
    let mut turn = Turn::start(&sh(POLITE));
    turn.until_out("up");
    turn.signal_shim(Signal::SIGHUP);
    turn.signal_shim(Signal::SIGTERM);
    let end = turn.end();
    assert_eq!((end.code, end.why), (Some(42), StopReason::Interrupted));
}

#[test]
fn a_killed_cli_is_reported() {
    let mut turn = Turn::start(&sh("sleep 60 & echo up; wait"));
    turn.until_out("up");
    kill(Pid::from_raw(turn.cli().pid), Signal::SIGKILL).unwrap();
    let end = turn.end();
    assert_eq!(
        (end.signal, end.code, end.why),
        (Some(9), None, StopReason::Exited)
    );
    assert_eq!((end.leftovers.len(), end.killed), (1, 1));
}

#[test]
fn a_removed_folder_does_not_keep_the_shim() {
    let mut turn = Turn::start(&sh("echo up; sleep 60"));
    turn.until_out("up");
    let cli = turn.cli();
    fs_err::remove_dir_all(&turn.folder).unwrap();
    kill(Pid::from_raw(cli.pid), Signal::SIGTERM).unwrap();
    let shim = turn.shim.as_mut().unwrap();
    until("the shim's end", || shim.try_wait().unwrap().is_some());
    assert_eq!(shim.try_wait().unwrap(), Some(ShimExit::Code(1)));
}

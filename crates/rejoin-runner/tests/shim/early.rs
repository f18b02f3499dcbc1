//! A shim that is started before it is known what it will run.

use std::path::Path;

use rejoin_runner::process::{ShimChild, ShimExit, spawn_waiting_shim};
use rejoin_runner::shim::{Begun, Spec, StopReason, begun};

use crate::turn::{SHIM, Turn, is_running, sh, until};

fn early(turn: &Turn) -> ShimChild {
    spawn_waiting_shim(Path::new(SHIM), turn.env()).unwrap()
}

#[test]
fn told_later() {
    let mut turn = Turn::prepared(&Spec {
        stdin: "hello\n".into(),
        ..sh("cat; env | grep -c . >&2; echo $MORE; exit 3")
    });
    let more = [("MORE".to_owned(), "a b\nc".to_owned())];
    turn.shim = Some(early(&turn).tell(&turn.folder, &more).unwrap());
    let end = turn.end();
    assert_eq!((end.code, end.why), (Some(3), StopReason::Exited));
    assert_eq!(turn.file("out"), "hello\na b c\n");
    // PATH, REJOIN_TURN, MORE (two lines), and PWD, which sh sets itself.
    assert_eq!(turn.file("err"), "5\n");
}

#[test]
fn never_told() {
    let turn = Turn::prepared(&sh("echo no"));
    let shim = early(&turn);
    let pid = shim.pid();
    // As when the process that started it dies: its end of the line is closed.
    drop(shim);
    until("the shim's end", || !is_running(pid));
    assert_eq!(begun(&turn.folder).unwrap(), Begun::No);
    assert!(!turn.folder.join("out").exists());
}

#[test]
fn goes_on_without_who_told_it() {
    let turn = Turn::prepared(&sh("sleep 0.3; echo done"));
    drop(early(&turn).tell(&turn.folder, &[]).unwrap());
    until("end.json", || turn.folder.join("end.json").exists());
    assert_eq!(turn.file("out"), "done\n");
}

#[test]
fn comes_second() {
    let mut turn = Turn::start(&sh("echo once"));
    let mut second = early(&turn);
    turn.end();
    second = second.tell(&turn.folder, &[]).unwrap();
    until("the second's end", || second.try_wait().unwrap().is_some());
    assert_eq!(
        second.try_wait().unwrap(),
        Some(ShimExit::Code(rejoin_runner::shim::ALREADY_BEGUN))
    );
    assert_eq!(turn.file("out"), "once\n");
}

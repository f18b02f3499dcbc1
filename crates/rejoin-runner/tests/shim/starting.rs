//! How a run starts, or does not.

use std::os::unix::fs::PermissionsExt;

use rejoin_runner::process::ShimExit;
use rejoin_runner::shim::{ALREADY_BEGUN, Begun, Spec, StopReason, begun, void};
use rejoin_runner::wall::{Gap, Mechanism, Wall};

use crate::turn::{Turn, is_running, sh, until};

#[test]
fn a_normal_turn() {
    let dir = tempfile::tempdir().unwrap();
    let mut turn = Turn::start(&Spec {
        stdin: "hello\n".into(),
        dir: dir.path().into(),
        ..sh("cat; pwd; env | grep -c . >&2; exit 3")
    });
    let end = turn.end();
    assert_eq!(
        (end.code, end.signal, end.why),
        (Some(3), None, StopReason::Exited)
    );
    assert_eq!((end.error, end.leftovers, end.killed), (None, vec![], 0));
    let real = dir.path().canonicalize().unwrap();
    assert_eq!(turn.file("out"), format!("hello\n{}\n", real.display()));
    // PATH, REJOIN_TURN, and PWD, which sh sets itself.
    assert_eq!(turn.file("err"), "3\n");
    for name in ["out", "err", "begin", "cli.json", "end.json"] {
        let mode = fs_err::metadata(turn.folder.join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn a_prompt_larger_than_any_pipe() {
    let stdin = "0123456789\n".repeat(500_000);
    let mut turn = Turn::start(&Spec {
        stdin: stdin.clone(),
        ..sh("wc -c")
    });
    assert_eq!(turn.end().code, Some(0));
    assert_eq!(turn.file("out").trim(), stdin.len().to_string());
}

#[test]
fn a_cli_that_does_not_read() {
    let stdin = "x".repeat(3_000_000);
    let mut turn = Turn::start(&Spec {
        stdin,
        hold_stdin: true,
        ..sh("exec <&-; echo ok")
    });
    assert_eq!(turn.end().code, Some(0));
    assert_eq!(turn.file("out"), "ok\n");
}

#[test]
fn what_cannot_start() {
    let nowhere = "/does/not/exist";
    let table = [
        Spec {
            argv: vec![nowhere.into()],
            ..Spec::default()
        },
        Spec {
            argv: vec!["no-such-program-anywhere".into()],
            ..Spec::default()
        },
        Spec {
            argv: vec!["/etc/hostname".into()],
            ..Spec::default()
        },
        Spec {
            argv: vec![],
            ..Spec::default()
        },
        Spec {
            dir: nowhere.into(),
            ..sh("true")
        },
        Spec {
            version: 99,
            ..sh("true")
        },
    ];
    for spec in table {
        let mut turn = Turn::start(&spec);
        let end = turn.end();
        assert_eq!(
            (end.why, end.code, end.signal),
            (StopReason::NotStarted, None, None),
            "{spec:?}"
        );
        assert!(end.error.is_some_and(|text| !text.is_empty()), "{spec:?}");
    }
}

/// A wall that cannot be built, for any mechanism, keeps the CLI from starting.
#[test]
fn nothing_starts_without_its_wall() {
    let mechanisms = [
        Mechanism::Namespace,
        Mechanism::BareNamespace,
        Mechanism::Landlock,
    ];
    for mechanism in mechanisms {
        let wall = Wall {
            mechanism,
            closed: vec![],
            gaps: vec![Gap {
                path: "/does/not/exist".into(),
                write: false,
            }],
        };
        let dir = tempfile::tempdir().unwrap();
        let mut turn = Turn::start(&Spec {
            wall: Some(wall),
            dir: dir.path().canonicalize().unwrap(),
            ..sh("touch ran")
        });
        let end = turn.end();
        assert_eq!(
            (end.why, end.code),
            (StopReason::NotStarted, None),
            "{end:?}"
        );
        assert!(
            end.error.unwrap().contains("building the wall"),
            "{mechanism:?}"
        );
        assert!(!dir.path().join("ran").exists());
    }
}

#[test]
fn a_voided_run_never_starts() {
    let turn = Turn::prepared(&sh("echo never"));
    assert!(void(&turn.folder).unwrap());
    let mut shim = turn.spawn();
    until("the shim's end", || shim.try_wait().unwrap().is_some());
    assert_eq!(
        shim.try_wait().unwrap(),
        Some(ShimExit::Code(ALREADY_BEGUN))
    );
    assert!(!turn.folder.join("out").exists());
    assert!(!turn.folder.join("end.json").exists());
}

#[test]
fn of_two_shims_one_runs() {
    let mut turn = Turn::prepared(&sh("echo once"));
    let mut shims: Vec<_> = (0..4).map(|_| turn.spawn()).collect();
    assert_eq!(turn.end().code, Some(0));
    let mut codes = Vec::new();
    for shim in &mut shims {
        until("the shim's end", || shim.try_wait().unwrap().is_some());
        codes.push(shim.try_wait().unwrap());
    }
    let second = Some(ShimExit::Code(ALREADY_BEGUN));
    assert_eq!(codes.iter().filter(|code| **code == second).count(), 3);
    assert_eq!(
        codes
            .iter()
            .filter(|code| **code == Some(ShimExit::Code(0)))
            .count(),
        1
    );
    assert_eq!(turn.file("out"), "once\n");
    assert!(!void(&turn.folder).unwrap());
    assert!(matches!(begun(&turn.folder).unwrap(), Begun::By(_)));
}

#[test]
fn small_and_the_last_to_go_when_memory_is_short() {
    let mut turn = Turn::start(&Spec {
        hold_stdin: true,
        grace_ms: 50,
        ..sh("echo up; cat")
    });
    turn.until_out("up");
    let (shim, cli) = (turn.shim_holder().pid, turn.cli().pid);
    let score = |pid: i32| -> i32 {
        let path = format!("/proc/{pid}/oom_score_adj");
        fs_err::read_to_string(path)
            .unwrap()
            .trim()
            .parse()
            .unwrap()
    };
    assert_eq!(score(cli), (score(shim) + 200).min(1000));
    let status = fs_err::read_to_string(format!("/proc/{shim}/status")).unwrap();
    let field = |name: &str| -> u64 {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse().unwrap()
    };
    assert!(field("VmRSS:") < 16 * 1024, "{} KiB", field("VmRSS:"));
    assert_eq!(field("Threads:"), 1);
    // 0-2, signals, socket, out, err, inotify, stdin; nothing that was open for a moment stays.
    until("nine descriptors", || {
        fs_err::read_dir(format!("/proc/{shim}/fd"))
            .unwrap()
            .count()
            == 9
    });
    turn.signal_shim(nix::sys::signal::Signal::SIGHUP);
    turn.signal_shim(nix::sys::signal::Signal::SIGTERM);
    assert_eq!(turn.end().why, StopReason::Interrupted);
    assert!(!is_running(cli));
}

//! kill -9 of the launcher, and of the shim itself.

use std::process::{Command, Stdio};

use nix::sys::signal::Signal;
use rejoin_runner::shim::{Order, Spec, StopReason};
use rejoin_runner::shim_link::ShimLink;
use rejoin_runner::stray_processes::{end_marked, live_cli, marked};

use crate::ending::POLITE;
use crate::turn::{SHIM, Turn, sh, until};

/// Starts the shim below a shell, which is then killed. With `&` it also has SIGINT ignored.
#[expect(clippy::disallowed_methods, reason = "a launcher that is not ours")]
fn start_and_kill_the_launcher(turn: &Turn) {
    let mut launcher = Command::new("sh")
        .args(["-c", r#""$0" shim "$1" & wait"#, SHIM])
        .arg(&turn.folder)
        .env_clear()
        .envs(turn.env())
        .stdin(Stdio::null())
        .spawn()
        .unwrap();
    turn.until_out("up");
    launcher.kill().unwrap();
    launcher.wait().unwrap();
}

#[tokio::test]
async fn a_killed_launcher_does_not_matter() {
    let mut turn = Turn::prepared(&Spec {
        hold_stdin: true,
        ..sh("echo up; cat; exit 7")
    });
    start_and_kill_the_launcher(&turn);
    let mut link = ShimLink::connect(&turn.folder).await.unwrap().unwrap();
    link.order(Order::Stdin {
        data: "after\n".into(),
    })
    .await
    .unwrap();
    link.order(Order::CloseStdin).await.unwrap();
    let end = turn.end();
    assert_eq!((end.code, end.why), (Some(7), StopReason::Exited));
    assert_eq!(turn.file("out"), "up\nafter\n");
}

#[tokio::test]
async fn ignored_signals_are_not_inherited() {
    let mut turn = Turn::prepared(&sh(POLITE));
    start_and_kill_the_launcher(&turn);
    let mut link = ShimLink::connect(&turn.folder).await.unwrap().unwrap();
    link.order(Order::Interrupt).await.unwrap();
    assert_eq!(turn.end().code, Some(42));
}

#[test]
fn a_killed_shim_leaves_files_and_findable_processes() {
    let script = "env -i $(command -v sleep) 76 & echo up; cat >/dev/null; echo finished; wait";
    let mut turn = Turn::start(&Spec {
        hold_stdin: true,
        ..sh(script)
    });
    turn.until_out("up");
    let (shim, cli) = (turn.shim_holder(), turn.cli());
    until("the child", || {
        marked(&turn.id)
            .iter()
            .any(|it| it.command.ends_with("sleep 76"))
    });
    turn.signal_shim(Signal::SIGKILL);
    until("the shim's end", || !shim.is_alive());
    turn.until_out("finished");
    assert_eq!(live_cli(&turn.folder), Some(cli.clone()));
    assert!(!turn.folder.join("end.json").exists());

    let found = marked(&turn.id);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().any(|it| it.pid == cli.pid));
    assert!(found.iter().any(|it| it.command.ends_with("sleep 76")));
    assert_eq!(end_marked(&turn.id).unwrap(), 2);
    assert_eq!((marked(&turn.id), live_cli(&turn.folder)), (vec![], None));
    let child = turn.shim.as_mut().unwrap();
    until("the shim is reaped", || child.try_wait().unwrap().is_some());
}

/// Runs itself again below a marked shell, which has another child besides.
#[test]
#[expect(clippy::disallowed_methods, reason = "a process that is not ours")]
fn a_caller_inside_the_turn_is_spared() {
    const TURN: &str = "spared-caller";
    if std::env::var_os("REJOIN_TURN").is_some_and(|turn| turn == TURN) {
        until("the sleep", || {
            marked(TURN).iter().any(|it| it.command == "sleep 77")
        });
        assert_eq!(marked(TURN).len(), 1, "{:?}", marked(TURN));
        assert_eq!(end_marked(TURN).unwrap(), 1);
        return;
    }
    let this = "detached::a_caller_inside_the_turn_is_spared";
    let status = Command::new("sh")
        .args(["-c", r#"sleep 77 & "$0" --exact "$1"; exit $?"#])
        .arg(std::env::current_exe().unwrap())
        .arg(this)
        .env("REJOIN_TURN", TURN)
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn others_are_not_marked() {
    assert_eq!(marked("no such turn"), vec![]);
    assert_eq!(live_cli("/nowhere".as_ref()), None);
}

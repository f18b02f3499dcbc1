//! A container is stopped: TERM means interrupt, capture, commit within eight seconds, whatever the
//! tool that runs makes of signals; then another machine goes on.

use std::process::{Child, Command, Stdio};

use rejoin_testkit::{
    CLAUDE_325, CODEX_166, CODEX_TOOLS, Cli, Done, Model, Talk, World, kill, runs, stop, user,
    wait_for,
};

use super::REJOIN;

/// Neither INT nor TERM ends it.
const STUBBORN: &str = "trap '' INT TERM; tail -f /etc/hostname";

/// Before a container is killed it has ten.
const SECONDS: u64 = 8;

#[test]
fn with_claude() {
    stopped(&CLAUDE_325, &["-m", "sonnet", "--tools", "Bash"], send);
}

/// A CLI that does not hear that it is to end.
#[test]
fn with_a_claude_that_stands_still() {
    stopped(
        &CLAUDE_325,
        &["-m", "sonnet", "--tools", "Bash"],
        |world, n| {
            let Sending { child, pid } = send(world, n);
            let deaf = move |world: &World| {
                stop(world.cli().unwrap());
                pid(world)
            };
            let pid = Box::new(deaf);
            Sending { child, pid }
        },
    );
}

#[test]
fn with_codex() {
    stopped(&CODEX_166, &["-m", CODEX_TOOLS], send);
}

/// As process 1 of its namespace, which gets no signal that it has not asked for.
#[test]
fn as_the_first_process_of_a_container() {
    let able = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "true"])
        .output()
        .is_ok_and(|done| done.status.success());
    if !able {
        return crate::suite::walls::left_out_without("no process namespaces can be made here");
    }
    stopped(&CLAUDE_325, &["-m", "sonnet", "--tools", "Bash"], contained);
}

/// A `send`, and how to find the process that is to be told to end.
struct Sending {
    child: Child,
    pid: Box<dyn Fn(&World) -> i32>,
}

fn stopped(cli: &'static dyn Cli, first: &[&str], send: fn(&World, usize) -> Sending) {
    let model = || Model::scripted([("stuck", vec![runs(STUBBORN)])]);
    let world = World::with(REJOIN, cli, model).and_then(World::on_server);
    let Some(mut world) = world else { return };
    world.set("REJOIN_FAKE_MACHINE", "here");
    let mut talk = Talk::begin(world);
    talk.good("started", first);
    // What it confirms is not saved yet when the container is stopped.
    talk.world.set("REJOIN_BLOBS_URL", "file:/dev/null/no");
    let turn = talk.good("resumed", &[]);
    assert_eq!(turn["saved"], "failed", "{turn:#}");
    talk.world.unset("REJOIN_BLOBS_URL");
    talk.n += 1;
    let Sending { mut child, pid } = send(&talk.world, talk.n);
    wait_for("the tool to run", 60, || {
        let stuck = |command: &str| command == "tail -f /etc/hostname ";
        talk.world.pid_of(stuck)
    });
    kill(pid(&talk.world), "TERM");
    wait_for("the turn to be committed", SECONDS, || {
        child.try_wait().unwrap()
    });
    talk.failed(&Done::of(child), ("cancelled", "cancelled", 143));
    let listed = talk
        .world
        .run(&["snapshot", "list", "k", "--json"])
        .ok()
        .json();
    let newest = &listed["snapshots"][0];
    assert_eq!(
        (&newest["state"], &newest["messages"]),
        (&"confirmed".into(), &4.into()),
        "{listed:#}"
    );
    talk.world.go_to("second");
    talk.world.set("REJOIN_FAKE_MACHINE", "there");
    let here = talk.world.work().to_str().unwrap().to_owned();
    let turn = talk.good("restored", &["-w", &here]);
    assert_eq!(turn["sent"]["resumed"], 4, "{turn:#}");
    talk.good("resumed", &["-w", &here]);
}

fn send(world: &World, n: usize) -> Sending {
    let child = world.start(n, "#s:stuck", &[]);
    let pid = child.id() as i32;
    let pid = Box::new(move |_: &World| pid);
    Sending { child, pid }
}

fn contained(world: &World, n: usize) -> Sending {
    let text = format!("{} #s:stuck", user(n));
    let child = Command::new("unshare")
        .args(["--pid", "--fork", "--mount-proc", "--", REJOIN])
        .args(["send", "--json", "-k", "k", &text])
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let sender = |world: &World| {
        let begins = format!("{REJOIN} send ");
        let found = world.pid_of(|command| command.starts_with(&begins));
        found.unwrap()
    };
    let pid = Box::new(sender);
    Sending { child, pid }
}

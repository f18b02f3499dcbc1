//! A daemon waits for the answer, is killed, and another one goes on.

use std::io::{BufRead, BufReader};
use std::process::Child;

use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, World, kill, texts};

use super::killed::nobody_follows;
use super::{REJOIN, answer, asking, asks, ended, quiet};

/// A daemon that has begun to listen.
fn serve(world: &World) -> Child {
    let mut daemon = world.spawn(&["serve", "--listen", "127.0.0.1:0"]);
    let mut line = String::new();
    let mut out = BufReader::new(daemon.stdout.take().unwrap());
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with("listening on "), "{line}");
    daemon
}

fn end(mut daemon: Child, signal: &str) {
    kill(daemon.id().try_into().unwrap(), signal);
    daemon.wait().unwrap();
}

#[test]
fn a_daemon_is_killed_while_a_question_is_pending() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let world = asking(world);
        asks(&world, "#s:ask one", &["-m", "sonnet"]);
        nobody_follows(&world);
        end(serve(&world), "KILL");
        assert_eq!(world.last_turn()["status"], "waiting");
        let daemon = serve(&world);
        answer(&world, &["1", "2"]).ok();
        let turn = ended(&world);
        assert_eq!(turn["status"], "succeeded", "{turn}");
        let told = texts(&world.model.last());
        assert_eq!(
            told.matches(r#""Which colour?"="Red""#).count(),
            1,
            "{told}"
        );
        end(daemon, "TERM");
        quiet(&world);
    }
}

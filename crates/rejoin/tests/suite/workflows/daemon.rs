//! Workflows under a daemon, over HTTP and on two machines.

use rejoin_testkit::{World, wait_for};
use serde_json::{Value, json};

use crate::suite::walks::Dice;

use super::{REJOIN, step, succeed, write};

const STEPS: [(&str, &str); 3] = [
    ("one", "prompt: one\n"),
    ("two", "continue_from: one\nprompt: two\n"),
    ("cmd", "needs: [two]\nrun: [\"echo\", \"done\"]\n"),
];
const DEMO: &str = "defaults: { agent: demo }\n";

/// The command line runs a workflow through the daemon, with the same result.
#[test]
fn a_command_uses_the_daemon() {
    let world = World::new(REJOIN);
    let daemon = world.serve(&[]);
    write(&world, DEMO, &STEPS);
    let view = succeed(&world, &[]);
    assert_eq!(step(&view, "two")["verdict"], "resumed");
    assert_eq!(step(&view, "cmd")["text"], "done\n");
    let same = daemon.get("/api/workflows/w").ok();
    assert_eq!(same["workflow_id"], view["workflow_id"]);
    let listed = daemon.get("/api/workflows").ok();
    assert_eq!(listed["workflows"][0]["key"], "w");
}

/// A daemon that is killed goes on with the run by itself; a cancelled run ends.
#[test]
fn a_killed_daemon_goes_on() {
    let world = World::new(REJOIN);
    let daemon = world.serve(&[]);
    let text = "name: t\nsteps:\n  a: { shell: 'echo a >> log; sleep 2' }\n  b: { needs: [a], shell: 'echo b >> log' }\n  c: { needs: [b], approve: 'ok?' }\n";
    let work = world.work();
    let body = json!({"file": text, "key": "r", "workdir": work.to_str().unwrap()});
    let begun = daemon.post("/api/workflows", &body).ok();
    assert_eq!(begun["status"], "running");
    wait_for("the first step", 30, || {
        work.join("log").exists().then_some(())
    });
    daemon.kill();
    let daemon = world.serve(&[]);
    let show = || daemon.get("/api/workflows/r").ok();
    let view: Value = wait_for("the approval", 60, || {
        let view = show();
        (view["status"] == "waiting").then_some(view)
    });
    assert_eq!(std::fs::read_to_string(work.join("log")).unwrap(), "a\nb\n");
    let turn = step(&view, "c")["turn_id"].as_str().unwrap();
    let path = format!("/api/turns/{turn}/answer");
    daemon.post(&path, &json!({"decision": "allow"})).ok();
    wait_for("the end", 60, || {
        (show()["status"] == "succeeded").then_some(())
    });
    // The same request again is the same run.
    let again = daemon.post("/api/workflows", &body).ok();
    assert_eq!(again["workflow_id"], begun["workflow_id"]);
    let slow = json!({"file": "name: s\nsteps:\n  a: { shell: 'sleep 60' }\n", "key": "s", "workdir": work.to_str().unwrap()});
    daemon.post("/api/workflows", &slow).ok();
    wait_for("the step", 30, || {
        (daemon.get("/api/workflows/s").ok()["steps"][0]["status"] == "running").then_some(())
    });
    daemon.post("/api/workflows/s/cancel", &json!({})).ok();
    wait_for("the cancelled run", 30, || {
        (daemon.get("/api/workflows/s").ok()["status"] == "cancelled").then_some(())
    });
}

/// Bad files and callers without the right are refused.
#[test]
fn requests_are_checked() {
    let world = World::new(REJOIN);
    let daemon = world.serve(&[]);
    let refused = |body: Value| daemon.post("/api/workflows", &body).status;
    assert_eq!(refused(json!({})), 400);
    assert_eq!(refused(json!({"file": "name: [", "key": "x"})), 400);
    assert_eq!(refused(json!({"name": "../etc"})), 404);
    assert_eq!(daemon.get("/api/workflows/nine").status, 404);
}

/// A run that is killed on one machine is continued on another, through PostgreSQL.
#[test]
fn another_machine_goes_on() {
    let Some(mut world) = World::new(REJOIN).on_server() else {
        return;
    };
    world.set("REJOIN_FAKE_LEASE", "4000");
    let mut dice = Dice(20_261_121);
    super::killed::killed_and_resumed(&mut world, &mut dice, 3, "elsewhere");
}

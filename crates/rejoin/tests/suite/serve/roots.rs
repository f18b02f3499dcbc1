//! Roots: the folder that a turn really enters lies beneath one, whenever the turn runs.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use rejoin_testkit::{Daemon, World, wait_for};
use serde_json::{Value, json};

use super::demo;

/// A world whose daemon allows the work folder, with a folder in it and one outside.
fn held() -> (World, PathBuf, PathBuf) {
    let mut world = demo();
    world.set("REJOIN_SERVE_ROOTS", world.work().to_str().unwrap());
    let (inside, outside) = (world.work().join("inside"), world.root().join("outside"));
    std::fs::create_dir(&inside).unwrap();
    std::fs::create_dir(&outside).unwrap();
    (world, inside, outside)
}

/// Puts a link to the folder outside in the place of the one inside.
fn swap(inside: &PathBuf, outside: &PathBuf) {
    std::fs::rename(inside, inside.with_extension("moved")).unwrap();
    symlink(outside, inside).unwrap();
}

fn turn(daemon: &Daemon, sent: &Value) -> Value {
    let path = format!("/api/turns/{}", sent["turn_id"].as_str().unwrap());
    wait_for("the turn to end", 60, || {
        let turn = daemon.get(&path).ok();
        let over = ["succeeded", "failed", "cancelled", "lost"];
        let status = turn["status"].as_str().unwrap();
        over.contains(&status).then_some(turn)
    })
}

#[test]
fn a_continued_turn_does_not_follow_a_link_outside() {
    let (world, inside, outside) = held();
    let daemon = world.serve(&[]);
    let first = daemon.say("k", "one", &[("workdir", json!(inside.to_str().unwrap()))]);
    swap(&inside, &outside);
    let body = json!({"text": "two"});
    for path in ["/api/conversations/k/messages", "/api/send"] {
        let mut body = body.clone();
        if path == "/api/send" {
            body["key"] = json!("k");
        }
        let refused = daemon.post(path, &body);
        assert_eq!(refused.status, 403, "{path}: {refused:?}");
    }
    let retry = format!(
        "/api/messages/{}/retry",
        first["message_id"].as_str().unwrap()
    );
    assert_eq!(daemon.post(&retry, &json!({})).status, 403);
    // The user's own commands are held to nothing.
    world.run(&["send", "-k", "k", "three"]).ok();
}

#[test]
fn a_queued_turn_does_not_follow_a_link_outside() {
    let (mut world, inside, outside) = held();
    // A daemon that is gone runs nothing, so the message waits.
    world.set("REJOIN_FAIL", "after_look");
    let daemon = world.serve(&[]);
    let body = json!({"key": "k", "text": "one", "workdir": inside.to_str().unwrap()});
    let sent = daemon.post("/api/send", &body);
    daemon.wait_until_gone();
    assert_eq!(sent.status, 202, "{sent:?}");
    world.unset("REJOIN_FAIL");
    swap(&inside, &outside);
    let daemon = world.serve(&[]);
    let turn = turn(&daemon, &sent.json());
    assert_eq!(turn["status"], "failed", "{turn}");
    let said = turn["error"]["message"].as_str().unwrap();
    assert_eq!(
        said,
        "the working folder is not beneath one that this daemon allows"
    );
    assert_eq!(turn["attempts"], json!([]), "{turn}");
}

/// Between the last look at the folder and the start of the agent.
#[test]
fn a_link_that_is_put_there_at_the_last_moment_is_not_followed() {
    let (mut world, inside, outside) = held();
    let marker = outside.join("entered");
    let script = world.root().join("agent");
    world.script(
        &script,
        "#!/bin/sh\n[ \"$1\" = --version ] || pwd -P > entered\necho done\n",
    );
    let config = format!(
        "[agents.mine]\nkind = \"command\"\nbin = {:?}\nstart_args = []\npermission.edit = []\n",
        script.to_str().unwrap()
    );
    let folder = world.home().join(".config/rejoin");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("config.toml"), config).unwrap();
    world.set("REJOIN_FAIL", "after_spec");
    let daemon = world.serve(&[]);
    let body =
        json!({"key": "k", "text": "one", "agent": "mine", "workdir": inside.to_str().unwrap()});
    let sent = daemon.post("/api/send", &body);
    daemon.wait_until_gone();
    assert_eq!(sent.status, 202, "{sent:?}");
    world.unset("REJOIN_FAIL");
    swap(&inside, &outside);
    // The run was written and never begun: its shim is started by hand.
    let turns = std::fs::read_dir(world.data().join("turns")).unwrap();
    let turn = turns.flatten().next().unwrap().path();
    let runs = std::fs::read_dir(turn).unwrap().flatten();
    let run = runs
        .map(|run| run.path())
        .find(|run| run.join("spec.json").exists());
    let run = run.unwrap();
    let mut shim = world.command(&["shim", run.to_str().unwrap()]);
    shim.spawn().unwrap().wait().unwrap();
    let end = std::fs::read_to_string(run.join("end.json")).unwrap();
    assert!(end.contains("the working folder was replaced"), "{end}");
    assert!(!marker.exists());
}

#[test]
fn folders_outside_answer_alike_whether_they_exist() {
    let (world, inside, outside) = held();
    let daemon = world.serve(&[]);
    symlink(world.root().join("nowhere"), world.work().join("dangling")).unwrap();
    symlink(&outside, world.work().join("out")).unwrap();
    std::fs::write(outside.join("file"), "x").unwrap();
    let root = world.root().to_str().unwrap().to_owned();
    let work = world.work().to_str().unwrap().to_owned();
    let said = |path: String| {
        let answer = daemon.post("/api/send", &json!({"text": "x", "workdir": path}));
        (
            answer.status,
            answer.json()["detail"].clone(),
            answer.json()["try"].clone(),
        )
    };
    let there = said(outside.to_str().unwrap().to_owned());
    assert_eq!(there.0, 403);
    for path in [
        format!("{root}/missing"),
        format!("{root}/missing/deeper"),
        format!("{root}/outside/file"),
        format!("{work}/../missing"),
        format!("{work}/../outside"),
        format!("{work}/missing/../../missing"),
        format!("{work}/dangling"),
        format!("{work}/dangling/deeper"),
        format!("{work}/out/missing"),
        format!("{work}/out/file"),
    ] {
        assert_eq!(said(path.clone()), there, "{path}");
    }
    // Inside, the caller is told what is wrong.
    assert_eq!(said(format!("{work}/missing")).0, 400);
    assert_eq!(said(format!("{}/missing/deeper", inside.display())).0, 400);
}

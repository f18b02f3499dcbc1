//! Turns that run while nobody looks: `--detach`, `watch`, `wait`, `cancel`.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_OLD, Model, World, answer, wait_for};
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Answers in ten pieces, two seconds in all.
fn slow_world() -> Option<World> {
    let slow = Step {
        chunks: Some(10),
        delay_ms: Some(200),
        ..Step::text(answer(1))
    };
    World::claude_with(REJOIN, CLAUDE_OLD, || {
        Model::scripted([("slow1", vec![slow])])
    })
}

#[test]
fn all_who_watch_see_the_same_and_the_exit_code_is_the_turns() {
    let Some(world) = slow_world() else { return };
    let sent = world
        .run(&["send", "--detach", "--json", "-k", "k", "hello #s:slow1"])
        .ok()
        .json();
    assert!(
        ["queued", "running"].contains(&sent["status"].as_str().unwrap()),
        "{sent}"
    );
    let turn = sent["turn_id"].as_str().unwrap();
    let first = world.spawn(&["watch", "--stream", turn]);
    let mut second = world.spawn(&["watch", "--stream", "k"]);
    wait_for("the turn to run", 20, || {
        (!world.model.requests().is_empty()).then_some(())
    });
    second.kill().unwrap();
    second.wait().unwrap();
    let waited = world.run(&["wait", "--json", "k"]).ok().json();
    assert_eq!(
        (&waited["status"], &waited["text"]),
        (&json!("succeeded"), &json!(answer(1)))
    );
    let watched = first.wait_with_output().unwrap();
    assert!(watched.status.success());
    let events: Vec<serde_json::Value> = String::from_utf8(watched.stdout)
        .unwrap()
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let deltas: String = events
        .iter()
        .filter(|e| e["type"] == "text.delta")
        .map(|e| e["text"].as_str().unwrap())
        .collect();
    assert_eq!(deltas, answer(1));
    assert_eq!(events.last().unwrap()["type"], "turn.ended");
    let replayed = world.run(&["watch", "--stream", "k"]).ok();
    let again: Vec<serde_json::Value> = replayed
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    assert_eq!(again, events);

    world
        .run(&["send", "--detach", "-k", "k", "again #s:e400"])
        .ok();
    let failed = world.run(&["wait", "k"]);
    assert_eq!(failed.code, 1, "{failed:?}");
    assert!(
        failed.stderr.starts_with("rejoin: failed, invalid_request"),
        "{failed:?}"
    );
    assert_eq!(world.leftovers(), []);
}

#[test]
fn a_turn_is_cancelled_by_another_command() {
    let Some(world) = slow_world() else { return };
    world
        .run(&["send", "--detach", "-k", "k", "hello #s:slow"])
        .ok();
    wait_for("the turn to run", 20, || {
        (!world.model.requests().is_empty()).then_some(())
    });
    let queued = world
        .run(&["send", "--detach", "--json", "-k", "k", "second #s:a2"])
        .ok()
        .json();
    let withdrawn = world
        .run(&["cancel", "--json", queued["turn_id"].as_str().unwrap()])
        .ok()
        .json();
    assert_eq!(withdrawn["withdrawn"], true);
    let running = world.run(&["list", "--json"]).ok().json();
    assert_eq!(running["conversations"][0]["state"], "running");
    let cancelled = world.run(&["cancel", "--json", "k"]).ok().json();
    assert_eq!(cancelled["status"], "cancelled");
    wait_for("everything to be gone", 10, || {
        world.leftovers().is_empty().then_some(())
    });
    let show = world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(show["messages"].as_array().unwrap().len(), 1);
    assert_eq!(show["messages"][0]["state"], "unanswered");
    let explained = world.run(&["explain", "k"]).ok().stdout;
    assert!(explained.contains("cancelled; it was"), "{explained}");
    let late = world.run(&["cancel", "k"]);
    assert_eq!(late.code, 4, "{late:?}");
}

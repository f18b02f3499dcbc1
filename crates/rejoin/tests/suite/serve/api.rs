//! What can be done over HTTP, with the demo agent.

use rejoin_testkit::{Daemon, wait_for};
use serde_json::{Value, json};

use super::{demo, here};

fn ids(shown: &Value) -> Vec<String> {
    let messages = shown["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["id"].as_str().unwrap().to_owned())
        .collect()
}

fn texts(daemon: &Daemon, c: &str) -> Vec<String> {
    let shown = daemon.get(&format!("/api/conversations/{c}")).ok();
    let messages = shown["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["text"].as_str().unwrap().to_owned())
        .collect()
}

/// D-01, D-20: a message to a conversation that nothing runs for just works, and its id stays.
#[test]
fn a_conversation() {
    let world = demo();
    let daemon = world.serve(&[]);
    let first = daemon.say("tea", "I like apple tea", &[here(&world)]);
    assert_eq!(
        (&first["status"], &first["verdict"], &first["reason"]),
        (&json!("succeeded"), &json!("started"), &json!("first_turn"))
    );
    let c = first["conversation_id"].as_str().unwrap();
    let next = daemon.get(&format!("/api/conversations/{c}/next")).ok();
    assert_eq!(
        (&next["verdict"], &next["reason"]),
        (&json!("resumed"), &Value::Null)
    );
    let path = format!("/api/conversations/{c}/messages?wait=true");
    let second = daemon.post(&path, &json!({"text": "which tea?"})).ok();
    assert_eq!(second["verdict"], "resumed");
    assert!(
        second["text"]
            .as_str()
            .unwrap()
            .contains("I like apple tea")
    );
    assert_eq!(second["conversation_id"], c);
    // Without waiting it is accepted, and can be asked for.
    let third = daemon.post(
        &format!("/api/conversations/{c}/messages"),
        &json!({"text": "thanks"}),
    );
    assert_eq!(third.status, 202);
    let turn = third.json()["turn_id"].as_str().unwrap().to_owned();
    wait_for("the turn", 20, || {
        let seen = daemon.get(&format!("/api/turns/{turn}")).ok();
        (seen["status"] == "succeeded").then_some(())
    });
    // The chain of a turn that did not climb is that turn, with its own cost.
    let alone = daemon.get(&format!("/api/turns/{turn}")).ok();
    let chain = daemon.get(&format!("/api/turns/{turn}/chain")).ok();
    assert!(alone["as_of"].is_number(), "{alone}");
    let turns = chain["turns"].as_array().unwrap();
    assert_eq!((turns.len(), &turns[0]["turn_id"]), (1, &json!(turn)));
    assert_eq!(turns[0]["parent_turn_id"], Value::Null);
    assert_eq!(chain["total_cost_usd"], alone["cost_usd"]);
    assert_eq!(chain["cost_complete"], true);
    let described = daemon.get("/openapi.json").ok();
    assert_eq!(
        described["paths"]["/api/turns/{id}/chain"]["get"]["summary"],
        "Show the chain of a turn: the turns linked by climbs, root first"
    );
    let list = daemon.get("/api/conversations?limit=10").ok();
    assert_eq!(list["conversations"].as_array().unwrap().len(), 1);
    assert_eq!(list["conversations"][0]["key"], "tea");
    let found = daemon.get("/api/conversations?q=apple").ok();
    assert_eq!(found["conversations"][0]["id"], c);
    assert_eq!(
        daemon.get("/api/conversations?q=pear").ok()["conversations"],
        json!([])
    );
    // A command on the same data sees the same.
    let shown = world.run(&["show", "--json", "tea"]).ok().json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 6);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

#[test]
fn a_history_is_changed() {
    let world = demo();
    let daemon = world.serve(&[]);
    let first = daemon.say("k", "one apple", &[here(&world)]);
    let c = first["conversation_id"].as_str().unwrap();
    daemon.say("k", "two pears", &[]);
    let shown = daemon.get(&format!("/api/conversations/{c}")).ok();
    let messages = ids(&shown);
    let edited = daemon.call(
        "PATCH",
        &format!("/api/messages/{}", messages[0]),
        &[],
        Some(&json!({"text": "one plum"})),
    );
    assert_eq!(edited.ok()["affected"][0]["usable"], false);
    let next = daemon.get(&format!("/api/conversations/{c}/next")).ok();
    assert_eq!(
        (&next["verdict"], &next["reason"]),
        (&json!("reseeded"), &json!("history_changed"))
    );
    daemon
        .post(&format!("/api/conversations/{c}/undo"), &json!({}))
        .ok();
    assert_eq!(
        daemon.get(&format!("/api/conversations/{c}/next")).ok()["verdict"],
        "resumed"
    );
    let fork = daemon.call(
        "POST",
        &format!("/api/conversations/{c}/fork"),
        &["Idempotency-Key: fork-1"],
        Some(&json!({"at": messages[1], "key": "other"})),
    );
    assert_eq!(fork.status, 201);
    let again = daemon.call(
        "POST",
        &format!("/api/conversations/{c}/fork"),
        &["Idempotency-Key: fork-1"],
        Some(&json!({"at": messages[1], "key": "other"})),
    );
    assert_eq!(fork.json(), again.json());
    assert_eq!(texts(&daemon, "other").len(), 2);
    let retried = daemon
        .post(
            &format!("/api/messages/{}/retry?wait=true", messages[2]),
            &json!({}),
        )
        .ok();
    assert_eq!(
        (&retried["verdict"], &retried["reason"]),
        (&json!("reseeded"), &json!("fresh_requested"))
    );
    let removed = daemon
        .call(
            "DELETE",
            &format!("/api/messages/{}", messages[2]),
            &[],
            None,
        )
        .ok();
    assert_eq!(removed["removed"].as_array().unwrap().len(), 2);
    assert_eq!(texts(&daemon, c).len(), 2);
    let reset = daemon
        .post(&format!("/api/conversations/{c}/reset"), &json!({}))
        .ok();
    assert_eq!(reset["sessions"], 2);
    let changed = daemon
        .call(
            "PATCH",
            &format!("/api/conversations/{c}"),
            &[],
            Some(&json!({"title": "Fruit", "permission": "read-only"})),
        )
        .ok();
    assert_eq!(changed["conversation"]["title"], "Fruit");
    assert_eq!(changed["conversation"]["permission"], "read-only");
    let gone = daemon.call("DELETE", &format!("/api/conversations/{c}"), &[], None);
    assert_eq!(gone.status, 204);
    assert_eq!(daemon.get(&format!("/api/conversations/{c}")).status, 404);
}

/// Header and field are one key; a replay is the same turn and never runs again.
#[test]
fn sent_once() {
    let world = demo();
    let daemon = world.serve(&[]);
    let body = json!({"key": "k", "text": "hello", "workdir": world.work().to_str().unwrap()});
    let send = |headers: &[&str], body: &Value| {
        daemon.call("POST", "/api/send?wait=true", headers, Some(body))
    };
    let first = send(&["Idempotency-Key: one"], &body).ok();
    let mut again = body.clone();
    again["client_key"] = json!("one");
    assert_eq!(send(&[], &again).ok()["turn_id"], first["turn_id"]);
    assert_eq!(texts(&daemon, "k").len(), 2);
    again["text"] = json!("another");
    let refused = send(&[], &again);
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (409, Some("key_reused"))
    );
    let made = |key: &str| {
        let header = format!("Idempotency-Key: {key}");
        daemon.call(
            "POST",
            "/api/conversations",
            &[&header],
            Some(&json!({"workdir": world.work().to_str().unwrap()})),
        )
    };
    let one = made("c1");
    assert_eq!((one.status, made("c1").status), (201, 200));
    assert_eq!(one.json()["id"], made("c1").json()["id"]);
    assert_ne!(one.json()["id"], made("c2").json()["id"]);
}

/// Queued in order, visible, and can be withdrawn; what runs is stopped, and says what had happened.
#[test]
fn queued_and_stopped() {
    let world = demo();
    let daemon = world.serve(&[]);
    let slow = daemon.post(
        "/api/send",
        &json!({"key": "k", "text": "wait 60s", "workdir": world.work().to_str().unwrap()}),
    );
    let slow = slow.ok();
    let c = slow["conversation_id"].as_str().unwrap();
    let path = format!("/api/conversations/{c}/messages");
    let one = daemon.post(&path, &json!({"text": "first in line"})).ok();
    let two = daemon.post(&path, &json!({"text": "second in line"})).ok();
    assert_eq!(
        (&one["status"], &two["status"]),
        (&json!("queued"), &json!("queued"))
    );
    let list = daemon.get("/api/conversations?state=running").ok();
    assert_eq!(list["conversations"][0]["id"], c);
    let withdrawn = daemon
        .call(
            "DELETE",
            &format!("/api/messages/{}", one["message_id"].as_str().unwrap()),
            &[],
            None,
        )
        .ok();
    assert_eq!(withdrawn["withdrawn"], true);
    wait_for("the agent", 20, || {
        world.pid_of(|command| command.contains("demo-agent"))
    });
    let stopped = daemon
        .post(
            &format!("/api/turns/{}/cancel", slow["turn_id"].as_str().unwrap()),
            &json!({}),
        )
        .ok();
    assert_eq!(stopped["status"], "cancelled");
    let turn = two["turn_id"].as_str().unwrap();
    wait_for("the next", 20, || {
        (daemon.get(&format!("/api/turns/{turn}")).ok()["status"] == "succeeded").then_some(())
    });
    let again = daemon.post(&format!("/api/turns/{turn}/cancel"), &json!({}));
    assert_eq!(again.status, 409);
    let withdrawn = daemon
        .get(&format!("/api/turns/{}", one["turn_id"].as_str().unwrap()))
        .ok();
    assert_eq!(withdrawn["status"], "cancelled");
    assert!(!texts(&daemon, c).iter().any(|text| text == "first in line"));
}

/// Policy per conversation: auto, ask, never.
#[test]
fn continued_only_as_it_is_set() {
    let world = demo();
    let daemon = world.serve(&[]);
    let first = daemon.say("k", "hello", &[here(&world)]);
    let c = format!(
        "/api/conversations/{}",
        first["conversation_id"].as_str().unwrap()
    );
    let set = |how: &str| {
        daemon
            .call("PATCH", &c, &[], Some(&json!({"continue": how})))
            .ok()
    };
    set("ask");
    let send = |body: Value| daemon.post(&format!("{c}/messages?wait=true"), &body);
    let asked = send(json!({"text": "go on"}));
    assert_eq!(
        (asked.status, asked.json()["code"].as_str()),
        (409, Some("confirm"))
    );
    assert_eq!(
        send(json!({"text": "go on", "confirm": true})).ok()["verdict"],
        "resumed"
    );
    set("never");
    let never = send(json!({"text": "go on", "confirm": true}));
    assert_eq!(
        (never.status, never.json()["code"].as_str()),
        (403, Some("never_continues"))
    );
    set("auto");
    assert_eq!(send(json!({"text": "go on"})).ok()["verdict"], "resumed");
    assert_eq!(texts(&daemon, "k").len(), 6);
}

/// Nothing sent, the message not kept: with `wait` refused, without it the turn ends `failed`.
#[test]
fn rather_not_than_retold() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    daemon.post("/api/conversations/k/reset", &json!({})).ok();
    let body = json!({"key": "k", "text": "still there?", "no_reseed": true});
    let refused = daemon.post("/api/send?wait=true", &body);
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (403, Some("would_reseed"))
    );
    let accepted = daemon.post("/api/send", &body).ok();
    let path = format!("/api/turns/{}", accepted["turn_id"].as_str().unwrap());
    let ended = wait_for("the turn", 20, || {
        let seen = daemon.get(&path).ok();
        (seen["status"] == "failed").then_some(seen)
    });
    assert_eq!(ended["error"]["class"], "would_reseed");
    assert_eq!(texts(&daemon, "k").len(), 2);
    assert_eq!(daemon.say("k", "and now?", &[])["verdict"], "reseeded");
}

/// Old snapshots are given up by a daemon once a day, and not each time it is started.
#[test]
fn it_sweeps_once_a_day() {
    let mut world = demo();
    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    let kept = |world: &rejoin_testkit::World| {
        let list = world.run(&["snapshot", "list", "--json"]).ok().json();
        let all = list["snapshots"].as_array().unwrap().clone();
        all.iter().filter(|s| s["state"] == "confirmed").count()
    };
    world.run(&["send", "-a", "demo", "-k", "k", "one"]).ok();
    world.run(&["send", "-k", "k", "two"]).ok();
    assert_eq!(kept(&world), 2);
    let daemon = world.serve(&[]);
    wait_for("the sweep", 20, || (kept(&world) == 1).then_some(()));
    daemon.say("k", "three", &[]);
    assert_eq!(daemon.stop(), 0);
    let daemon = world.serve(&[]);
    daemon.say("k", "four", &[]);
    assert_eq!(kept(&world), 3);
}

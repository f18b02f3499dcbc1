//! Rows of the list: figures, the current action, and what is unseen; events of conversations; types of events.

use rejoin_testkit::wait_for;
use serde_json::{Value, json};

use super::{demo, here};

/// A row says how many turns and messages there are, what is asked, and how the last turn failed.
#[test]
fn a_row_has_figures() {
    let world = demo();
    let daemon = world.serve(&[]);
    let row =
        |key: &str| daemon.get(&format!("/api/conversations/{key}")).ok()["conversation"].clone();
    daemon.say("k", "one", &[here(&world)]);
    daemon.say("k", "two", &[]);
    let idle = row("k");
    assert_eq!((&idle["turns"], &idle["messages"]), (&json!(2), &json!(4)));
    assert_eq!(
        (&idle["cost_known"], &idle["error"]),
        (&json!(true), &Value::Null)
    );
    assert_eq!(idle["last_turn"]["status"], "succeeded");
    let asked = daemon.say("asks", "ask: Which colour? Red | Blue", &[here(&world)]);
    let waiting = row("asks");
    assert_eq!(waiting["state"], "waiting");
    assert_eq!(waiting["asks"]["kind"], "question");
    assert!(
        waiting["asks"]["text"]
            .as_str()
            .unwrap()
            .contains("Which colour?"),
        "{waiting}"
    );
    let body = json!({"key": "slow", "text": "wait 60s", "workdir": here(&world).1});
    let slow = daemon.post("/api/send", &body).ok();
    wait_for("the turn to run", 30, || {
        (row("slow")["activity"]["doing"].is_string()).then_some(())
    });
    let counts = daemon.get("/api/conversations?counts=true&limit=1").ok()["counts"].clone();
    let due = json!({"all": 3, "idle": 1, "queued": 0, "running": 1, "waiting": 1, "archived": 0});
    assert_eq!(counts, due);
    let list = world.run(&["list", "--counts", "--json"]).ok().json();
    assert_eq!(list["counts"], due);
    assert!(
        daemon
            .get("/api/conversations")
            .ok()
            .get("counts")
            .is_none()
    );
    for turn in [&slow, &asked] {
        let path = format!("/api/turns/{}/cancel", turn["turn_id"].as_str().unwrap());
        daemon.post(&path, &Value::Null).ok();
    }
    assert_eq!(row("slow")["state"], "idle");
    assert!(row("slow")["error"].is_string(), "{}", row("slow"));
    // A merge moves the turns, an archive the row.
    world.run(&["merge", "asks", "k"]).ok();
    assert_eq!(row("k")["turns"], 3);
    world.run(&["archive", "slow"]).ok();
    let counts = daemon.get("/api/conversations?counts=true").ok()["counts"].clone();
    assert_eq!(
        (&counts["all"], &counts["archived"]),
        (&json!(1), &json!(1))
    );
    daemon.call("DELETE", "/api/conversations/slow", &[], None);
    let counts = daemon.get("/api/conversations?counts=true").ok()["counts"].clone();
    assert_eq!(
        (&counts["all"], &counts["archived"]),
        (&json!(1), &json!(0))
    );
}

/// What one device has seen, another knows.
#[test]
fn unseen_answers() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "one", &[here(&world)]);
    let row = || daemon.get("/api/conversations").ok()["conversations"][0].clone();
    assert_eq!(row()["unread"], true);
    let put = |seq: i64| {
        let body = json!({"seq": seq});
        daemon.call("PUT", "/api/conversations/k/seen", &[], Some(&body))
    };
    assert_eq!(put(2).ok()["unread"], false);
    assert_eq!(
        (row()["unread"].clone(), row()["seen"].clone()),
        (json!(false), json!(2))
    );
    for wrong in [3, -1] {
        assert_eq!(put(wrong).status, 400);
    }
    daemon.say("k", "two", &[]);
    assert_eq!(row()["unread"], true);
    world.run(&["seen", "k"]).ok();
    assert_eq!(
        (row()["unread"].clone(), row()["seen"].clone()),
        (json!(false), json!(4))
    );
    world.run(&["seen", "k:2"]).ok();
    assert_eq!(row()["unread"], true);
    let made = world
        .run(&["token", "create", "reader", "--scope", "read", "--json"])
        .ok()
        .json();
    let reader = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
    let body = json!({"seq": 0});
    let refused = daemon.call("PUT", "/api/conversations/k/seen", &[&reader], Some(&body));
    assert_eq!(refused.status, 403);
}

/// A conversation is made, renamed, archived, merged and deleted: each is an event, also of other processes.
#[test]
fn conversations_have_events() {
    let world = demo();
    let daemon = world.serve(&[]);
    let all = daemon.watch("/api/events?types=conversation.*", None);
    let mut ids = vec![];
    let mut due = |kind: &str, fields: &Value| {
        let event = all.next();
        assert_eq!(event.kind, kind, "{event:?}");
        assert_eq!(event.data["turn_id"], Value::Null);
        if !fields.is_null() {
            assert_eq!(event.data["fields"], *fields, "{event:?}");
        }
        ids.push(event.id);
        event.data
    };
    let said = daemon.say("k", "one", &[here(&world)]);
    let c = &said["conversation_id"];
    assert_eq!(
        due("conversation.created", &Value::Null)["conversation_id"],
        *c
    );
    world.run(&["rename", "k", "a title"]).ok();
    due("conversation.changed", &json!(["title"]));
    world.run(&["set", "k", "permission=read-only"]).ok();
    due("conversation.changed", &json!(["permission"]));
    world.run(&["undo", "k"]).ok();
    due("conversation.changed", &json!(["permission"]));
    world.run(&["archive", "k"]).ok();
    due("conversation.changed", &json!(["archived"]));
    let fork = world.run(&["fork", "k", "--json"]).ok().json();
    assert_eq!(due("conversation.created", &Value::Null)["parent_id"], *c);
    daemon.say("other", "two", &[here(&world)]);
    due("conversation.created", &Value::Null);
    world.run(&["merge", "other", "k"]).ok();
    due("conversation.changed", &json!(["merged_into"]));
    let id = fork["conversation_id"].as_str().unwrap();
    world.run(&["delete", id, "--yes"]).ok();
    let gone = due("conversation.deleted", &Value::Null);
    assert_eq!(gone["conversation_id"], id);
    // A reader that comes back is told as well, and in another namespace nobody is.
    let from = gone["seq"].as_i64().unwrap() - 1;
    let again = daemon.watch("/api/events", Some(from)).next();
    assert_eq!(
        (again.kind.as_str(), again.id),
        ("conversation.deleted", from + 1)
    );
    assert_eq!(daemon.get("/api/conversations").ok()["as_of"], from + 1);
    let args = ["token", "create", "b", "--namespace", "b", "--json"];
    let made = world.run(&args).ok().json();
    let theirs = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
    let body = json!({"workdir": here(&world).1});
    daemon
        .call("POST", "/api/conversations", &[&theirs], Some(&body))
        .ok();
    let next = all.rest(std::time::Duration::from_millis(500));
    assert!(next.is_empty(), "{next:?}");
    assert!(ids.windows(2).all(|two| two[0] < two[1]));
}

/// A stream of some types leaves the others out, and a turn's stream ends with the turn all the same.
#[test]
fn types_select_events() {
    let world = demo();
    let daemon = world.serve(&[]);
    let some = daemon.watch("/api/events?types=turn.ended,%20history.changed", Some(0));
    let turn = daemon.say("k", "one", &[here(&world)]);
    world.run(&["reset", "k"]).ok();
    let kinds = [some.next().kind, some.next().kind];
    assert_eq!(kinds, ["turn.ended", "history.changed"]);
    let path = format!(
        "/api/turns/{}/events?types=turn.accepted",
        turn["turn_id"].as_str().unwrap()
    );
    // A stream that stays open would send a heartbeat.
    let ended = daemon.get(&path).body;
    let kinds: Vec<&str> = ended
        .lines()
        .filter_map(|line| line.strip_prefix("event: "))
        .collect();
    assert_eq!(kinds, ["turn.accepted"]);
    assert!(!ended.contains(": alive"), "{ended}");
    for wrong in ["nothing", "turn.ende", "*", "no.*", "turn.ended,x"] {
        let path = format!("/api/conversations/k/events?types={wrong}");
        let refused = daemon.get(&path);
        assert_eq!(refused.status, 400, "{wrong}");
        assert!(
            refused.body.contains("there are no events of type"),
            "{refused:?}"
        );
    }
}

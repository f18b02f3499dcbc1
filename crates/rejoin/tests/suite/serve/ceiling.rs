//! Ceilings: the most that a token may ask an agent to do.

use insta::assert_snapshot;
use rejoin_testkit::{Answer, CLAUDE_NEW, Daemon, World, wait_for};
use serde_json::{Value, json};

use super::{REJOIN, demo, here};

/// A caller with a token of its own.
struct Tenant<'d> {
    daemon: &'d Daemon,
    header: String,
}

impl<'d> Tenant<'d> {
    /// Makes a token; `more` are flags of `token create`.
    fn new(world: &World, daemon: &'d Daemon, name: &str, more: &[&str]) -> Self {
        let mut args = vec!["token", "create", name, "--json"];
        args.extend(more);
        let made = world.run(&args).ok().json();
        let header = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
        Self { daemon, header }
    }

    fn call(&self, method: &str, path: &str, body: &Value) -> Answer {
        self.daemon.call(method, path, &[&self.header], Some(body))
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, body)
    }

    #[track_caller]
    fn is_refused(&self, method: &str, path: &str, body: &Value) -> String {
        let answer = self.call(method, path, body);
        assert_eq!(answer.status, 403, "{method} {path} {body}: {answer:?}");
        let problem = answer.json();
        assert_eq!(problem["code"], "forbidden", "{answer:?}");
        let text = |name: &str| problem[name].as_str().unwrap().to_owned();
        format!("{}\ntry: {}", text("detail"), text("try"))
    }
}

fn messages(daemon: &Daemon, key: &str) -> Vec<Value> {
    let shown = daemon.get(&format!("/api/conversations/{key}")).ok();
    shown["messages"].as_array().unwrap().clone()
}

fn permission(daemon: &Daemon, key: &str) -> Value {
    daemon.get(&format!("/api/conversations/{key}")).ok()["conversation"]["permission"].clone()
}

#[test]
fn a_token_is_held_to_edit_unless_it_was_made_otherwise() {
    let world = demo();
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &["--scope", "admin"]);
    let work = world.work().to_str().unwrap().to_owned();
    let send = |more: Value| {
        let mut body = json!({"text": "hello", "workdir": work});
        body.as_object_mut()
            .unwrap()
            .extend(more.as_object().unwrap().clone());
        body
    };
    let full = send(json!({"permission": "full"}));
    assert_snapshot!(plain.is_refused("POST", "/api/send", &full), @r#"
    this turn needs the permission full, and your ceiling is edit; nothing was changed or sent
    try: "permission": "edit" in the request, or rejoin token create NAME --max-permission full
    "#);
    let background = send(json!({"keep_background": true}));
    assert_snapshot!(plain.is_refused("POST", "/api/send", &background), @r"
    keep_background needs the permission full, and your ceiling is edit; nothing was changed or sent
    try: the same without it, or rejoin token create NAME --max-permission full
    ");
    plain.is_refused("POST", "/api/send", &send(json!({"raw": true})));
    let made = json!({"permission": "full", "workdir": work});
    plain.is_refused("POST", "/api/conversations", &made);
    let nothing = daemon.get("/api/conversations").ok();
    assert_eq!(nothing["conversations"], json!([]));
    for mode in ["read-only", "ask", "edit"] {
        let body = send(json!({"permission": mode}));
        assert_eq!(
            plain.post("/api/send?wait=true", &body).status,
            200,
            "{mode}"
        );
    }
    let about = plain.call("GET", "/api/hub", &Value::Null).ok();
    assert_eq!(about["max_permission"], "edit");
}

/// A conversation of another caller that may do more is not steered by this one.
#[test]
fn a_conversation_above_the_ceiling_is_not_steered() {
    let world = demo();
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &[]);
    daemon.say("k", "one", &[here(&world), ("permission", json!("full"))]);
    let first = messages(&daemon, "k")[0]["id"].as_str().unwrap().to_owned();
    let body = json!({"text": "two"});
    plain.is_refused("POST", "/api/conversations/k/messages", &body);
    plain.is_refused("POST", "/api/send", &json!({"key": "k", "text": "two"}));
    let retry = format!("/api/messages/{first}/retry");
    plain.is_refused("POST", &retry, &json!({}));
    plain.is_refused("PATCH", &format!("/api/messages/{first}"), &body);
    plain.is_refused("DELETE", &format!("/api/messages/{first}"), &Value::Null);
    plain.is_refused("POST", "/api/conversations/k/fork", &json!({}));
    plain.is_refused("POST", "/api/conversations/k/reset", &json!({}));
    // D-25: a reload sets the permission, and no more than the caller may give.
    let reload = "/api/conversations/own/reload";
    plain.post(
        "/api/send?wait=true",
        &json!({"key": "own", "text": "one", "workdir": world.work().to_str().unwrap()}),
    );
    plain.is_refused("POST", reload, &json!({"permission": "full"}));
    assert_eq!(permission(&daemon, "own"), "edit");
    plain.post(reload, &json!({"permission": "read-only"})).ok();
    assert_eq!(permission(&daemon, "own"), "read-only");
    plain.post(reload, &json!({})).ok();
    assert_eq!(permission(&daemon, "own"), "read-only");
    let fork = json!({"permission": "edit", "key": "fork"});
    assert_eq!(plain.post("/api/conversations/k/fork", &fork).status, 201);
    assert_eq!(permission(&daemon, "fork"), "edit");
    plain.is_refused(
        "POST",
        "/api/conversations/fork/merge",
        &json!({"into": "k"}),
    );
    assert_eq!(messages(&daemon, "k").len(), 2);
    // One turn that asks for less is taken.
    let less = json!({"text": "two", "permission": "edit"});
    let path = "/api/conversations/k/messages?wait=true";
    assert_eq!(plain.post(path, &less).ok()["status"], "succeeded");
    // What is not about permissions may be changed.
    let title = json!({"title": "another"});
    plain.call("PATCH", "/api/conversations/k", &title).ok();
    plain.is_refused("POST", "/api/conversations/k/undo", &json!({}));
}

#[test]
fn settings_are_not_raised_above_the_ceiling() {
    let world = demo();
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &[]);
    daemon.say("k", "one", &[here(&world)]);
    let c = "/api/conversations/k";
    plain.is_refused("PATCH", c, &json!({"permission": "full"}));
    assert_snapshot!(plain.is_refused("PATCH", c, &json!({"tools": ["shell"]})), @r"
    this list of tools needs the permission full, and your ceiling is edit; nothing was changed or sent
    try: the same without it, or rejoin token create NAME --max-permission full
    ");
    let other = json!({"agents": {"claude": {"tools": ["shell"]}}});
    plain.is_refused("PATCH", c, &other);
    assert_eq!(permission(&daemon, "k"), "edit");
    plain.call("PATCH", c, &json!({"permission": "ask"})).ok();
    // The owner went down from `full`: taking that back would go up again.
    daemon
        .call("PATCH", c, &[], Some(&json!({"permission": "full"})))
        .ok();
    daemon
        .call("PATCH", c, &[], Some(&json!({"permission": "edit"})))
        .ok();
    plain.is_refused("POST", "/api/conversations/k/undo", &json!({}));
    assert_eq!(permission(&daemon, "k"), "edit");
}

/// An approval permits one call of a turn in which a person decides.
#[test]
fn approvals_need_the_ceiling_ask() {
    let world = demo();
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &[]);
    let low = Tenant::new(&world, &daemon, "low", &["--max-permission", "read-only"]);
    let read_only = ("permission", json!("read-only"));
    let turn = daemon.say("k", "approve: rm -r x", &[here(&world), read_only]);
    assert_eq!(turn["status"], "waiting", "{turn}");
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    for decision in ["allow", "always"] {
        let said = low.is_refused("POST", &path, &json!({"decision": decision}));
        assert!(said.starts_with("to allow an agent what it asks for needs the permission ask"));
        assert!(said.contains("try: deny, or rejoin token create"), "{said}");
    }
    low.post(&path, &json!({"decision": "deny"})).ok();
    let turn = daemon.say("k", "approve: rm -r x", &[]);
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    plain.post(&path, &json!({"decision": "allow"})).ok();
    let turn = daemon.say("k", "ask: Which colour? Red | Blue", &[]);
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    let id = &turn["questions"][0]["questions"][0]["id"];
    let answers = json!({"answers": {id.as_str().unwrap(): ["Red"]}});
    plain.post(&path, &answers).ok();
    // A turn above the ceiling is not answered at all.
    let full = [("permission", json!("full"))];
    let turn = daemon.say("k", "ask: Which colour? Red | Blue", &full);
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    plain.is_refused("POST", &path, &answers);
    let path = format!("/api/turns/{}/cancel", turn["turn_id"].as_str().unwrap());
    plain.post(&path, &json!({})).ok();
}

#[test]
fn tokens_have_ceilings_of_their_own() {
    let mut world = demo();
    world.set("REJOIN_SERVE_MAX_PERMISSION", "read-only");
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &["--scope", "admin"]);
    let more = ["--scope", "admin", "--max-permission", "edit"];
    let more = Tenant::new(&world, &daemon, "more", &more);
    let work = world.work().to_str().unwrap().to_owned();
    let body = |key: &str| json!({"key": key, "text": "hello", "workdir": work});
    // A request that names no permission gets the default, or the ceiling if that is lower.
    plain.post("/api/send?wait=true", &body("low")).ok();
    assert_eq!(permission(&daemon, "low"), "read-only");
    more.post("/api/send?wait=true", &body("high")).ok();
    assert_eq!(permission(&daemon, "high"), "edit");
    let empty = json!({"key": "empty", "workdir": work});
    plain.post("/api/conversations", &empty).ok();
    assert_eq!(permission(&daemon, "empty"), "read-only");
    plain.is_refused("POST", "/api/send", &json!({"key": "high", "text": "more"}));
    // Nobody gives out more than they have.
    let child = |name: &str, most: Value| json!({"name": name, "max_permission": most});
    assert_snapshot!(more.is_refused("POST", "/api/tokens", &child("full", json!("full"))), @r#"
    such a token needs the permission full, and your ceiling is edit; nothing was changed or sent
    try: "max_permission": "edit", or rejoin token create NAME --max-permission full on the daemon's machine
    "#);
    plain.is_refused("POST", "/api/tokens", &child("edit", json!("edit")));
    more.post("/api/tokens", &child("child", json!("edit")))
        .ok();
    plain.post("/api/tokens", &child("small", Value::Null)).ok();
    let listed = world.run(&["token", "list", "--json"]).ok().json();
    let of = |name: &str| {
        let tokens = listed["tokens"].as_array().unwrap();
        tokens.iter().find(|t| t["name"] == name).unwrap()["max_permission"].clone()
    };
    assert_eq!((of("plain"), of("more")), (Value::Null, json!("edit")));
    assert_eq!((of("child"), of("small")), (json!("edit"), Value::Null));
    let shown = world.run(&["token", "list"]).ok().stdout;
    assert!(shown.contains("at most edit"), "{shown}");
    // A token below the configured ceiling makes none above itself.
    let header = more.header.clone();
    drop(daemon);
    world.set("REJOIN_SERVE_MAX_PERMISSION", "full");
    let daemon = world.serve(&[]);
    let more = Tenant {
        daemon: &daemon,
        header,
    };
    let made = more.post("/api/tokens", &child("heir", Value::Null)).ok();
    assert_eq!(made["max_permission"], "edit");
}

/// Commands of the same user have a shell anyway.
#[test]
fn the_socket_has_no_ceiling() {
    let mut world = demo();
    world.set("REJOIN_SERVE_MAX_PERMISSION", "read-only");
    let daemon = world.serve(&[]);
    let args = [
        "send",
        "-k",
        "k",
        "--permission",
        "full",
        "--keep-background",
        "hello",
    ];
    world.run(&args).ok();
    assert_eq!(permission(&daemon, "k"), "full");
    wait_for("the daemon to have run it", 20, || {
        daemon.log().contains("demo").then_some(())
    });
}

#[test]
fn tools_that_a_mode_does_not_permit_count_as_full() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let daemon = world.serve(&[]);
    let plain = Tenant::new(&world, &daemon, "plain", &[]);
    let work = world.work().to_str().unwrap().to_owned();
    let body = |mode: &str, tools: &[&str]| json!({"text": "hello", "agent": "claude", "workdir": work, "permission": mode, "tools": tools});
    for (mode, tools) in [
        ("edit", &["shell"][..]),
        ("edit", &["read", "Bash"]),
        ("edit", &["web"]),
        ("ask", &["shell"]),
    ] {
        plain.is_refused("POST", "/api/send", &body(mode, tools));
    }
    let narrow = plain.post("/api/send?wait=true", &body("edit", &["read", "search"]));
    assert_eq!(narrow.ok()["status"], "succeeded");
}

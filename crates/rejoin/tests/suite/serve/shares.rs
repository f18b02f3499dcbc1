//! Links that show a conversation without a token.

use rejoin_testkit::{Answer, Daemon};
use serde_json::{Value, json};

use super::{demo, here};

fn anybody(daemon: &Daemon, path: &str) -> Answer {
    daemon.call("GET", path, &["Authorization: -"], None)
}

fn secret(share: &Value) -> String {
    let path = share["path"].as_str().unwrap();
    path.strip_prefix("/s/").unwrap().to_owned()
}

/// A link shows the messages up to its creation, without secrets, counts its views, and is closed for good.
#[test]
fn a_link_shows_a_conversation() {
    let world = demo();
    let daemon = world.serve(&[]);
    let key = "ghp_0123456789abcdefghijklmnopqrstuv";
    daemon.say("k", &format!("unique-one {key}"), &[here(&world)]);
    let made = daemon.post("/api/conversations/k/shares", &json!({}));
    assert_eq!(made.status, 201, "{made:?}");
    let share = made.json();
    daemon.say("k", "unique-two", &[]);
    let path = format!("/api/shared/{}", secret(&share));
    let shown = anybody(&daemon, &path);
    assert!(!shown.body.contains(key), "{shown:?}");
    let shown = shown.ok();
    let texts: Vec<&str> = shown["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["text"].as_str().unwrap())
        .collect();
    assert_eq!(texts[0], "unique-one [secret removed]");
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(shown["secrets_removed"].as_u64().unwrap() >= 1);
    for hidden in ["workdir", "id", "conversation_id", "session_id"] {
        assert!(shown.get(hidden).is_none(), "{hidden}");
    }
    assert!(!shown.to_string().contains(world.work().to_str().unwrap()));
    // A later page is not another view.
    anybody(&daemon, &format!("{path}?after=1")).ok();
    let list = world.run(&["share", "list", "k", "--json"]).ok().json();
    let row = &list["shares"][0];
    assert_eq!((&row["views"], &row["state"]), (&json!(1), &json!("open")));
    assert!(row.get("path").is_none(), "the secret is shown once");
    // What follows is shown only by a link that follows.
    let follows = daemon
        .post("/api/conversations/k/shares", &json!({"follow": true}))
        .ok();
    let all = anybody(&daemon, &format!("/api/shared/{}", secret(&follows))).ok();
    assert_eq!(all["messages"].as_array().unwrap().len(), 4);
    let id = share["id"].as_str().unwrap();
    world.run(&["share", "close", id]).ok();
    assert_eq!(anybody(&daemon, &path).status, 404);
    let unknown = anybody(&daemon, "/api/shared/share_00");
    assert_eq!(
        unknown.json()["detail"],
        anybody(&daemon, &path).json()["detail"]
    );
    // Deleting the conversation ends its links.
    daemon.call("DELETE", "/api/conversations/k", &[], None);
    let follows = format!("/api/shared/{}", secret(&follows));
    assert_eq!(anybody(&daemon, &follows).status, 404);
}

fn texts(shown: &Value) -> Vec<&str> {
    let messages = shown["messages"].as_array().unwrap().iter();
    messages.map(|m| m["text"].as_str().unwrap()).collect()
}

/// A link up to a message shows those that were there when it was made, and none that takes the place of a
/// removed one.
#[test]
fn a_link_shows_nothing_that_came_after_it() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "unique-one", &[here(&world)]);
    let second = daemon.say("k", "unique-two", &[]);
    let made = daemon.post("/api/conversations/k/shares", &json!({}));
    let path = format!("/api/shared/{}", secret(&made.json()));
    assert_eq!(texts(&anybody(&daemon, &path).ok()).len(), 4);
    let id = second["message_id"].as_str().unwrap();
    let gone = daemon.call("DELETE", &format!("/api/messages/{id}"), &[], None);
    assert!(gone.status < 300, "{gone:?}");
    daemon.say("k", "unique-private", &[]);
    let shown = anybody(&daemon, &path);
    assert!(!shown.body.contains("private"), "{shown:?}");
    let shown = shown.ok();
    assert_eq!(texts(&shown).len(), 2, "{shown}");
    assert_eq!(shown["newer"], Value::Null);
    let after = anybody(&daemon, &format!("{path}?after=1"));
    assert!(!after.body.contains("private"), "{after:?}");
}

/// An older conversation that is merged in comes before the shared messages, a newer one after them.
#[test]
fn a_link_shows_nothing_that_was_merged_in() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("old", "unique-private", &[here(&world)]);
    daemon.say("k", "unique-one", &[here(&world)]);
    daemon.say("new", "unique-private", &[here(&world)]);
    let follows = json!({"follow": true});
    let made = daemon.post("/api/conversations/k/shares", &json!({}));
    let follows = daemon.post("/api/conversations/k/shares", &follows);
    let path = |made: &Answer| format!("/api/shared/{}", secret(&made.json()));
    for from in ["old", "new"] {
        let merge = format!("/api/conversations/{from}/merge");
        daemon.post(&merge, &json!({"into": "k"})).ok();
        let shown = anybody(&daemon, &path(&made));
        assert!(!shown.body.contains("private"), "{shown:?}");
    }
    let all = anybody(&daemon, &path(&follows)).ok();
    assert_eq!(texts(&all).len(), 6, "{all}");
}

/// A link expires; it opens nothing else; another namespace can neither see nor close it; `read` may not make one.
#[test]
fn a_link_is_bounded() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "unique-one", &[here(&world)]);
    let short = world
        .run(&["share", "k", "--expires", "1s", "--json"])
        .ok()
        .json();
    let path = format!("/api/shared/{}", secret(&short));
    rejoin_testkit::wait_for("the link to expire", 30, || {
        (anybody(&daemon, &path).status == 404).then_some(())
    });
    let list = daemon.get("/api/conversations/k/shares").ok();
    assert_eq!(list["shares"][0]["state"], "expired");
    let token = |name: &str, more: &[&str]| {
        let args = [&["token", "create", name, "--json"], more].concat();
        let made = world.run(&args).ok().json();
        format!("Authorization: Bearer {}", made["token"].as_str().unwrap())
    };
    let (reader, other) = (
        token("r", &["--scope", "read"]),
        token("o", &["--namespace", "o"]),
    );
    let shares = "/api/conversations/k/shares";
    let make = |header: &str| {
        daemon
            .call("POST", shares, &[header], Some(&json!({})))
            .status
    };
    assert_eq!((make(&reader), make(&other)), (403, 404));
    let open = daemon.post(shares, &json!({})).ok();
    let close = format!("/api/shares/{}", open["id"].as_str().unwrap());
    assert_eq!(daemon.call("DELETE", &close, &[&other], None).status, 404);
    assert_eq!(daemon.call("GET", shares, &[&other], None).status, 404);
    assert_eq!(
        daemon.call("DELETE", "/api/shares/x", &[], None).status,
        404
    );
    // The secret is no token, and other paths stay shut.
    let bearer = format!("Authorization: Bearer {}", secret(&open));
    assert_eq!(
        daemon
            .call("GET", "/api/conversations", &[&bearer], None)
            .status,
        401
    );
    let path = format!("/api/shared/{}", secret(&open));
    for (method, path) in [
        ("POST", path.as_str()),
        ("GET", "/api/shared"),
        ("GET", "/api/sharedx"),
    ] {
        assert_eq!(
            daemon
                .call(method, path, &["Authorization: -"], None)
                .status,
            401,
            "{path}"
        );
    }
    let wrong = daemon.call(
        "GET",
        &path,
        &["Authorization: -", "Origin: http://evil.example"],
        None,
    );
    assert_eq!(wrong.status, 403);
    let body = json!({"expires_in_s": 4_000_000_000_u32});
    assert_eq!(daemon.post(shares, &body).status, 400);
}

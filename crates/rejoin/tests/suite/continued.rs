//! `continue=ask` and `continue=never`: held by every command that would run a turn.

use rejoin_testkit::World;
use serde_json::json;

use super::terminal::{Terminal, world};

/// A conversation `k` with one answered message, set to `how`.
fn set(how: &str) -> World {
    let world = world();
    world.run(&["send", "-a", "demo", "-k", "k", "hello"]).ok();
    world.run(&["set", "k", &format!("continue={how}")]).ok();
    world
}

fn messages(world: &World) -> usize {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    shown["messages"].as_array().unwrap().len()
}

/// With a daemon and without one.
fn both(how: &str, story: impl Fn(&World)) {
    let world = set(how);
    story(&world);
    let world = set(how);
    let _daemon = world.serve(&[]);
    story(&world);
}

#[test]
fn a_command_that_cannot_ask_is_refused() {
    both("ask", |world| {
        for command in [&["send", "-k", "k", "two"][..], &["retry", "k"]] {
            let refused = world.run(command);
            assert_eq!(refused.code, 4, "{refused:?}");
            let stderr = &refused.stderr;
            assert!(
                stderr.contains("set to ask before it is continued"),
                "{stderr}"
            );
            let again = format!("rejoin {} ", command[0]);
            let suggested = stderr.contains(&again) && stderr.contains("--confirm");
            assert!(suggested, "{stderr}");
        }
        assert_eq!(messages(world), 2);
        world.run(&["send", "-k", "k", "two", "--confirm"]).ok();
        world.run(&["retry", "k", "--confirm"]).ok();
        assert_eq!(messages(world), 4);
    });
}

#[test]
fn never_holds_for_a_retry_too() {
    both("never", |world| {
        for command in [
            &["send", "-k", "k", "two", "--confirm"][..],
            &["retry", "k"],
        ] {
            assert_eq!(world.run(command).code, 5, "{command:?}");
        }
        assert_eq!(messages(world), 2);
    });
}

#[test]
fn a_retry_over_http_is_confirmed() {
    let world = set("ask");
    let daemon = world.serve(&[]);
    let shown = daemon.get("/api/conversations/k").ok();
    let id = shown["messages"][0]["id"].as_str().unwrap();
    let retry = format!("/api/messages/{id}/retry?wait=true");
    let asks = daemon.post(&retry, &json!({}));
    assert_eq!(
        (asks.status, asks.json()["code"].as_str()),
        (409, Some("confirm"))
    );
    let done = daemon.post(&retry, &json!({"confirm": true})).ok();
    assert_eq!(done["status"], "succeeded");
}

#[test]
fn a_terminal_is_asked() {
    let world = set("ask");
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let asks = |screen: &str| screen.contains("continue it? [y/N]");
    terminal.keys("rejoin send -k k no-word");
    terminal.wait_until(asks);
    terminal.keys("n");
    terminal.wait_until(|screen| screen.contains("this message was not kept"));
    assert_eq!(messages(&world), 2);
    terminal.clear();
    terminal.keys("rejoin send -k k yes-word");
    terminal.wait_until(asks);
    terminal.keys("y");
    terminal.wait_until(|screen| screen.contains("resumed, knows all 2 messages"));
    assert_eq!(messages(&world), 4);
}

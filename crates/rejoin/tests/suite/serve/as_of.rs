//! A view names the event up to which it is true: a stream that begins there misses nothing, and brings nothing twice.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};

use rejoin_testkit::{Daemon, Streamed, World};
use serde_json::{Value, json};

use super::{REJOIN, demo, here};

/// Messages of each conversation.
const MESSAGES: usize = 6;
const KEYS: [&str; 3] = ["one", "two", "asks"];

#[test]
fn on_a_file() {
    story(&demo());
}

#[test]
fn on_a_server() {
    let Some(mut world) = World::new(REJOIN).on_server() else {
        return;
    };
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    story(&world);
}

/// A view that was read while others wrote.
struct Seen {
    path: String,
    view: Value,
}

fn story(world: &World) {
    let daemon = world.serve(&[]);
    for key in KEYS {
        daemon.say(key, "begin", &[here(world)]);
    }
    let over = AtomicBool::new(false);
    let mut seen = vec![];
    let mut streams = vec![];
    std::thread::scope(|scope| {
        let writers: Vec<_> = KEYS
            .map(|key| {
                let daemon = &daemon;
                scope.spawn(move || write(daemon, key))
            })
            .into();
        let ended = || {
            writers
                .iter()
                .all(std::thread::ScopedJoinHandle::is_finished)
        };
        while !over.swap(ended(), Ordering::Relaxed) {
            let paths = KEYS.map(|key| format!("/api/conversations/{key}"));
            let others = ["/api/conversations", "/api/inbox"].map(str::to_owned);
            for path in paths.into_iter().chain(others) {
                let view = daemon.get(&path).ok();
                if streams.len() < 5 && path.contains("conversations/") {
                    let after = view["as_of"].as_i64().unwrap();
                    let stream = daemon.watch(&format!("{path}/events"), Some(after));
                    streams.push((path.clone(), after, stream));
                }
                seen.push(Seen { path, view });
            }
        }
        for writer in writers {
            writer.join().unwrap();
        }
    });
    assert!(seen.len() >= 10, "{}", seen.len());
    let log = whole_log(&daemon);
    let moments: BTreeSet<i64> = seen
        .iter()
        .map(|s| s.view["as_of"].as_i64().unwrap())
        .collect();
    assert!(moments.len() >= 3, "nobody wrote meanwhile: {moments:?}");
    for Seen { path, view } in &seen {
        let as_of = view["as_of"].as_i64().unwrap();
        let past: Vec<&Streamed> = log.iter().filter(|event| event.id <= as_of).collect();
        match path.as_str() {
            "/api/conversations" => list(view, &past),
            "/api/inbox" => inbox(view, &past),
            _ => whole(view, &past),
        }
    }
    for (path, after, stream) in streams {
        let c = daemon.get(&path).ok()["conversation"]["id"].clone();
        let of_it = |event: &&Streamed| event.data["conversation_id"] == c && event.id > after;
        let due: Vec<Streamed> = log.iter().filter(of_it).cloned().collect();
        let Some(last) = due.last().map(|event| event.id) else {
            continue;
        };
        assert_eq!(stream.until(|event| event.id == last), due, "{path}");
    }
}

/// Sends messages to a conversation, and answers its questions.
fn write(daemon: &Daemon, key: &str) {
    for n in 0..MESSAGES {
        if key != "asks" {
            daemon.say(key, &format!("wait 0.05s, unique{key}{n}"), &[]);
            continue;
        }
        let body = json!({"key": key, "text": format!("ask: unique{n}? Red | Blue")});
        let turn = daemon.post("/api/send?wait=true", &body).ok();
        assert_eq!(turn["status"], "waiting", "{turn}");
        let question = &turn["questions"][0];
        let (id, item) = (&question["id"], &question["questions"][0]["id"]);
        let answers = json!({item.as_str().unwrap(): ["Red"]});
        let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
        let body = json!({"question_id": id, "answers": answers});
        daemon.post(&path, &body).ok();
        let path = format!("/api/turns/{}", turn["turn_id"].as_str().unwrap());
        rejoin_testkit::wait_for("the end of a turn", 60, || {
            (daemon.get(&path).ok()["status"] == "succeeded").then_some(())
        });
    }
}

fn whole_log(daemon: &Daemon) -> Vec<Streamed> {
    let last = daemon.get("/api/conversations").ok()["as_of"]
        .as_i64()
        .unwrap();
    let log = daemon
        .watch("/api/events", Some(0))
        .until(|event| event.id == last);
    assert!(log.windows(2).all(|two| two[0].id < two[1].id));
    log
}

/// Turns of these events.
fn turns<'e>(past: &[&'e Streamed], c: &Value, kinds: &[&str]) -> BTreeSet<&'e str> {
    let fits = |event: &&&Streamed| {
        event.data["conversation_id"] == *c && kinds.contains(&event.kind.as_str())
    };
    let turns = past.iter().filter(fits);
    turns
        .map(|event| event.data["turn_id"].as_str().unwrap())
        .collect()
}

fn whole(view: &Value, past: &[&Streamed]) {
    let c = &view["conversation"]["id"];
    let shown = |fits: &dyn Fn(&Value) -> bool| -> BTreeSet<&str> {
        let all = view["turns"].as_array().unwrap().iter();
        let all = all.filter(|turn| fits(turn));
        all.map(|turn| turn["turn_id"].as_str().unwrap()).collect()
    };
    let ended = turns(past, c, &["turn.ended"]);
    assert_eq!(shown(&|_| true), turns(past, c, &["turn.accepted"]));
    assert_eq!(shown(&|turn| turn["status"] == "succeeded"), ended);
    let messages = view["messages"].as_array().unwrap().iter();
    let answers = messages.filter(|m| m["role"] == "assistant");
    let answers: Vec<&str> = answers.map(|m| m["turn_id"].as_str().unwrap()).collect();
    assert_eq!(answers.len(), ended.len(), "an answer twice, or none");
    assert_eq!(answers.into_iter().collect::<BTreeSet<_>>(), ended);
    assert_eq!(view["conversation"]["turns"], shown(&|_| true).len());
}

fn list(view: &Value, past: &[&Streamed]) {
    for row in view["conversations"].as_array().unwrap() {
        let accepted = turns(past, &row["id"], &["turn.accepted"]);
        let ended = turns(past, &row["id"], &["turn.ended"]);
        assert_eq!(row["turns"], accepted.len(), "{row}");
        assert_eq!(row["messages"], accepted.len() + ended.len(), "{row}");
        assert_eq!(
            row["state"] == "idle",
            accepted.len() == ended.len(),
            "{row}"
        );
    }
}

fn inbox(view: &Value, past: &[&Streamed]) {
    let of = |kinds: &[&str]| -> BTreeSet<&str> {
        let fits = |event: &&&Streamed| kinds.contains(&event.kind.as_str());
        let all = past.iter().filter(fits);
        all.map(|event| event.data["turn_id"].as_str().unwrap())
            .collect()
    };
    let answered = of(&["answered", "turn.ended"]);
    let mut due = of(&["question"]);
    due.retain(|turn| !answered.contains(turn));
    let all = view["turns"].as_array().unwrap().iter();
    let shown: BTreeSet<&str> = all.map(|turn| turn["turn_id"].as_str().unwrap()).collect();
    assert_eq!(shown, due);
}

//! A question whose process is gone: the first answer becomes a message, and no other does.

use rejoin_testkit::{Answer, Daemon, Done, World, kill};
use serde_json::{Value, json};

use super::{answer, asks, demo, ended, inbox, only, quiet};

/// A turn that was lost while it asked.
fn lost(world: &World) -> Value {
    asks(world, "ask: Which? Red | Blue", &["-a", "demo"]);
    let agent = world.pid_of(|command| command.contains(" demo-agent "));
    kill(agent.unwrap(), "KILL");
    let turn = ended(world);
    assert_eq!(only(&turn)["state"], "gone", "{turn}");
    turn
}

fn answers_sent(world: &World) -> Vec<String> {
    let said = world.messages().into_iter().map(|(_, _, text)| text);
    said.filter(|text| text.starts_with("You had asked"))
        .collect()
}

/// Answers over HTTP, under a key if there is one.
fn post(daemon: &Daemon, turn: &Value, label: &str, key: Option<&str>) -> Answer {
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    let item = only(turn)["questions"][0]["id"].as_str().unwrap();
    let body = json!({"answers": {item: [label]}});
    let key = key.map(|key| format!("Idempotency-Key: {key}"));
    let headers: Vec<&str> = key.iter().map(String::as_str).collect();
    daemon.call("POST", &path, &headers, Some(&body))
}

#[test]
fn the_first_of_many_commands_wins() {
    let world = demo();
    let turn = lost(&world);
    let turn = turn["turn_id"].as_str().unwrap();
    let people: Vec<_> = (0..4)
        .map(|n| {
            let number = if n % 2 == 0 { "1" } else { "2" };
            world.spawn(&["answer", "--json", turn, number])
        })
        .collect();
    let said: Vec<Done> = people.into_iter().map(Done::of).collect();
    let won = said.iter().filter(|done| done.code == 0).count();
    let late = said.iter().filter(|done| done.code == 4).count();
    assert_eq!((won, late), (1, 3), "{said:?}");
    assert_eq!(answers_sent(&world).len(), 1);
    let again = answer(&world, &[turn, "1"]);
    assert_eq!(again.code, 4, "{again:?}");
    assert!(again.stdout.contains("ada has answered it already"));
    assert!(inbox(&world).is_empty());
    quiet(&world);
}

#[test]
fn the_first_of_many_requests_wins() {
    let world = demo();
    let turn = lost(&world);
    let daemon = world.serve(&[]);
    let said: Vec<Answer> = std::thread::scope(|scope| {
        let people: Vec<_> = (0..8)
            .map(|n| {
                let label = if n % 2 == 0 { "Red" } else { "Blue" };
                let (daemon, turn) = (&daemon, &turn);
                scope.spawn(move || post(daemon, turn, label, None))
            })
            .collect();
        people.into_iter().map(|p| p.join().unwrap()).collect()
    });
    let count = |status: u16| said.iter().filter(|a| a.status == status).count();
    assert_eq!((count(202), count(409)), (1, 7), "{said:?}");
    assert_eq!(answers_sent(&world).len(), 1);
    let late = post(&daemon, &turn, "Red", None);
    let problem = late.json();
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains("test has answered it already"), "{late:?}");
}

/// A caller that did not hear the answer asks again under the same key.
#[test]
fn a_repeated_request_is_answered_as_the_first() {
    let world = demo();
    let turn = lost(&world);
    let daemon = world.serve(&[]);
    let first = post(&daemon, &turn, "Red", Some("a")).ok();
    let again = post(&daemon, &turn, "Red", Some("a")).ok();
    assert_eq!(first["turn_id"], again["turn_id"]);
    assert_ne!(first["turn_id"], turn["turn_id"]);
    let other = post(&daemon, &turn, "Blue", Some("a"));
    assert_eq!(other.json()["code"], "key_reused", "{other:?}");
    assert_eq!(post(&daemon, &turn, "Red", Some("b")).status, 409);
    assert_eq!(answers_sent(&world).len(), 1);
}

/// The same for a process that is there: the second request does not answer what is asked next.
#[test]
fn a_repeated_answer_does_not_answer_the_next_question() {
    let world = demo();
    let daemon = world.serve(&[]);
    let body = json!({"key": "q", "agent": "demo", "text": "approve: one\napprove: two", "workdir": world.work().to_str().unwrap()});
    let turn = daemon.post("/api/send?wait=true", &body).ok();
    let path = format!("/api/turns/{}", turn["turn_id"].as_str().unwrap());
    let allow = |key: &str| {
        let header = format!("Idempotency-Key: {key}");
        let body = json!({"decision": "allow"});
        let path = format!("{path}/answer");
        daemon.call("POST", &path, &[&header], Some(&body)).ok()
    };
    allow("first");
    rejoin_testkit::wait_for("the second question", 20, || {
        let turn = daemon.get(&path).ok();
        (turn["questions"][0]["input"]["command"] == "two").then_some(())
    });
    allow("first");
    assert_eq!(daemon.get(&path).ok()["status"], "waiting");
    allow("second");
    let end = rejoin_testkit::wait_for("the end", 20, || {
        let turn = daemon.get(&path).ok();
        (turn["status"] == "succeeded").then_some(turn)
    });
    let text = end["text"].as_str().unwrap();
    assert_eq!(text.matches("You allowed it").count(), 2, "{text}");
}

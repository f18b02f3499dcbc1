//! kill -9 of the daemon while a command follows a turn: the turn goes on, and the command says so.

use rejoin_testkit::{Done, Fault, Faulty, World, wait_for};

use super::demo;

#[track_caller]
fn runs(world: &World) {
    wait_for("the agent to run", 20, || {
        world.pid_of(|command| command.contains("demo-agent"))
    });
}

#[test]
fn in_the_middle_of_a_send() {
    let world = demo();
    let daemon = world.serve(&[]);
    let url = format!("http://{}", daemon.address);
    let through_socket = world.spawn(&["send", "-k", "k", "wait 8s and recall"]);
    runs(&world);
    let mut command = world.command(&["wait", "k", "--json"]);
    let by_address = command
        .env("REJOIN_HUB", &url)
        .env("REJOIN_TOKEN", &daemon.token);
    let by_address = by_address.spawn().unwrap();
    wait_for("the other command to follow it", 20, || {
        let page = daemon.get("/metrics").body;
        let watching = page.lines().find(|l| l.starts_with("rejoin_watchers"))?;
        watching.ends_with(" 2").then_some(())
    });
    daemon.kill();
    let (one, other) = (Done::of(through_socket), Done::of(by_address));
    assert_eq!(one.code, 6, "{one:?}");
    assert!(
        one.stderr.contains("went away") || one.stderr.contains("cannot be reached"),
        "{one:?}"
    );
    assert!(one.stderr.contains("the turn goes on"), "{one:?}");
    assert!(one.stderr.contains("  try: rejoin wait "), "{one:?}");
    assert_eq!(other.code, 6, "{other:?}");
    let error = &other.json()["error"];
    let next = error["try"].as_str().unwrap();
    assert!(
        next.starts_with(&format!("rejoin --hub {url} wait ")),
        "{error}"
    );
    // What it says to type is true.
    let waited = world.run(&["wait", "k"]).ok();
    assert!(waited.stdout.contains("and recall"), "{waited:?}");
    assert_eq!(world.show()["turns"].as_array().unwrap().len(), 1);
    world.assert_quiet();
}

/// A daemon that is back soon enough is not even missed.
#[test]
fn and_started_again() {
    let world = demo();
    let daemon = world.serve(&[]);
    let sending = world.spawn(&["send", "-k", "k", "--stream", "wait 3s and recall"]);
    runs(&world);
    daemon.kill();
    let daemon = world.serve(&[]);
    let done = Done::of(sending);
    assert_eq!(done.code, 0, "{done:?}");
    let seqs: Vec<i64> = done
        .stdout
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|event| event["seq"].as_i64().unwrap())
        .collect();
    assert!(
        seqs.windows(2).all(|two| two[0] < two[1]),
        "each once, in order: {seqs:?}"
    );
    let last = done.stdout.lines().last().unwrap();
    assert!(last.contains("turn.ended"), "{done:?}");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// The message arrives, its answer does not: it is sent again, and taken in once.
#[test]
fn a_connection_that_breaks() {
    let mut world = demo();
    let daemon = world.serve(&[]);
    let between = Faulty::before(&daemon.address);
    world.set("REJOIN_TOKEN", &daemon.token);
    let send = |text: &str, more: &[&str]| {
        let mut args = vec!["--hub", &between.endpoint, "send", "-k", "k", "--detach"];
        args.extend(more);
        world.run(&[&args[..], &[text]].concat())
    };
    let breaks: [&[Fault]; 3] = [
        &[Fault::LoseAnswer],
        &[Fault::LoseAnswer, Fault::Refuse],
        &[Fault::Truncate],
    ];
    for (n, faults) in breaks.into_iter().enumerate() {
        between.then(faults);
        send(&format!("word-{n}-end"), &[]).ok();
    }
    between.then(&[Fault::LoseAnswer; 4]);
    let unsure = send("word-3-end", &[]);
    assert_eq!(unsure.code, 6, "{unsure:?}");
    let said = "it is unknown whether the request was carried out";
    assert!(unsure.stderr.contains(said), "{unsure:?}");
    // What it says to type is true.
    let key = unsure.stderr.split("--idempotency-key ").nth(1).unwrap();
    let key = key.split(' ').next().unwrap();
    send("word-3-end", &["--idempotency-key", key]).ok();
    let waited = || world.run(&["wait", "k"]).ok();
    wait_for("all turns", 60, || {
        waited();
        let shown = world.show();
        let turns = shown["turns"].as_array().unwrap();
        let over = turns.iter().all(|t| t["status"] == "succeeded");
        (over && turns.len() == 4).then_some(())
    });
    let shown = world.show().to_string();
    for n in 0..4 {
        let said = world.run(&["show", "k", "--json"]).json();
        let messages = said["messages"].as_array().unwrap();
        let word = format!("word-{n}-end");
        let times = messages.iter().filter(|m| m["text"] == word).count();
        assert_eq!(times, 1, "{word}: {shown}");
    }
}

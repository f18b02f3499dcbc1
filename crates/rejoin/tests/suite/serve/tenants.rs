//! Tokens and namespaces beside each other: streams, places, models, and requests that are repeated.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;

use rejoin_testkit::{Answer, Daemon, World, wait_for};
use serde_json::{Value, json};

use super::{demo, here};

/// A token, as the header that carries it.
fn token(world: &World, name: &str, more: &[&str]) -> String {
    let mut args = vec!["token", "create", name, "--json"];
    args.extend(more);
    let made = world.run(&args).ok().json();
    format!("Authorization: Bearer {}", made["token"].as_str().unwrap())
}

/// A request whose answer stays open. Returns its status and the connection behind its head.
fn open(daemon: &Daemon, header: &str, request: &str, body: &str) -> (u16, BufReader<TcpStream>) {
    let mut stream = TcpStream::connect(&daemon.address).unwrap();
    let length = body.len();
    let head = format!(
        "{request} HTTP/1.1\r\nHost: {}\r\n{header}\r\nAccept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}",
        daemon.address
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = BufReader::new(stream);
    let mut line = String::new();
    answer.read_line(&mut line).unwrap();
    let status = line.split(' ').nth(1).unwrap().parse().unwrap();
    while !line.trim().is_empty() {
        line.clear();
        answer.read_line(&mut line).unwrap();
    }
    (status, answer)
}

/// Waits until the daemon has ended the stream.
fn ends(mut stream: BufReader<TcpStream>) {
    stream.read_to_end(&mut vec![]).unwrap();
}

#[test]
fn a_stream_ends_with_its_token() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    let revoked = token(&world, "revoked", &[]);
    let expires = token(&world, "expires", &["--expires", "2s"]);
    let paths = ["GET /api/events", "GET /api/conversations/k/events"];
    let mut streams = vec![];
    for header in [&revoked, &expires] {
        for path in paths {
            let (status, stream) = open(&daemon, header, path, "");
            assert_eq!(status, 200);
            streams.push(stream);
        }
    }
    // Also the stream of a turn that is sent, and a request that waits for one.
    let work = here(&world).1;
    let slow = json!({"key": "slow", "text": "wait 60s", "workdir": work}).to_string();
    let (status, stream) = open(&daemon, &revoked, "POST /api/send", &slow);
    assert_eq!(status, 200);
    streams.push(stream);
    let body = json!({"key": "slower", "text": "wait 60s", "workdir": work});
    let path = "/api/send?wait=true";
    let waits = std::thread::scope(|scope| {
        let waiting = scope.spawn(|| daemon.call("POST", path, &[&revoked], Some(&body)));
        let runs = |key: &str| {
            let shown = daemon.get(&format!("/api/conversations/{key}"));
            shown.status == 200 && shown.json()["turns"][0]["status"] == "running"
        };
        wait_for("both turns to run", 30, || {
            (runs("slow") && runs("slower")).then_some(())
        });
        // Not through the daemon: another process may revoke it.
        world
            .run(&["--hub", "none", "token", "revoke", "revoked"])
            .ok();
        waiting.join().unwrap()
    });
    assert_eq!(waits.status, 401, "{waits:?}");
    streams.into_iter().for_each(ends);
    for header in [&revoked, &expires] {
        assert_eq!(open(&daemon, header, "GET /api/events", "").0, 401);
    }
    // The turns are not the token's to end.
    for key in ["slow", "slower"] {
        let shown = daemon.get(&format!("/api/conversations/{key}")).ok();
        let turn = &shown["turns"][0];
        assert_eq!(turn["status"], "running", "{turn}");
        let path = format!("/api/turns/{}/cancel", turn["turn_id"].as_str().unwrap());
        daemon.post(&path, &Value::Null).ok();
    }
}

#[test]
fn streams_of_one_tenant_leave_places_for_others() {
    let world = demo();
    let daemon = world.serve(&[]);
    let of = |namespace: &str, name: &str| token(&world, name, &["--namespace", namespace]);
    let (one, two, three) = (of("a", "one"), of("a", "two"), of("a", "three"));
    let other = of("b", "other");
    let watch = |header: &str| open(&daemon, header, "GET /api/events", "");
    let mut streams = vec![];
    for header in [&one, &two] {
        for _ in 0..500 {
            let (status, stream) = watch(header);
            assert_eq!(status, 200);
            streams.push(stream);
        }
        assert_eq!(watch(header).0, 429, "a token has a limit");
    }
    assert_eq!(watch(&three).0, 429, "a namespace has a limit");
    assert_eq!(watch(&other).0, 200, "other namespaces have places");
    // A message whose stream has no place is not accepted.
    let work = here(&world).1;
    let body = json!({"key": "k", "text": "hello", "workdir": work}).to_string();
    assert_eq!(open(&daemon, &one, "POST /api/send", &body).0, 429);
    let listed = daemon.call("GET", "/api/conversations", &[&one], None).ok();
    assert_eq!(listed["conversations"], json!([]));
    // Places are given back.
    streams.truncate(600);
    wait_for("a place", 30, || (watch(&two).0 == 200).then_some(()));
}

#[test]
fn a_model_is_one_word_over_http_too() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    let shown = daemon.get("/api/conversations/k").ok();
    let first = shown["messages"][0]["id"].as_str().unwrap().to_owned();
    let work = here(&world).1;
    for model in ["--dangerously-skip-permissions", "", "a b", "a\nb", "-m"] {
        let refused = |answer: Answer| {
            assert_eq!(answer.status, 400, "{model:?}: {answer:?}");
            let detail = answer.json()["detail"].as_str().unwrap().to_owned();
            let named = ["cannot be a model", "a model has a name"];
            assert!(named.iter().any(|it| detail.contains(it)), "{detail}");
        };
        let body = json!({"text": "two", "workdir": work, "model": model});
        refused(daemon.post("/api/send", &body));
        refused(daemon.post(
            "/api/conversations/k/messages",
            &json!({"text": "x", "model": model}),
        ));
        refused(daemon.post(
            "/api/conversations",
            &json!({"workdir": work, "model": model}),
        ));
        refused(daemon.post(
            &format!("/api/messages/{first}/retry"),
            &json!({"model": model}),
        ));
        let models = json!({"text": "x", "workdir": work, "defaults": {"models": {"demo": model}}});
        refused(daemon.post("/api/send", &models));
        if !model.is_empty() {
            let body = json!({"model": model});
            refused(daemon.call("PATCH", "/api/conversations/k", &[], Some(&body)));
        }
    }
    let shown = daemon.get("/api/conversations/k").ok();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 2);
}

#[test]
fn requests_under_one_key_are_carried_out_once() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    let shown = daemon.get("/api/conversations/k").ok();
    let first = shown["messages"][0]["id"].as_str().unwrap().to_owned();
    let keyed = |key: &str, path: &str, body: &Value| {
        let header = format!("Idempotency-Key: {key}");
        daemon.call("POST", path, &[&header], Some(body))
    };
    let retry = format!("/api/messages/{first}/retry?wait=true");
    let once = keyed("r", &retry, &json!({})).ok();
    let again = keyed("r", &retry, &json!({})).ok();
    assert_eq!(once["turn_id"], again["turn_id"]);
    assert_eq!(
        keyed(
            "r",
            "/api/conversations/k/messages",
            &json!({"text": "hello"})
        )
        .status,
        409
    );
    let turns = daemon.get("/api/conversations/k").ok()["turns"].clone();
    assert_eq!(turns.as_array().unwrap().len(), 2, "{turns:#}");
    let fork = keyed("f", "/api/conversations/k/fork", &json!({})).ok();
    let same = keyed("f", "/api/conversations/k/fork", &json!({})).ok();
    assert_eq!(fork, same);
    let body = json!({"name": "mine", "scope": "read"});
    let token = keyed("t", "/api/tokens", &body).ok();
    assert_eq!(keyed("t", "/api/tokens", &body).ok(), token);
    assert_eq!(keyed("u", "/api/tokens", &body).status, 409);
    let other = json!({"name": "mine", "scope": "admin"});
    assert_eq!(keyed("t", "/api/tokens", &other).status, 409);
    assert_ne!(
        keyed("t2", "/api/tokens", &json!({"name": "more"})).ok()["token"],
        token["token"]
    );
}

/// The same flags through a daemon and without one.
#[test]
fn commands_under_one_key_are_carried_out_once() {
    let world = demo();
    let sent = world.run(&["send", "-k", "k", "hello"]).ok();
    drop(sent);
    let story = |hub: &[&str], key: &str| {
        let run = |args: &[&str]| world.run(&[hub, args].concat());
        let retry = ["retry", "k", "--json", "--idempotency-key", key];
        let turn = run(&retry).ok().json()["turn_id"].clone();
        assert_eq!(run(&retry).ok().json()["turn_id"], turn);
        let key = format!("{key}-fork");
        let fork = ["fork", "k", "--json", "--idempotency-key", &key];
        let made = run(&fork).ok().json()["conversation_id"].clone();
        assert_eq!(run(&fork).ok().json()["conversation_id"], made);
    };
    story(&["--hub", "none"], "here");
    let _daemon = world.serve(&[]);
    story(&[], "there");
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(shown["turns"].as_array().unwrap().len(), 3);
}

#[test]
fn hosts_and_origins_are_compared_whole() {
    let world = demo();
    let daemon = world.serve(&[]);
    let port = daemon.address.rsplit_once(':').unwrap().1;
    let status = |header: String| {
        let answer = daemon.call("GET", "/api/conversations", &[&header], None);
        answer.status
    };
    for host in ["localhost", "127.0.0.1", "[::1]"] {
        assert_eq!(status(format!("Host: {host}:{port}")), 200, "{host}");
        assert_eq!(
            status(format!("Origin: http://{host}:{port}")),
            200,
            "{host}"
        );
    }
    for host in [
        "localhost.evil.example",
        "[::1].evil.example",
        "[::1]evil.example",
        "127.0.0.1.evil.example",
        "evil.example:80@localhost",
    ] {
        assert_eq!(status(format!("Host: {host}")), 403, "{host}");
        assert_eq!(status(format!("Origin: http://{host}")), 403, "{host}");
    }
    for origin in [
        "null",
        "file://localhost",
        "evil://[::1]",
        "http://localhost/x",
    ] {
        assert_eq!(status(format!("Origin: {origin}")), 403, "{origin}");
    }
}

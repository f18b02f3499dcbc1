//! Who does not get in, and what a daemon elsewhere cannot do.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;

use rejoin_testkit::{Done, World};

use super::demo;

/// A command for the daemon at this address, with this token.
fn ask(world: &World, address: &str, token: &str, args: &[&str]) -> Done {
    let child = world
        .command(args)
        .env("REJOIN_HUB", format!("http://{address}"))
        .env("REJOIN_TOKEN", token)
        .spawn();
    Done::of(child.unwrap())
}

#[track_caller]
fn says(done: &Done, code: i32, words: &str) {
    assert_eq!(done.code, code, "{done:?}");
    assert!(done.stderr.contains(words), "{words}: {done:?}");
    assert!(done.stderr.contains("  try: "), "{done:?}");
}

#[test]
fn tokens_decide_what_may_be_done() {
    let world = demo();
    let daemon = world.serve(&[]);
    let at = daemon.address.clone();
    let make = |name: &str, more: &[&str]| {
        let args = [&["token", "create", name, "--json"], more].concat();
        let made = world.run(&args).ok().json();
        made["token"].as_str().unwrap().to_owned()
    };
    let (reads, sends) = (make("reads", &["--scope", "read"]), make("sends", &[]));
    let theirs = make("theirs", &["--namespace", "them"]);
    ask(&world, &at, &sends, &["send", "-k", "k", "hello"]).ok();
    ask(&world, &at, &reads, &["show", "k"]).ok();
    says(
        &ask(&world, &at, &reads, &["send", "-k", "k", "x"]),
        5,
        "needs send",
    );
    says(
        &ask(&world, &at, &sends, &["token", "list"]),
        5,
        "needs admin",
    );
    // What is in another namespace is not there.
    says(
        &ask(&world, &at, &theirs, &["show", "k"]),
        3,
        "no conversation `k`",
    );
    says(
        &ask(&world, &at, &theirs, &["reply", "x"]),
        3,
        "no conversation",
    );
    ask(&world, &at, &theirs, &["send", "-k", "k", "another k"]).ok();
    let listed = ask(&world, &at, &theirs, &["list", "--json"]).ok().json();
    assert_eq!(listed["conversations"].as_array().unwrap().len(), 1);
    // Unknown, revoked, none.
    says(
        &ask(&world, &at, "rejoin_no", &["list"]),
        8,
        "not known here",
    );
    world.run(&["token", "revoke", "sends"]).ok();
    says(&ask(&world, &at, &sends, &["send", "x"]), 8, "revoked");
    let json = ask(&world, &at, &sends, &["list", "--json"]);
    assert_eq!(json.json()["error"]["code"], "unauthorized");
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Nobody is there, or somebody else is.
#[test]
fn no_daemon_at_an_address() {
    let world = demo();
    says(
        &ask(&world, "127.0.0.1:1", "t", &["list"]),
        6,
        "cannot be reached",
    );
    let json = ask(&world, "127.0.0.1:1", "t", &["send", "--json", "x"]);
    assert_eq!(json.code, 6, "{json:?}");
    assert_eq!(json.json()["error"]["code"], "unavailable");
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = other.local_addr().unwrap().to_string();
    let page = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let read = stream.read(&mut [0; 4096]);
        assert!(read.unwrap() > 0);
        let body = "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\nconnection: close\r\n\r\n<p>";
        stream.write_all(body.as_bytes()).unwrap();
    });
    says(&ask(&world, &at, "t", &["list"]), 6, "is no rejoin daemon");
    page.join().unwrap();
    for bad in ["nosuch", "ftp://x", "http://u:p@127.0.0.1:1"] {
        let done = world.run(&["--hub", bad, "list"]);
        assert_eq!(done.code, 2, "{done:?}");
    }
}

/// What needs this machine's files or the store itself says so, and does nothing.
#[test]
fn commands_of_this_machine() {
    let world = demo();
    let commands: [&[&str]; 14] = [
        &["adopt"],
        &["open", "k"],
        &["export", "k"],
        &["import", "f"],
        &["snapshot", "list"],
        &["sweep"],
        &["doctor"],
        &["demo"],
        &["config", "path"],
        &["trust"],
        &["serve"],
        &["model-server"],
        &["send", "--bundle", "f", "x"],
        &["show", "--bundle", "f"],
    ];
    for args in commands {
        let done = world.run(&[&["--hub", "http://127.0.0.1:1"], args].concat());
        says(&done, 2, "this machine's own files");
    }
    // What has nothing to do with any hub is not in its way.
    for args in [&["config", "path"][..], &["completions", "bash"]] {
        ask(&world, "127.0.0.1:1", "t", args).ok();
    }
    says(
        &ask(&world, "127.0.0.1:1", "t", &["sweep"]),
        2,
        "--hub none",
    );
    // And none means none.
    let env = world.command(&["list"]).env("REJOIN_HUB", "none").spawn();
    Done::of(env.unwrap()).ok();
    let flag = ask(&world, "127.0.0.1:1", "t", &["list", "--hub", "none"]);
    flag.ok();
}

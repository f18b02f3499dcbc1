//! The command line as a person meets it, with the demo agent.

use rejoin_testkit::World;
use serde_json::json;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// The README's first command.
#[test]
fn demo_shows_a_conversation_and_leaves_nothing() {
    let mut world = World::new(REJOIN);
    world.unset("REJOIN_HOME");
    let temp = world.root().join("tmp");
    std::fs::create_dir(&temp).unwrap();
    world.set("TMPDIR", temp.to_str().unwrap());
    let done = world.run(&["demo"]).ok();
    let verdicts: Vec<&str> = done
        .stdout
        .lines()
        .filter_map(|l| l.strip_prefix("rejoin: "))
        .map(|l| l.split([',', ' ']).next().unwrap())
        .collect();
    assert_eq!(verdicts, ["started", "resumed", "restored", "reseeded"]);
    assert!(
        done.stdout
            .contains("Before that you told me: “My name is Ada and I like tea.”")
    );
    assert_eq!(std::fs::read_dir(&temp).unwrap().count(), 0);
    assert_eq!(std::fs::read_dir(world.home()).unwrap().count(), 0);
}

#[test]
fn reply_list_show_explain_and_json() {
    let world = World::new(REJOIN);
    let first = world.run(&["send", "-a", "demo", "hello there"]).ok();
    assert_eq!(
        first.stdout,
        "You said “hello there”. Nothing came before it.\n"
    );
    assert!(
        first.stderr.starts_with("rejoin: started · "),
        "{}",
        first.stderr
    );
    let second = world.run(&["reply", "--json", "again"]).ok().json();
    assert_eq!(
        (&second["agent"], &second["verdict"]),
        (&json!("demo"), &json!("resumed"))
    );
    let handle = second["handle"]
        .as_str()
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    let list = world.run(&["list", "--json"]).ok().json();
    assert_eq!(list["conversations"][0]["handle"], handle.as_str());
    assert_eq!(list["conversations"][0]["title"], "hello there");
    assert_eq!(list["conversations"][0]["state"], "idle");
    for name in [
        &handle,
        &handle[..2],
        "last",
        second["conversation_id"].as_str().unwrap(),
    ] {
        let show = world.run(&["show", name, "--json"]).ok().json();
        let texts: Vec<_> = show["messages"]
            .as_array()
            .unwrap()
            .iter()
            .map(|m| m["text"].as_str().unwrap())
            .collect();
        assert_eq!(texts[0], "hello there");
        assert_eq!(texts.len(), 4);
        assert_eq!(show["sessions"][0]["state"], "confirmed");
    }
    assert_eq!(world.run(&["explain", "--json"]).ok().json(), second);
    let past = world
        .run(&["explain", &format!("{handle}:2"), "--json"])
        .ok()
        .json();
    assert_eq!(past["verdict"], "started");
    let next = world.run(&["explain", "--next", "--json"]).ok().json();
    assert_eq!(
        (&next["verdict"], &next["sent"]["resumed"]),
        (&json!("resumed"), &json!(4))
    );
}

#[test]
fn what_is_wrong_is_said_in_one_sentence() {
    let world = World::new(REJOIN);
    let cases: [(&[&str], i32, &str); 8] = [
        (
            &["send", "-c", "nobody", "hi"],
            3,
            "error: there is no conversation `nobody`\n  try: rejoin list\n",
        ),
        (
            &["reply", "hi"],
            3,
            "error: there is no conversation yet\n  try: rejoin send \"hello\"\n",
        ),
        (
            &["send", "-a", "nobody", "hi"],
            3,
            "error: there is no agent `nobody`; there are claude, ",
        ),
        (
            &["send", "-a", "demo", "  "],
            2,
            "error: the message is empty\n",
        ),
        (
            &["send", "-a", "demo", "-w", "no/such/folder", "hi"],
            2,
            "error: the working folder no/such/folder does not exist\n",
        ),
        (
            &["send", "-a", "demo", "--tools", "Bash", "hi"],
            5,
            "error: the demo agent has no tools",
        ),
        (
            &["explain", "nobody"],
            3,
            "error: there is no conversation `nobody`",
        ),
        (
            &["send", "--timeout", "soon", "hi"],
            2,
            "error: invalid value 'soon'",
        ),
    ];
    for (args, code, text) in cases {
        let done = world.run(args);
        assert_eq!(done.code, code, "{args:?} {done:?}");
        assert!(done.stderr.starts_with(text), "{args:?} {done:?}");
        assert_eq!(done.stdout, "", "{args:?}");
        let json = world.run(&[args, &["--json"]].concat());
        assert_eq!(json.code, code);
        assert!(json.json()["error"]["message"].is_string(), "{json:?}");
    }
    assert_eq!(
        world.run(&["list", "--json"]).ok().json()["conversations"],
        json!([])
    );
}

/// Nobody is answered by the demo agent without having asked for it.
#[test]
fn a_missing_agent_is_not_replaced() {
    let mut world = World::new(REJOIN);
    world.set("PATH", "/usr/bin:/bin");
    let done = world.run(&["send", "hello"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(done.stderr.contains("claude is not installed"), "{done:?}");
    assert!(
        done.stderr
            .contains("npm install -g @anthropic-ai/claude-code"),
        "{done:?}"
    );
}

/// A hostile file in a cloned folder chooses nothing.
#[test]
fn a_repository_cannot_choose_the_program() {
    let world = World::new(REJOIN);
    let evil = world.root().join("evil");
    std::fs::write(&evil, "#!/bin/sh\ntouch \"$REJOIN_TEST_WORLD/ran\"\n").unwrap();
    std::fs::write(
        world.work().join("rejoin.toml"),
        format!("[agents.claude]\nbin = {evil:?}\n"),
    )
    .unwrap();
    let done = world.run(&["send", "hello"]);
    assert_eq!(done.code, 5, "{done:?}");
    assert!(done.stderr.contains("agents.claude.bin"), "{done:?}");
    assert!(!world.root().join("ran").exists());
    world.run(&["list"]).ok();
}

#[test]
fn events_stream_as_json_lines() {
    let world = World::new(REJOIN);
    let done = world.run(&["send", "-a", "demo", "--stream", "hello"]).ok();
    let events: Vec<serde_json::Value> = done
        .stdout
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let types: Vec<&str> = events.iter().map(|e| e["type"].as_str().unwrap()).collect();
    assert_eq!(
        types,
        [
            "turn.accepted",
            "turn.decided",
            "turn.started",
            "text",
            "usage",
            "turn.ended"
        ]
    );
    let seqs: Vec<i64> = events.iter().map(|e| e["seq"].as_i64().unwrap()).collect();
    assert!(seqs.is_sorted() && seqs.windows(2).all(|w| w[0] < w[1]));
}

#[test]
fn a_prompt_comes_from_stdin_too() {
    let world = World::new(REJOIN);
    for args in [&["send", "-a", "demo", "-"][..], &["send", "-a", "demo"]] {
        let done = world.run_with_stdin(args, "piped words".as_bytes()).ok();
        assert!(done.stdout.contains("piped words"));
    }
}

/// A reader that went away (`2>&1 | head -0`) breaks nothing: the turn is run, the code is the turn's.
#[test]
fn nobody_reads_what_is_said() {
    let world = World::new(REJOIN);
    let line = format!(
        "{{ {REJOIN} send -k k -a demo hello; echo $? >code; {REJOIN} send --wrong; echo $? >>code; }} >/dev/full 2>&1"
    );
    let closed = line.replace(">/dev/full 2>&1", "2>&1 | true");
    for line in [closed, line] {
        let mut command = std::process::Command::new("sh");
        command
            .args(["-c", &line])
            .env_clear()
            .envs(&world.env)
            .current_dir(world.work());
        assert!(command.status().unwrap().code().is_some());
        let codes = std::fs::read_to_string(world.work().join("code")).unwrap();
        let codes: Vec<&str> = codes.lines().collect();
        assert!(!codes.contains(&"101") && codes[1] == "2", "{codes:?}");
    }
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(shown["turns"].as_array().unwrap().len(), 2, "{shown:#}");
}

/// A word in the environment that names no trace is left out, in a command and through a daemon.
#[test]
fn a_trace_that_is_none() {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world.set("TRACEPARENT", "00-xyz");
    world.run(&["send", "-k", "k", "hello"]).ok();
    let daemon = world.serve(&[]);
    world.run(&["send", "-k", "k", "again"]).ok();
    assert_eq!(daemon.stop(), 0);
}

/// The log of the store, which every command reads, is emptied while an agent works: it does not grow
/// from turn to turn.
#[test]
fn the_log_is_emptied_while_an_agent_works() {
    let world = World::new(REJOIN);
    let log = world.root().join("data/rejoin.db-wal");
    let mut lengths = vec![];
    for _ in 0..5 {
        let send = ["send", "-q", "-k", "k", "-a", "demo", "wait 0.6s please"];
        world.run(&send).ok();
        lengths.push(std::fs::metadata(&log).unwrap().len());
    }
    // A turn writes more than 200 KB; a few pages more is what a longer history takes.
    assert!(lengths[4] - lengths[1] < 40_000, "{lengths:?}");
}

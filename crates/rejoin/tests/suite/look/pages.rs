//! `list` and `show`.

use insta::assert_snapshot;
use rejoin_testkit::{CLAUDE_NEW, Done, Model, World, answer, slowly, wait_for};

use super::{piped, spoil, talk};
use crate::suite::terminal::{Terminal, masked, masked_json, steady, world};

#[test]
fn list() {
    let world = world();
    assert_snapshot!(piped(&world, &["list"]), @r#"
    no conversation yet; try: rejoin send "hello", or rejoin demo
    "#);
    talk(&world);
    world
        .run(&["send", "-a", "demo", &"A title without end ".repeat(9)])
        .ok();
    spoil(&world);
    assert_ne!(world.run(&["reply", "again"]).code, 0);
    assert_snapshot!(piped(&world, &["list"]), @r#"
    wnly  now  demo  failed  $0.00  A title without end A title without end A title without end…
    tmqx  now  demo  idle    $0.00  My name is Ada and I like tea.
    "#);
    assert_snapshot!(piped(&world, &["list", "--state", "running"]), @r#"no such conversation; try: rejoin list"#);
    let first = world.run(&["list", "-n", "1", "--json"]).ok().json();
    assert_snapshot!(masked_json(&world, &first["conversations"]), @r#"
    [
      {
        "activity": null,
        "agent": "demo",
        "archived": false,
        "asks": null,
        "continue": "auto",
        "cost_known": false,
        "cost_usd": 0.0,
        "created_at": "[time]",
        "error": "unknown",
        "handle": "wnly",
        "id": "[id]",
        "key": null,
        "last_turn": {
          "agent": "demo",
          "ended_at": "[time]",
          "reason": "session_missing",
          "started_at": "[time]",
          "status": "failed",
          "summary": "rejoin: failed, unknown: failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20) · wnly:3 kept, no tool ran · demo demo · rejoin explain wnly",
          "turn_id": "[id]",
          "verdict": "reseeded"
        },
        "messages": 3,
        "parent_id": null,
        "permission": "edit",
        "scope": "full",
        "seen": 0,
        "state": "idle",
        "title": "A title without end A title without end A title without end…",
        "turns": 2,
        "unread": false,
        "updated_at": "[time]",
        "workdir": "/world/work"
      }
    ]
    "#);
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = world
        .run(&["list", "--json", "--cursor", cursor])
        .ok()
        .json();
    assert_eq!(second["conversations"][0]["key"], "tea");
    assert_eq!(second["next_cursor"], serde_json::Value::Null);
}

#[test]
fn show() {
    let world = world();
    talk(&world);
    spoil(&world);
    assert_ne!(world.run(&["reply", "Are you there?"]).code, 0);
    assert_snapshot!(piped(&world, &["show"]), @r#"
    tmqx  My name is Ada and I like tea.                               failed  $0.00
    demo · /world/work · edit · key tea · 7 messages · since today 14:31

    tmqx:1  you                                                          today 14:31
      My name is Ada and I like tea.

    tmqx:2  demo                                                         today 14:31
      You said “My name is Ada and I like tea.”. Nothing came before it.
      │ started: nothing came before · $0.00 · 0.1s

    tmqx:3  you                                                          today 14:31
      What is my name?

    tmqx:4  demo                                                         today 14:31
      You said “What is my name?”. Before that you told me: “My name is Ada and I like tea.”.
      │ resumed: demo knows all 2 messages · $0.00 · 0.1s

    tmqx:5  you                                                          today 14:31
      What do I like?

    tmqx:6  demo                                                         today 14:31
      You said “What do I like?”. Before that you told me: “My name is Ada and I like tea.”, “What is my name?”.
      │ reseeded because demo's session file is gone · $0.00 · 0.1s

    tmqx:7  you  unanswered                                              today 14:31
      Are you there?
      │ failed, unknown: failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20) · reseeded because demo's session file is gone · 0.1s
    "#);
    assert_snapshot!(piped(&world, &["show", "--markdown"]), @r#"
    # My name is Ada and I like tea.

    Conversation `tmqx`, key `tea` in `/world/work`, begun 2026-11-15.

    ## 1. You

    My name is Ada and I like tea.

    ## 2. demo

    You said “My name is Ada and I like tea.”. Nothing came before it.

    > started: nothing came before · $0.00 · 0.1s

    ## 3. You

    What is my name?

    ## 4. demo

    You said “What is my name?”. Before that you told me: “My name is Ada and I like tea.”.

    > resumed: demo knows all 2 messages · $0.00 · 0.1s

    ## 5. You

    What do I like?

    ## 6. demo

    You said “What do I like?”. Before that you told me: “My name is Ada and I like tea.”, “What is my name?”.

    > reseeded because demo's session file is gone · $0.00 · 0.1s

    ## 7. You (unanswered)

    Are you there?

    > failed, unknown: failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20) · reseeded because demo's session file is gone · 0.1s
    "#);
    assert_eq!(
        world.run(&["show", "tea:3"]).ok().stdout,
        "What is my name?\n"
    );
    let json = world.run(&["show", "tea:4", "--json"]).ok().json();
    assert_eq!(json["messages"][0]["seq"], 4);
    assert_eq!(
        (
            json["messages"].as_array().unwrap().len(),
            json["turns"].as_array().unwrap().len()
        ),
        (1, 1)
    );
    let all = world.run(&["show", "--json"]).ok().json();
    assert_snapshot!(masked_json(&world, &all["messages"][6]), @r#"
    {
      "agent": null,
      "created_at": "[time]",
      "edited": false,
      "id": "[id]",
      "origin": "rejoin",
      "role": "user",
      "seq": 7,
      "state": "unanswered",
      "text": "Are you there?",
      "tools": [],
      "turn_id": "[id]"
    }
    "#);
    if let Some(terminal) = Terminal::open(&world) {
        assert_snapshot!(masked(&world, &terminal.run("rejoin show tea:4")), @r#"
        $ rejoin show tea:4
        tmqx:4  demo                                                         today 14:31
          You said “What is my name?”. Before that you told me: “My name is Ada and I
          like tea.”.
          │ resumed: demo knows all 2 messages · $0.00 · 0.1s
        $
        "#);
    }
}

/// Markdown is rendered, tools are a ledger; piped, the answer is what it was.
#[test]
fn an_answer_of_a_real_agent() {
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let Some(world) = World::claude(rejoin, CLAUDE_NEW) else {
        return;
    };
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let file = world.work().join("a.rs");
    let text = "# Done\n\nI **fixed** `a.rs`.\n\n- one\n- two";
    let script = serde_json::json!([
        {"tools": [{"name": "Write", "input": {"file_path": file, "content": "x"}}]},
        {"text": text},
    ]);
    let prompt = format!("fix it #j:{script}#");
    world
        .run(&["send", "-k", "k", "-m", "sonnet", "--", &prompt])
        .ok();
    assert_eq!(world.run(&["show", "k:2"]).ok().stdout, format!("{text}\n"));
    let screen = terminal.run("rejoin show k:2");
    let lines: Vec<&str> = screen.lines().skip(2).take(8).collect();
    let page = "  Done\n\n  I fixed a.rs.\n\n  • one\n  • two\n  │ tools: changed a.rs";
    assert_eq!(lines[..7].join("\n"), page, "{screen}");
    assert!(
        lines[7].starts_with("  │ started: nothing came before · "),
        "{screen}"
    );
}

/// What goes on stands out in words: a turn that runs, one that waits for it.
#[test]
fn what_goes_on() {
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let mut late = slowly(&answer(1), 12);
    late.delay_ms = Some(500);
    let model = || Model::scripted([("late", vec![late])]);
    let Some(world) = World::claude_with(rejoin, CLAUDE_NEW, model).map(steady) else {
        return;
    };
    let first = world.start(1, "#s:late", &["-m", "sonnet"]);
    wait_for("the answer to begin", 20, || {
        world.printed("text_delta").then_some(())
    });
    let second = world.start(2, "#s:a2", &[]);
    wait_for("the second to be accepted", 10, || {
        (world.messages().len() == 2).then_some(())
    });
    assert_snapshot!(piped(&world, &["list", "--state", "running"]), @r#"tmqx  now  claude  running  -  userword-1-end #s:late"#);
    assert_snapshot!(piped(&world, &["list", "--state", "idle"]), @r#"no such conversation; try: rejoin list"#);
    assert_snapshot!(piped(&world, &["explain", "k:1"]), @r#"
    running; started: nothing came before        tmqx:1  claude 2.1.325  today 14:31
      ok    capability  resume proven on this binary
    sent      only the new message; 22 bytes
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    command   claude -p --input-format stream-json --output-format…  (--raw for all)
    "#);
    assert_snapshot!(piped(&world, &["show", "k"]), @r#"
    tmqx  userword-1-end #s:late                                          running  -
    claude · /world/work · edit · key k · 2 messages · since today 14:31

    tmqx:1  you                                                          today 14:31
      userword-1-end #s:late

    tmqx  you  queued                                                    today 14:31
      userword-2-end #s:a2
    "#);
    if let Some(terminal) = Terminal::open(&world) {
        assert_snapshot!(masked(&world, &terminal.run("rejoin")), @r#"
        $ rejoin
        Going on
          tmqx  now  claude  running  -  userword-1-end #s:late

          rejoin watch tmqx  follow it
          rejoin reply "…"   go on with tmqx
          rejoin show tmqx   read it
        $
        "#);
    }
    let busy = world.run(&["send", "-k", "k", "--if-busy", "fail", "hi"]);
    assert_eq!(busy.code, 4);
    assert_snapshot!(busy.stderr, @r#"
    error: the conversation is busy with another turn; this message was not kept
      try: rejoin send --if-busy wait …
    "#);
    assert_eq!(Done::of(first).ok().json()["text"], answer(1));
    assert_eq!(Done::of(second).ok().json()["text"], answer(2));
}

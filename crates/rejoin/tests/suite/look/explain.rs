//! `explain`, of the past and of the next turn.

use insta::assert_snapshot;

use super::{piped, spoil, talk};
use crate::suite::terminal::{masked_json, world};

#[test]
fn explain() {
    let world = world();
    talk(&world);
    assert_snapshot!(piped(&world, &["explain", "tea:2"]), @r#"
    started: nothing came before                     tmqx:2  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
    sent      only the new message; 30 bytes
    cost      $0.00; 9 in (0% cached), 22 out; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    command   rejoin demo-agent --session-id 5e551043-0000-4000-8000-000000000000
    "#);
    assert_snapshot!(piped(&world, &["explain", "tea:4"]), @r#"
    resumed: demo knows all 2 messages               tmqx:4  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
      ok    history     seen through message 2 of 2
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     9 of 200000 tokens (0.0 %, limit 80 %)
      ok    bytes       untouched since confirmed
      ok    also        session, breaker, present, in use, model, compaction
    sent      only the new message; 16 bytes
    cost      $0.00; 36 in (0% cached), 30 out; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    command   rejoin demo-agent --resume 5e551043-0000-4000-8000-000000000000
    "#);
    assert_snapshot!(piped(&world, &["explain"]), @r#"
    reseeded because demo's session file is gone
    (session_missing)                                tmqx:6  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
      ok    history     seen through message 4 of 4
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     36 of 200000 tokens (0.0 %, limit 80 %)
      FAIL  present     sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it
      ok    also        session, breaker, in use, model, compaction
    sent      4 messages re-told, the new message; 567 bytes
    cost      $0.00; 167 in (0% cached), 38 out; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    next      resumes, unless something changes (rejoin explain tmqx --next)
    command   rejoin demo-agent --session-id 5e551043-0000-4000-8000-000000000000
    "#);
    assert_snapshot!(piped(&world, &["explain", "--raw"]), @r#"
    reseeded because demo's session file is gone
    (session_missing)                                tmqx:6  demo 0.1.0  today 14:31
      ok    envelope    the agent can be held to these permissions
      ok    turns       4 messages in scope before this one
      ok    fresh       a resume is allowed
      ok    capability  resume proven on this binary
      ok    session     5e551043-0000-4000-8000-000000000000
      ok    breaker     0 failed turns in a row, limit 2
      ok    history     seen through message 4 of 4
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     36 of 200000 tokens (0.0 %, limit 80 %)
      FAIL  present     sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it
      ok    in use      unknown: the agent leaves no trace of who has it open
      ok    model       demo                ok  compaction  not compacted
    sent      4 messages re-told, the new message; 567 bytes
    cost      $0.00; 167 in (0% cached), 38 out; 0.1s
    allowed   edit: may change files in the working folder
    wall      none: [wall] mode is `off`
    session   5e551043-0000-4000-8000-000000000000
    next      resumes, unless something changes (rejoin explain tmqx --next)
    command   /proc/self/exe demo-agent --session-id 5e551043-0000-4000-8000-000000000000
    "#);
    let next = world.run(&["explain", "--next", "--json"]).ok().json();
    assert_snapshot!(masked_json(&world, &next), @r#"
    {
      "agent": "demo",
      "cannot": null,
      "checks": [
        {
          "check": "envelope",
          "evidence": "the agent can be held to these permissions",
          "ok": true
        },
        {
          "check": "turns",
          "evidence": "6 messages in scope before this one",
          "ok": true
        },
        {
          "check": "fresh",
          "evidence": "a resume is allowed",
          "ok": true
        },
        {
          "check": "capability",
          "evidence": "resume proven on this binary",
          "ok": true
        },
        {
          "check": "session",
          "evidence": "[id]",
          "ok": true
        },
        {
          "check": "breaker",
          "evidence": "0 failed turns in a row, limit 2",
          "ok": true
        },
        {
          "check": "history",
          "evidence": "seen through message 6 of 6",
          "ok": true
        },
        {
          "check": "folder",
          "evidence": "same folder",
          "ok": true
        },
        {
          "check": "runtime",
          "evidence": "same product and version, rejoin demo agent 0.1.0",
          "ok": true
        },
        {
          "check": "provider",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "context",
          "evidence": "167 of 200000 tokens (0.1 %, limit 80 %)",
          "ok": true
        },
        {
          "check": "present",
          "evidence": "its files are here",
          "ok": true
        },
        {
          "check": "in_use",
          "evidence": "unknown: the agent leaves no trace of who has it open",
          "ok": true
        },
        {
          "check": "bytes",
          "evidence": "untouched since confirmed",
          "ok": true
        },
        {
          "check": "model",
          "evidence": "demo",
          "ok": true
        },
        {
          "check": "compaction",
          "evidence": "not compacted",
          "ok": true
        },
        {
          "check": "snapshot",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "wall",
          "evidence": "none: [wall] mode is `off`",
          "ok": null
        }
      ],
      "cost_estimate_usd": 0.0,
      "envelope": {
        "deny_tools": [],
        "mode": "edit",
        "tools": null
      },
      "fresh_estimate_usd": 0.0,
      "handle": "tmqx",
      "note": null,
      "reason": null,
      "sent": {
        "bytes": 0,
        "caught_up": 0,
        "left_out": 0,
        "resumed": 6,
        "shortened": 0,
        "summarised": 0,
        "transcribed": 0
      },
      "verdict": "resumed",
      "version": "rejoin demo agent 0.1.0"
    }
    "#);
    spoil(&world);
    assert_snapshot!(piped(&world, &["explain", "--next"]), @r#"
    would reseed because demo's session file is gone
    (session_missing)                                               tmqx  demo 0.1.0
      ok    capability  resume proven on this binary
      ok    history     seen through message 6 of 6
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     167 of 200000 tokens (0.1 %, limit 80 %)
      FAIL  present     sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it
      ok    also        session, breaker, in use, model, compaction
    sends     6 messages re-told, your message; 749 bytes besides it
    costs     ≈ $0.00, by what earlier turns cost
    allows    edit: may change files in the working folder
    "#);
    assert_ne!(world.run(&["reply", "Are you there?"]).code, 0);
    assert_snapshot!(piped(&world, &["explain"]), @r#"
    failed (unknown); it was reseeded because demo's session file is gone
    (session_missing)                                tmqx:7  demo 0.1.0  today 14:31
      ok    capability  resume proven on this binary
      ok    history     seen through message 6 of 6
      ok    folder      same folder
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     167 of 200000 tokens (0.1 %, limit 80 %)
      FAIL  present     sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it
      ok    also        session, breaker, in use, model, compaction
    sent      6 messages re-told, the new message; 763 bytes
    cost      unknown, demo gave no figure; 0.1s
    allowed   edit: may change files in the working folder
    session   5e551043-0000-4000-8000-000000000000
    error     failed to create directory `/world/home/.rejoin-demo/sessions`: Not a directory (os error 20)
    kept      the message is unanswered; the next turn shows it once
    next      from another session, this one is not used again (rejoin explain tmqx --next)
    command   rejoin demo-agent --session-id 5e551043-0000-4000-8000-000000000000
    "#);
    assert_snapshot!(piped(&world, &["explain", "--next", "-w", world.home().to_str().unwrap()]), @r#"
    would reseed because the working folder is another one
    (other_folder)                                                  tmqx  demo 0.1.0
      ok    capability  resume proven on this binary
      ok    history     seen through message 6 of 7
      FAIL  folder      the session belongs to /world/work
      ok    runtime     same product and version, rejoin demo agent 0.1.0
      ok    context     167 of 200000 tokens (0.1 %, limit 80 %)
      FAIL  present     sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it
      ok    also        session, breaker, in use, model, compaction
    sends     7 messages re-told, your message; 813 bytes besides it
    costs     ≈ $0.00, by what earlier turns cost
    allows    edit: may change files in the working folder
    "#);
}

/// The size foreseen is the size sent, but for the message itself.
#[test]
fn explain_next_foresees_what_is_sent() {
    let world = world();
    talk(&world);
    for fresh in [false, true] {
        if fresh {
            std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
        }
        let next = world.run(&["explain", "--next", "--json"]).ok().json();
        let turn = world.run(&["reply", "--json", "12345"]).ok().json();
        let bytes = |v: &serde_json::Value| v["sent"]["bytes"].as_u64().unwrap();
        assert_eq!(bytes(&next) + 5, bytes(&turn), "{next:#} {turn:#}");
        assert_eq!(
            (&next["verdict"], &next["reason"]),
            (&turn["verdict"], &turn["reason"])
        );
    }
}

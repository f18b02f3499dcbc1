//! What scripts get: a turn as it is sent, as it is explained later, and a reset.

use insta::assert_snapshot;

use super::{piped, talk};
use crate::suite::terminal::{masked_json, world};

#[test]
fn a_turn_and_its_explanation() {
    let world = world();
    let turn = world.run(&["send", "-a", "demo", "-k", "tea", "--json", "Hello."]);
    let turn = turn.ok().json();
    assert_snapshot!(masked_json(&world, &turn), @r#"
    {
      "agent": "demo",
      "attempts": [
        {
          "reason": "first_turn",
          "session_id": "[id]",
          "status": "succeeded",
          "verdict": "started"
        }
      ],
      "chain_id": null,
      "checks": [
        {
          "check": "envelope",
          "evidence": "the agent can be held to these permissions",
          "ok": true
        },
        {
          "check": "turns",
          "evidence": "0 messages in scope before this one",
          "ok": false
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
          "evidence": "no session of this agent here",
          "ok": false
        },
        {
          "check": "breaker",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "history",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "folder",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "runtime",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "provider",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "context",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "present",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "in_use",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "bytes",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "model",
          "evidence": "does not apply",
          "ok": null
        },
        {
          "check": "compaction",
          "evidence": "does not apply",
          "ok": null
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
      "command": [
        "/proc/self/exe",
        "demo-agent",
        "--session-id",
        "[id]"
      ],
      "context": {
        "used": 2,
        "window": 200000
      },
      "conversation_id": "[id]",
      "cost_usd": 0.0,
      "denied": [],
      "duration_ms": 100,
      "escalation": null,
      "handle": "tmqx:2",
      "leftovers": [],
      "machine": "[machine]",
      "message_id": "[id]",
      "model": "demo",
      "parent_turn_id": null,
      "policy": {
        "after_compaction": "resume",
        "asks": false,
        "breaker": 2,
        "context_threshold": 0.8,
        "model_change": "resume",
        "permission": "edit",
        "scope": "full"
      },
      "questions": [],
      "reason": "first_turn",
      "reply_id": "[id]",
      "saved": "stored",
      "sent": {
        "bytes": 6,
        "caught_up": 0,
        "left_out": 0,
        "resumed": 0,
        "shortened": 0,
        "summarised": 0,
        "transcribed": 0
      },
      "session_id": "[id]",
      "started_at": "[time]",
      "status": "succeeded",
      "summary": "rejoin: started · tmqx:2 · demo demo · 2 in (0% cached) 15 out · $0.00 · 0.1s",
      "text": "You said “Hello.”. Nothing came before it.",
      "tier": null,
      "turn_id": "[id]",
      "usage": {
        "cache_read": 0,
        "cache_write": 0,
        "input": 2,
        "output": 15
      },
      "verdict": "started",
      "version": "rejoin demo agent 0.1.0"
    }
    "#);
    world.run(&["reply", "And now?"]).ok();
    let past = world.run(&["explain", "tea:1", "--json"]).ok().json();
    assert_eq!(past, turn);
}

#[test]
fn a_turn_that_was_told_everything() {
    let world = world();
    talk(&world);
    let mut past = world.run(&["explain", "tea", "--json"]).ok().json();
    assert_eq!(past["checks"].take().as_array().unwrap().len(), 18);
    assert_snapshot!(masked_json(&world, &past), @r#"
    {
      "agent": "demo",
      "attempts": [
        {
          "reason": "session_missing",
          "session_id": "[id]",
          "status": "succeeded",
          "verdict": "reseeded"
        }
      ],
      "chain_id": null,
      "checks": null,
      "command": [
        "/proc/self/exe",
        "demo-agent",
        "--session-id",
        "[id]"
      ],
      "context": {
        "used": 167,
        "window": 200000
      },
      "conversation_id": "[id]",
      "cost_usd": 0.0,
      "denied": [],
      "duration_ms": 100,
      "escalation": null,
      "handle": "tmqx:6",
      "leftovers": [],
      "machine": "[machine]",
      "message_id": "[id]",
      "model": "demo",
      "parent_turn_id": null,
      "policy": {
        "after_compaction": "resume",
        "asks": false,
        "breaker": 2,
        "context_threshold": 0.8,
        "model_change": "resume",
        "permission": "edit",
        "scope": "full"
      },
      "questions": [],
      "reason": "session_missing",
      "reply_id": "[id]",
      "saved": "stored",
      "sent": {
        "bytes": 567,
        "caught_up": 0,
        "left_out": 0,
        "resumed": 0,
        "shortened": 0,
        "summarised": 0,
        "transcribed": 4
      },
      "session_id": "[id]",
      "started_at": "[time]",
      "status": "succeeded",
      "summary": "rejoin: reseeded, session_missing: sessions/5e551043-0000-4000-8000-000000000000.jsonl is not here, and no snapshot of it · told 4 of 4 messages · tmqx:6 · demo demo · 167 in (0% cached) 38 out · $0.00 · 0.1s · rejoin explain tmqx",
      "text": "You said “What do I like?”. Before that you told me: “My name is Ada and I like tea.”, “What is my name?”.",
      "tier": null,
      "turn_id": "[id]",
      "usage": {
        "cache_read": 0,
        "cache_write": 0,
        "input": 167,
        "output": 38
      },
      "verdict": "reseeded",
      "version": "rejoin demo agent 0.1.0"
    }
    "#);
}

#[test]
fn reset() {
    let world = world();
    talk(&world);
    assert_snapshot!(piped(&world, &["reset"]), @"2 sessions retired; the next turn is told what was said");
    world.run(&["reply", "Still there?"]).ok();
    let reset = world.run(&["reset", "tea", "--json"]).ok().json();
    assert_snapshot!(masked_json(&world, &reset), @r#"
    {
      "conversation_id": "[id]",
      "dry_run": false,
      "retired": 1
    }
    "#);
    let next = world.run(&["explain", "--next", "--json"]).ok().json();
    assert_eq!(next["reason"], "session_retired");
}

//! A turn that fails, is denied something, runs out of time or is cancelled: its message stays,
//! unanswered; the next turn shows it once, marked so; the session is still used where it can be.

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, Model, Talk, World, kill, runs, texts, wait_for,
};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// The turn's own tokens at the list price of `sonnet`, and nothing of what failed before it.
#[track_caller]
fn charged(version: &str, turn: &Value) {
    let tokens = |name: &str| turn["usage"][name].as_f64().unwrap();
    let (input, cached) = if version == CLAUDE_OLD {
        (3.0, 0.3)
    } else {
        (2.0, 0.1)
    };
    let micros = input * (tokens("input") + tokens("cache_write") * 1.25 + tokens("output") * 5.0)
        + cached * tokens("cache_read");
    let cost = turn["cost_usd"].as_f64().unwrap() * 1e6;
    assert!(
        (cost - micros).abs() < 1.5,
        "{cost}, not {micros}: {}",
        turn["usage"]
    );
}

fn failed_turns_leave_the_session_as_it_was(version: &str) {
    let Some(world) = World::claude(REJOIN, version) else {
        return;
    };
    let mut story = Talk::begin(world);
    charged(version, &story.good("started", &["-m", "sonnet"]));
    let cases = [
        ("#s:e400", "invalid_request", 1),
        ("#s:e401", "auth", 8),
        ("#s:e429", "quota", 9),
        ("#s:e529", "transient", 1),
        ("#s:cut", "transient", 1),
    ];
    for (script, class, exit) in cases {
        let turn = story.bad(script, &[], ("failed", class, exit));
        // A request that was turned down is not charged; how much of a dropped stream is charged,
        // the versions judge differently.
        assert!(script == "#s:cut" || turn["cost_usd"] == 0.0, "{turn}");
        let next = story.good("resumed", &[]);
        assert_eq!(next["sent"]["caught_up"], 1, "{script}: {next}");
        charged(version, &next);
    }
    let url = story.world.env["ANTHROPIC_BASE_URL"].clone();
    story.world.set("ANTHROPIC_BASE_URL", "http://127.0.0.1:9");
    let turn = story.bad("#s:a1", &[], ("failed", "transient", 1));
    assert_eq!(turn["cost_usd"], 0.0);
    story.world.set("ANTHROPIC_BASE_URL", &url);
    story.good("resumed", &[]);
    // Too long for the window: going on with that session would fail again and again.
    story.bad("#s:toolong", &[], ("failed", "context_overflow", 1));
    let next = story.good("reseeded", &[]);
    assert_eq!(next["reason"], "session_retired");
    charged(version, &next);
    charged(version, &story.good("resumed", &[]));
}

#[test]
fn failed_turns_of_claude_2_1_197() {
    failed_turns_leave_the_session_as_it_was(CLAUDE_OLD);
}

#[test]
fn failed_turns_of_claude_2_1_325() {
    failed_turns_leave_the_session_as_it_was(CLAUDE_NEW);
}

#[test]
fn a_first_turn_that_fails_is_told_to_the_second() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let mut story = Talk::begin(world);
        story.bad(
            "#s:e400",
            &["-m", "sonnet"],
            ("failed", "invalid_request", 1),
        );
        assert_eq!(story.good("reseeded", &[])["reason"], "first_turn");
        assert_eq!(story.good("resumed", &[])["sent"]["resumed"], 3);
    }
}

#[test]
fn a_turn_that_takes_too_long_is_ended() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let mut story = Talk::begin(world);
        story.good("started", &["-m", "sonnet"]);
        let turn = story.bad(
            "#s:slow",
            &["--timeout", "2s"],
            ("failed", "time_limit", 124),
        );
        assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
        story.good("resumed", &[]);
    }
}

#[test]
fn denied_tools_are_listed_and_the_turn_goes_on() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(world) = World::claude(REJOIN, version) else {
            return;
        };
        let done = world
            .send(1, "#s:bash", &["--permission", "ask", "-m", "sonnet"])
            .ok();
        let turn = done.json();
        assert_eq!(turn["status"], "succeeded");
        let denied = turn["denied"].as_array().unwrap();
        assert_eq!(denied.len(), 1, "{turn}");
        assert!(denied[0].to_string().contains("Bash"), "{turn}");
        let summary = turn["summary"].as_str().unwrap();
        assert!(summary.ends_with(" · 1 tool denied"), "{summary}");
        assert!(!world.work().join("ran.txt").exists());
    }
}

/// Cancels turn 2 with a signal once `begun` is there; then everything is shown once.
fn cancelled(
    version: &str,
    script: &str,
    signal: &str,
    begun: impl Fn(&World) -> bool,
) -> Option<Talk> {
    let stuck = vec![runs("tail -f /dev/null & tail -f /etc/hostname; echo done")];
    let model = || Model::scripted([("stuck", stuck)]);
    let world = World::claude_with(REJOIN, version, model)?;
    let mut story = Talk::begin(world);
    story.good("started", &["-m", "sonnet", "--tools", "Bash"]);
    story.n += 1;
    let send = story.world.start(story.n, script, &[]);
    wait_for("the turn to be under way", 20, || {
        begun(&story.world).then_some(())
    });
    kill(send.id() as i32, signal);
    let done = Done::of(send);
    let exit = if signal == "INT" { 130 } else { 143 };
    let turn = story.failed(&done, ("cancelled", "cancelled", exit));
    assert_eq!(turn["cost_usd"], Value::Null, "{turn}");
    Some(story)
}

fn streams(world: &World) -> bool {
    world.printed("text_delta")
}

fn is_stuck(world: &World) -> bool {
    world
        .pid_of(|command| command == "tail -f /etc/hostname ")
        .is_some()
}

#[test]
fn ctrl_c_while_it_answers() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(mut story) = cancelled(version, "#s:slow", "INT", streams) else {
            return;
        };
        let turn = story.good("resumed", &[]);
        assert_eq!(turn["sent"]["caught_up"], 1);
        story.good("resumed", &[]);
    }
}

#[test]
fn ctrl_c_while_its_tool_runs() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(mut story) = cancelled(version, "#s:stuck", "INT", is_stuck) else {
            return;
        };
        story.good("resumed", &[]);
        let said = texts(&story.world.model.last());
        assert!(said.contains("(tools: "), "{said}");
        assert!(said.contains("tail -f /dev/null"), "{said}");
    }
}

#[test]
fn sigterm_cancels_as_well() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(mut story) = cancelled(version, "#s:slow", "TERM", streams) else {
            return;
        };
        story.good("resumed", &[]);
    }
}

#[test]
fn what_a_failed_turn_did_is_told_and_not_done_again() {
    let steps = || vec![runs("echo x >> ran.txt"), Step::status(400)];
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let model = || Model::scripted([("side", steps())]);
        let Some(world) = World::claude_with(REJOIN, version, model) else {
            return;
        };
        let mut story = Talk::begin(world);
        story.good("started", &["-m", "sonnet", "--tools", "Bash"]);
        let turn = story.bad("#s:side", &[], ("failed", "invalid_request", 1));
        let summary = turn["summary"].as_str().unwrap();
        assert!(summary.contains("1 tool ran"), "{summary}");
        story.good("resumed", &[]);
        let said = texts(&story.world.model.last());
        assert!(said.contains("(tools: used echo x >> ran.txt)"), "{said}");
        story.good("resumed", &[]);
        let ran = std::fs::read_to_string(story.world.work().join("ran.txt")).unwrap();
        assert_eq!(ran, "x\n");
    }
}

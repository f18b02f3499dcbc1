//! Sessions that are full, compacted or failing.

use rejoin_testkit::{
    Chronicle, Continued, World, answering, assert_shown, on_both_claudes, on_every_quick_cli,
    said, user,
};
use serde_json::Value;

mod windows {
    use super::*;
    // The others do not say how large their window is, or compact in ways of their own.
    on_both_claudes!(
        a_compacted_session_is_told_everything_if_configured,
        a_full_session_is_told_everything_anew,
    );
}
rejoin_testkit::on_cli!(
    claude_2_1_20,
    CLAUDE_20,
    two_failures_in_a_row_retire_a_session
);
on_every_quick_cli!(
    two_failures_in_a_row_retire_a_session,
    unanswered_messages_are_told_to_the_first_session,
);

/// C-55..C-60: 85 % falls back, 7.5 % proceeds, 0.70 by environment, by configuration; the
/// effective value is in the turn's record.
fn a_full_session_is_told_everything_anew(world: World) {
    let mut story = Chronicle::new(world);
    let config = story.world.root().join("own.toml");
    std::fs::write(&config, "[resume]\ncontext_threshold = 0.65\n").unwrap();
    let config = config.to_str().unwrap();
    let first = story.scripted(Continued::Started, &answering(1, 15_000, 25), &[]);
    let window = first["context"]["window"].as_u64().unwrap();
    let turn = |story: &mut Chronicle, how, per_mille: u64, flags: &[&str]| {
        let script = answering(story.next(), window * per_mille / 1000, 25);
        let turn = story.scripted(how, &script, flags);
        assert_eq!(turn["context"]["used"], window * per_mille / 1000);
        turn["policy"]["context_threshold"].clone()
    };
    let full = Continued::Reseeded("context_full");
    turn(&mut story, Continued::Resumed, 75, &[]);
    assert_eq!(turn(&mut story, Continued::Resumed, 850, &[]), 0.8);
    assert_eq!(turn(&mut story, full, 720, &[]), 0.8);
    turn(&mut story, Continued::Resumed, 720, &[]);
    story.world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "0.70");
    assert_eq!(turn(&mut story, full, 660, &[]), 0.7);
    story.world.unset("REJOIN_RESUME_CONTEXT_THRESHOLD");
    assert_eq!(turn(&mut story, full, 660, &["--config", config]), 0.65);
    turn(&mut story, Continued::Resumed, 75, &[]);
}

/// The breaker counts failures of the same session in a row.
fn two_failures_in_a_row_retire_a_session(world: World) {
    let mut story = Chronicle::begun(world);
    let resumed = |turn: &Value| assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    resumed(&story.fails("#s:e400", &[]));
    // A success in between starts the count anew.
    story.resumes(&[]);
    resumed(&story.fails("#s:e400", &[]));
    resumed(&story.fails("#s:e400", &[]));
    let turn = story.reseeds("session_retired", &[]);
    assert_eq!(turn["policy"]["breaker"], 2);
    assert_eq!(turn["sent"]["transcribed"], 7);
}

fn unanswered_messages_are_told_to_the_first_session(world: World) {
    let mut story = Chronicle::new(world);
    let failed = story.fails("#s:e400", &[]);
    assert_eq!(failed["verdict"], "started", "{failed:#}");
    let turn = story.reseeds("first_turn", &[]);
    assert_eq!(turn["sent"]["transcribed"], 1);
}

/// The agent's own compaction is shown, and is a reason only where it was made one.
fn a_compacted_session_is_told_everything_if_configured(world: World) {
    let mut story = Chronicle::new(world);
    let first = story.scripted(Continued::Started, &answering(1, 15_000, 25), &[]);
    let window = first["context"]["window"].as_u64().unwrap();
    let nearly = answering(2, window * 985 / 1000, 25);
    story.scripted(Continued::Resumed, &nearly, &[]);
    // Past our own threshold, so that the CLI has to make room itself.
    story.world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "1");
    let turn = story.world.say(3, &["-m", "sonnet"]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("compacted by the agent"), "{summary}");
    let again = story.world.say(4, &["-m", "sonnet"]);
    assert_eq!(again["verdict"], "resumed", "{again:#}");

    story.world.set("REJOIN_RESUME_AFTER_COMPACTION", "reseed");
    let retold = story.world.say(5, &["-m", "sonnet"]);
    assert_eq!(
        (&retold["verdict"], &retold["reason"]),
        (&"reseeded".into(), &"compacted".into())
    );
    let mut words = said(1..5);
    words.push(user(5));
    assert_shown(&story.request(), &words);
    let after = story.world.say(6, &["-m", "sonnet"]);
    assert_eq!(after["verdict"], "resumed", "{after:#}");
}

//! The session's database: times, sizes, summaries.

use std::fs;

use rejoin_testkit::{
    Chronicle, Continued, Done, answer, answering, costing, sql, steps, user, wait_for,
};
use serde_json::json;

use super::{begun, stand_in_front, world};

const AN_HOUR_AHEAD: &str = "update message set time_created = time_created + 3600000, \
    data = json_set(data, '$.time.created', json_extract(data, '$.time.created') + 3600000)";

/// Written by a machine whose clock was ahead: the CLI would swallow the prompt, or answer the old
/// one for ever. Here the times are changed before the turn is confirmed, so it is as it was left.
#[test]
fn a_session_from_the_future_is_brought_to_this_time() {
    let Some(mut world) = world() else { return };
    let hold = world.root().join("hold");
    let body = format!(
        "\"$real\" \"$@\"; code=$?\nif [ -e {0} ]; then touch {0}.now; fi\n\
         while [ -e {0} ]; do sleep 0.05; done\nexit $code",
        hold.display()
    );
    stand_in_front(&mut world, &body);
    // Looked at once before, so that only the turn is held.
    assert_eq!(world.run(&["send", "--tools=-x", "hello"]).code, 5);
    fs::write(&hold, "").unwrap();
    let mut talk = rejoin_testkit::Talk::begin(world);
    let tool = json!({"tools": [{"name": "glob", "input": {"pattern": "*"}}]});
    let script = steps(1, &json!([tool, {"text": answer(1)}]));
    let send = talk.world.start(1, &script, &[]);
    wait_for("the CLI to be done", 60, || {
        hold.with_extension("now").exists().then_some(())
    });
    sql(&talk.world.sessions()[0], AN_HOUR_AHEAD);
    fs::remove_file(&hold).unwrap();
    assert_eq!(Done::of(send).ok().json()["text"], answer(1));
    talk.n = 1;
    talk.words = vec![user(1), answer(1)];
    let turn = talk.good("resumed", &[]);
    assert_eq!(turn["attempts"].as_array().unwrap().len(), 1);
    // Failed, it is put back as it was brought here.
    talk.bad("#s:e400", &[], ("failed", "invalid_request", 1));
    talk.good("resumed", &[]);
}

/// Somebody changed it: whatever the times say, it is not what was confirmed.
#[test]
fn a_session_that_was_changed_is_told_anew() {
    let Some(mut world) = world() else { return };
    world.without_snapshots();
    let mut story = Chronicle::begun(world);
    sql(&story.session_file(), AN_HOUR_AHEAD);
    story.reseeds("session_damaged", &[]);
}

/// Output that the CLI keeps apart, and an answer longer than a pipe holds.
#[test]
fn long_outputs_and_answers() {
    let Some(world) = world() else { return };
    let mut talk = begun(world, &super::SHELL);
    let long = format!("{} {}", answer(2), "lorem ipsum ".repeat(25_000));
    let command = "head -c 400000 /dev/zero | tr '\\0' x";
    let tool =
        json!({"tools": [{"name": "bash", "input": {"command": command, "description": "x"}}]});
    let script = steps(2, &json!([tool, {"text": long}]));
    // Too long for an argument.
    let text = format!("{} {script}", user(2));
    let flags = ["send", "--json", "-k", "k", "-"];
    let turn = talk
        .world
        .run_with_stdin(&flags, text.as_bytes())
        .ok()
        .json();
    assert_eq!(turn["verdict"], "resumed");
    assert_eq!(turn["text"].as_str().unwrap().trim(), long.trim());
    talk.n = 2;
    talk.words.extend([user(2), answer(2)]);
    talk.good("resumed", &[]);
}

/// The agent's own compaction is shown, its summary is no part of the answer, and it is a reason to
/// start anew only where it was made one.
#[test]
fn a_compacted_session() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    story.scripted(Continued::Started, &answering(1, 1000, 25), &[]);
    let full = costing(199_000, 25, &json!({"text": answer(2)}));
    let script = steps(2, &json!([full]));
    let turn = story.world.send(2, &script, &[]).ok().json();
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("compacted by the agent"), "{turn:#}");
    let text = turn["text"].as_str().unwrap();
    assert_eq!(text.matches(&answer(2)).count(), 1, "{turn:#}");
    let next = story.world.say(3, &[]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
    story.world.set("REJOIN_RESUME_AFTER_COMPACTION", "reseed");
    let retold = story.world.say(4, &[]);
    assert_eq!(retold["reason"], "compacted", "{retold:#}");
}

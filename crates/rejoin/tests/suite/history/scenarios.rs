//! The scenarios of A-41 to A-47 and A-52 against the real Claude Code, each with both halves: what
//! the CLI was called with, and what the model was shown (`Chronicle` checks them at every turn).
//! A-48 is in `reasons::folders`, A-49 to A-51 in `reasons::binaries`, the other guards of A-42 in
//! `reasons::*`.

use rejoin_testkit::{Chronicle, Continued, World, answer, assert_shown, on_both_claudes, user};
use serde_json::{Value, json};

use super::{did, epoch, id_of};

on_both_claudes!(
    a_41_a_follow_up_resumes_and_is_told_nothing_again,
    a_42_a_changed_history_is_told_in_full,
    a_43_another_agent_and_back,
    a_43_another_agent_in_scope_agent,
    a_44_a_retry_and_a_flag_force_a_fresh_session,
    a_45_an_edit_counts_and_undoing_it_restores,
    a_46_editing_a_foreign_answer_does_not_count,
    a_47_removing_or_repeating_the_boundary_counts,
    a_52_questions_under_resume,
);

fn a_41_a_follow_up_resumes_and_is_told_nothing_again(world: World) {
    let mut story = Chronicle::begun(world);
    let turn = story.resumes(&[]);
    assert_eq!(turn["sent"]["transcribed"], 0);
}

fn a_42_a_changed_history_is_told_in_full(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.resumes(&[]);
    let third = id_of(&story.world, 3);
    let changed = did(&story.world, &["truncate", &third]);
    assert_eq!(changed["removed"].as_array().unwrap().len(), 4);
    assert_eq!(
        changed["affected"],
        json!([{"agent": "claude", "usable": false, "was_usable": true,
            "reason": "history_changed", "epoch": 1}])
    );
    story.words.truncate(2);
    story.reseeds("history_changed", &[]);
}

/// Under scope `full` the agent that comes back resumes its own session, and is told what it missed.
fn a_43_another_agent_and_back(world: World) {
    let mut story = Chronicle::begun(world);
    let demo = other(&mut story, "demo");
    assert_eq!(demo["reason"], "no_session");
    let back = story.resumes(&["-a", "claude"]);
    assert_eq!(
        (&back["sent"]["resumed"], &back["sent"]["caught_up"]),
        (&json!(2), &json!(2)),
        "{back:#}"
    );
    assert!(
        back["summary"]
            .as_str()
            .unwrap()
            .contains("caught up on 2 messages by demo"),
        "{back:#}"
    );
}

/// A-62: what follows the other's answer is a new beginning.
fn a_43_another_agent_in_scope_agent(mut world: World) {
    world.set("REJOIN_RESUME_SCOPE", "agent");
    let mut story = Chronicle::begun(world);
    other(&mut story, "demo");
    story.out_of_scope();
    let back = story.turn(Continued::Started, &["-a", "claude"]);
    assert_eq!(
        back["sent"]["bytes"].as_u64().unwrap(),
        user(3).len() as u64 + " #s:a3".len() as u64
    );
    story.resumes(&[]);
}

fn a_44_a_retry_and_a_flag_force_a_fresh_session(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.turn(Continued::Reseeded("fresh_requested"), &["--fresh-session"]);
    let last = id_of(&story.world, 5);
    let turn = did(&story.world, &["retry", "-m", "sonnet", &last]);
    assert_eq!(
        (&turn["verdict"], &turn["reason"], &turn["message_id"]),
        (&json!("reseeded"), &json!("fresh_requested"), &json!(last)),
        "{turn:#}"
    );
    let command = turn["command"].to_string();
    assert!(!command.contains("--resume"), "{command}");
    story.words.pop();
    assert_shown(&story.request(), &story.words);
    story.words.push(answer(3));
    story
        .sessions
        .push(turn["session_id"].as_str().unwrap().to_owned());
    story.resumes(&[]);
}

/// A-26: the epoch moves with it.
fn a_45_an_edit_counts_and_undoing_it_restores(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    let first = id_of(&story.world, 1);
    let changed = did(
        &story.world,
        &["edit", &first, &format!("{} #s:a50", user(50))],
    );
    assert_eq!(changed["message_id"], json!(first));
    assert_eq!(changed["affected"][0]["usable"], false, "{changed:#}");
    assert_eq!(epoch(&story.world, "claude"), 1);

    let undone = did(&story.world, &["undo", "k"]);
    assert_eq!(undone["affected"][0]["usable"], true, "{undone:#}");
    assert_eq!(epoch(&story.world, "claude"), 2);
    story.resumes(&[]);

    did(
        &story.world,
        &["edit", &first, &format!("{} #s:a50", user(50))],
    );
    story.words[0] = user(50);
    story.reseeds("history_changed", &[]);
    // An answer can be edited as well.
    let second = id_of(&story.world, 2);
    did(&story.world, &["edit", &second, &answer(51)]);
    story.words[1] = answer(51);
    story.reseeds("history_changed", &[]);
}

/// A-28: the boundary stays where it is, and its words are not in scope.
fn a_46_editing_a_foreign_answer_does_not_count(mut world: World) {
    world.set("REJOIN_RESUME_SCOPE", "agent");
    let mut story = behind_a_boundary(world);
    let boundary = id_of(&story.world, 2);
    let changed = did(&story.world, &["edit", &boundary, "other words"]);
    let claude = of(&changed, "claude");
    assert_eq!(
        (&claude["usable"], &claude["epoch"]),
        (&json!(true), &json!(0))
    );
    story.resumes(&["-a", "claude"]);
}

/// A-27
fn a_47_removing_or_repeating_the_boundary_counts(mut world: World) {
    world.set("REJOIN_RESUME_SCOPE", "agent");
    let mut story = behind_a_boundary(world);
    let first = id_of(&story.world, 1);
    let boundary = id_of(&story.world, 2);

    let changed = did(&story.world, &["truncate", &boundary]);
    let claude = of(&changed, "claude");
    assert_eq!(
        (&claude["usable"], &claude["epoch"]),
        (&json!(false), &json!(1))
    );
    did(&story.world, &["undo", "k"]);
    story.resumes(&["-a", "claude"]);

    // Answered anew, word for word the same: another boundary.
    did(&story.world, &["retry", &first, "-a", "demo"]);
    assert_eq!(epoch(&story.world, "claude"), 3);
    story.out_of_scope();
    let turn = story.turn(Continued::Started, &["-a", "claude"]);
    assert_eq!(turn["reason"], "first_turn");
    story.resumes(&[]);
}

/// A-03: nobody is there to answer, so the question is denied with that reason; the session goes on.
fn a_52_questions_under_resume(world: World) {
    let mut story = Chronicle::begun(world);
    for _ in 0..2 {
        let n = story.next();
        let ask = json!([
            {"tools": [{"name": "AskUserQuestion", "input": {"questions": [{
                "question": "Which colour?", "header": "Colour", "multiSelect": false,
                "options": [{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}],
            }]}}]},
            {"text": answer(n)},
        ]);
        let turn = story.scripted(Continued::Resumed, &rejoin_testkit::steps(n, &ask), &[]);
        assert_eq!(turn["denied"][0]["tool"], "AskUserQuestion", "{turn:#}");
        let command = turn["command"].to_string();
        assert!(command.contains("--resume") && command.contains("--permission-prompt-tool"));
    }
    story.resumes(&[]);
}

/// demo answers first, then claude, twice: what claude sees begins behind demo's answer.
#[track_caller]
fn behind_a_boundary(world: World) -> Chronicle {
    let mut story = Chronicle::new(world);
    other(&mut story, "demo");
    story.out_of_scope();
    story.turn(Continued::Started, &["-a", "claude"]);
    story.resumes(&[]);
    story
}

/// One turn of another agent, which the model does not see.
#[track_caller]
fn other(story: &mut Chronicle, agent: &str) -> Value {
    let n = story.next();
    let text = format!("{} to another agent", user(n));
    let turn = story
        .world
        .run(&["send", "--json", "-k", "k", "-a", agent, &text]);
    let turn = turn.ok().json();
    story.passed_over(rejoin_testkit::words_in(turn["text"].as_str().unwrap()));
    turn
}

fn of(changed: &Value, agent: &str) -> Value {
    let affected = changed["affected"].as_array().unwrap();
    affected
        .iter()
        .find(|a| a["agent"] == agent)
        .unwrap()
        .clone()
}

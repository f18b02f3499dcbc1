//! Which words are an answer, and whose counts.

use rejoin_testkit::{CLAUDE_NEW, Done, World, user};
use serde_json::{Value, json};

use crate::suite::conversation::ANTI_ECHO;

use super::{REJOIN, answer, asking, asks, demo, ended, inbox, only, quiet};

#[test]
fn a_question_waits_in_the_inbox_and_is_answered_from_anywhere() {
    answered_from_anywhere(&demo());
}

#[test]
fn the_same_on_a_server() {
    if let Some(world) = World::new(REJOIN).on_server() {
        answered_from_anywhere(&asking(world));
    }
}

fn answered_from_anywhere(world: &World) {
    let turn = asks(world, "ask: Which colour? Red | Blue", &["-a", "demo"]);
    let question = only(&turn);
    assert_eq!(question["kind"], "question");
    assert_eq!(question["questions"][0]["text"], "Which colour?");
    let waiting = inbox(world);
    assert_eq!(waiting.len(), 1);
    assert_eq!(waiting[0]["turn_id"], turn["turn_id"]);
    assert_eq!(waiting[0]["questions"][0]["id"], question["id"]);
    let listed = world.run(&["list", "--json", "--state", "waiting"]).ok();
    let listed = listed.json();
    assert_eq!(listed["conversations"][0]["state"], "waiting", "{listed}");
    for shown in [&["explain", "k"][..], &["show", "k"], &["inbox"]] {
        let page = world.run(shown).ok().stdout;
        assert!(page.contains("Which colour?"), "{shown:?}: {page}");
    }
    let waited = world.run(&["wait", "k"]);
    assert_eq!(waited.code, 7, "{waited:?}");
    assert!(waited.stderr.contains("rejoin answer "), "{waited:?}");

    for (words, code) in [
        (&["3"][..], 2),
        (&["1", "2"], 2),
        (&["always"], 2),
        (&["k", "maybe"], 2),
        (&["k"], 2),
        (&["nobody", "1"], 3),
    ] {
        assert_eq!(answer(world, words).code, code, "{words:?}");
    }
    assert_eq!(inbox(world).len(), 1);
    let answered = answer(world, &["k", "2"]).ok().json();
    assert_eq!(answered["questions"].as_array().unwrap().len(), 0);
    let turn = ended(world);
    assert_eq!(turn["status"], "succeeded", "{turn}");
    let text = turn["text"].as_str().unwrap();
    assert!(text.starts_with("You answered Blue."), "{text}");
    assert!(inbox(world).is_empty());
    quiet(world);
}

#[test]
fn other_words_and_several_questions() {
    let world = demo();
    asks(&world, "ask: Which? Red | Blue", &["-a", "demo"]);
    answer(&world, &["--text", "green, as grass"]).ok();
    let text = |turn: Value| turn["text"].as_str().unwrap().to_owned();
    assert!(text(ended(&world)).starts_with("You answered green, as grass."));
    asks(&world, "ask: Which? Red | Blue\n+ Sizes? S | M | L", &[]);
    assert_eq!(answer(&world, &["1"]).code, 2);
    answer(&world, &["1", "1,3"]).ok();
    assert!(text(ended(&world)).starts_with("You answered Red, S, L."));
    asks(&world, "approve: rm -r x", &[]);
    assert_eq!(answer(&world, &["1"]).code, 2);
    answer(&world, &["deny", "--text", "not today"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["denied"].as_array().unwrap().len(), 1, "{turn}");
    assert!(text(turn).starts_with("You said no (not today)."));
    quiet(&world);
}

/// Of many answers at once one counts; the others are told whose and what.
#[test]
fn the_first_answer_wins() {
    let world = demo();
    let turn = asks(&world, "ask: Which? Red | Blue", &["-a", "demo"]);
    let turn = turn["turn_id"].as_str().unwrap();
    let people: Vec<_> = (0..6)
        .map(|n| {
            let number = if n % 2 == 0 { "1" } else { "2" };
            world.spawn(&["answer", "--json", turn, number])
        })
        .collect();
    let said: Vec<Done> = people.into_iter().map(Done::of).collect();
    let (won, late): (Vec<&Done>, Vec<&Done>) = said.iter().partition(|done| done.code == 0);
    assert_eq!(won.len(), 1, "{said:?}");
    assert!(late.iter().all(|done| done.code == 4), "{said:?}");
    let told = |done: &&&Done| done.stdout.contains("ada has answered it already: ");
    assert!(late.iter().any(|done| told(&done)), "{said:?}");
    let text = ended(&world)["text"].as_str().unwrap().to_owned();
    assert_eq!(text.matches("You answered").count(), 1, "{text}");
    quiet(&world);
}

#[test]
fn which_turn_is_meant_must_be_said_if_several_wait() {
    let world = demo();
    let nothing = answer(&world, &["allow"]);
    assert_eq!(nothing.code, 4, "{nothing:?}");
    let first = asks(&world, "approve: one", &["-a", "demo"]);
    let send = [
        "send",
        "--json",
        "-k",
        "other",
        "-a",
        "demo",
        "approve: two",
    ];
    let second = world.run(&send);
    assert_eq!(second.code, 7, "{second:?}");
    let both = answer(&world, &["allow"]);
    assert_eq!(both.code, 2, "{both:?}");
    for turn in [&first, &second.json()] {
        let handle = turn["handle"].as_str().unwrap();
        assert!(both.stdout.contains(handle), "{both:?}");
    }
    answer(&world, &["other", "allow"]).ok();
    answer(&world, &["deny"]).ok();
    quiet(&world);
}

#[test]
fn a_waiting_turn_can_be_cancelled() {
    let world = demo();
    asks(&world, "approve: rm -r x", &["-a", "demo"]);
    world.run(&["cancel", "k"]).ok();
    let turn = ended(&world);
    assert_eq!(turn["status"], "cancelled", "{turn}");
    assert_eq!(turn["questions"].as_array().unwrap().len(), 0, "{turn}");
    assert!(inbox(&world).is_empty());
    assert_eq!(answer(&world, &["k", "allow"]).code, 4);
    quiet(&world);
}

/// Promise 7: without somebody who could answer, nothing is asked and nothing allowed.
#[test]
fn without_a_person_it_is_denied_at_once() {
    let mut world = demo();
    for ask in ["terminal", "never"] {
        world.set("REJOIN_QUESTIONS_ASK", ask);
        let turn = world.run(&["send", "--json", "-a", "demo", "approve: rm"]);
        let turn = turn.ok().json();
        let text = turn["text"].as_str().unwrap();
        assert!(text.starts_with("You said no (nobody is there"), "{text}");
        assert_eq!(turn["denied"].as_array().unwrap().len(), 1, "{turn}");
        let page = world.run(&["show", "last"]).ok().stdout;
        assert!(page.contains("│ denied: "), "{page}");
    }
    quiet(&world);
}

/// A turn in the background that may ask asks nobody, which is said when it is sent and when it is shown.
#[test]
fn in_the_background_nobody_is_asked_by_default() {
    let mut world = demo();
    world.set("REJOIN_QUESTIONS_ASK", "terminal");
    let detach = [
        "send",
        "-k",
        "k",
        "-a",
        "demo",
        "--detach",
        "--permission",
        "ask",
        "approve: rm",
    ];
    let done = world.run(&detach).ok();
    assert!(
        done.stderr.contains("config set questions.ask always"),
        "{done:?}"
    );
    world.run(&["wait", "k"]).ok();
    let page = world.run(&["show", "k"]).ok().stdout;
    assert!(page.contains(" (nobody could be asked)"), "{page}");
    world.set("REJOIN_QUESTIONS_ASK", "always");
    let done = world.run(&detach).ok();
    assert!(!done.stderr.contains("nobody"), "{done:?}");
    assert_eq!(world.run(&["wait", "k"]).code, 7);
    answer(&world, &["k", "deny"]).ok();
    world.run(&["wait", "k"]).ok();
    let page = world.run(&["show", "k", "-n", "2"]).ok().stdout;
    assert!(page.contains(" · 2 of 4 messages · "), "{page}");
    assert!(!page.contains("nobody could"), "{page}");
}

/// the turn after a question is told that it was dealt with, and no other turn is.
#[test]
fn only_the_turn_after_a_question_has_a_notice_of_it() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW).map(asking) else {
        return;
    };
    let notices = || {
        let history = world.model.last().history().to_string();
        history.matches(ANTI_ECHO).count()
    };
    let shell = json!({"name": "Bash", "input": {"command": "touch x", "description": "x"}});
    world.say(1, &[]);
    world.say(2, &[]);
    assert_eq!(notices(), 0);
    let script = json!([{"tools": [shell]}, {"text": "A-3"}]);
    let text = format!("{} #j:{script}#", user(3));
    asks(&world, &text, &["--permission", "ask"]);
    assert_eq!(notices(), 0);
    answer(&world, &["deny"]).ok();
    ended(&world);
    world.say(4, &[]);
    assert_eq!(notices(), 1);
    world.say(5, &[]);
    world.say(6, &[]);
    assert_eq!(notices(), 1);
}

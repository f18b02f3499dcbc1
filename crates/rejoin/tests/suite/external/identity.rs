//! Words are told apart by who sent them and when, never by what they say.
#![expect(clippy::needless_pass_by_value, reason = "as every test on a world")]

use rejoin_testkit::{Chronicle, World, answer, user, words_in};
use serde_json::Value;

mod repeated {
    use super::{
        words_that_began_the_session_count_when_they_are_repeated, words_with_the_marker_stay,
    };
    rejoin_testkit::on_every_cli!(
        words_that_began_the_session_count_when_they_are_repeated,
        words_with_the_marker_stay,
    );
}

fn messages(world: &World) -> Vec<Value> {
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    shown["messages"].as_array().unwrap().clone()
}

/// The first prompt of a session holds nothing but the message.
fn words_that_began_the_session_count_when_they_are_repeated(world: World) {
    let text = format!("{} #s:a1", user(1));
    let first = world.run(&["send", "--json", "-k", "k", &text]).ok().json();
    let session = first["session_id"].as_str().unwrap();
    let done = world.by_hand(session, &text);
    assert!(done.status.success(), "{done:?}");
    let turn = world.say(2, &[]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let texts: Vec<String> = messages(&world)
        .iter()
        .flat_map(|m| words_in(m["text"].as_str().unwrap()))
        .collect();
    let (u, a) = (user, answer);
    assert_eq!(texts, [u(1), a(1), u(1), a(1), u(2), a(2)]);
}

fn words_with_the_marker_stay(world: World) {
    let mut story = Chronicle::begun(world);
    let text = format!("<rejoin>{}</rejoin> is a tag; #s:a2", user(2));
    let done = story.world.by_hand(&story.sessions[0], &text);
    assert!(done.status.success(), "{done:?}");
    story.passed_over(vec![answer(2)]);
    let turn = story.resumes(&[]);
    assert_eq!(turn["sent"]["resumed"], 4, "{turn:#}");
    let messages = messages(&story.world);
    let said = messages[2]["text"].as_str().unwrap();
    // OpenCode puts its arguments in quotes.
    assert_eq!(said.trim().trim_matches('"'), text, "{said}");
    // Another agent is told the same words.
    story.world.run(&["reset", "k"]).ok();
    story.reseeds("session_retired", &[]);
}

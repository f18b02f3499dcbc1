//! The session's file is not, byte for byte, what was confirmed.

use std::fs;

use rejoin_testkit::{Chronicle, Continued, World, on_every_cli, user};

on_every_cli!(
    a_damaged_session_is_never_resumed,
    a_session_continued_by_hand_is_taken_in,
    without_leave_to_reseed_nothing_is_sent,
);

rejoin_testkit::on_cli!(
    claude_2_1_20,
    CLAUDE_20,
    a_session_continued_by_hand_is_taken_in
);

mod passed_over {
    use super::a_session_continued_by_hand_and_passed_over;
    rejoin_testkit::on_every_quick_cli!(a_session_continued_by_hand_and_passed_over);
}

///
fn a_damaged_session_is_never_resumed(mut world: World) {
    world.without_snapshots();
    let mut story = Chronicle::begun(world);
    fs::remove_file(story.session_file()).unwrap();
    story.reseeds("session_missing", &[]);

    fs::write(story.session_file(), "").unwrap();
    story.reseeds("session_damaged", &[]);

    let file = story.session_file();
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    story.reseeds("session_damaged", &[]);

    let file = story.session_file();
    let mut bytes = fs::read(&file).unwrap();
    let (times, middle) = (fs::metadata(&file).unwrap(), bytes.len() / 2);
    for byte in &mut bytes[middle..middle + 40] {
        *byte ^= 1;
    }
    fs::write(&file, &bytes).unwrap();
    let opened = fs::File::options().write(true).open(&file).unwrap();
    opened.set_modified(times.modified().unwrap()).unwrap();
    story.reseeds("session_damaged", &[]);

    let file = story.session_file();
    let older = fs::read(&file).unwrap();
    story.resumes(&[]);
    fs::write(&file, older).unwrap();
    story.reseeds("session_damaged", &[]);
}

/// What was said there is taken in before the next message, by whomever that is answered; and the
/// session goes on from there.
fn a_session_continued_by_hand_is_taken_in(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    story.resumes(&[]);
    story.by_hand();
    story.by_hand();
    story.resumes(&[]);
    story.resumes(&[]);
    let shown = story.world.run(&["show", "k", "--json"]).ok().json();
    let messages = shown["messages"].as_array().unwrap();
    let outside: Vec<_> = messages
        .iter()
        .filter(|m| m["origin"] == "outside")
        .collect();
    assert_eq!(outside.len(), 6, "{shown:#}");
    assert!(outside.iter().all(|m| m["turn_id"].is_null()), "{shown:#}");
}

/// Somebody else's words in the middle of ours: the session has not seen what was said meanwhile, so
/// it is not resumed; but nothing of it is lost.
fn a_session_continued_by_hand_and_passed_over(world: World) {
    let mut story = Chronicle::begun(world);
    story.by_hand();
    let text = format!("{} #s:a{}", user(story.next()), story.next());
    let done = story
        .world
        .run(&["send", "--json", "-k", "k", "-a", "demo", &text])
        .ok();
    let answer = done.json()["text"].as_str().unwrap().to_owned();
    assert!(answer.contains(&user(2)), "{answer}");
    let shown = story.world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 6, "{shown:#}");
}

/// `--no-reseed`: exit 5, nothing sent, the message not kept, the conversation as it was.
fn without_leave_to_reseed_nothing_is_sent(mut world: World) {
    world.without_snapshots();
    let mut story = Chronicle::begun(world);
    story.resumes(&["--no-reseed"]);
    let look = |story: &Chronicle| {
        let shown = story.world.run(&["show", "k", "--json"]).ok().json();
        (shown, story.world.model.requests().len())
    };
    let before = look(&story);
    let other = story.world.root().join("other");
    fs::create_dir(&other).unwrap();
    let other = other.to_str().unwrap();
    let refuse = |story: &Chronicle, flags: &[&str], reason: &str| {
        let mut args = vec!["send", "--json", "-k", "k", "--no-reseed"];
        args.extend(flags);
        args.push("not-kept-word");
        let done = story.world.run(&args);
        assert_eq!(done.code, 5, "{done:?}");
        let error = &done.json()["error"];
        assert_eq!(error["code"], "would_reseed");
        assert!(
            error["message"].as_str().unwrap().contains(reason),
            "{error}"
        );
        assert_eq!(look(story), before);
    };
    refuse(&story, &["-w", other], "other_folder");
    story.world.set("REJOIN_RESUME_MODEL_CHANGE", "reseed");
    let other = story.world.cli.models()[1];
    refuse(&story, &["-m", other], "model_changed");
    story.world.unset("REJOIN_RESUME_MODEL_CHANGE");
    fs::remove_file(story.session_file()).unwrap();
    refuse(&story, &[], "session_missing");
    story.turn(Continued::Reseeded("session_missing"), &[]);
    assert!(!story.request().body.to_string().contains("not-kept-word"));
}

//! The session's file is not, byte for byte, what was confirmed.

use std::fs;

use rejoin_testkit::{Chronicle, Continued, World, on_every_cli};

on_every_cli!(
    a_damaged_session_is_never_resumed,
    a_session_continued_by_hand_is_not_resumed,
    without_leave_to_reseed_nothing_is_sent,
);

///
fn a_damaged_session_is_never_resumed(world: World) {
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

/// What was said there is not shown, and not cut away either.
fn a_session_continued_by_hand_is_not_resumed(world: World) {
    let mut story = Chronicle::begun(world);
    let file = story.session_file();
    let by_hand = story
        .world
        .by_hand(&story.sessions[0], "by-hand-word #s:hello");
    assert!(by_hand.status.success(), "{by_hand:?}");
    let after = fs::read(&file).unwrap();
    story.turn(Continued::Reseeded("session_changed"), &[]);
    assert!(!story.request().body.to_string().contains("by-hand-word"));
    story.resumes(&[]);
    assert!(!story.request().body.to_string().contains("by-hand-word"));
    assert_eq!(fs::read(&file).unwrap(), after);
}

/// `--no-reseed`: exit 5, nothing sent, the message not kept, the conversation as it was.
fn without_leave_to_reseed_nothing_is_sent(world: World) {
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

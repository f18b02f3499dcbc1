//! Sessions that no turn uses any more are still read.

use rejoin_testkit::{Chronicle, Model, World, slowly, user, wait_for};

rejoin_testkit::on_every_quick_cli!(words_in_a_retired_session_are_taken_in);

/// A session of every conversation that a reset or a reseed retired, used by hand later.
fn words_in_a_retired_session_are_taken_in(mut world: World) {
    world.without_snapshots();
    let mut story = Chronicle::begun(world);
    let first = story.sessions[0].clone();
    story.world.run(&["reset", "k"]).ok();
    story.reseeds("session_retired", &[]);
    for _ in 0..2 {
        let n = story.next();
        let done = story.world.by_hand(&first, &format!("{} #s:a{n}", user(n)));
        assert!(done.status.success(), "{done:?}");
        story.passed_over(vec![rejoin_testkit::answer(n)]);
        story.resumes(&[]);
    }
}

/// Two users of one session at once: the turn's session is retired, and what its other user says
/// there later is taken in.
#[test]
fn words_in_a_session_that_two_used_at_once_are_taken_in() {
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    // The other user's run begins within the turn and ends after it.
    let model = || {
        let hand = vec![slowly(&rejoin_testkit::answer(3), 40)];
        Model::scripted([("late", vec![slowly("late", 8)]), ("hand", hand)])
    };
    let Some(world) = World::claude_with(rejoin, rejoin_testkit::CLAUDE_OLD, model) else {
        return;
    };
    let first = world.say(1, &[]);
    let session = first["session_id"].as_str().unwrap().to_owned();
    let before = world.model.requests().len();
    let turn = world.start(2, "#s:late", &[]);
    wait_for("the request of the turn", 20, || {
        (world.model.requests().len() > before).then_some(())
    });
    let done = world.by_hand(&session, &format!("{} #s:hand", user(3)));
    assert!(done.status.success(), "{done:?}");
    let _ended = rejoin_testkit::Done::of(turn);
    let done = world.by_hand(&session, &format!("{} #s:a4", user(4)));
    assert!(done.status.success(), "{done:?}");
    world.say(5, &[]);
    let shown = rejoin_testkit::texts(&world.model.last());
    for n in 1..=5 {
        assert_eq!(shown.matches(&user(n)).count(), 1, "{n} in {shown}");
    }
    assert_eq!(
        shown.matches(&rejoin_testkit::answer(4)).count(),
        1,
        "{shown}"
    );
    // Nothing is taken in twice.
    let last = world.say(6, &[]);
    assert_eq!(last["verdict"], "resumed", "{last:#}");
}

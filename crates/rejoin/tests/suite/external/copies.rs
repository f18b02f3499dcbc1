//! Words said in an old copy of a session, on a machine that the conversation has left.

use rejoin_testkit::{Chronicle, World, answer, user};

rejoin_testkit::on_every_quick_cli!(words_in_an_old_copy_are_taken_in);

fn here(story: &Chronicle) -> String {
    story.world.work().to_str().unwrap().to_owned()
}

fn words_in_an_old_copy_are_taken_in(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    story.world.go_to("second");
    story.restores(&["-w", &here(&story)]);
    story.resumes(&["-w", &here(&story)]);
    story.world.go_to("");
    let n = story.next();
    let session = story.sessions[0].clone();
    let text = format!("{} #s:a{n}", user(n));
    let done = story.world.by_hand(&session, &text);
    assert!(done.status.success(), "{done:?}");
    story.passed_over(vec![answer(n)]);
    let listed = story
        .world
        .run(&["adopt", "--everywhere", "--json"])
        .ok()
        .json();
    // The sessions of the other two lie beside those of their users.
    if ["claude", "codex"].contains(&story.world.cli.agent()) {
        assert_eq!(listed["sessions"][0]["new_messages"], 2, "{listed:#}");
        let adopted = story.world.run(&["adopt", &session, "--json"]).ok().json();
        assert_eq!(adopted["adopted"][0]["messages"], 2, "{adopted:#}");
    }
    story.restores(&["-w", &here(&story)]);
    story.resumes(&["-w", &here(&story)]);
}

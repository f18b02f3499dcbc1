//! Two machines, one store: each goes on where the other left.

use std::fs;

use rejoin_testkit::{Chronicle, World};

mod every {
    use super::{back_and_forth, back_on_the_first};
    rejoin_testkit::on_every_cli!(back_on_the_first);
    mod quick {
        use super::back_and_forth;
        rejoin_testkit::on_every_quick_cli!(back_and_forth);
    }
}

/// With its now stale files.
fn back_on_the_first(world: World) {
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    let stale = story.session_file();
    story.world.go_to("second");
    story.restores(&["-w", &here(&story)]);
    story.resumes(&["-w", &here(&story)]);
    story.world.go_to("");
    let before = fs::read(&stale).unwrap();
    story.restores(&["-w", &here(&story)]);
    assert!(fs::read(&stale).unwrap() != before);
    story.resumes(&["-w", &here(&story)]);
}

/// Every turn on the other machine.
fn back_and_forth(world: World) {
    let mut story = Chronicle::begun(world);
    for turn in 0..5 {
        story.world.go_to(["second", "", "third"][turn % 3]);
        story.restores(&["-w", &here(&story)]);
    }
    story.resumes(&["-w", &here(&story)]);
}

fn here(story: &Chronicle) -> String {
    story.world.work().to_str().unwrap().to_owned()
}

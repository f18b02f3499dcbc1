//! One conversation of five turns with every agent: every word is shown once.

use rejoin_testkit::{World, on_every_quick_cli};

use super::REJOIN;
use crate::suite::conversation;

// The others speak through a server in `snapshots::through`.
on_every_quick_cli!(turns_resume);

fn turns_resume(world: World) {
    if let Some(world) = world.on_server() {
        conversation::turns_resume(world);
    }
}

#[test]
fn the_demo_agent_recalls_everything() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    for n in 1..=5 {
        let turn = world.say(n, &["-a", "demo"]);
        let verdict = if n == 1 { "started" } else { "resumed" };
        assert_eq!(turn["verdict"], verdict);
        let text = turn["text"].as_str().unwrap();
        assert_eq!(text.matches("userword-").count(), n, "{text}");
    }
    // Nothing of it lies in the home.
    assert!(!world.data().join("rejoin.db").exists());
    world.assert_quiet();
}

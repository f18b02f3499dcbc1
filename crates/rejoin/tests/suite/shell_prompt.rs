//! `rejoin prompt`, as a shell calls it before each line.

use super::terminal::{Terminal, world};

#[test]
fn a_prompt_names_the_conversation_of_the_folder() {
    let mut world = world();
    let prompt = |world: &rejoin_testkit::World| {
        let done = world.run(&["prompt"]).ok();
        assert_eq!(done.stderr, "");
        done.stdout.trim_end().to_owned()
    };
    assert_eq!(prompt(&world), "");
    assert!(
        !world.data().join("rejoin.db").exists(),
        "it changes nothing"
    );
    let turn = world
        .run(&["send", "-k", "k", "-a", "demo", "--json", "UWORD1"])
        .ok()
        .json();
    let handle = turn["handle"]
        .as_str()
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    assert_eq!(prompt(&world), handle);
    let document = world.run(&["prompt", "--json"]).ok().json();
    assert_eq!(
        document,
        serde_json::json!({"handle": handle, "agent": "demo", "state": "idle", "waiting": 0})
    );
    // Elsewhere there is no conversation, but a question waits.
    world.set("REJOIN_QUESTIONS_ASK", "always");
    let waits = world.run(&["send", "-k", "k", "approve: rm -r x"]);
    assert_eq!(waits.code, 7, "{waits:?}");
    assert_eq!(
        prompt(&world),
        format!("{handle} waiting 1 question for you")
    );
    let mut elsewhere = world.command(&["prompt"]);
    let elsewhere = elsewhere.current_dir(world.root()).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&elsewhere.stdout),
        "1 question for you\n"
    );
    world.run(&["cancel", "k"]).ok();
    assert_eq!(prompt(&world), handle);

    // A store that cannot be read leaves the prompt empty; the next command says why.
    let terminal = Terminal::open(&world).unwrap();
    terminal.keys("PS1='$(rejoin prompt) > '");
    terminal.wait_until(|screen| screen.trim_end().ends_with(&format!("{handle} >")));
    drop(terminal);
    std::fs::write(
        world.data().join("rejoin.db"),
        "no database at all, but some text",
    )
    .unwrap();
    assert_eq!(prompt(&world), "");
}

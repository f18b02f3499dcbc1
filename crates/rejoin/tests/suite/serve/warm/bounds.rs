//! Few of them, not for ever, not with others' processes, and never without a daemon.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_325, CLAUDE_NEW, Model, World, answer, runs, user, wait_for};
use serde_json::json;

use super::{here, process, say, verdict};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn world() -> Option<World> {
    World::of(REJOIN, &CLAUDE_325)
}

/// Every process of an agent.
fn resting(world: &World) -> usize {
    world.clis().len()
}

#[test]
fn the_one_that_rested_longest_goes() {
    let Some(mut world) = world() else { return };
    world.set("REJOIN_SERVE_WARM", "2");
    let daemon = world.serve(&[]);
    for key in ["a", "b", "c"] {
        daemon.say(key, &format!("{} #s:a1", user(1)), &[here(&world)]);
    }
    wait_for("one to be ended", 10, || {
        (resting(&world) == 2).then_some(())
    });
    let again = |key: &str| daemon.say(key, &format!("{} #s:a2", user(2)), &[]);
    assert_eq!(verdict(&again("c")), "live");
    assert_eq!(verdict(&again("b")), "live");
    assert_eq!(verdict(&again("a")), "resumed");
    drop(daemon);
    world.assert_quiet();
}

#[test]
fn it_does_not_wait_for_ever() {
    let Some(mut world) = world() else { return };
    world.set("REJOIN_SERVE_WARM_FOR", "1s");
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    wait_for("it to end", 20, || process(&world).is_none().then_some(()));
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "resumed");
    drop(daemon);
    world.assert_quiet();
}

#[test]
fn too_large_or_switched_off() {
    for (name, value) in [("REJOIN_SERVE_WARM_MIB", "1"), ("REJOIN_SERVE_WARM", "0")] {
        let Some(mut world) = world() else { return };
        world.set(name, value);
        let daemon = world.serve(&[]);
        say(&world, &daemon, 1, &[]);
        assert_eq!(process(&world), None, "{name}");
        assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "resumed");
        drop(daemon);
        world.assert_quiet();
    }
}

/// What a tool left running ends with its turn, as ever; and what it began in the background, even if
/// that is over by then, has still to be told of.
#[test]
fn with_something_running_it_is_not_kept() {
    let left = "setsid tail -f /etc/hostname >/dev/null 2>&1 & echo started";
    let mut behind = runs("true");
    behind.tools[0].input["run_in_background"] = json!(true);
    let scripts = [("left", runs(left), 1), ("behind", behind, 0)];
    for (name, step, leftovers) in scripts {
        let script = vec![step, Step::text(answer(1)), Step::text(answer(2))];
        let model = || Model::scripted([(name, script)]);
        let Some(mut world) = World::claude_with(REJOIN, CLAUDE_NEW, model) else {
            return;
        };
        world.set("IS_SANDBOX", "1");
        let daemon = world.serve(&[]);
        let text = format!("{} #s:{name}", user(1));
        let turn = daemon.say("k", &text, &[here(&world), ("permission", json!("full"))]);
        assert_eq!(turn["status"], "succeeded", "{turn:#}");
        assert_eq!(process(&world), None, "{name}");
        let left = turn["leftovers"].as_array().unwrap();
        assert_eq!(left.len(), leftovers, "{turn:#}");
        drop(daemon);
        world.assert_quiet();
    }
}

/// Another folder in the place of the one it works in.
#[test]
fn its_folder_is_still_that_one() {
    let Some(world) = world() else { return };
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let before = process(&world);
    std::fs::remove_dir_all(world.work()).unwrap();
    std::fs::create_dir(world.root().join("between")).unwrap();
    std::fs::create_dir(world.work()).unwrap();
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "resumed");
    assert_ne!(process(&world), before);
    drop(daemon);
    world.assert_quiet();
}

/// Whoever opens its session, or deletes the conversation, does not find it beside them.
#[test]
fn it_makes_way() {
    let Some(world) = world() else { return };
    let daemon = world.serve(&[]);
    say(&world, &daemon, 1, &[]);
    let doctor = world.run(&["doctor"]).stdout;
    assert!(
        doctor.contains("1 kept up for the next message"),
        "{doctor}"
    );
    let opened = world.run(&["open", "k"]);
    assert_ne!(opened.code, 0, "there is no terminal");
    assert_eq!(process(&world), None, "{opened:?}");
    assert_eq!(verdict(&say(&world, &daemon, 2, &[])), "resumed");
    assert!(process(&world).is_some());
    world.run(&["delete", "--yes", "k"]).ok();
    assert_eq!(process(&world), None);
    drop(daemon);
    world.assert_quiet();
}

//! While the parent goes on.

use rejoin_testkit::{Done, World, answer, on_every_quick_cli, steps, user};
use serde_json::json;

use super::branch::{Branch, files};
use super::{assert_forked, keeps_lines};

on_every_quick_cli!(both_at_once);

mod running {
    use super::while_the_parents_turn_runs;
    rejoin_testkit::on_every_quick_cli!(while_the_parents_turn_runs);
}

/// Issue 5.4: whoever is first.
fn both_at_once(world: World) {
    let mut parent = Branch::new("parent");
    parent.says(&world, 1, "started");
    let mut child = parent.fork(&world, "c", &[]);
    for n in [2, 4] {
        let (one, other) = (parent.starts(&world, n), child.starts(&world, n + 1));
        let (one, other) = (Done::of(one), Done::of(other));
        parent.said(&world, n, "resumed", &one);
        // A database that the parent has written to by then cannot be forked.
        let told = !keeps_lines(&world) && other.json()["reason"] == "no_session";
        let verdict = if told && n == 2 {
            "reseeded"
        } else {
            "resumed"
        };
        child.said(&world, n + 1, verdict, &other);
    }
    world.assert_quiet();
}

/// What the parent is being told at this moment, and has no answer to yet, is part of the history; its
/// session as it was before that is what is copied, and nobody waits.
fn while_the_parents_turn_runs(world: World) {
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    // As long as the fork takes, and longer.
    let late = json!([{"text": answer(2), "chunks": 30, "delay_ms": 1000}]);
    let running = parent.starts_so(&world, 2, &steps(2, &late), &[]);
    world.wait_until_asked(&user(2));
    let mut child = parent.fork(&world, "c", &[]);
    child.unanswered(2);
    let turn = child.says(&world, 3, "resumed");
    assert_eq!(parent.last_turn(&world)["status"], "running");
    assert_forked(&world, &turn, first["session_id"].as_str().unwrap());
    assert_eq!(turn["sent"]["resumed"], 2, "{turn:#}");
    assert_eq!(turn["sent"]["caught_up"], 1, "{turn:#}");
    assert_eq!(files(&world).len(), 2);
    world.run(&["cancel", "parent"]).ok();
    assert_eq!(Done::of(running).json()["status"], "cancelled");
    parent.unanswered(2);
    child.says(&world, 4, "resumed");
    parent.says(&world, 5, "resumed");
    world.assert_quiet();
}

//! A first turn that ends otherwise: the copy is given up, the parent's session is not touched, and the
//! next try makes another.

use rejoin_testkit::{
    Done, World, answer, kill, on_cli, on_every_quick_cli, on_slow_cli, steps, user, wait_for,
};
use serde_json::json;

use super::assert_forked;
use super::branch::{Branch, files};

on_every_quick_cli!(the_cli_is_killed);
on_cli!(claude_points, CLAUDE_325, send_is_killed_at_some_points);
on_cli!(codex_points, CODEX_166, send_is_killed_at_every_point);
on_slow_cli!(gemini_points, GEMINI_061, send_is_killed_once);
on_slow_cli!(opencode_points, OPENCODE, send_is_killed_once);

fn the_cli_is_killed(world: World) {
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    let before = files(&world);
    let mut child = parent.fork(&world, "c", &[]);
    let late = json!([{"text": answer(2), "chunks": 60, "delay_ms": 1000}]);
    let running = child.starts_so(&world, 2, &steps(2, &late), &[]);
    world.wait_until_asked(&user(2));
    kill(wait_for("the CLI", 20, || world.cli()), "KILL");
    let turn = Done::of(running).json();
    let told = (&turn["status"], &turn["error"]["class"], &turn["verdict"]);
    assert_eq!(
        told,
        (&"failed".into(), &"crashed".into(), &"resumed".into()),
        "{turn:#}"
    );
    child.unanswered(2);
    for (file, bytes) in &before {
        assert!(std::fs::read(file).unwrap() == *bytes, "{}", file.display());
    }
    let again = child.says(&world, 3, "resumed");
    assert_forked(&world, &again, first["session_id"].as_str().unwrap());
    assert_ne!(again["session_id"], turn["session_id"]);
    assert_eq!(again["sent"]["caught_up"], 1, "{again:#}");
    child.says(&world, 4, "resumed");
    parent.says(&world, 5, "resumed");
    world.assert_quiet();
}

/// Killed at these points, the turn is run once, by whoever comes next, and its answer kept.
fn survives(mut world: World, points: &[&str]) {
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    let session = first["session_id"].as_str().unwrap();
    for (at, point) in points.iter().enumerate() {
        let n = 2 + 2 * at;
        let mut child = parent.fork(&world, point, &[]);
        world.set("REJOIN_FAIL", point);
        let died = Done::of(child.starts(&world, n));
        world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        child.words.extend([user(n), answer(n)]);
        child.says_so(
            &world,
            n + 1,
            "resumed",
            &format!("#s:a{}", n + 1),
            &["--if-busy", "wait"],
        );
        let turns = world.run(&["show", "--json", point]).ok().json();
        let turn = &turns["turns"][0];
        let told = (&turn["status"], &turn["verdict"], &turn["text"]);
        assert_eq!(
            told,
            (&"succeeded".into(), &"resumed".into(), &answer(n).into()),
            "{point}"
        );
        assert_forked(&world, turn, session);
        let asked = world.model.requests();
        let about_it = |r: &&rejoin_model::Request| r.script.as_deref() == Some(&format!("a{n}"));
        assert_eq!(asked.iter().filter(about_it).count(), 1, "{point}");
        world.assert_quiet();
    }
    parent.says(&world, 90, "resumed");
}

fn send_is_killed_at_every_point(world: World) {
    survives(
        world,
        &[
            "after_claim",
            "after_look",
            "before_begin",
            "after_begin",
            "after_spec",
            "after_spawn",
            "mid_stream",
            "after_end",
            "before_settle",
            "after_read",
            "before_finish",
            "after_finish",
        ],
    );
}

fn send_is_killed_at_some_points(world: World) {
    survives(
        world,
        &["before_begin", "after_spec", "before_settle", "after_read"],
    );
}

fn send_is_killed_once(world: World) {
    survives(world, &["after_read"]);
}

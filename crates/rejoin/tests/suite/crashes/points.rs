//! `rejoin send` killed at every named point.

use std::collections::BTreeSet;
use std::path::Path;

use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, Talk, World, answer, assert_shown, claude, user, wait_for,
};
use serde_json::Value;

use super::REJOIN;
use crate::suite::snapshots::{kills, sweeping};

/// In the order in which a turn passes them; `after_refusal` needs a refusal and has its own test.
pub(crate) const POINTS: [&str; 14] = [
    "after_accept",
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
    "after_cleanup",
];

/// Sends message N and dies at the point; then the next commands find out how it stands.
#[track_caller]
fn die_at(world: &mut World, point: &str, n: usize, script: &str) -> Value {
    world.set("REJOIN_FAIL", point);
    let died = world.send(n, script, &["--idempotency-key", &n.to_string()]);
    world.unset("REJOIN_FAIL");
    assert_eq!(died.code, -9, "{point}: {died:?}");
    wait_for("the turn to be settled or queued", 20, || {
        let _listed = world.run(&["list"]).ok();
        let turn = world.last_turn();
        (turn["status"] != "running").then_some(turn)
    })
}

/// Every event stands once, in order, whoever committed it.
#[track_caller]
fn assert_events(world: &World, point: &str, n: usize, script: &str, text: &str) {
    let events = world.events(n, script, &n.to_string());
    let seqs: Vec<i64> = events.iter().map(|e| e["seq"].as_i64().unwrap()).collect();
    assert!(seqs.is_sorted_by(|a, b| a < b), "{point}: {seqs:?}");
    for once in ["turn.accepted", "turn.started", "text", "turn.ended"] {
        let count = events.iter().filter(|e| e["type"] == once).count();
        assert_eq!(count, 1, "{point}: {once} in {events:?}");
    }
    let said = events.iter().find(|e| e["type"] == "text").unwrap();
    assert_eq!(said["text"], text, "{point}");
}

/// Nothing had been started: queued. Else: settled, with the answer. At `after_spawn` both are
/// right, the shim may or may not have begun.
#[track_caller]
fn assert_stands(point: &str, turn: &Value) {
    let begun =
        POINTS.iter().position(|p| *p == point) > POINTS.iter().position(|p| *p == "after_spec");
    match turn["status"].as_str().unwrap() {
        "queued" => assert!(!begun || point == "after_spawn", "{point}: {turn}"),
        "succeeded" => assert!(begun, "{point}: {turn}"),
        _ => panic!("{point}: {turn}"),
    }
}

#[test]
fn every_point_is_tested() {
    fn collect(folder: &Path, found: &mut BTreeSet<String>) {
        for entry in std::fs::read_dir(folder).unwrap().flatten() {
            let path = entry.path();
            if path.is_dir() {
                collect(&path, found);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                let names = text.split("fault::point(\"").skip(1);
                found.extend(names.map(|rest| rest.split('"').next().unwrap().to_owned()));
            }
        }
    }
    let mut found = BTreeSet::new();
    for of in ["rejoin", "rejoin-hub", "rejoin-runner", "rejoin-store"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(of);
        collect(&root.join("src"), &mut found);
    }
    let mut tested: BTreeSet<String> = POINTS.map(str::to_owned).into();
    tested.insert("after_refusal".into());
    tested.extend(crate::suite::portable::killed::POINTS.map(str::to_owned));
    tested.extend(crate::suite::questions::killed::POINTS.map(str::to_owned));
    tested.extend(crate::suite::questions::deferred::POINTS.map(str::to_owned));
    tested.extend(kills::CAPTURING.map(str::to_owned));
    tested.extend(kills::RESTORING.map(str::to_owned));
    tested.extend(sweeping::SWEEPING.map(str::to_owned));
    assert_eq!(found, tested);
}

/// One conversation in which every other turn dies; each answer recalls everything said before.
#[test]
fn the_demo_agent_survives_every_point() {
    demo_survives(World::new(REJOIN), &POINTS);
}

pub(crate) fn demo_survives(mut world: World, points: &[&str]) {
    let quoted = |n: usize| format!("“{} #s:a{n}”", user(n));
    let _first = world.say(1, &["-a", "demo"]);
    let mut n = 1;
    for point in points.iter().copied() {
        n += 1;
        let turn = die_at(&mut world, point, n, &format!("#s:a{n}"));
        assert_stands(point, &turn);
        n += 1;
        let text = world.say(n, &[])["text"].as_str().unwrap().to_owned();
        let told: Vec<usize> = (1..=n).filter(|n| text.contains(&quoted(*n))).collect();
        assert_eq!(told, (1..=n).collect::<Vec<_>>(), "{point}: {text}");
        assert_eq!(text.matches("userword-").count(), n, "{point}: {text}");
        let settled = world.show()["turns"][n - 2].clone();
        assert_eq!(settled["status"], "succeeded", "{point}: {settled}");
        assert_events(
            &world,
            point,
            n - 1,
            &format!("#s:a{}", n - 1),
            settled["text"].as_str().unwrap(),
        );
        world.assert_quiet();
    }
}

/// The command that picks the turn up is killed as well, and the one after that settles it.
#[test]
fn who_picks_up_may_be_killed_too() {
    let mut world = World::new(REJOIN);
    let _first = world.say(1, &["-a", "demo"]);
    let again = ["after_end", "after_read", "before_finish", "after_finish"];
    for (n, point) in (2..).zip(again) {
        world.set("REJOIN_FAIL", "mid_stream");
        let script = format!("#s:a{n}");
        let died = world.send(n, &script, &["--idempotency-key", &n.to_string()]);
        assert_eq!(died.code, -9, "{died:?}");
        wait_for("the agent to end", 10, || {
            world.leftovers().is_empty().then_some(())
        });
        world.set("REJOIN_FAIL", point);
        assert_eq!(world.run(&["list"]).code, -9, "{point}");
        world.unset("REJOIN_FAIL");
        let turn = world.last_turn();
        assert_eq!(turn["status"], "succeeded", "{point}: {turn}");
        assert_events(&world, point, n, &script, turn["text"].as_str().unwrap());
        world.assert_quiet();
    }
    let text = world.say(6, &[])["text"].as_str().unwrap().to_owned();
    assert_eq!(text.matches("userword-").count(), 6, "{text}");
}

fn survives(version: &str, points: &[&str]) {
    if let Some(world) = World::claude(REJOIN, version) {
        claude_survives(world, points);
    }
}

pub(crate) fn claude_survives(world: World, points: &[&str]) {
    let mut talk = Talk::begin(world);
    talk.good("started", &["-m", "sonnet"]);
    for point in points {
        talk.n += 1;
        let n = talk.n;
        let script = format!("#s:a{n}");
        let turn = die_at(&mut talk.world, point, n, &script);
        assert_stands(point, &turn);
        if turn["status"] == "succeeded" {
            assert_eq!(turn["text"], answer(n), "{point}");
            assert!(turn["cost_usd"].as_f64().unwrap() > 0.0, "{point}: {turn}");
            assert_eq!(turn["verdict"], "resumed", "{point}");
        }
        talk.words.extend([user(n), answer(n)]);
        talk.good("resumed", &[]);
        let asked = talk.world.model.requests();
        let about_it = asked
            .iter()
            .filter(|r| r.script.as_deref() == Some(&script[3..]));
        assert_eq!(about_it.count(), 1, "{point}: run twice, or never");
        assert_events(&talk.world, point, n, &script, &answer(n));
        talk.world.assert_quiet();
    }
}

#[test]
fn claude_2_1_197_survives_every_point_before_it_runs() {
    survives(CLAUDE_OLD, &POINTS[..7]);
}

#[test]
fn claude_2_1_197_survives_every_point_after_that() {
    survives(CLAUDE_OLD, &POINTS[7..]);
}

#[test]
fn claude_2_1_325_survives() {
    survives(
        CLAUDE_NEW,
        &["after_begin", "after_spawn", "mid_stream", "before_finish"],
    );
}

/// Killed between a refusal and the second attempt: tried anew, told, once.
#[test]
fn killed_after_a_refusal() {
    let (Some(mut world), Some(real)) = (World::claude(REJOIN, CLAUDE_OLD), claude(CLAUDE_OLD))
    else {
        return;
    };
    let empty = world.root().join("empty");
    std::fs::create_dir(&empty).unwrap();
    let bin = world.root().join("forgetful");
    let text = format!(
        "#!/bin/sh\nfor arg; do if [ \"$arg\" = --resume ] && [ -e {0}/refuse ]; then\n\
         export HOME={0} CLAUDE_CONFIG_DIR={0}; fi; done\nexec {1} \"$@\"\n",
        empty.display(),
        real.display()
    );
    world.script(&bin, &text);
    world.use_claude(&bin);
    let _first = world.say(1, &["-m", "sonnet"]);
    std::fs::write(empty.join("refuse"), "").unwrap();
    let turn = die_at(&mut world, "after_refusal", 2, "#s:a2");
    assert_eq!(turn["status"], "queued");
    std::fs::remove_file(empty.join("refuse")).unwrap();
    let third = world.say(3, &[]);
    assert_eq!(third["verdict"], "resumed", "{third}");
    let words = rejoin_testkit::said(1..=2).into_iter().chain([user(3)]);
    assert_shown(&world.model.last(), &words.collect::<Vec<_>>());
    assert_eq!(world.show()["turns"][1]["verdict"], "reseeded");
    assert_eq!(world.model.requests().len(), 3);
    world.assert_quiet();
}

/// The next message comes while the turn of a killed `send` still runs: it waits, then runs.
#[test]
fn the_next_message_waits_for_the_turn_of_a_killed_send() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let model = || {
            rejoin_testkit::Model::scripted([(
                "late",
                vec![rejoin_testkit::slowly(&answer(2), 15)],
            )])
        };
        let Some(world) = World::claude_with(REJOIN, version, model) else {
            return;
        };
        let mut talk = Talk::begin(world);
        talk.good("started", &["-m", "sonnet"]);
        talk.n += 1;
        let send = talk.world.start(2, "#s:late", &[]);
        wait_for("the answer to begin", 20, || {
            talk.world.printed("text_delta").then_some(())
        });
        rejoin_testkit::kill(send.id() as i32, "KILL");
        assert_eq!(Done::of(send).code, -9);
        assert_eq!(talk.world.last_turn()["status"], "running");
        talk.words.extend([user(2), answer(2)]);
        talk.good("resumed", &[]);
        let turn = &talk.world.show()["turns"][1];
        assert_eq!(
            (&turn["status"], &turn["text"]),
            (&"succeeded".into(), &answer(2).into())
        );
        talk.world.assert_quiet();
    }
}

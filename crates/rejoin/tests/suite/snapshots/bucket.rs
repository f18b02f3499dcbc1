//! Sessions in a bucket: they come back from it, and one that is down costs nobody an answer.
//! (B-24, B-26)

use rejoin_testkit::{Fault, Faulty, S3, World};
use serde_json::Value;

use super::REJOIN;
use crate::suite::terminal::steady;

fn send(world: &World, text: &str) -> Value {
    let turn = world.run(&["send", "-a", "demo", "-k", "tea", "--json", text]);
    turn.ok().json()
}

fn world(s3: &S3, endpoint: &str) -> World {
    let mut world = steady(World::new(REJOIN));
    for (name, value) in s3.variables(endpoint) {
        world.set(name, &value);
    }
    world
}

/// What would be in a bucket is nobody else's business: with a key not a word of it is.
#[test]
fn a_session_comes_back_from_a_bucket() {
    let Some(s3) = S3::start() else { return };
    for key in [None, Some("0b".repeat(32))] {
        let mut world = world(&s3, &s3.endpoint);
        if let Some(key) = &key {
            world.set("REJOIN_SNAPSHOTS_KEY", key);
        }
        let before = s3.bodies();
        assert_eq!(
            send(&world, "I like a word that is quilombotic.")["saved"],
            "stored"
        );
        assert_eq!(send(&world, "What do I like?")["verdict"], "resumed");
        let new = s3.bodies();
        let new: Vec<_> = new.iter().filter(|body| !before.contains(body)).collect();
        assert!(!new.is_empty());
        if key.is_some() {
            for body in new {
                let bytes = std::fs::read(body).unwrap();
                assert!(!bytes.windows(10).any(|w| w == b"quilomboti"));
            }
        }
        std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
        let turn = send(&world, "And what do I like now?");
        assert_eq!(turn["verdict"], "restored", "{turn:#}");
        assert!(turn["text"].as_str().unwrap().contains("quilombotic"));
        world.run(&["snapshot", "verify", "--read-data"]).ok();
    }
}

#[test]
fn a_bucket_that_is_down_costs_nobody_an_answer() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let world = world(&s3, &faulty.endpoint);
    assert_eq!(send(&world, "one")["saved"], "stored");
    faulty.then(&[Fault::Status(503); 1000]);
    let turn = send(&world, "two");
    assert_eq!(
        (&turn["status"], &turn["saved"]),
        (&"succeeded".into(), &"failed".into())
    );
    let doctor = world.run(&["doctor", "--json"]).json();
    assert_eq!(doctor["snapshots"]["answers"], false);
    let unsaved = doctor["snapshots"]["unsaved"].as_array().unwrap();
    assert_eq!(unsaved.len(), 1, "{doctor}");
    assert!(
        unsaved[0]["why"].as_str().unwrap().contains("s3://"),
        "{doctor}"
    );
    let saved = world.run(&["snapshot", "save", "tea", "--json"]);
    assert_eq!(saved.code, 4, "{saved:?}");
    let why = saved.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(why.contains("s3://chunks-of-tests"), "{why}");

    faulty.clear();
    world.run(&["snapshot", "save", "tea"]).ok();
    let doctor = world.run(&["doctor", "--json"]).json();
    assert_eq!(doctor["snapshots"]["unsaved"], serde_json::json!([]));
    assert_eq!(doctor["snapshots"]["answers"], true);
    // One fault now and then is nobody's business.
    faulty.then(&[Fault::Status(429), Fault::None, Fault::Refuse, Fault::None]);
    assert_eq!(send(&world, "three")["saved"], "stored");
    faulty.clear();
    world.run(&["snapshot", "verify", "--read-data"]).ok();
}

/// Objects that could not be removed are found by the next sweep.
#[test]
fn a_sweep_that_could_not_reach_the_bucket_is_made_up_for() {
    let Some(s3) = S3::start() else { return };
    let faulty = Faulty::before(&s3.endpoint);
    let mut world = world(&s3, &faulty.endpoint);
    for text in ["one", "two", "three"] {
        assert_eq!(send(&world, text)["saved"], "stored");
    }
    assert_eq!(s3.bodies().len(), 3);
    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    rejoin_testkit::sql(&world.data().join("rejoin.db"), "update chunks set at = 1");
    // The listing answers, then nothing does.
    faulty.then(&[Fault::None]);
    faulty.then(&[Fault::Status(503); 100]);
    let done = world.run(&["sweep", "--json"]);
    assert_eq!(done.code, 6, "{done:?}");
    assert_eq!(done.json()["chunks"], 2);
    assert_eq!(s3.bodies().len(), 3);
    faulty.clear();
    world.run(&["snapshot", "verify", "--read-data"]).ok();
    // Younger than an hour, an object may be somebody's who is writing it.
    let kept = world.run(&["sweep", "--json"]).ok().json();
    assert_eq!((&kept["strays"], s3.bodies().len()), (&0.into(), 3));
}

//! `kill -9` at every step of a sweep: everything that is kept can be put back, and the next sweep
//! finishes what the dead one began.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rejoin_testkit::{World, sql, user};
use serde_json::{Value, json};

use super::REJOIN;

/// In the order in which a sweep passes them.
pub(crate) const SWEEPING: [&str; 7] = [
    "sweep_expiring",
    "sweep_expired",
    "sweep_reached",
    "sweep_forgetting",
    "sweep_forgotten",
    "sweep_removing",
    "sweep_removed",
];

#[test]
fn with_chunks_in_the_database() {
    // There are no objects to remove.
    survives("db:", &SWEEPING[..5]);
}

#[test]
fn with_chunks_in_a_folder() {
    survives("file:", &SWEEPING);
}

fn survives(blobs: &str, points: &[&str]) {
    let mut world = World::new(REJOIN);
    let objects = world.root().join("objects");
    let blobs = blobs.replace("file:", &format!("file:{}", objects.display()));
    world.set("REJOIN_BLOBS_URL", &blobs);
    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    let mut n = 0;
    for point in points {
        for _ in 0..3 {
            n += 1;
            let turn = world.say(n, &["-a", "demo"]);
            assert_eq!(turn["saved"], "stored", "{turn:#}");
        }
        sql(&world.data().join("rejoin.db"), "update chunks set at = 1");
        age(&objects);
        world.set("REJOIN_FAIL", point);
        let died = world.run(&["sweep"]);
        world.unset("REJOIN_FAIL");
        assert_eq!(died.code, -9, "{point}: {died:?}");
        verified(&world, point);
        let swept = world.run(&["sweep", "--json"]).ok().json();
        assert_eq!(swept["kept"], 1, "{point}: {swept:#}");
        verified(&world, point);
        let rest = world.run(&["sweep", "--dry-run", "--json"]).ok().json();
        let rest = json!([rest["expired"], rest["chunks"], rest["strays"]]);
        assert_eq!(rest, json!([[], 0, 0]), "{point}");
        std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
        n += 1;
        let turn = world.say(n, &[]);
        assert_eq!(turn["verdict"], "restored", "{point}: {turn:#}");
        let text = turn["text"].as_str().unwrap();
        let told: Vec<usize> = (1..=n).filter(|n| text.contains(&user(*n))).collect();
        assert_eq!(told, (1..=n).collect::<Vec<_>>(), "{point}: {text}");
        assert_eq!(text.matches("userword-").count(), n, "{point}: {text}");
    }
}

/// As if it had all been written yesterday.
fn age(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            age(&entry.path());
        } else {
            let file = File::options().append(true).open(entry.path()).unwrap();
            let yesterday = SystemTime::now() - Duration::from_hours(24);
            file.set_modified(yesterday).unwrap();
        }
    }
}

#[track_caller]
fn verified(world: &World, point: &str) {
    let done = world.run(&["snapshot", "verify", "--read-data", "--json"]);
    assert_eq!(done.code, 0, "{point}: {done:?}");
    let checked: Value = done.json();
    assert_ne!(checked["snapshots"], 0, "{point}: {checked:#}");
}

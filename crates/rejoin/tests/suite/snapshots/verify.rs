//! `snapshot verify` names whatever is not what was kept, wherever it lies. (issue 6, done when 2)

use std::path::PathBuf;

use insta::assert_snapshot;
use rejoin_testkit::{Done, S3, World, sql};
use serde_json::Value;

use super::REJOIN;
use crate::suite::terminal::{masked, steady};

/// Where the chunks lie.
enum At {
    Database,
    Folder,
    S3(S3),
}

struct Place {
    world: World,
    at: At,
}

impl Place {
    /// A conversation of three turns, each in a snapshot.
    fn new(at: At) -> Self {
        let mut world = steady(World::new(REJOIN));
        match &at {
            At::Database => {}
            At::Folder => {
                let url = format!("file:{}", world.root().join("objects").display());
                world.set("REJOIN_BLOBS_URL", &url);
            }
            At::S3(s3) => {
                for (name, value) in s3.variables(&s3.endpoint) {
                    world.set(name, &value);
                }
            }
        }
        for text in ["I like tea.", "What do I like?", "And what else?"] {
            let turn = world.run(&["send", "-a", "demo", "-k", "tea", "--json", text]);
            assert_eq!(turn.ok().json()["saved"], "stored");
        }
        Self { world, at }
    }

    fn all() -> Vec<Self> {
        let s3 = S3::start().map(At::S3);
        let all = [At::Database, At::Folder].into_iter().chain(s3);
        all.map(Self::new).collect()
    }

    fn bodies(&self) -> Vec<PathBuf> {
        let mut found = match &self.at {
            At::Database => vec![],
            At::S3(s3) => s3.bodies(),
            At::Folder => {
                let stores = std::fs::read_dir(self.world.root().join("objects")).unwrap();
                let chunks = stores.map(|store| store.unwrap().path().join("chunks"));
                let folders = chunks.flat_map(|chunks| std::fs::read_dir(chunks).unwrap());
                let files = folders.flat_map(|f| std::fs::read_dir(f.unwrap().path()).unwrap());
                files.map(|f| f.unwrap().path()).collect()
            }
        };
        found.sort();
        assert!(
            found.len() >= 3 || matches!(self.at, At::Database),
            "{found:?}"
        );
        found
    }

    fn sql(&self, statement: &str) {
        sql(&self.world.data().join("rejoin.db"), statement);
    }

    /// Changes the first chunk there is; gives how to put it back.
    fn damage(&self, how: Damage) -> Box<dyn FnOnce() + '_> {
        if matches!(self.at, At::Database) {
            let first = "(select name from chunks order by name limit 1)";
            let db = self.world.data().join("rejoin.db");
            let before = self.world.root().join("before.db");
            // Nothing of it is in the log afterwards.
            self.sql("select 1");
            std::fs::copy(&db, &before).unwrap();
            let body = match how {
                Damage::Flip(Where::First) => "x'5a' || substr(body, 2)",
                Damage::Flip(Where::Middle) => {
                    "substr(body, 1, length(body) / 2) || x'5a' || substr(body, length(body) / 2 + 2)"
                }
                Damage::Flip(Where::Last) => "substr(body, 1, length(body) - 1) || x'5a'",
                Damage::Cut => "substr(body, 1, length(body) - 1)",
                Damage::Empty => "x''",
                Damage::Longer => "body || zeroblob(1000000)",
                Damage::Swap => "(select body from chunks order by name desc limit 1)",
                Damage::Delete => "body",
            };
            if how == Damage::Delete {
                self.sql(&format!("delete from chunks where name = {first}"));
            } else {
                self.sql(&format!(
                    "update chunks set body = cast({body} as blob) where name = {first}"
                ));
            }
            return Box::new(move || {
                for log in ["rejoin.db-wal", "rejoin.db-shm"] {
                    let _gone = std::fs::remove_file(db.with_file_name(log));
                }
                std::fs::copy(&before, &db).unwrap();
            });
        }
        let bodies = self.bodies();
        let first = bodies[0].clone();
        let before = std::fs::read(&first).unwrap();
        let mut after = before.clone();
        match how {
            Damage::Flip(Where::First) => after[0] ^= 1,
            Damage::Flip(Where::Middle) => after[before.len() / 2] ^= 0x80,
            Damage::Flip(Where::Last) => *after.last_mut().unwrap() ^= 1,
            Damage::Cut => drop(after.pop()),
            Damage::Empty => after.clear(),
            Damage::Longer => after.resize(1_000_000, 0),
            Damage::Swap => after = std::fs::read(bodies.last().unwrap()).unwrap(),
            Damage::Delete => {}
        }
        if how == Damage::Delete {
            std::fs::remove_file(&first).unwrap();
        } else {
            std::fs::write(&first, after).unwrap();
        }
        Box::new(move || std::fs::write(first, before).unwrap())
    }

    fn verify(&self, more: &[&str]) -> Done {
        self.world.run(&[&["snapshot", "verify"], more].concat())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Damage {
    Flip(Where),
    Cut,
    Empty,
    Longer,
    Swap,
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Where {
    First,
    Middle,
    Last,
}

const KINDS: [Damage; 8] = [
    Damage::Flip(Where::First),
    Damage::Flip(Where::Middle),
    Damage::Flip(Where::Last),
    Damage::Cut,
    Damage::Empty,
    Damage::Longer,
    Damage::Swap,
    Damage::Delete,
];

#[test]
fn every_kind_of_damage_is_named_wherever_it_lies() {
    for place in Place::all() {
        let well = place.verify(&["--read-data", "--json"]).ok().json();
        assert_eq!((&well["ok"], &well["snapshots"]), (&true.into(), &3.into()));
        place.verify(&[]).ok();
        for how in KINDS {
            let put_back = place.damage(how);
            let done = place.verify(&["--read-data", "--json"]);
            assert_eq!(done.code, 11, "{how:?}: {done:?}");
            let said = done.json();
            assert_eq!(said["error"]["code"], "damaged");
            let damaged = said["damaged"].as_array().unwrap();
            assert!(!damaged.is_empty(), "{how:?}: {said}");
            for one in damaged {
                let flaw = &one["flaws"][0];
                assert_eq!(flaw["chunk"].as_str().unwrap().len(), 64, "{how:?}: {said}");
                assert!(flaw["why"].as_str().unwrap().len() > 10, "{how:?}: {said}");
            }
            let people = place.verify(&["tea", "--read-data"]);
            assert_eq!(people.code, 11, "{how:?}");
            let chunk = damaged[0]["flaws"][0]["chunk"].as_str().unwrap();
            assert!(people.stdout.contains(&chunk[..12]), "{how:?}: {people:?}");
            // What can be seen without reading is seen without reading.
            let seen = !matches!(how, Damage::Flip(_) | Damage::Swap);
            assert!(!seen || place.verify(&[]).code == 11, "{how:?}");
            put_back();
            place.verify(&["--read-data"]).ok();
        }
    }
}

#[test]
fn manifests_that_were_changed_are_named() {
    for statement in [
        "update snapshots set manifest = substr(manifest, 1, length(manifest) - 1)",
        "update snapshots set manifest = x'00'",
        "update snapshots set digest = zeroblob(32)",
        "update snapshots set messages = messages + 1",
        "update snapshots set manifest = (select manifest from snapshots order by id limit 1),
            digest = (select digest from snapshots order by id limit 1)
            where id = (select max(id) from snapshots)",
    ] {
        let place = Place::new(At::Database);
        place.sql(statement);
        let done = place.verify(&["--json"]);
        assert_eq!(done.code, 11, "{statement}: {done:?}");
        let manifest = &done.json()["damaged"][0]["flaws"][0]["manifest"];
        assert_eq!(
            manifest, "its manifest is not what was written",
            "{statement}"
        );
    }
}

#[test]
fn what_it_says() {
    let place = Place::new(At::Database);
    let well = place.verify(&[]).ok();
    assert_eq!((well.stdout.lines().count(), well.stderr.as_str()), (1, ""));
    place.sql("delete from chunks where at = (select max(at) from chunks)");
    let done = place.verify(&[]);
    let id: Value = place.verify(&["--json"]).json()["damaged"][0].clone();
    let chunk = id["flaws"][0]["chunk"].as_str().unwrap();
    let id = id["id"].as_str().unwrap();
    let shown = masked(&place.world, &format!("{}{}", done.stdout, done.stderr));
    let shown = shown
        .replace(&id[28..], "[short]")
        .replace(&chunk[..12], "[chunk]");
    let session = without_session(&shown);
    assert_snapshot!(format!("exit {}, damaged\n{session}", done.code), @r"
    exit 11, damaged
    [short]  tmqx demo now: without its session here, an older one serves, and is told what came after
              sessions/[session]: a chunk is missing ([chunk]…)
    error: 1 of 3 snapshots is damaged; it is never used
      try: rejoin snapshot verify --read-data
    ");
}

/// The session's name is drawn anew by every test.
fn without_session(text: &str) -> String {
    let line = |line: &str| match (line.find("sessions/"), line.find(": a chunk")) {
        (Some(from), Some(to)) => format!("{}sessions/[session]{}", &line[..from], &line[to..]),
        _ => line.to_owned(),
    };
    text.lines().map(line).collect::<Vec<_>>().join("\n")
}

/// A wrong key is no damage: it is said which one is missing, and what to do.
#[test]
fn a_wrong_key_is_told_apart() {
    let mut world = steady(World::new(REJOIN));
    let keys = world.root().join("keys");
    let (old, new) = ("0a".repeat(32), "0b".repeat(32));
    let write = |text: &str| {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(&keys, text).unwrap();
        std::fs::set_permissions(&keys, std::fs::Permissions::from_mode(0o600)).unwrap();
    };
    write(&old);
    world.set("REJOIN_SNAPSHOTS_KEY_FILE", keys.to_str().unwrap());
    let send = |world: &World, text: &str| {
        let turn = world.run(&["send", "-a", "demo", "-k", "tea", "--json", text]);
        assert_eq!(turn.ok().json()["saved"], "stored");
    };
    send(&world, "I like tea, and nobody may know it.");
    let verify = |world: &World| world.run(&["snapshot", "verify", "--read-data", "--json"]);
    verify(&world).ok();
    // Rotated: the old one still opens what it sealed.
    write(&format!("{new}\n{old}\n"));
    send(&world, "What do I like?");
    verify(&world).ok();
    // The old one is gone.
    write(&new);
    let done = verify(&world);
    assert_eq!(done.code, 2, "{done:?}");
    let said = done.json()["error"]["message"].as_str().unwrap().to_owned();
    assert!(said.contains("is encrypted with the key"), "{said}");
    // And none at all.
    world.unset("REJOIN_SNAPSHOTS_KEY_FILE");
    assert_eq!(verify(&world).code, 2);
}

/// A server that is down is no damage either.
#[test]
fn a_server_that_is_down_is_told_apart() {
    let Some(s3) = S3::start() else { return };
    let place = Place::new(At::S3(s3));
    let Place { world, at } = place;
    let At::S3(s3) = at else { panic!() };
    drop(s3);
    let done = world.run(&["snapshot", "verify", "--json"]);
    assert_eq!(done.code, 6, "{done:?}");
    let error = &done.json()["error"];
    assert!(
        error["message"].as_str().unwrap().contains("s3://"),
        "{error}"
    );
    let doctor = world.run(&["doctor", "--json"]);
    assert_eq!(doctor.json()["snapshots"]["answers"], false);
}

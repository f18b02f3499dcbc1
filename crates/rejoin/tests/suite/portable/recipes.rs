//! The recipes in `examples/`, as they stand: in an empty home, twice, and the second turn knows the
//! first.

use std::path::Path;
use std::process::{Command, Stdio};

use rejoin_testkit::{CLAUDE_OLD, World, user};

use super::REJOIN;

fn example(world: &World, script: &str, args: &[&str]) -> Command {
    let script = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples")
        .join(script);
    let bin = Path::new(REJOIN).parent().unwrap().display();
    let mut command = Command::new(script);
    command
        .args(args)
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .env("PATH", format!("{bin}:{}", world.env["PATH"]))
        .stdin(Stdio::null());
    command
}

fn forget(world: &World) {
    for folder in [world.home(), world.data()] {
        std::fs::remove_dir_all(&folder).unwrap();
        std::fs::create_dir(&folder).unwrap();
    }
}

#[track_caller]
fn twice(world: &World, script: &str, key: &str, set: &[(&str, &str)]) {
    for n in 1..=2 {
        forget(world);
        let done = example(world, script, &[key, &user(n)])
            .envs(set.iter().copied())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        let text = String::from_utf8(done.stdout).unwrap();
        assert_eq!(text.matches("userword-").count(), n, "{text}");
    }
}

#[test]
fn a_container() {
    let world = World::new(REJOIN);
    let talks = world.root().join("talks");
    let set = [("TALKS", talks.to_str().unwrap()), ("AGENT", "demo")];
    twice(&world, "container/entry.sh", "issue-42", &set);
    let left: Vec<_> = std::fs::read_dir(&talks).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

#[test]
fn a_ci_job() {
    let world = World::new(REJOIN);
    let summary = world.root().join("summary");
    let set = [
        ("AGENT", "demo"),
        ("GITHUB_STEP_SUMMARY", summary.to_str().unwrap()),
    ];
    twice(&world, "ci/turn.sh", "review-main", &set);
    let summary = std::fs::read_to_string(summary).unwrap();
    assert_eq!(summary.matches("userword-").count(), 3, "{summary}");
}

/// B-06, B-30: the whole way of the document: cold, then with what the first turn gave back.
#[test]
fn an_envelope_round_trip() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let envelope = world.root().join("envelope");
    std::fs::write(&envelope, "").unwrap();
    for n in 1..=3 {
        forget(&world);
        let message = format!("{} #s:a{n}", user(n));
        let done = example(&world, "clarity/round-trip.sh", &[&message])
            .stdin(std::fs::File::open(&envelope).unwrap())
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        std::fs::write(&envelope, &done.stdout).unwrap();
        let words = rejoin_testkit::said(1..n).into_iter().chain([user(n)]);
        rejoin_testkit::assert_shown(&world.model.last(), &words.collect::<Vec<_>>());
        let told = String::from_utf8_lossy(&done.stderr).into_owned();
        let verdict = if n == 1 {
            "rejoin: started"
        } else {
            "rejoin: resumed"
        };
        assert!(told.contains(verdict), "{told}");
    }
}

//! Schedules: `[[schedule]]`, run by `rejoin serve`.

use std::collections::BTreeSet;
use std::time::Duration;

use rejoin_testkit::{Daemon, World, wait_for};
use serde_json::{Value, json};

use super::walks::Dice;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

const TIERS: &str = r#"
default_agent = "demo"

[[tier]]
name = "observe"
permission = "read-only"
may = ["look"]

[[tier]]
name = "fix"
permission = "edit"
may = ["fix"]
"#;

/// A chain of two turns, every second.
const CHAIN: &str = r#"
[[schedule]]
name = "health"
every = "1s"
tier = "observe"
climb = true
prompt = "climb: fix the db is down"
workdir = "WORK"
key = "health"
"#;

fn configured(world: World, more: &str) -> World {
    let folder = world.home().join(".config/rejoin");
    std::fs::create_dir_all(&folder).unwrap();
    let more = more.replace("WORK", world.work().to_str().unwrap());
    std::fs::write(folder.join("config.toml"), format!("{TIERS}{more}")).unwrap();
    world
}

fn occurrences(world: &World, limit: usize) -> Vec<Value> {
    let listed = world.run(&["schedule", "list", "--json"]).ok().json();
    let mut found = listed["schedules"][0]["occurrences"]
        .as_array()
        .unwrap()
        .clone();
    found.truncate(limit);
    found
}

/// Returns all occurrences, oldest first.
fn all_of(daemon: &Daemon) -> Vec<Value> {
    let listed = daemon.get("/api/schedules?limit=1000").ok();
    let found = listed["schedules"][0]["occurrences"].as_array().unwrap();
    found.iter().rev().cloned().collect()
}

fn turns_of(world: &World, key: &str) -> usize {
    let listed = world.run(&["list", "--key", key, "--json"]).ok().json();
    usize::try_from(listed["conversations"][0]["turns"].as_u64().unwrap()).unwrap()
}

/// Asserts that each second from the first occurrence to the last is recorded once, that each run is
/// a chain of its own, and that no conversation has another turn.
fn assert_each_once(world: &World, daemon: &Daemon) -> Vec<Value> {
    // Otherwise a run may begin between two looks.
    world.run(&["schedule", "pause", "health"]).ok();
    let all = wait_for("every run to end", 60, || {
        let all = all_of(daemon);
        let running = all.iter().any(|it| it["status"] == "running");
        (!running).then_some(all)
    });
    let seconds: Vec<i64> = all
        .iter()
        .map(|it| {
            it["at"]
                .as_str()
                .unwrap()
                .parse::<jiff::Timestamp>()
                .unwrap()
                .as_second()
        })
        .collect();
    let first = seconds[0];
    let expected: Vec<i64> = (first..first + i64::try_from(all.len()).unwrap()).collect();
    assert_eq!(seconds, expected, "{all:#?}");
    let roots: BTreeSet<&str> = all.iter().filter_map(|it| it["turn_id"].as_str()).collect();
    let began = all.iter().filter(|it| !it["turn_id"].is_null()).count();
    assert_eq!(roots.len(), began, "a turn of each");
    let mut turns = 0;
    for root in roots {
        let chain = daemon.get(&format!("/api/turns/{root}/chain")).ok();
        let members = chain["turns"].as_array().unwrap();
        assert_eq!(members[0]["turn_id"], root);
        assert_eq!(members[0]["trigger"], "schedule");
        for pair in members.windows(2) {
            assert_eq!(pair[1]["parent_turn_id"], pair[0]["turn_id"]);
        }
        assert!(members.len() <= 2, "{chain:#}");
        turns += members.len();
    }
    assert_eq!(turns_of(world, "health"), turns);
    all
}

/// A chain per occurrence in one conversation; pause, resume and run by hand.
#[test]
fn a_schedule_runs_at_its_times_until_it_is_paused() {
    let world = configured(World::new(REJOIN), CHAIN);
    let empty = world.run(&["schedule", "list"]).ok();
    assert!(empty.stdout.contains("with rejoin serve"), "{empty:?}");
    let daemon = world.serve(&[]);
    wait_for("three runs", 60, || {
        let done = |it: &&Value| it["status"] == "done" && it["turn_status"] == "succeeded";
        (all_of(&daemon).iter().filter(done).count() >= 3).then_some(())
    });
    world.run(&["schedule", "pause", "health"]).ok();
    let skipped = |all: &[Value]| {
        let last = all.last()?;
        let paused = last["reason"] == "the schedule is paused" && last["status"] == "skipped";
        paused.then_some(())
    };
    wait_for("a skipped one", 30, || skipped(&all_of(&daemon)));
    let before = turns_of(&world, "health");
    assert_each_once(&world, &daemon);
    // By hand it runs while it is paused.
    let ran = world
        .run(&["schedule", "run", "health", "--json"])
        .ok()
        .json();
    assert_eq!(ran["tier"], "fix");
    assert_eq!(ran["chain"]["turns"][0]["trigger"], "schedule");
    assert_eq!(ran["chain"]["turns"].as_array().unwrap().len(), 2);
    assert_eq!(turns_of(&world, "health"), before + 2);
    let table = world.run(&["schedule", "list"]).ok().stdout;
    assert!(
        table.contains("health") && table.contains("next paused"),
        "{table}"
    );
    world.run(&["schedule", "resume", "health"]).ok();
    wait_for("another run", 30, || {
        (turns_of(&world, "health") > before + 2).then_some(())
    });
    world.run(&["schedule", "pause", "health"]).ok();
    wait_until_idle(&daemon);
    assert_eq!(daemon.stop(), 0);
    assert_eq!(occurrences(&world, 1).len(), 1, "without a daemon");
    world.assert_quiet();
}

/// Waits until no turn of the schedule runs.
fn wait_until_idle(daemon: &Daemon) {
    wait_for("every run to end", 60, || {
        let running = |it: &Value| it["status"] == "running";
        (!all_of(daemon).iter().any(running)).then_some(())
    });
}

fn cycles() -> usize {
    let long = std::env::var_os("REJOIN_WALK_STEPS").is_some();
    if long { 50 } else { 12 }
}

/// kill -9 of the daemon at any instant, failing turns, and a daemon that is away for a while: 12
/// cycles in CI, 50 in the long run.
#[test]
fn each_occurrence_is_recorded_once_through_kills() {
    let world = configured(World::new(REJOIN), CHAIN);
    let mut dice = Dice(20_261_120);
    let mut daemon = world.serve(&[]);
    wait_for("the first run", 30, || {
        (!all_of(&daemon).is_empty()).then_some(())
    });
    for _ in 0..cycles() {
        std::thread::sleep(Duration::from_millis(dice.roll(1_500) as u64));
        daemon.kill();
        if dice.roll(4) == 0 {
            std::thread::sleep(Duration::from_millis(2_500));
        }
        if dice.roll(4) == 0 {
            // The running turn fails, or there is none.
            world.run(&["cancel", "health"]);
        }
        daemon = world.serve(&[]);
    }
    let enough = cycles();
    wait_for("the runs", 60, || {
        (all_of(&daemon).len() >= enough).then_some(())
    });
    let all = assert_each_once(&world, &daemon);
    let count = |status: &str| all.iter().filter(|it| it["status"] == status).count();
    assert!(count("done") > 0 && count("missed") > 0, "{all:#?}");
    assert_eq!(
        count("done") + count("missed") + count("skipped"),
        all.len()
    );
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

/// Two daemons on one PostgreSQL server: one of them runs each occurrence.
#[test]
fn one_of_two_daemons_runs_each_occurrence() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    let mut world = configured(world, CHAIN);
    let first = world.serve(&[]);
    let home = world.data();
    world.go_to("elsewhere");
    assert_ne!(world.data(), home);
    std::fs::copy(home.join("test-token"), world.data().join("test-token")).unwrap();
    let world = configured(world, CHAIN);
    let second = world.serve(&[]);
    let ran = |all: &[Value]| all.iter().filter(|it| !it["turn_id"].is_null()).count();
    wait_for("two runs", 120, || (ran(&all_of(&first)) > 1).then_some(()));
    assert!(ran(&assert_each_once(&world, &second)) > 1);
    assert_eq!((first.stop(), second.stop()), (0, 0));
}

/// An occurrence while a climb waits for a person, and one that the daemon refuses.
#[test]
fn overlaps_and_refusals_are_recorded_with_their_reason() {
    let approved = CHAIN.replace(
        "[[schedule]]",
        "[[tier]]\nname = \"all\"\nmay = [\"all\"]\napproval = true\n\n[[schedule]]",
    );
    let approved = approved.replace("climb: fix", "climb: all");
    let world = configured(World::new(REJOIN), &approved);
    let daemon = world.serve(&[]);
    wait_for("an overlap", 30, || {
        let all = all_of(&daemon);
        all.iter()
            .any(|it| it["reason"] == "the occurrence before has not ended")
            .then_some(())
    });
    assert_eq!(turns_of(&world, "health"), 1, "the request still waits");
    world.run(&["answer", "health", "deny"]);
    wait_for("the next run", 30, || {
        (turns_of(&world, "health") > 1).then_some(())
    });
    assert_eq!(daemon.stop(), 0);
    let gone = CHAIN.replace("WORK", "/no/such/folder/of/rejoin");
    let world = configured(World::new(REJOIN), &gone);
    let daemon = world.serve(&[]);
    wait_for("a refusal", 30, || {
        let all = all_of(&daemon);
        let reason = all.first()?["reason"].as_str()?.to_owned();
        reason.contains("/no/such/folder").then_some(())
    });
    assert_eq!(daemon.stop(), 0);
}

#[test]
fn mistakes_are_named_with_their_line() {
    let world = World::new(REJOIN);
    let base = "[[schedule]]\nname = \"s\"\nevery = \"15m\"\nprompt = \"look\"\n";
    for (text, line, what) in [
        (
            base.replace("every = \"15m\"\n", ""),
            2,
            "needs `every` or `cron`",
        ),
        (format!("{base}cron = \"* * * * *\"\n"), 5, "not both"),
        (base.replace("15m", "10ms"), 3, "once a second"),
        (
            base.replace("every = \"15m\"", "cron = \"61 * * * *\""),
            3,
            "cron",
        ),
        (
            format!(
                "{}timezone = \"Mars/Base\"\n",
                base.replace("every = \"15m\"", "cron = \"0 * * * *\"")
            ),
            3,
            "cron",
        ),
        (
            format!("{base}timezone = \"Mars/Base\"\n"),
            5,
            "no time zone `Mars/Base`",
        ),
        (
            format!("{base}tier = \"none\"\n"),
            5,
            "there is no tier `none`",
        ),
        (format!("{base}climb = true\n"), 5, "needs a `tier`"),
        (
            base.replace("prompt = \"look\"\n", ""),
            2,
            "needs `prompt` or `prompt_file`",
        ),
        (base.replace("prompt =", "prompt_file ="), 4, "look"),
        (format!("{base}\n{base}"), 7, "names are unique"),
        (format!("{base}overlap = \"wait\"\n"), 5, "skip"),
        (format!("{base}key = \"a b\\u0007\"\n"), 5, "key"),
        (
            format!("{base}promt = \"x\"\n"),
            5,
            "did you mean `schedule[0].prompt`",
        ),
    ] {
        let folder = world.home().join(".config/rejoin");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), &text).unwrap();
        let failed = world.run(&["schedule", "list"]);
        assert_eq!(failed.code, 2, "{text}: {failed:?}");
        let place = format!("config.toml, line {line}: ");
        assert!(
            failed.stderr.contains(&place) && failed.stderr.contains(what),
            "{text}: {failed:?}"
        );
    }
    configured(world, "");
}

/// A token of another namespace sees no schedule, and only `admin` changes or runs one.
#[test]
fn schedules_belong_to_the_operator() {
    let world = configured(World::new(REJOIN), CHAIN);
    let token = |name: &str, more: &[&str]| {
        let args = [&["token", "create", name, "--json"], more].concat();
        let made = world.run(&args).ok().json();
        format!("Authorization: Bearer {}", made["token"].as_str().unwrap())
    };
    let (plain, tenant) = (token("plain", &[]), token("tenant", &["--namespace", "t"]));
    let daemon = world.serve(&[]);
    let pause = json!({"paused": true});
    let put = |header: &str| {
        let path = "/api/schedules/health";
        daemon.call("PUT", path, &[header], Some(&pause)).status
    };
    assert_eq!(put(&plain), 403);
    let run = daemon.call("POST", "/api/schedules/health/run", &[&plain], None);
    assert_eq!(run.status, 403);
    let listed = daemon.call("GET", "/api/schedules", &[&tenant], None).ok();
    assert_eq!(listed["schedules"], json!([]));
    let unknown = daemon.call("PUT", "/api/schedules/other", &[], Some(&pause));
    assert_eq!(unknown.status, 404, "{unknown:?}");
    let typed = world.run(&["schedule", "run", "other"]);
    assert_eq!(typed.code, 3, "{typed:?}");
    assert!(
        typed.stderr.contains("try: rejoin schedule list"),
        "{typed:?}"
    );
    assert_eq!(daemon.stop(), 0);
    let unknown = world.run(&["schedule", "pause", "other"]);
    assert_eq!(unknown.code, 3, "{unknown:?}");
    assert!(
        unknown.stderr.contains("rejoin schedule list"),
        "{unknown:?}"
    );
}

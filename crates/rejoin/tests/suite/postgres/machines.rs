//! Several homes and machines on one store: one writer, and nobody takes the living for dead.

use std::process::{Child, Command};

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_325, Done, Model, World, answer, assert_shown, kill, said, user, wait_for,
};
use serde_json::Value;

use super::REJOIN;

/// Long enough for a slow machine to renew it, short enough to wait for.
const LEASE: &str = "6000";

/// Another machine with a home of its own, on the same store and the same model.
struct Elsewhere<'a> {
    world: &'a World,
    name: &'a str,
}

impl<'a> Elsewhere<'a> {
    fn new(world: &'a World, name: &'a str) -> Self {
        for folder in ["data", "home"] {
            std::fs::create_dir_all(world.root().join(format!("{folder}-{name}"))).unwrap();
        }
        Self { world, name }
    }

    fn command(&self, args: &[&str]) -> Command {
        let at = |folder: &str| self.world.root().join(format!("{folder}-{}", self.name));
        let mut command = self.world.command(args);
        command
            .env("REJOIN_HOME", at("data"))
            .env("HOME", at("home"))
            .env("REJOIN_FAKE_MACHINE", self.name);
        command
    }

    fn start(&self, n: usize, more: &[&str]) -> Child {
        let text = format!("{} #s:a{n}", user(n));
        let mut args = vec!["send", "--json", "-k", "k"];
        args.extend(more);
        args.push(&text);
        self.command(&args).spawn().unwrap()
    }

    #[track_caller]
    fn say(&self, n: usize, more: &[&str]) -> Value {
        Done::of(self.start(n, more)).ok().json()
    }

    fn run(&self, args: &[&str]) -> Done {
        Done::of(self.command(args).spawn().unwrap())
    }
}

/// An answer that takes so long.
fn lasting(seconds: u64) -> Step {
    Step {
        chunks: Some(10),
        delay_ms: Some(seconds * 100),
        ..Step::text(answer(2))
    }
}

/// Claude, whose second answer takes so many seconds.
fn slow_world(seconds: u64) -> Option<World> {
    let model = || Model::scripted([("late", vec![lasting(seconds)])]);
    let mut world = World::with(REJOIN, &CLAUDE_325, model)?.on_server()?;
    world.set("REJOIN_FAKE_LEASE", LEASE);
    world.set("REJOIN_FAKE_MACHINE", "here");
    Some(world)
}

fn second_runs(world: &World) -> Child {
    let _first = world.say(1, &["-m", "sonnet"]);
    let send = world.start(2, "#s:late", &[]);
    wait_for("the answer to begin", 30, || {
        world.printed("text_delta").then_some(())
    });
    send
}

/// Promise 5: the other machine waits, however long the turn takes, then goes on with it.
#[test]
fn the_other_machine_waits_for_a_turn_that_runs() {
    // Longer than a lease: it is renewed.
    let Some(world) = slow_world(8) else { return };
    let send = second_runs(&world);
    let there = Elsewhere::new(&world, "there");
    let listed = there.run(&["list", "--json"]).ok().json();
    assert_eq!(listed["conversations"][0]["state"], "running");
    let third = there.say(3, &[]);
    let second = Done::of(send).ok().json();
    assert_eq!(
        (&second["status"], &second["text"]),
        (&"succeeded".into(), &answer(2).into())
    );
    assert_eq!(third["status"], "succeeded");
    let mut words = said(1..=2);
    words.push(user(3));
    assert_shown(&world.model.last(), &words);
    let turns = world.show()["turns"].clone();
    assert!(turns[1]["machine"] == "here" && turns[2]["machine"] == "there");
    world.assert_quiet();
}

/// Two homes send at once: one waits for the other, and each word is there once.
#[test]
fn two_homes_send_at_once() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    let there = Elsewhere::new(&world, "there");
    let _first = world.say(1, &["-a", "demo"]);
    for n in [2, 4, 6] {
        let one = world.start(n, &format!("#s:a{n}"), &["-a", "demo"]);
        let two = there.start(n + 1, &["-a", "demo"]);
        let (one, two) = (Done::of(one).ok().json(), Done::of(two).ok().json());
        let last = [&one, &two]
            .into_iter()
            .max_by_key(|turn| turn["started_at"].as_str().unwrap().to_owned())
            .unwrap();
        let text = last["text"].as_str().unwrap();
        assert_eq!(text.matches("userword-").count(), n + 1, "{text}");
        // One after the other, both answered.
        let messages = world.messages();
        assert_eq!(messages.len(), (n + 1) * 2);
        assert!(
            messages
                .chunks(2)
                .all(|m| m[0].0 == "user" && m[1].0 == "assistant")
        );
    }
    world.assert_quiet();
}

/// A machine dies with all that ran on it: after its lease the turn is `lost`, it is not run again
/// (promise 4), its message is kept and told once, and nothing is forgotten.
#[test]
fn a_turn_of_a_machine_that_died_is_lost_and_told() {
    let Some(world) = slow_world(60) else { return };
    let send = second_runs(&world);
    for (pid, _) in world.leftovers() {
        kill(pid, "KILL");
    }
    drop(Done::of(send));
    let there = Elsewhere::new(&world, "there");
    // As long as its lease runs nobody says so.
    let listed = there.run(&["list", "--json"]).ok().json();
    assert_eq!(listed["conversations"][0]["state"], "running");
    let third = there.say(3, &[]);
    assert_eq!(third["verdict"], "restored", "{third}");
    let turns = world.show()["turns"].clone();
    assert_eq!(turns[1]["status"], "lost", "{turns}");
    assert_eq!(turns[1]["error"]["class"], "lost");
    assert!(turns[1]["cost_usd"].is_null());
    let words = [user(1), answer(1), user(2), user(3)];
    assert_shown(&world.model.last(), &words);
    let asked = world.model.requests();
    let about_it = asked.iter().filter(|r| r.script.as_deref() == Some("late"));
    assert_eq!(about_it.count(), 1, "run twice");
    // The machine comes back: what lies there is not taken for the session.
    let fourth = world.say(4, &[]);
    assert_eq!(fourth["verdict"], "restored", "{fourth}");
    let words = [user(1), answer(1), user(2), user(3), answer(3), user(4)];
    assert_shown(&world.model.last(), &words);
    world.assert_quiet();
}

/// The sender dies, its machine lives: the same home takes the turn up at once, as with a file.
#[test]
fn the_same_home_takes_its_turn_up_at_once() {
    let Some(mut world) = slow_world(4) else {
        return;
    };
    // Nobody would wait for that.
    world.set("REJOIN_FAKE_LEASE", "600000");
    let send = second_runs(&world);
    kill(send.id() as i32, "KILL");
    drop(Done::of(send));
    let third = world.say(3, &[]);
    assert_eq!(third["verdict"], "resumed", "{third}");
    assert_eq!(world.show()["turns"][1]["text"], answer(2));
    world.assert_quiet();
}

/// Nobody renews the lease: the shim ends the CLI by itself before anybody may take the turn.
#[test]
fn a_shim_without_a_lease_ends_its_cli() {
    let Some(world) = slow_world(300) else { return };
    let send = second_runs(&world);
    kill(send.id() as i32, "KILL");
    drop(Done::of(send));
    wait_for("the shim to give up", 20, || {
        world.leftovers().is_empty().then_some(())
    });
    let third = world.say(3, &[]);
    let turns = world.show()["turns"].clone();
    assert_eq!(turns[1]["status"], "lost", "{turns}");
    assert_eq!(turns[1]["error"]["class"], "lost", "{turns}");
    assert_eq!(third["status"], "succeeded");
    assert_shown(&world.model.last(), &[user(1), answer(1), user(2), user(3)]);
    world.assert_quiet();
}

/// A machine that stood still for longer than its lease finds its turn in other hands: it can commit
/// nothing, and says so.
#[test]
fn whoever_lost_the_lease_commits_nothing() {
    let Some(world) = slow_world(60) else { return };
    let send = second_runs(&world);
    // The whole machine stands still: the sender, and the CLI with its shim.
    let all: Vec<i32> = world.leftovers().iter().map(|(pid, _)| *pid).collect();
    for pid in &all {
        kill(*pid, "STOP");
    }
    let there = Elsewhere::new(&world, "there");
    let third = there.say(3, &[]);
    assert_eq!(third["status"], "succeeded");
    let before = world.database.as_ref().unwrap().psql(COUNT);
    for pid in &all {
        kill(*pid, "CONT");
    }
    let done = Done::of(send);
    // Had it stood still in the middle of a transaction, the server would have hung up on it.
    assert!(matches!(done.code, 4 | 6), "{done:?}");
    let taken = done.stdout.contains("taken this turn over");
    assert_eq!(taken, done.code == 4, "{done:?}");
    wait_for("the CLI to be ended", 20, || {
        world.leftovers().is_empty().then_some(())
    });
    let _listed = world.run(&["list"]).ok();
    assert_eq!(world.database.as_ref().unwrap().psql(COUNT), before);
    let turns = world.show()["turns"].clone();
    assert_eq!(turns[1]["status"], "lost", "{turns}");
    world.assert_quiet();
}

const COUNT: &str = "select count(*), max(seq) from events; select count(*) from messages";

/// Another home of this machine on one file: what it does not have it does not call "not begun".
#[test]
fn another_home_on_one_file_runs_nothing_twice() {
    let model = || Model::scripted([("late", vec![lasting(4)])]);
    let Some(mut world) = World::with(REJOIN, &CLAUDE_325, model) else {
        return;
    };
    let file = world.data().join("rejoin.db");
    world.set("REJOIN_DATABASE_URL", &format!("sqlite:{}", file.display()));
    let other = world.root().join("data-other");
    std::fs::create_dir(&other).unwrap();
    let from_other = |args: &[&str]| {
        let mut command = world.command(args);
        Done::of(command.env("REJOIN_HOME", &other).spawn().unwrap())
    };
    let send = second_runs(&world);
    // While its CLI runs, it is left alone, whoever is dead.
    kill(send.id() as i32, "KILL");
    drop(Done::of(send));
    let _listed = from_other(&["list"]).ok();
    assert_eq!(world.last_turn()["status"], "running");
    wait_for("the CLI to end", 30, || {
        world.leftovers().is_empty().then_some(())
    });
    let text = format!("{} #s:a3", user(3));
    let third = from_other(&["send", "--json", "-k", "k", &text])
        .ok()
        .json();
    assert_eq!(third["status"], "succeeded", "{third}");
    let turns = world.show()["turns"].clone();
    assert_eq!(turns[1]["status"], "lost", "{turns}");
    let asked = world.model.requests();
    let about_it = asked.iter().filter(|r| r.script.as_deref() == Some("late"));
    assert_eq!(about_it.count(), 1, "run twice");
    assert_shown(&world.model.last(), &[user(1), answer(1), user(2), user(3)]);
}

//! `kill -9` at instants that nobody chose, while others go on: nothing that is kept is lost, and the
//! next turns see every word once.

use std::process::Child;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rejoin_testkit::{
    CLAUDE_325, Done, World, answer, assert_shown, kill, sql, user, wait_for, words_in,
};
use serde_json::Value;

use super::REJOIN;
use crate::suite::walks::Dice;

#[test]
fn with_chunks_in_a_folder() {
    storm(1, 20, "file:");
}

#[test]
#[ignore = "only with --long"]
fn many_of_them() {
    for seed in 2..6 {
        storm(seed, 70, ["db:", "file:"][seed as usize % 2]);
    }
}

/// Conversations whose senders are killed, with their agents.
const KILLED: [(&str, &str); 3] = [("one", "demo"), ("two", "demo"), ("three", "claude")];
const UNHARMED: &str = "unharmed";

fn storm(seed: u64, instants: usize, blobs: &str) {
    let Some(mut world) = World::of(REJOIN, &CLAUDE_325) else {
        return;
    };
    let blobs = blobs.replace("file:", &format!("file:{}/objects", world.root().display()));
    world.set("REJOIN_BLOBS_URL", &blobs);
    world.set("REJOIN_SNAPSHOTS_KEEP_OLDER", "0s");
    let mut storm = Storm {
        world: &world,
        dice: Dice(seed),
        said: 0,
        times: [0; 4],
    };
    for (key, agent) in KILLED {
        let begun = storm.say(key, &["-a", agent]);
        Done::of(begun).ok();
    }
    let over = AtomicBool::new(false);
    std::thread::scope(|threads| {
        let others = threads.spawn(|| go_on(&world, &over));
        for _ in 0..instants {
            storm.kill_one();
        }
        over.store(true, Ordering::Relaxed);
        others.join().unwrap();
    });
    settled(&world);
    age(&world);
    world.run(&["sweep"]).ok();
    world.run(&["snapshot", "verify", "--read-data"]).ok();
    for verdict in ["resumed", "restored"] {
        if verdict == "restored" {
            for home in [".rejoin-demo", ".claude/projects"] {
                std::fs::remove_dir_all(world.home().join(home)).unwrap();
            }
        }
        for killed in KILLED {
            storm.knows_all(killed, verdict);
        }
    }
    world.assert_quiet();
}

struct Storm<'a> {
    world: &'a World,
    dice: Dice,
    said: usize,
    /// How long each kind took when it was left alone, in microseconds.
    times: [usize; 4],
}

impl Storm<'_> {
    fn say(&mut self, key: &str, flags: &[&str]) -> Child {
        self.said += 1;
        let text = format!("{} #s:a{}", user(self.said), self.said);
        let mut args = vec!["send", "--json", "-k", key];
        args.extend(flags);
        args.push(&text);
        self.world.spawn(&args)
    }

    /// The first of each kind is left alone, to know how long it takes.
    fn kill_one(&mut self) {
        let roll = self.dice.roll(6);
        let (key, agent) = KILLED[roll % 3];
        let (kind, mut child) = match roll {
            0..=2 => (usize::from(agent == "claude"), self.say(key, &[])),
            3 | 4 => {
                age(self.world);
                (2, self.world.spawn(&["sweep"]))
            }
            _ => (3, self.world.spawn(&["snapshot", "save", key])),
        };
        if self.times[kind] == 0 {
            let began = Instant::now();
            let _done = child.wait().unwrap();
            self.times[kind] = began.elapsed().as_micros() as usize;
            return;
        }
        let instant = self.dice.roll(self.times[kind]);
        std::thread::sleep(Duration::from_micros(instant as u64));
        kill(child.id() as i32, "KILL");
        let _dead = child.wait().unwrap();
    }

    /// A turn is shown everything that was said, each word once, in order.
    fn knows_all(&mut self, (key, agent): (&str, &str), verdict: &str) {
        let turn = Done::of(self.say(key, &[])).ok().json();
        assert_eq!(
            (&turn["verdict"], &turn["saved"]),
            (&verdict.into(), &"stored".into()),
            "{key}: {turn:#}"
        );
        let mut messages = messages(self.world, key);
        let (_, answered) = messages.pop().unwrap();
        assert_eq!(turn["text"], answered);
        if agent == "demo" {
            // It repeats what it was told, and not what it answered.
            messages.retain(|(role, _)| role == "user");
        }
        let word = |(_, text): &(String, String)| words_in(text).remove(0);
        let words: Vec<String> = messages.iter().map(word).collect();
        if agent == "demo" {
            assert_eq!(recalled(&answered), words, "{key}: {answered}");
        } else {
            assert_eq!(answered, answer(self.said));
            assert_shown(&self.world.model.last(), &words);
        }
    }
}

/// Somebody whom nobody kills.
fn go_on(world: &World, over: &AtomicBool) {
    let mut n = 0;
    while !over.load(Ordering::Relaxed) {
        n += 1;
        let text = user(n);
        let args = ["send", "--json", "-a", "demo", "-k", UNHARMED, &text];
        let turn = world.run(&args).ok().json();
        let told = recalled(turn["text"].as_str().unwrap());
        assert_eq!(told, (1..=n).map(user).collect::<Vec<_>>(), "{turn:#}");
    }
    assert_ne!(n, 0);
}

/// The demo agent names what it was told last, then all before that in its order.
fn recalled(text: &str) -> Vec<String> {
    let mut told = words_in(text);
    told.rotate_left(1);
    told
}

/// As if all chunks had been written long ago.
fn age(world: &World) {
    sql(&world.data().join("rejoin.db"), "update chunks set at = 1");
}

/// What was accepted runs with the next command; what ran is settled by it.
fn settled(world: &World) {
    wait_for("every turn to be settled", 60, || {
        let listed = world.run(&["list", "--json"]).ok().json();
        let all = listed["conversations"].as_array().unwrap().clone();
        let runs = |c: &Value| c["state"] == "running";
        (!all.iter().any(runs)).then_some(())
    });
}

/// Role and text of each.
fn messages(world: &World, key: &str) -> Vec<(String, String)> {
    let shown = world.run(&["show", key, "--json"]).ok().json();
    let text = |m: &Value, name: &str| m[name].as_str().unwrap().to_owned();
    let messages = shown["messages"].as_array().unwrap().iter();
    messages
        .map(|m| (text(m, "role"), text(m, "text")))
        .collect()
}

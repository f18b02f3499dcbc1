//! A disk that is full, a home that cannot be written, a CLI that cannot keep its session.

use std::path::{Path, PathBuf};
use std::process::Command;

use insta::assert_snapshot;
use rejoin_testkit::{CLAUDE_NEW, CLAUDE_OLD, Talk, World, answer, user};
use serde_json::Value;

use super::REJOIN;
use crate::suite::errors::turns::told;
use crate::suite::walls::left_out_without;

/// A small file system of its own; only root can make one.
pub(crate) struct Small(PathBuf);

impl Small {
    /// As the world's `REJOIN_HOME`.
    fn mount(world: &World, size: &str) -> Option<Self> {
        let at = world.data();
        let known = std::fs::read(at.join("rejoin.db")).ok();
        let small = Self::over(&at, size)?;
        if let Some(known) = known {
            std::fs::write(at.join("rejoin.db"), known).unwrap();
        }
        Some(small)
    }

    /// Over a folder, which seems empty then.
    pub(crate) fn over(at: &Path, size: &str) -> Option<Self> {
        let mounted = run(
            "mount",
            &["-t", "tmpfs", "-o", &format!("size={size}"), "rejoin-test"],
            at,
        );
        if !mounted {
            left_out_without("no tmpfs can be mounted here (it takes root)");
            return None;
        }
        Some(Self(at.to_owned()))
    }

    /// May it be written to?
    pub(crate) fn writable(&self, may: bool) {
        let how = if may { "remount,rw" } else { "remount,ro" };
        assert!(run("mount", &["-o", how], &self.0));
    }

    /// Leaves only so many bytes free.
    pub(crate) fn fill(&self, leave: u64) {
        let free = |path: &Path| {
            let said = Command::new("stat")
                .args(["-f", "-c", "%a %S"])
                .arg(path)
                .output()
                .unwrap();
            let said = String::from_utf8(said.stdout).unwrap();
            said.split_whitespace()
                .map(|n| n.parse::<u64>().unwrap())
                .product::<u64>()
        };
        let ballast = std::fs::File::create(self.0.join("ballast")).unwrap();
        let size = free(&self.0).saturating_sub(leave);
        let filled = std::io::copy(
            &mut std::io::Read::take(std::io::repeat(0), size),
            &mut &ballast,
        );
        // Others may write meanwhile.
        if let Err(error) = filled {
            assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        }
    }

    pub(crate) fn empty(&self) {
        std::fs::remove_file(self.0.join("ballast")).unwrap();
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        assert!(run("umount", &["-l"], &self.0));
    }
}

fn run(program: &str, args: &[&str], at: &Path) -> bool {
    let ran = Command::new(program).args(args).arg(at).status();
    ran.is_ok_and(|status| status.success())
}

/// Little room: the shim stops the turn while there is still enough to say so.
#[test]
fn a_disk_that_runs_full_ends_the_turn() {
    let Some(world) = World::claude(REJOIN, CLAUDE_OLD) else {
        return;
    };
    let Some(small) = Small::mount(&world, "40m") else {
        return;
    };
    let mut talk = Talk::begin(world);
    talk.good("started", &["-m", "sonnet"]);
    small.fill(8 << 20);
    let turn = talk.bad("#s:slow", &[], ("failed", "disk_full", 1));
    assert_eq!(turn["cost_usd"], Value::Null);
    small.empty();
    assert_snapshot!(told(&talk.world, 1, &turn), @r#"
    exit 1, turn disk_full
    rejoin: failed, disk_full: the disk is full · tmqx:3 kept, no tool ran · claude sonnet · df -h
    {
      "class": "disk_full",
      "message": "the disk is full",
      "try": "df -h"
    }
    "#);
    talk.good("resumed", &[]);
}

/// No room at all: what cannot be kept is not accepted, what was accepted is kept.
#[test]
fn on_a_full_disk_nothing_is_accepted_and_nothing_lost() {
    let world = World::new(REJOIN);
    let Some(small) = Small::mount(&world, "4m") else {
        return;
    };
    let _first = world.say(1, &["-a", "demo"]);
    for leave in [0, 4 << 10, 16 << 10, 64 << 10] {
        let before = world.messages();
        small.fill(leave);
        let full = world.send(2, "", &[]);
        small.empty();
        if full.code == 0 {
            assert!(leave > 0, "a full disk was enough");
            continue;
        }
        let error = full.json()["error"].clone();
        assert!([1, 6].contains(&full.code), "{leave}: {full:?}");
        let said = error["message"].as_str().unwrap();
        assert!(
            said.contains("full") || said.contains("space"),
            "{leave}: {full:?}"
        );
        assert!(world.messages().starts_with(&before), "{leave}");
    }
    let text = world.say(3, &[])["text"].as_str().unwrap().to_owned();
    assert_eq!(text.matches(&user(1)).count(), 1, "{text}");
    let kept = world
        .messages()
        .iter()
        .filter(|(role, ..)| role == "user")
        .count();
    assert_eq!(text.matches("userword-").count(), kept, "{text}");
    world.assert_quiet();
}

#[test]
fn a_home_that_cannot_be_made_is_one_clear_sentence() {
    let mut world = World::new(REJOIN);
    std::fs::write(world.root().join("file"), "").unwrap();
    let below = world.root().join("file/home");
    world.set("REJOIN_HOME", below.to_str().unwrap());
    for args in [&["send", "-a", "demo", "hello"][..], &["list"]] {
        let done = world.run(args);
        assert_eq!(done.code, 6, "{done:?}");
        let lines: Vec<_> = done.stderr.lines().collect();
        assert_eq!(lines.len(), 2, "{done:?}");
        assert!(
            lines[0].starts_with("error: ") && lines[0].contains("file/home"),
            "{done:?}"
        );
        assert!(
            lines[1].starts_with("  try: ") && lines[1].contains("REJOIN_HOME"),
            "{done:?}"
        );
    }
}

#[test]
fn a_home_that_became_read_only_is_one_clear_sentence() {
    let world = World::new(REJOIN);
    let Some(small) = Small::mount(&world, "4m") else {
        return;
    };
    let _first = world.say(1, &["-a", "demo"]);
    world.assert_quiet();
    small.writable(false);
    let done = world.run(&["send", "-k", "k", "hello"]);
    assert_eq!(done.code, 6, "{done:?}");
    let lines: Vec<_> = done.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{done:?}");
    assert!(lines[0].starts_with("error: the store c"), "{done:?}");
    assert!(lines[1].contains("REJOIN_HOME"), "{done:?}");
    small.writable(true);
    assert_eq!(world.messages().len(), 2);
    let _second = world.say(2, &[]);
}

/// The CLI then reports success for a session that does not exist.
#[test]
fn a_session_that_was_not_kept_is_noticed() {
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let Some(mut world) = World::claude(REJOIN, version) else {
            return;
        };
        world.set("CLAUDE_CONFIG_DIR", "/proc/nope");
        let mut talk = Talk::begin(world);
        let turn = talk.good("started", &["-m", "sonnet"]);
        let summary = turn["summary"].as_str().unwrap();
        assert!(summary.contains("not recorded by claude"), "{summary}");
        assert!(summary.contains("the next turn is told again"), "{summary}");
        let turn = talk.good("reseeded", &[]);
        assert_eq!(turn["text"], answer(2));
        assert_eq!(turn["sent"]["transcribed"], 2, "{turn}");
        talk.world.unset("CLAUDE_CONFIG_DIR");
        talk.good("reseeded", &[]);
        talk.good("resumed", &[]);
    }
}

//! The first look at a program: `--version`, before its first turn.

use std::fs;
use std::path::Path;

use rejoin_testkit::World;
use serde_json::Value;

use super::{REJOIN, SHELL, landlock, namespace};

/// A program that nobody has run before, and that uses the question for its version.
fn replaced(world: &World) {
    let bin = world.root().join("shellcli");
    let (store, work) = (world.data().join("rejoin.db"), world.work());
    let (store, work) = (store.display(), work.display());
    let asked = format!(
        "import os\n\
         if sys.argv[1:2] == [\"--version\"]:\n    \
         os.system(\"head -c 6 {store} > {work}/read 2>{work}/error\")\n    \
         os.system(\"{REJOIN} token create evil --scope admin > {work}/token 2>&1\")\n    \
         os.system(\"env > {work}/env; sleep 611 >/dev/null 2>&1 & echo $! > {work}/left\")\n"
    );
    let script = SHELL.replacen("import json, subprocess, sys\n", "", 1);
    let head = format!("#!/usr/bin/env python3\nimport json, subprocess, sys\n{asked}");
    world.script(&bin, &script.replacen("#!/usr/bin/env python3\n", &head, 1));
}

#[track_caller]
fn reached_nothing(work: &Path) {
    let text = |name: &str| fs::read_to_string(work.join(name)).unwrap();
    assert_eq!(text("read"), "", "it read the store");
    assert!(!text("error").is_empty());
    let token = text("token");
    assert!(token.contains("this is a process of a turn"), "{token}");
    assert!(!text("env").contains("REJOIN_HOME"));
    let left: i32 = text("left").trim().parse().unwrap();
    let line = fs::read_to_string(format!("/proc/{left}/cmdline")).unwrap_or_default();
    assert!(!line.contains("611"), "it left a process");
}

#[test]
fn is_asked_behind_mounts() {
    let Some(world) = namespace::walled() else {
        return;
    };
    super::turn(&world, "echo hi", &[]);
    replaced(&world);
    super::turn(&world, "echo hi", &[]);
    reached_nothing(&world.work());
}

#[test]
fn is_asked_behind_landlock() {
    let Some(world) = landlock::given_away(super::shell()) else {
        return;
    };
    let turn: fn(&World, &[&str]) -> Value = landlock::turn;
    turn(&world, &["echo hi"]);
    replaced(&world);
    turn(&world, &["echo hi"]);
    reached_nothing(&world.work());
}

//! The dashboard in a real browser, and its script checked for types.

use std::path::{Path, PathBuf};
use std::process::Command;

use rejoin_testkit::{World, slowly};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The folder into which `scripts/test` has installed the test tools of the browser.
fn modules() -> PathBuf {
    let found = rejoin_testkit::deps().join("browser");
    assert!(
        found.join("node_modules/playwright-core").exists(),
        "the browser tests are not installed: scripts/test"
    );
    found
}

fn passes(mut command: Command) {
    let done = command.output().unwrap();
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        done.status.success(),
        "{}\n{}",
        said(&done.stdout),
        said(&done.stderr)
    );
}

/// Runs a file of browser tests against a daemon of its own.
fn walks(world: &World, file: &str) {
    let daemon = world.serve(&[]);
    let mut node = Command::new("node");
    for (name, value) in world.command(&[]).get_envs() {
        if let Some(value) = value {
            node.env(name, value);
        }
    }
    node.args(["--test", "--test-timeout=120000"])
        .arg(root().join("tests/browser").join(file))
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("REJOIN_BIN", REJOIN)
        .env("REJOIN_PID", daemon.pid().to_string())
        .env("REJOIN_URL", format!("http://{}", daemon.address))
        .env("REJOIN_TOKEN", &daemon.token)
        .env("REJOIN_WORKDIR", world.work())
        .env("REJOIN_BROWSER_MODULES", modules());
    if let Ok(shots) = std::env::var("REJOIN_SHOTS") {
        node.env("REJOIN_SHOTS", shots);
    }
    passes(node);
}

fn demo() -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world
}

#[test]
fn walks_of_a_person() {
    walks(&demo(), "walk.test.mjs");
}

#[test]
fn every_page_is_accessible() {
    walks(&demo(), "pages.test.mjs");
}

#[test]
fn a_killed_daemon_is_survived() {
    walks(&demo(), "killed.test.mjs");
}

#[test]
fn a_turn_streams_into_three_tabs() {
    let Some(world) = World::claude(REJOIN, "2.1.325") else {
        return;
    };
    let words: Vec<String> = (0..40).map(|n| format!("word{n:02}")).collect();
    world.model.fail_next(1, slowly(&words.join(" "), 40));
    walks(&world, "stream.test.mjs");
}

#[test]
fn the_script_has_no_type_errors() {
    let mut tsc = Command::new("node");
    tsc.arg(modules().join("node_modules/typescript/bin/tsc"))
        .arg("--project")
        .arg(root().join("tests/browser/tsconfig.json"));
    passes(tsc);
}

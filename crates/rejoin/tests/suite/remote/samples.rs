//! The samples in `examples/daemon` and the page that shows them, against a real daemon.

use std::path::{Path, PathBuf};
use std::process::Command;

use rejoin_testkit::{Daemon, Done, World};

use super::demo;

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/daemon")
        .join(name)
}

fn run(world: &World, daemon: &Daemon, program: &str, args: &[&str]) -> Done {
    let child = Command::new(program)
        .args(args)
        .current_dir(world.work())
        .env("REJOIN_HUB", format!("http://{}", daemon.address))
        .env("REJOIN_TOKEN", &daemon.token)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn();
    Done::of(child.unwrap_or_else(|error| {
        panic!("{program} cannot be started ({error}); run ./scripts/test, which installs it")
    }))
}

/// Two messages under one key: the second is answered by somebody who knows the first.
#[track_caller]
fn talks(program: &str, file: &Path) {
    let world = demo();
    let daemon = world.serve(&[]);
    let file = file.to_str().unwrap();
    let first = run(&world, &daemon, program, &[file, "k", "use port 4000"]);
    assert_eq!(first.code, 0, "{first:?}");
    assert!(first.stderr.starts_with("rejoin: started"), "{first:?}");
    let second = run(&world, &daemon, program, &[file, "k", "which port?"]);
    assert_eq!(second.code, 0, "{second:?}");
    assert!(second.stdout.contains("use port 4000"), "{second:?}");
    assert!(second.stderr.starts_with("rejoin: resumed"), "{second:?}");
    let refused = run(&world, &daemon, program, &[file, "k", ""]);
    assert_eq!(refused.code, 1, "{refused:?}");
    assert!(
        refused.stderr.contains("the message is empty"),
        "{refused:?}"
    );
    let shown = world.run(&["show", "k", "--json"]).ok().json();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 4);
    assert_eq!(daemon.stop(), 0);
    world.assert_quiet();
}

#[test]
fn python() {
    talks("python3", &sample("chat.py"));
}

/// Node runs TypeScript since 22.18; what is tested here holds for any, by the name that all know.
#[test]
fn typescript() {
    // A world's folder goes when the test does.
    let place = demo();
    let file = place.root().join("chat.mjs");
    std::fs::copy(sample("chat.ts"), &file).unwrap();
    talks("node", &file);
}

/// They are short enough to be read, and the page shows where they are.
#[test]
fn are_twenty_lines() {
    for name in ["chat.py", "chat.ts"] {
        let text = std::fs::read_to_string(sample(name)).unwrap();
        assert!(text.lines().count() <= 22, "{name}");
    }
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/embedding.md");
    let page = std::fs::read_to_string(page).unwrap();
    for name in ["chat.py", "chat.ts"] {
        assert!(page.contains(&format!("examples/daemon/{name}")), "{name}");
    }
}

//! The example of a program that embeds rejoin.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the built example. A run of this test target alone does not build examples.
fn example() -> PathBuf {
    let beside = Path::new(env!("CARGO_BIN_EXE_rejoin")).parent().unwrap();
    let built = beside.join("examples/embed");
    if !built.exists() {
        let done = Command::new(env!("CARGO"))
            .args([
                "build",
                "--quiet",
                "--package",
                "rejoin",
                "--example",
                "embed",
            ])
            .status();
        assert!(done.unwrap().success());
    }
    built
}

#[test]
fn an_embedding_program_continues_its_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let run = || {
        let done = Command::new(example())
            .current_dir(folder.path())
            .env_clear()
            .env("HOME", folder.path())
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("REJOIN_HOME", folder.path().join("data"))
            .output()
            .unwrap();
        let text = String::from_utf8(done.stdout).unwrap();
        let error = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success(), "{text}{error}");
        text
    };
    let first = run();
    assert!(first.contains("  turn.ended"), "{first}");
    assert!(first.contains("My name is Ada."), "{first}");
    assert!(first.contains("resumed"), "{first}");
    // Another process continues the same conversation: its first turn is resumed too.
    let second = run();
    assert!(!second.contains("rejoin: started"), "{second}");
    assert!(second.contains("knows all 6 messages"), "{second}");
}

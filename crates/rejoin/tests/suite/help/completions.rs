//! Completions for shells.

use crate::suite::terminal::world;

/// The engine asks the binary itself, so handles are those of this very moment.
#[test]
fn a_shell_is_offered_live_handles() {
    let world = world();
    let turn = world
        .run(&[
            "send",
            "-a",
            "demo",
            "--json",
            "a title\x1b[2J to find it by",
        ])
        .ok()
        .json();
    let handle = turn["handle"]
        .as_str()
        .unwrap()
        .split(':')
        .next()
        .unwrap()
        .to_owned();
    let ask = |words: &[&str]| {
        let at = (words.len() - 1).to_string();
        let mut command = world.command(&[&["--"], words].concat());
        command
            .env("_REJOIN_COMPLETE", "fish")
            .env("_CLAP_COMPLETE_INDEX", at)
            .env("_CLAP_IFS", "\n");
        rejoin_testkit::Done::of(command.spawn().unwrap())
            .ok()
            .stdout
    };
    for words in [
        &["rejoin", "show", ""][..],
        &["rejoin", "send", "-c", ""],
        &["rejoin", "explain", &handle[..2]],
    ] {
        let offered = ask(words);
        assert!(
            offered.contains(&format!("{handle}\ta title")),
            "{words:?}: {offered:?}"
        );
    }
    let second = format!("{handle}:2");
    for (typed, numbers) in [
        (format!("{handle}:"), ["1", "2"]),
        (second.clone(), ["2", "2"]),
    ] {
        let offered = ask(&["rejoin", "edit", &typed]);
        for number in numbers {
            assert!(
                offered.contains(&format!("{handle}:{number}\t")),
                "{offered:?}"
            );
        }
    }
    assert!(!ask(&["rejoin", "edit", &second]).contains(&format!("{handle}:1")));
    assert!(ask(&["rejoin", "retry", &handle[..2]]).contains(&format!("{handle}\t")));
    assert!(ask(&["rejoin", "send", "-a", "d"]).starts_with("demo"));
    assert!(ask(&["rejoin", "send", "--permission", "r"]).starts_with("read-only"));
    let commands = ask(&["rejoin", "ex"]);
    assert!(
        commands.contains("explain\t") && !ask(&["rejoin", ""]).contains("run-turn"),
        "{commands:?}"
    );
}

#[test]
fn completion_scripts_are_accepted_by_the_shells_that_are_installed() {
    let world = world();
    for shell in ["bash", "zsh", "fish"] {
        let script = world.run(&["completions", shell]).ok().stdout;
        assert!(script.contains("_REJOIN_COMPLETE"), "{script}");
        let file = world.root().join(shell);
        std::fs::write(&file, script).unwrap();
        match std::process::Command::new(shell)
            .arg("-n")
            .arg(&file)
            .output()
        {
            Ok(done) => assert!(done.status.success(), "{shell}: {done:?}"),
            Err(_) => eprintln!("{shell} is not installed; its script is not checked"),
        }
    }
}

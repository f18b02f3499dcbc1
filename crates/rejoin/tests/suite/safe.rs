//! Text of others cannot move the cursor, hide text, or flood the screen.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Model, World};

use super::terminal::{Terminal, world};

/// Clears the screen, hides, reverses, renames the window, climbs over lines.
const HOSTILE: &str = "a\x1b[2J\x1b[8mb\x1b]0;owned\x07c\u{9b}2Jd\u{202e}e\u{200b}f\rg\u{1b}[1;1Hh";

fn acts(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && *c != '\n' && *c != '\t')
            || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

fn hostile_talk(world: &World) {
    // The title comes from the message; one of the caller's own must be plain.
    world.run(&["send", "-a", "demo", HOSTILE]).ok();
    let refused = world.run(&["send", "-a", "demo", "--title", HOSTILE, "hi"]);
    assert_eq!(refused.code, 2, "{refused:?}");
}

#[test]
fn titles_notes_and_errors_are_safe_also_when_piped() {
    let world = world();
    hostile_talk(&world);
    let folder = world.root().join(HOSTILE);
    std::fs::create_dir(&folder).unwrap();
    let name = folder.to_str().unwrap();
    world.run(&["reply", "-w", name, "hi"]).ok();
    let commands: [&[&str]; 8] = [
        &["list"],
        &["show"],
        &["explain"],
        &["explain", "--next"],
        &["show", HOSTILE],
        &["send", "-w", &format!("{name}/none"), "hi"],
        &["send", "--permission", HOSTILE, "hi"],
        &[HOSTILE],
    ];
    for args in commands {
        let done = world.run(args);
        let all = format!("{}{}", done.stdout, done.stderr);
        assert_eq!(acts(&all), None, "{args:?}: {all:?}");
    }
}

/// A script gets what was said, to the byte.
#[test]
fn answers_are_passed_through_when_piped() {
    let world = world();
    hostile_talk(&world);
    assert_eq!(
        world.run(&["show", "last:1"]).ok().stdout,
        format!("{HOSTILE}\n")
    );
    assert!(
        world
            .run(&["show", "--markdown"])
            .ok()
            .stdout
            .contains(HOSTILE)
    );
    let json = world.run(&["show", "--json"]).ok().json();
    assert_eq!(json["messages"][0]["text"], HOSTILE);
}

#[test]
fn nothing_acts_on_a_terminal() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    hostile_talk(&world);
    for command in [
        "list",
        "show",
        "show last:1",
        "show --markdown",
        "explain",
        "show --json",
        "show nobody",
        "",
    ] {
        let screen = terminal.run(&format!("echo before; rejoin {command}; echo after"));
        assert_eq!(acts(&screen), None, "{command}: {screen:?}");
        let lines: Vec<&str> = screen.lines().collect();
        assert!(
            lines[1] == "before" || lines.len() == 24,
            "{command}: {screen}"
        );
        assert_eq!(lines[lines.len() - 2], "after", "{command}: {screen}");
        // A title that comes from a message has no control characters; its text shows them.
        let is_title = ["list", "explain", ""].contains(&command);
        assert!(
            is_title
                || !screen.contains("[2J")
                || screen.contains("␛[2J")
                || screen.contains("\\u001b[2J"),
            "{screen}"
        );
    }
    // The answer itself, as it comes.
    let file = world.work().join("prompt");
    std::fs::write(&file, HOSTILE).unwrap();
    let screen = terminal.run("echo before; rejoin send -a demo - <prompt");
    assert_eq!(acts(&screen), None, "{screen:?}");
    assert_eq!(screen.lines().nth(1), Some("before"), "{screen}");
    assert!(screen.contains("␛[2J"), "{screen}");
}

#[test]
fn a_line_of_five_megabytes_does_not_flood_the_screen() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    let huge = "x".repeat(5_000_000);
    let done = world
        .run_with_stdin(&["send", "-a", "demo", "-"], huge.as_bytes())
        .ok();
    assert!(done.stdout.len() < 1_000);
    assert_eq!(
        world.run(&["show", "last:1"]).ok().stdout.len(),
        huge.len() + 1
    );
    for command in ["list", "explain", ""] {
        let screen = terminal.run(&format!("rejoin {command}"));
        assert_eq!(
            screen.lines().next(),
            Some(format!("$ rejoin {command}").trim_end()),
            "{screen}"
        );
    }
    let screen = terminal.run(
        "rejoin show >seen; rejoin show last:1 | wc -c; rejoin show | wc -c; rejoin show last:1",
    );
    assert!(screen.contains("[5.0 MB more in this line]"), "{screen}");
}

/// While a turn runs, its text comes in pieces: neither one line without end nor lines without end
/// reach the terminal.
#[test]
fn an_answer_that_streams_megabytes_does_not_flood_the_screen() {
    let model = || {
        let streamed = |text: String| {
            let chunks = Some(100);
            vec![Step {
                chunks,
                ..Step::text(text)
            }]
        };
        let line = streamed("y".repeat(500_000));
        let lines = streamed("a line of some length\n".repeat(40_000));
        Model::scripted([("line", line), ("lines", lines)])
    };
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let Some(world) = World::claude_with(rejoin, CLAUDE_NEW, model) else {
        return;
    };
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    assert!(
        std::path::Path::new("/usr/bin/script").exists(),
        "script (of util-linux) is not installed"
    );
    let written = |script: &str| {
        terminal.run(&format!(
            "script -qec 'rejoin send -k k -m sonnet \"go #s:{script}\"' out >/dev/null"
        ));
        std::fs::read_to_string(world.work().join("out")).unwrap()
    };
    let line = written("line");
    assert!(line.len() < 20_000, "{}", line.len());
    assert!(line.contains("y … [496.0 KB more in this line]"), "{line}");
    let lines = written("lines");
    assert!(lines.len() < 400_000, "{}", lines.len());
    assert!(lines.contains(" of text more, not shown here; all of it: rejoin show "));
    assert!(lines.contains("resumed, knows all 2 messages · "));
    let kept = world.show()["messages"][3]["text"].as_str().unwrap().len();
    assert_eq!(kept, 22 * 40_000);
}

#[test]
fn colours_only_where_they_are_wanted() {
    let world = world();
    let Some(terminal) = Terminal::open(&world) else {
        return;
    };
    hostile_talk(&world);
    // `script` gives a command a terminal and keeps every byte it writes.
    let bytes = |prefix: &str| {
        terminal.run(&format!(
            "{prefix} script -qec 'rejoin list; rejoin show nobody' out >/dev/null"
        ));
        std::fs::read_to_string(world.work().join("out")).unwrap()
    };
    assert!(
        std::path::Path::new("/usr/bin/script").exists(),
        "script (of util-linux) is not installed"
    );
    assert!(bytes("").contains("\x1b[1;35m"));
    for plain in ["NO_COLOR=1", "TERM=dumb"] {
        let seen = bytes(plain);
        assert!(!seen.contains("\x1b["), "{plain}: {seen:?}");
        assert!(
            seen.contains("error: there is no conversation `nobody`"),
            "{seen}"
        );
    }
}

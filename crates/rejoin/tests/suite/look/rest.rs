//! The commands that have no page of their own: what each says when it went well, piped and as JSON.

use insta::assert_snapshot;
use rejoin_testkit::{CLAUDE_OLD, Model, World, answer, slowly, wait_for};

use super::{piped, talk};
use crate::suite::terminal::{masked, masked_json, steady};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// stdout and stderr apart: one goes into the next program, the other does not.
fn both(world: &World, args: &[&str]) -> String {
    let done = world.run(args).ok();
    let text = format!("-- stdout\n{}-- stderr\n{}", done.stdout, done.stderr);
    masked(world, &text)
}

#[test]
fn sending() {
    let world = steady(World::new(REJOIN));
    assert_snapshot!(
        "send",
        both(&world, &["send", "-a", "demo", "-k", "tea", "I like tea."])
    );
    assert_snapshot!("reply", both(&world, &["reply", "What do I like?"]));
    assert_snapshot!("send_quiet", both(&world, &["reply", "-q", "And now?"]));
    assert_snapshot!("wait", both(&world, &["wait"]));
    let waited = world.run(&["wait", "--json"]).ok().json();
    let sent = world.run(&["explain", "--json"]).ok().json();
    assert_eq!(waited, sent, "a turn is one document, whoever prints it");
    assert_snapshot!("watch", both(&world, &["watch"]));
}

#[test]
fn in_the_background() {
    let script = vec![slowly(&answer(1), 400)];
    let model = || Model::scripted([("late", script)]);
    let Some(world) = World::claude_with(REJOIN, CLAUDE_OLD, model).map(steady) else {
        return;
    };
    let args = ["send", "--detach", "-k", "k", "-m", "sonnet", "#s:late"];
    assert_snapshot!("detach", both(&world, &args));
    wait_for("the answer to begin", 20, || {
        world.printed("text_delta").then_some(())
    });
    assert_snapshot!("cancel", both(&world, &["cancel", "k"]));
    let again = world.run(&["cancel", "k", "--json"]);
    assert_snapshot!(
        "cancel_nothing",
        masked(&world, &format!("{}: {}", again.code, again.stdout))
    );
    world.assert_quiet();
}

/// Columns are as wide as the paths of this world, and a day is the day of the test.
fn plain(text: &str) -> String {
    let line = |line: &str| {
        let indent = line.len() - line.trim_start().len();
        let words: Vec<&str> = line
            .split("  ")
            .map(str::trim)
            .filter(|w| !w.is_empty())
            .collect();
        format!("{}{}", &line[..indent], words.join("  "))
    };
    let day = |word: &str| {
        let date = word.len() == 10 && word.starts_with("20") && word.matches('-').count() == 2;
        if date {
            "[day]".to_owned()
        } else {
            word.to_owned()
        }
    };
    let lines = text.lines().map(line);
    let lines = lines.map(|l| l.split(' ').map(day).collect::<Vec<_>>().join(" "));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn looking_after_it() {
    let mut world = steady(World::new(REJOIN));
    world.set("PATH", "/usr/bin:/bin");
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    talk(&world);
    let free = |text: String| {
        let lines = text
            .lines()
            .map(|line| match line.split_once("free space") {
                Some((before, _)) => format!("{before}free space  [as it is]"),
                None => line.to_owned(),
            });
        let unit = |line: &str| {
            [" KB, ", " MB, ", " B in ", " KB in "]
                .iter()
                .find_map(|u| line.find(u))
        };
        let sizes = lines.map(|line| match unit(&line) {
            Some(at) => format!(
                "{}N{}",
                line[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'),
                line[at..]
                    .replacen("MB", "KB", 1)
                    .replacen(" KB in ", " B in ", 1)
            ),
            None => line,
        });
        sizes.collect::<Vec<_>>().join("\n")
    };
    assert_snapshot!("doctor", plain(&free(piped(&world, &["doctor"]))));
    assert_snapshot!("config_path", plain(&piped(&world, &["config", "path"])));
    assert_snapshot!("config_show", piped(&world, &["config", "show"]));
    let shown = world.run(&["config", "show", "--json"]).ok().json();
    assert_snapshot!("config_show_json", masked_json(&world, &shown));
    let file = world.work().join("rejoin.toml");
    std::fs::write(file, "[agents.claude]\nbin = \"./claude\"\n").unwrap();
    assert_snapshot!("trust", piped(&world, &["trust"]));
    assert_snapshot!("trust_list", plain(&piped(&world, &["trust", "--list"])));
}

/// `--color` decides whatever stdout is; `auto` is the default.
#[test]
fn colours_are_as_chosen() {
    let mut world = rejoin_testkit::World::new(env!("CARGO_BIN_EXE_rejoin"));
    world.set("TERM", "xterm-256color");
    world.run(&["send", "-k", "k", "-a", "demo", "UWORD1"]).ok();
    let coloured = |args: &[&str]| {
        let done = world.run(&[&["list"], args].concat()).ok();
        done.stdout.contains("\x1b[")
    };
    assert!(!coloured(&[]) && !coloured(&["--color", "auto"]));
    assert!(coloured(&["--color", "always"]));
    assert!(!coloured(&["--color", "never"]));
    let wrong = world.run(&["list", "--color", "purple"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

/// `rejoin models`: those of recent turns, and those of the configuration.
#[test]
fn models_are_those_of_turns_and_configuration() {
    let world = rejoin_testkit::World::new(env!("CARGO_BIN_EXE_rejoin"));
    world.run(&["send", "-k", "k", "-a", "demo", "UWORD1"]).ok();
    for (key, value) in [
        ("agents.codex.model", "gpt-5.5"),
        ("models.other.window", "50000"),
    ] {
        world.run(&["config", "set", key, value]).ok();
    }
    let models = world.run(&["models", "--json"]).ok().json();
    let found: Vec<_> = (models["models"].as_array().unwrap().iter())
        .map(|m| {
            (
                m["agent"].as_str(),
                m["name"].as_str().unwrap(),
                m["turns"].as_i64().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        found,
        [
            (None, "other", 0),
            (Some("codex"), "gpt-5.5", 0),
            (Some("demo"), "demo", 1)
        ]
    );
    let page = world.run(&["models", "-a", "codex"]).ok().stdout;
    assert!(
        page.contains("gpt-5.5") && page.contains("the default of the configuration"),
        "{page}"
    );
    // As a shell completes them.
    let mut asked = world.command(&["--", "rejoin", "send", "-m", ""]);
    asked
        .env("_REJOIN_COMPLETE", "fish")
        .env("_CLAP_COMPLETE_INDEX", "3");
    let offered = String::from_utf8(asked.output().unwrap().stdout).unwrap();
    assert!(
        offered.contains("gpt-5.5\tcodex") && offered.contains("demo\tdemo"),
        "{offered}"
    );
    for (words, expected) in [
        (["send", "--permission", ""], "read-only"),
        (["send", "-k", ""], "k\tUWORD1"),
        (["config", "set", ""], "resume.breaker"),
    ] {
        let mut asked = world.command(&[&["--", "rejoin"], &words[..]].concat());
        asked
            .env("_REJOIN_COMPLETE", "fish")
            .env("_CLAP_COMPLETE_INDEX", "3");
        let offered = String::from_utf8(asked.output().unwrap().stdout).unwrap();
        assert!(
            offered.lines().any(|line| line.starts_with(expected)),
            "{words:?}: {offered}"
        );
    }
}

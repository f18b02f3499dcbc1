//! Every suggestion in the source, typed: none is a misuse of its command.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{typed, world};

/// Words in suggestions that stand for something of this world.
const MEANT: [(&str, &str); 39] = [
    ("'{quoted}' VALUE", "default_agent demo"),
    ("rejoin {name} --help", "rejoin send --help"),
    ("KEY VALUE", "default_agent demo"),
    ("{key} VALUE", "default_agent demo"),
    ("{handle}:N", "k:1"),
    ("{handle}N", "1"),
    ("{handle}", "k"),
    ("{name}", "k"),
    ("{message}", "k:1"),
    ("{to}", "k:1"),
    ("{key}", "k"),
    ("{file}", "talk.rejoin"),
    ("{command}", "edit"),
    ("{agent}", "demo"),
    ("{other}", "demo"),
    ("{0}", "k"),
    ("{}", "k"),
    ("{flag}", "-c k"),
    ("CONV", "k"),
    ("MESSAGE", "k:1"),
    ("OTHER", "demo"),
    ("LONGER", "90s"),
    ("MORE", "5"),
    ("FILE", "talk.rejoin"),
    ("PATH/rejoin.toml", "rejoin.toml"),
    ("WORD", "hello"),
    ("NAME", "laptop"),
    ("URL", "http://127.0.0.1:1"),
    ("--bundle …", "--bundle b \"…\""),
    ("wait …", "wait -c k \"…\""),
    ("--confirm …", "--confirm \"…\""),
    ("k …", "k 1"),
    ("--envelope …", "--envelope talk.rejoin"),
    ("/a/folder/you/can/write", "."),
    ("answer k N", "answer k 1"),
    ("config set k VALUE", "config set default_agent demo"),
    ("N…", "1"),
    ("{n}", "1"),
    ("{id}", "k"),
];

/// Suggestions that are not typed, because they wait for requests, a person or a terminal.
const NOT_TYPED: [&str; 8] = [
    "rejoin config edit",
    "rejoin --hub",
    "rejoin serve",
    "rejoin model-server",
    "rejoin open",
    "rejoin watch",
    "rejoin login",
    "rejoin import",
];

#[test]
fn every_suggestion_in_the_source_is_understood() {
    let found = suggestions();
    assert!(found.len() > 60, "{}", found.len());
    let world = world();
    world.run(&["export", "k", "-o", "talk.rejoin"]).ok();
    world.run(&["send", "--bundle", "b", "hello"]).ok();
    std::fs::write(
        world.work().join("rejoin.toml"),
        "default_agent = \"demo\"\n",
    )
    .unwrap();
    let mut wrong = String::new();
    for (suggestion, file) in &found {
        let line = filled(suggestion);
        let word = line.split(' ').nth(1).unwrap_or_default();
        // A sentence about rejoin, and a command that is put together elsewhere.
        if word == "itself" || word.starts_with('{') {
            continue;
        }
        if NOT_TYPED.iter().any(|start| line.starts_with(start)) {
            continue;
        }
        if line.contains(['{', '}']) {
            let _ = writeln!(wrong, "{file}: `{suggestion}`: no word of the table fits");
            continue;
        }
        let limited = format!("timeout {} {line}", LIMIT.as_secs());
        let done = typed(&world, &limited);
        if done.code == 2 || done.code == 124 {
            let _ = writeln!(
                wrong,
                "{file}: `{line}`: exit {}: {}",
                done.code, done.stderr
            );
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Time after which a suggestion counts as one that blocks.
const LIMIT: Duration = Duration::from_secs(30);

/// Puts words of this world in place of those that stand for something, and leaves out what follows
/// the command.
fn filled(suggestion: &str) -> String {
    let mut line = suggestion.to_owned();
    for end in [", ", "; "] {
        line = line.split(end).next().unwrap().to_owned();
    }
    for (word, meant) in MEANT {
        line = line.replace(word, meant);
    }
    line
}

/// The string literals of the source that begin with a command and are suggested, with their files.
fn suggestions() -> BTreeMap<String, String> {
    let crates = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut found = BTreeMap::new();
    for name in [
        "rejoin",
        "rejoin-core",
        "rejoin-errors",
        "rejoin-hub",
        "rejoin-runner",
        "rejoin-web",
    ] {
        for file in sources(&crates.join(name).join("src")) {
            let text = std::fs::read_to_string(&file).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let shown = file.strip_prefix(&crates).unwrap().display().to_string();
            for literal in literals(code) {
                found.insert(literal, shown.clone());
            }
        }
    }
    found
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(sources(&path));
        } else if path.extension().is_some_and(|ext| ext == "rs") {
            found.push(path);
        }
    }
    found
}

/// The string literals that begin with `rejoin ` and follow `try_this(`, `next` or an arrow of a
/// table of advice.
fn literals(code: &str) -> Vec<String> {
    let mut found = vec![];
    for (at, _) in code.match_indices("\"rejoin ") {
        let raw = code[..at].ends_with("r#");
        let before: String = code[..at].split_whitespace().collect();
        let before = before.trim_end_matches("r#").trim_end_matches("format!(");
        let suggested = ["try_this(", "next=", "=>", "Some(", "tries("];
        let coded = before.ends_with(',')
            && code[..at].rfind('\n').is_some_and(|line| {
                let line = code[line..at].trim_start();
                line.chars().next().is_some_and(|c| c.is_ascii_uppercase())
                    && line.contains(" = (\"")
            });
        if !coded && !suggested.iter().any(|end| before.ends_with(end)) {
            continue;
        }
        let rest = &code[at + 1..];
        let text = if raw {
            rest.split("\"#").next().unwrap().to_owned()
        } else {
            let mut quotes = rest.match_indices('"').map(|(at, _)| at);
            let end = quotes.find(|at| !rest[..*at].ends_with('\\'));
            rest[..end.unwrap()].replace("\\\"", "\"")
        };
        found.push(text);
    }
    found
}

//! The house in order: no file too long, no test file forgotten.

use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".deps") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn files_stay_readable() {
    let mut found = vec![];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    sources(&root.join("crates"), &mut found);
    sources(&root.join("benches"), &mut found);
    assert!(found.len() > 60);
    let long: Vec<_> = found
        .iter()
        .map(|path| (std::fs::read_to_string(path).unwrap().lines().count(), path))
        .filter(|(lines, _)| *lines > 500)
        .collect();
    assert!(long.is_empty(), "split by concept: {long:?}");
}

/// A doc comment begins with the noun that it is about, or with the verb: a reader then needs no other line to
/// know the subject.
const PRONOUNS: [&str; 26] = [
    "What", "It", "Its", "One", "Ones", "The same", "Nobody", "Whoever", "Somebody", "Those",
    "Who", "Where", "Whether", "None", "All that", "That", "This", "They", "Them", "Of", "So",
    "Is", "Are", "Does", "Has", "Can",
];

fn begins_with_a_pronoun(text: &str) -> bool {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    let ends = |rest: &str| !rest.starts_with(word);
    PRONOUNS
        .iter()
        .any(|p| text.strip_prefix(p).is_some_and(ends))
}

#[test]
fn doc_comments_begin_with_a_noun_or_a_verb() {
    assert!(begins_with_a_pronoun("What a turn needs."));
    assert!(!begins_with_a_pronoun("Whatever"));
    let mut found = vec![];
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(&crates).unwrap().flatten() {
        sources(&entry.path().join("src"), &mut found);
    }
    let mut bad = vec![];
    for path in &found {
        let text = std::fs::read_to_string(path).unwrap();
        let mut inside = false;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            let doc = line.strip_prefix("///").or(line.strip_prefix("//!"));
            if let Some(text) = doc.filter(|_| !inside)
                && begins_with_a_pronoun(text.trim())
            {
                bad.push(format!("{}:{} {text}", path.display(), at + 1));
            }
            inside = doc.is_some();
        }
    }
    assert!(found.len() > 300 && bad.is_empty(), "{}", bad.join("\n"));
}

#[test]
fn unsafe_is_in_one_place() {
    let mut found = vec![];
    sources(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join(".."),
        &mut found,
    );
    let lets = |path: &PathBuf| {
        let text = std::fs::read_to_string(path).unwrap();
        ["allow", "expect", "warn"]
            .iter()
            .any(|word| text.contains(&format!("{word}(unsafe_code")))
    };
    found.retain(lets);
    let one =
        matches!(&found[..], [one] if one.ends_with("rejoin-runner/src/shim/release_pages.rs"));
    assert!(one, "{found:?}");
}

#[test]
fn no_test_file_is_forgotten() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for tests in std::fs::read_dir(root)
        .unwrap()
        .flatten()
        .map(|c| c.path().join("tests"))
    {
        let Ok(mut list) = std::fs::read_to_string(tests.join("all.rs")) else {
            continue;
        };
        list.push_str(&std::fs::read_to_string(tests.join("suite/mod.rs")).unwrap_or_default());
        for folder in ["suite", "all"] {
            for file in std::fs::read_dir(tests.join(folder))
                .into_iter()
                .flatten()
                .flatten()
            {
                let name = file.file_name().to_str().unwrap().to_owned();
                let Some(module) = name.strip_suffix(".rs").filter(|n| *n != "mod") else {
                    continue;
                };
                assert!(
                    list.contains(&format!("mod {module};")),
                    "{} is not in all.rs",
                    file.path().display()
                );
            }
        }
    }
}

/// A test that needs a program which is not installed fails, with or without `CI`: skipped, it would prove nothing.
#[test]
#[should_panic(expected = "no-such-program is not installed; run ./scripts/test")]
fn a_missing_program_fails_the_test_that_needs_it() {
    let _never = rejoin_testkit::python_tool("no-such-program");
}

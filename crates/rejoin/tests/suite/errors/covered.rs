//! No class can be forgotten: what is snapshot-tested is what the table of errors lists.

use std::collections::BTreeSet;

/// Wherever a snapshot begins with the exit code and the word of an error.
const SNAPSHOTS: [&str; 10] = [
    include_str!("../errors.rs"),
    include_str!("held.rs"),
    include_str!("turns.rs"),
    include_str!("wrapped.rs"),
    include_str!("../crashes/disk.rs"),
    include_str!("../open/refused.rs"),
    include_str!("../portable/refused.rs"),
    include_str!("../serve/refused.rs"),
    include_str!("../snapshots/verify.rs"),
    include_str!("../../../../rejoin-errors/src/codes.rs"),
];
/// Made from the code, which a test of its own checks.
const TABLE: &str = include_str!("../../../../../docs/errors.md");

/// `9, turn quota` or `4, busy`
fn tested() -> BTreeSet<String> {
    let lines = SNAPSHOTS.iter().flat_map(|text| text.lines());
    lines
        .filter_map(|line| line.trim_start().strip_prefix("exit "))
        .map(str::to_owned)
        .collect()
}

fn listed() -> BTreeSet<String> {
    let (commands, turns) = TABLE.split_once("## Turns").unwrap();
    let rows = |text: &'static str, turn: &'static str| {
        text.lines().filter_map(move |line| {
            let mut cells = line.strip_prefix("| `")?.split('|').map(str::trim);
            let (word, exit) = (cells.next()?.trim_end_matches('`'), cells.next()?);
            Some(format!("{exit}, {turn}{word}"))
        })
    };
    rows(commands, "").chain(rows(turns, "turn ")).collect()
}

#[test]
fn every_error_has_its_snapshot() {
    assert!(listed().len() > 30);
    assert_eq!(tested(), listed());
}

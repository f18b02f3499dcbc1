//! README's table of tested versions: on each of them, as it was installed, `doctor --prove` proves every row.

use rejoin_testkit::World;

/// Every row that README names.
const ROWS: &[&str] = &[
    "start",
    "text is data",
    "resume",
    "scope of its totals",
    "cut back after a failed turn",
    "tool list obeyed on resume",
    "history as the API takes it",
    "whole tree killed",
    "refusal detected",
    "no silent fresh start",
    "fork",
    "restore in an empty home",
    "restore in another folder",
];

#[expect(clippy::needless_pass_by_value, reason = "as every test on a world")]
fn every_row_is_proven(world: World) {
    let name = world.cli.agent();
    let report = world.run(&["doctor", "--prove", name, "--json"]).json();
    let agents = report["agents"].as_array().unwrap();
    let agent = agents.iter().find(|agent| agent["name"] == name).unwrap();
    let rows = agent["proof"]["rows"].as_array().unwrap();
    let row = |what: &str| rows.iter().find(|row| row["what"] == what).unwrap();
    for what in ROWS {
        assert_eq!(row(what)["state"], "proven", "{:#}", row(what));
    }
    assert!(rows.iter().all(|row| row["state"] != "broken"), "{rows:#?}");
    assert_eq!(agent["resume"], "proven");
    let totals = row("scope of its totals")["evidence"].as_str().unwrap();
    // Tokens: all of them, or the row would be broken. Money: claude and opencode.
    let money = ["claude", "opencode"].contains(&name);
    assert_eq!(totals.starts_with("money "), money, "{totals}");
}

rejoin_testkit::on_every_cli!(every_row_is_proven);

//! Links that sign in a browser, on a terminal of 80 columns.

use rejoin_testkit::World;

use crate::suite::terminal::{Terminal, world};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Returns the link of a screen. Its two rows are full but the last: the terminal broke it, and no newline is in it.
#[track_caller]
fn link(screen: &str) -> (Vec<&str>, String) {
    let lines: Vec<&str> = screen.lines().collect();
    let first = lines.iter().position(|l| l.starts_with("http://")).unwrap();
    assert_eq!(lines[first].len(), 80, "{screen}");
    (lines.clone(), [lines[first], lines[first + 1]].concat())
}

#[test]
fn a_sign_in_link_is_one_line_of_its_own() {
    let world = world();
    let terminal = Terminal::open(&world).unwrap();
    terminal.keys("rejoin serve --listen 127.0.0.1:0");
    let screen = terminal.wait_until(|screen| screen.contains("within ten minutes"));
    let (lines, link) = link(&screen);
    assert_eq!(link.rsplit('/').next().unwrap().len(), 64, "{screen}");
    let note = "the link signs in one browser, within ten minutes";
    assert!(lines.contains(&note), "{screen}");
    terminal.press(&["C-c"]);
    terminal.wait_until(|screen| screen.trim_end().ends_with("^C$"));
}

#[test]
fn the_link_of_pair_is_below_its_code() {
    let world = world();
    let _daemon = world.serve(&[]);
    let terminal = Terminal::open(&world).unwrap();
    let screen = terminal.run("rejoin pair");
    let (lines, link) = link(&screen);
    assert_eq!(link.rsplit('/').next().unwrap().len(), 64, "{screen}");
    let code = lines.iter().rposition(|l| l.contains('█')).unwrap();
    assert!(lines[code + 1].starts_with("http://"), "{screen}");
}

#[test]
fn a_link_that_was_cut_off_is_called_incomplete() {
    let world = World::new(REJOIN);
    let daemon = world.serve(&[]);
    let whole = daemon.post("/api/pair", &serde_json::json!({})).ok();
    let path = whole["path"].as_str().unwrap();
    assert!(daemon.get(path).body.contains("signs in one browser"));
    let cut = daemon.get(&path[..path.len() - 20]).body;
    assert!(cut.contains("This link is incomplete"), "{cut}");
    let other = format!("/pair/{}", "a".repeat(64));
    assert!(
        daemon
            .get(&other)
            .body
            .contains("used before, or has expired")
    );
}

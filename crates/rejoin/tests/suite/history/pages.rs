//! Pages of a conversation: over HTTP by `before`, `after`, `around` and `limit`, on the command line by `-n` and a
//! range.

use rejoin_testkit::World;
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// Ten turns, of which the last but one was retried.
fn world() -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    for n in 1..=9 {
        world
            .run(&["send", "-q", "-k", "k", &format!("word{n}")])
            .ok();
    }
    world.run(&["retry", "-q", "k"]).ok();
    world.run(&["send", "-q", "-k", "k", "word10"]).ok();
    world
}

fn seqs(shown: &Value) -> Vec<i64> {
    let messages = shown["messages"].as_array().unwrap();
    messages
        .iter()
        .map(|m| m["seq"].as_i64().unwrap())
        .collect()
}

fn turns(shown: &Value) -> usize {
    shown["turns"].as_array().unwrap().len()
}

#[test]
fn pages_over_http() {
    let world = world();
    let daemon = world.serve(&[]);
    let page = |query: &str| daemon.get(&format!("/api/conversations/k{query}")).ok();
    let whole = page("");
    assert_eq!(seqs(&whole), (1..=20).collect::<Vec<_>>());
    assert_eq!(
        (turns(&whole), &whole["older"], &whole["newer"]),
        (11, &Value::Null, &Value::Null)
    );
    let newest = page("?limit=6");
    assert_eq!(seqs(&newest), [15, 16, 17, 18, 19, 20]);
    // The turn that was retried belongs to it.
    assert_eq!(
        (turns(&newest), &newest["older"], &newest["newer"]),
        (4, &json!(15), &Value::Null)
    );
    let before = page("?limit=6&before=15");
    assert_eq!(seqs(&before), [9, 10, 11, 12, 13, 14]);
    assert_eq!(
        (turns(&before), &before["older"], &before["newer"]),
        (3, &json!(9), &json!(14))
    );
    assert_eq!(seqs(&page("?limit=3&after=0")), [1, 2, 3]);
    assert_eq!(seqs(&page("?limit=3&after=18")), [19, 20]);
    assert_eq!(seqs(&page("?limit=5&around=7")), [5, 6, 7, 8, 9]);
    assert_eq!(seqs(&page("?limit=5&around=99")), [18, 19, 20]);
    assert_eq!(seqs(&page("?after=5&before=8")), [6, 7]);
    assert_eq!(seqs(&page("?limit=0")), [20]);
    assert_eq!(seqs(&page("?after=100")), [] as [i64; 0]);
    let wrong = daemon.get("/api/conversations/k?before=x");
    assert_eq!(wrong.status, 400, "{wrong:?}");
    // Every message and turn once, page by page.
    let (mut found, mut known, mut next) = (vec![], 0, Some(0));
    while let Some(after) = next {
        let part = page(&format!("?limit=3&after={after}"));
        found.extend(seqs(&part));
        known += turns(&part);
        next = part["newer"].as_i64();
    }
    assert_eq!(found, (1..=20).collect::<Vec<_>>());
    assert!(known >= 11, "{known}");
    let all = page("?all=true&limit=2");
    assert_eq!(seqs(&all), [19, 20]);
    let all = page("?all=true");
    assert_eq!(all["messages"].as_array().unwrap().len(), 21, "{all}");
}

#[test]
fn pages_on_the_command_line() {
    let world = world();
    let shown = |args: &[&str]| world.run(&[&["show", "--json"], args].concat()).ok().json();
    assert_eq!(seqs(&shown(&["k", "-n", "3"])), [18, 19, 20]);
    assert_eq!(seqs(&shown(&["k:4-6"])), [4, 5, 6]);
    assert_eq!(turns(&shown(&["k:4-6"])), 2);
    assert_eq!(seqs(&shown(&["k:19-99"])), [19, 20]);
    assert_eq!(seqs(&shown(&["k:7"])), [7]);
    assert_eq!(
        (seqs(&shown(&["k"])).len(), turns(&shown(&["k"]))),
        (20, 11)
    );
    let missing = world.run(&["show", "k:99"]);
    assert!(missing.stderr.contains("its last is 20"), "{missing:?}");
    let zero = world.run(&["show", "k", "-n", "0"]);
    assert_eq!(zero.code, 2, "{zero:?}");
}

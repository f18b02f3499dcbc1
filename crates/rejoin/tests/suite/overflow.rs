//! Transcripts that fit: by the window of the model that is asked, and shorter after each overflow.

#![allow(
    clippy::needless_pass_by_value,
    reason = "a test owns its world and ends it"
)]

use rejoin_testkit::{World, on_both_claudes, user};
use serde_json::Value;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

on_both_claudes!(each_try_is_shorter);

/// Says the word of a turn with so many more.
#[track_caller]
fn long(world: &World, n: usize, more: &[&str]) -> Value {
    let text = format!("#s:a{n} {}", "filler ".repeat(600));
    world.send(n, &text, more).ok().json()
}

fn bytes(turn: &Value) -> u64 {
    turn["sent"]["bytes"].as_u64().unwrap()
}

/// After a transcript that did not fit, the next one is shorter, again and again; then one fits.
fn each_try_is_shorter(world: World) {
    for n in 1..=4 {
        long(&world, n, &[]);
    }
    world.run(&["reset", "k"]).ok();
    let mut turn = world.send(5, "#s:toolong", &[]).json();
    let mut told = vec![bytes(&turn)];
    for n in 6..=8 {
        assert_eq!(turn["error"]["class"], "context_overflow", "{turn:#}");
        turn = world.send(n, "#s:toolong", &[]).json();
        assert_eq!(turn["verdict"], "reseeded", "{turn:#}");
        told.push(bytes(&turn));
    }
    assert!(told.windows(2).all(|two| two[1] < two[0]), "{told:?}");
    let next = world.run(&["explain", "k", "--next", "--json"]).ok().json();
    let fits = world.send(9, "#s:a9", &[]).ok().json();
    assert!(bytes(&fits) < told[2], "{told:?} {fits:#}");
    let left_out = fits["sent"]["left_out"].as_u64().unwrap();
    assert!(left_out > 0, "{fits:#}");
    assert_eq!(next["sent"]["left_out"], left_out, "{next:#}");
    let summary = fits["summary"].as_str().unwrap();
    let of = format!("told {} of 12 messages", 12 - left_out);
    assert!(summary.contains(&of), "{summary}");
    // The newest are told, and the new message.
    let shown = world.model.last().history().to_string();
    for n in [8, 9] {
        assert_eq!(shown.matches(&user(n)).count(), 1, "{n}");
    }
    // A turn that succeeded ends it.
    let again = world.send(10, "#s:a10", &["--fresh-session"]).ok().json();
    assert!(bytes(&again) > bytes(&fits), "{again:#}");
}

/// The window counts without any session of the model: configured, or generally known.
#[test]
fn windows_count_without_a_session() {
    let world = World::new(REJOIN);
    for n in 1..=6 {
        long(&world, n, &["-a", "demo"]);
    }
    world.run(&["reset", "k"]).ok();
    let config = world.home().join(".config/rejoin/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[models.tiny]\nwindow = 3000\n").unwrap();
    let foreseen = |model: &str| {
        let args = ["explain", "k", "--next", "--json", "-m", model];
        let next = world.run(&args).ok().json();
        (bytes(&next), next["sent"]["shortened"].clone())
    };
    let (whole, shortened) = foreseen("never-heard-of");
    assert_eq!(shortened, 0);
    let (tiny, _) = foreseen("tiny");
    let (known, _) = foreseen("gpt-4");
    // Two fifths of the window, at three and a half bytes a token.
    assert!(tiny < 3000 * 2 / 5 * 7 / 2 + 500, "{tiny}");
    assert!(known < 8192 * 2 / 5 * 7 / 2 + 500, "{known}");
    assert!(tiny < known && known < whole, "{tiny} {known} {whole}");
    let turn = long(&world, 7, &["-m", "tiny"]);
    let sent = &turn["sent"];
    assert!(sent["left_out"].as_u64().unwrap() > 0, "{sent}");
}

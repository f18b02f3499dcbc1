//! Random walks through everything that can happen to conversations: any agent, changes of the
//! history, failures, kills, lost and stale sessions, the CLI used by hand. After every step the store
//! holds what was said, and at every turn the model is shown each message of it exactly once.
//!
//! `REJOIN_WALK_SEED` walks one seed, `REJOIN_WALK_STEPS` sets how many steps in all.

mod changes;
mod oracle;
mod sessions;
mod steps;

use rejoin_testkit::{CLAUDE_197, CLAUDE_325, CODEX_166, Cli, GEMINI_061, OPENCODE};

pub(crate) use oracle::Dice;
use steps::Walk;

/// Of one walk.
const STEPS: usize = 40;

/// Promise 1, with every agent in one conversation (A-26..A-29, A-42..A-47, D-23, D-37).
fn walk(seed: u64, claude: &'static dyn Cli, scope: &str) {
    let wanted = std::env::var("REJOIN_WALK_STEPS").ok();
    let steps = wanted.map_or(STEPS, |all| all.parse::<usize>().unwrap() / 4);
    walk_on(seed, claude, scope, steps, false);
}

fn walk_on(seed: u64, claude: &'static dyn Cli, scope: &str, steps: usize, on_server: bool) {
    if let Ok(only) = std::env::var("REJOIN_WALK_SEED")
        && only != seed.to_string()
    {
        return;
    }
    let clis: [&'static dyn Cli; 4] = [claude, &CODEX_166, &OPENCODE, &GEMINI_061];
    // A conversation that only grows says less than many that do.
    for part in 0..steps.div_ceil(STEPS * 2).max(1) {
        let rest = (steps - part * STEPS * 2).min(STEPS * 2);
        let seed = seed + 1000 * part as u64;
        let Some(mut walk) = Walk::new(seed, clis, scope, rest, on_server) else {
            return;
        };
        for _ in 0..rest {
            walk.step();
        }
        walk.end();
    }
}

#[test]
fn seed_1() {
    walk(1, &CLAUDE_197, "full");
}

#[test]
fn seed_2() {
    walk(2, &CLAUDE_325, "full");
}

#[test]
fn seed_3() {
    walk(3, &CLAUDE_325, "agent");
}

#[test]
fn seed_4() {
    walk(4, &CLAUDE_197, "full");
}

/// The same with the store on a server.
#[test]
fn seed_5_on_postgresql() {
    walk_on(5, &CLAUDE_325, "full", 20, true);
}

#[test]
#[ignore = "only with --long"]
fn longer_on_postgresql() {
    walk_on(6, &CLAUDE_325, "agent", STEPS * 4, true);
    walk_on(7, &CLAUDE_197, "full", STEPS * 4, true);
}

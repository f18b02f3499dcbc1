//! OpenCode, with the real CLI. It prints whole answers only, and nothing while a tool runs.

use std::path::PathBuf;
use std::process::Child;

use rejoin_model::Script;
use rejoin_testkit::{Model, OPENCODE, Talk, World, answer, runs, slowly, user, wait_for};

mod busy;
mod failures;
mod identity;
mod kills;
mod permissions;
mod records;
mod text;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// The tool is allowed by name in the mode that is meant for changes.
const SHELL: [&str; 2] = ["--tools", "bash"];

/// Leaves a trace, then never ends; what follows `;` would be its second trace.
const STUCK: &str = "echo x >> ran.txt; tail -f /etc/hostname; echo y >> ran.txt";

fn world() -> Option<World> {
    World::of(REJOIN, &OPENCODE)
}

fn scripted<const N: usize>(scripts: [(&'static str, Script); N]) -> Option<World> {
    World::with(REJOIN, &OPENCODE, || Model::scripted(scripts))
}

/// A conversation with one turn done.
fn begun(world: World, flags: &[&str]) -> Talk {
    let mut talk = Talk::begin(world);
    talk.good("started", flags);
    talk
}

/// And a second one under way: answering slowly (`late`), or with a tool that never ends (`stuck`).
fn second_turn(script: &str) -> Option<(Talk, Child)> {
    let late = vec![slowly(&answer(2), 80)];
    let world = scripted([("late", late), ("stuck", vec![runs(STUCK)])])?;
    let mut talk = begun(world, &SHELL);
    talk.n += 1;
    let send = talk.world.start(2, &format!("#s:{script}"), &[]);
    wait_until_asked(&talk.world, &user(2));
    wait_for("the turn to be under way", 60, || {
        let under_way = match script {
            "stuck" => is_stuck(&talk.world),
            _ => talk.world.printed("step_start"),
        };
        under_way.then_some(())
    });
    Some((talk, send))
}

/// It may take long to start: a second of work for two cores, when nobody else wants them.
fn wait_until_asked(world: &World, word: &str) {
    wait_for("the model to be asked", 90, || {
        let asked = |r: &rejoin_model::Request| r.history().to_string().contains(word);
        world.model.requests().iter().any(asked).then_some(())
    });
}

fn is_stuck(world: &World) -> bool {
    let tail = |command: &str| command == "tail -f /etc/hostname ";
    world.pid_of(tail).is_some()
}

/// A script that stands in front of the real CLI, which it knows as `$real`.
fn stand_in_front(world: &mut World, body: &str) {
    let real = world.bin();
    let path: PathBuf = world.root().join("in-front");
    let text = format!("#!/bin/bash\nreal={}\n{body}\n", real.display());
    world.script(&path, &text);
    world.use_bin(&path);
}

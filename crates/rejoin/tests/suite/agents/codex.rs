//! Codex 0.166.0, for real.

use rejoin_testkit::{CODEX_166, CODEX_TOOLS, Model, Talk, World, kill, wait_for};

mod crashes;
mod failures;
mod ids;
mod permission;
mod session;
mod text;
mod together;
mod usage;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// For first turns that will use tools.
const TOOLS: [&str; 2] = ["-m", CODEX_TOOLS];

fn world() -> Option<World> {
    World::of(REJOIN, &CODEX_166)
}

fn scripted(model: impl FnOnce() -> Model) -> Option<World> {
    World::with(REJOIN, &CODEX_166, model)
}

/// It prints whole answers only: that it answers is known by its having asked.
fn answers(world: &World, n: usize) -> bool {
    let asked =
        |r: &rejoin_model::Request| r.history().to_string().contains(&rejoin_testkit::user(n));
    world.printed("turn.started") && world.model.requests().iter().any(asked)
}

fn is_stuck(world: &World) -> bool {
    world
        .pid_of(|command| command == "tail -f /etc/hostname ")
        .is_some()
}

/// One turn done, and turn 2 under way.
fn second_turn(
    world: World,
    script: &str,
    flags: &[&str],
    begun: impl Fn(&World) -> bool,
) -> (Talk, std::process::Child) {
    let mut talk = Talk::begin(world);
    let mut first = TOOLS.to_vec();
    first.extend(flags);
    talk.good("started", &first);
    talk.n += 1;
    let send = talk.world.start(talk.n, script, &[]);
    wait_for("the turn to be under way", 20, || {
        begun(&talk.world).then_some(())
    });
    (talk, send)
}

fn stop(send: &std::process::Child, signal: &str) {
    kill(i32::try_from(send.id()).unwrap(), signal);
}

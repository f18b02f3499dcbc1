//! What one sees: list, show, explain, the bare command; piped, as JSON, and on a terminal.

mod documents;
mod explain;
mod first_use;
mod long;
mod pages;
mod rest;

use rejoin_testkit::{World, sql};

use super::terminal::masked;

/// A conversation of three turns: started, resumed, and its session deleted.
fn talk(world: &World) {
    world
        .run(&[
            "send",
            "-a",
            "demo",
            "-k",
            "tea",
            "My name is Ada and I like tea.",
        ])
        .ok();
    world.run(&["reply", "What is my name?"]).ok();
    std::fs::remove_dir_all(world.home().join(".rejoin-demo")).unwrap();
    forget_snapshots(world);
    world.run(&["reply", "What do I like?"]).ok();
}

fn forget_snapshots(world: &World) {
    sql(&world.data().join("rejoin.db"), "delete from snapshots");
}

/// Makes every turn of the demo agent fail.
fn spoil(world: &World) {
    forget_snapshots(world);
    let _gone = std::fs::remove_dir_all(world.home().join(".rejoin-demo"));
    std::fs::write(world.home().join(".rejoin-demo"), "in the way").unwrap();
}

fn piped(world: &World, args: &[&str]) -> String {
    let done = world.run(args).ok();
    masked(world, &format!("{}{}", done.stdout, done.stderr))
}

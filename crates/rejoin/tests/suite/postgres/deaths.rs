//! `kill -9` of the sender, as with a file: no accepted message is lost, nothing is run twice.

use rejoin_testkit::{CLAUDE_NEW, World};

use super::REJOIN;
use crate::suite::crashes::points::{POINTS, claude_survives, demo_survives};

#[test]
fn the_demo_agent_survives_every_point() {
    if let Some(world) = World::new(REJOIN).on_server() {
        demo_survives(world, &POINTS);
    }
}

#[test]
fn claude_survives_every_other_point() {
    let world = World::claude(REJOIN, CLAUDE_NEW).and_then(World::on_server);
    if let Some(world) = world {
        let points: Vec<&str> = POINTS.into_iter().skip(1).step_by(2).collect();
        claude_survives(world, &points);
    }
}

//! The daemon: its API, what it tells live, and what it does with those it must not trust.

mod agents;
mod api;
mod as_of;
mod bodies;
mod ceiling;
mod clients;
mod hangs;
mod held;
mod hostile;
mod killed;
mod limits;
mod links;
mod live;
mod many;
mod notify;
mod observed;
mod portable;
mod readable;
mod refused;
mod roots;
mod rows;
mod shares;
mod store_away;
mod tenants;
mod turn_log;
mod warm;

use rejoin_testkit::World;
use serde_json::{Value, json};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// With the demo agent as the default.
fn demo() -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world
}

/// Where a new conversation is to live.
fn here(world: &World) -> (&'static str, Value) {
    ("workdir", json!(world.work().to_str().unwrap()))
}

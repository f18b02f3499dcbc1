//! The store against real database files and a real server.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read files as they are"
)]

mod suite {
    #[macro_use]
    mod engines;

    mod archive;
    mod chunk_locations;
    mod events;
    mod history;
    mod leases;
    mod limits;
    mod objects;
    mod open;
    mod pins;
    mod plans;
    mod postgres;
    mod questions;
    mod schema;
    mod search;
    mod sweep;
    mod turns;
}

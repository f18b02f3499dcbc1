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
    mod history;
    mod leases;
    mod objects;
    mod pins;
    mod places;
    mod postgres;
    mod schema;
    mod search;
    mod sweep;
    mod turns;
}

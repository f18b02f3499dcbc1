//! The store against real database files.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests read files as they are"
)]

mod suite {
    mod archive;
    mod history;
    mod pins;
    mod schema;
    mod turns;
}

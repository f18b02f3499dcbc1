//! The real binary, as a user runs it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at files as they are"
)]

mod suite {
    mod adopt;
    mod agents;
    mod background;
    mod busy;
    mod cli;
    mod compaction;
    mod config;
    mod continued;
    mod conversation;
    mod costs;
    mod crashes;
    mod doctor;
    mod errors;
    mod external;
    mod failures;
    mod fork;
    mod help;
    mod history;
    mod idle;
    mod look;
    mod open;
    mod overflow;
    mod portable;
    mod postgres;
    mod questions;
    mod reasons;
    mod remote;
    mod safe;
    mod serve;
    mod snapshots;
    mod terminal;
    mod text_is_data;
    mod tidy;
    mod trust;
    mod walks;
    mod walls;
}

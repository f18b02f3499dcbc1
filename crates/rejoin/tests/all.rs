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
    mod chat;
    mod cli;
    mod compaction;
    mod config;
    mod continued;
    mod conversation;
    mod costs;
    mod crashes;
    mod doctor;
    mod editor;
    mod embed;
    mod errors;
    mod external;
    mod failures;
    mod fork;
    mod help;
    mod history;
    mod idle;
    mod links;
    mod look;
    mod open;
    mod operations;
    mod output;
    mod overflow;
    mod packages;
    mod pages;
    mod piped;
    mod portable;
    mod postgres;
    mod questions;
    mod reasons;
    mod reference;
    mod remote;
    mod safe;
    mod schedules;
    mod serve;
    mod shell_prompt;
    mod snapshots;
    mod spending;
    mod suggestions;
    mod terminal;
    mod text_is_data;
    mod tidy;
    mod tiers;
    mod trust;
    mod verdict_lines;
    mod walks;
    mod walls;
    mod workflows;
}

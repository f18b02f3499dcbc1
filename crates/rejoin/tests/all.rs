//! The real binary, as a user runs it.
#![allow(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "tests look at files as they are"
)]

mod suite {
    mod conversation;
}

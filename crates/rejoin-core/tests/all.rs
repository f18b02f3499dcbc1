//! The core from outside: what a model is shown, over whole histories.

#![allow(clippy::unwrap_used)]

mod all {
    mod examples;
    mod history;
    mod walks;
    mod words;
    mod world;
}

//! Words said with a CLI by hand, in sessions that rejoin made: each is shown exactly once.

mod copies;
mod during;
mod history;
mod identity;
mod retired;

//! One file per subject; `http` is the client they share.

mod answers;
mod control;
mod failures;
mod http;
mod log;

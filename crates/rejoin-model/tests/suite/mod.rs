//! One file per subject; `http` is the client they share.

mod answers;
mod chat;
mod control;
mod failures;
mod gemini;
mod http;
mod log;
mod responses;

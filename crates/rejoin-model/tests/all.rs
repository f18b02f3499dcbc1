//! The server over real sockets, spoken to in plain HTTP/1.1.

#![allow(clippy::unwrap_used)]

mod suite;

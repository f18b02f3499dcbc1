//! Everything with the store on a PostgreSQL server: one conversation per agent, deaths, two homes at
//! once, a machine that goes away, a server that does.

mod agents;
mod deaths;
mod machines;
mod many;
mod pooled;
mod server;
mod tls;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

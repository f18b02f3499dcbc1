//! A CLI's own terminal interface on a session: a person sits at it.

use rejoin_core::{Envelope, TrustedSession};

use crate::repository::{Memory, RepositoryConfig};

/// Names the session in the environment of a terminal interface. Not the marker of a turn: nothing
/// of it is ended with one.
pub const OPEN_MARKER: &str = "REJOIN_OPEN";

/// The terminal interface as it is to be started. Like a turn it is told model and permissions anew:
/// a session remembers hardly any. Where a turn leaves out what it would have to ask for, the person
/// may be asked.
#[derive(Clone, Copy)]
pub struct TerminalOrder<'a> {
    pub session: &'a TrustedSession,
    /// The CLI's home, and where in it the session lies.
    pub home: &'a str,
    pub place: &'a str,
    /// The environment the CLI will get, but for what its command adds.
    pub env: &'a [(String, String)],
    pub folder: &'a str,
    pub model: Option<&'a str>,
    pub envelope: &'a Envelope,
    /// As [`Adapter::tool_servers`](crate::Adapter::tool_servers) found them.
    pub tool_servers: &'a [String],
    pub repository: RepositoryConfig,
    pub memory: &'a Memory,
    /// From the configuration.
    pub extra_args: &'a [String],
    /// What the CLI printed when it was asked [`Adapter::terminal_help`](crate::Adapter::terminal_help).
    pub help: &'a str,
    /// Names in a folder beneath the home.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
}

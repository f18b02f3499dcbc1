//! A CLI's own terminal interface, opened on a session for a person.

use rejoin_core::{Permissions, TrustedSession};

use crate::repository::{Memory, RepositoryConfig};

/// Names the session in the environment of a terminal interface. This is not the marker of a turn,
/// so ending a turn does not end these processes.
pub const OPEN_MARKER: &str = "REJOIN_OPEN";

/// Description of a terminal interface to start. Like a turn it receives model and permissions
/// again, because a session remembers hardly any of them. In places where a turn would deny a
/// request, the CLI may ask the person.
#[derive(Clone, Copy)]
pub struct TerminalOrder<'a> {
    /// Session to open.
    pub session: &'a TrustedSession,
    /// The CLI's home.
    pub home: &'a str,
    /// Path of the session beneath the home.
    pub place: &'a str,
    /// Environment of the CLI, without the variables that its command adds.
    pub env: &'a [(String, String)],
    /// Canonical path of the working folder.
    pub folder: &'a str,
    /// Model. None: the CLI's default.
    pub model: Option<&'a str>,
    /// Permissions of the conversation.
    pub permissions: &'a Permissions,
    /// Result of [`Sandbox::mcp_servers`](crate::Sandbox::mcp_servers).
    pub mcp_servers: &'a [String],
    /// Treatment of the repository's own configuration.
    pub repository: RepositoryConfig,
    /// Memory files that the CLI does not read by itself.
    pub memory: &'a Memory,
    /// Arguments from the configuration.
    pub extra_args: &'a [String],
    /// Output of the CLI for [`Terminal::terminal_help`](crate::Terminal::terminal_help).
    pub help: &'a str,
    /// Lists the names in a folder beneath the home.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
}

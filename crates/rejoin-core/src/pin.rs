//! Pins: our knowledge of a session that could serve the next turn.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentName, Runtime};
use crate::ids::{MessageId, PinId, SessionId, TurnId};
use crate::scope::ScopeValue;
use crate::usage::{Context, Micros, Usage};

/// Binds a conversation and an agent to one session. All fields except `state` describe the session
/// as last confirmed: read, and found to hold the prompt we sent and the answer we got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub id: PinId,
    pub agent: AgentName,
    pub session: SessionId,
    pub state: PinState,
    pub seen: SeenPrefix,
    pub folder: Folder,
    pub runtime: Runtime,
    pub machine: String,
    /// Home of the agent on that machine. Empty if an older build wrote the pin.
    pub home: String,
    pub files: Vec<FileMark>,
    /// Position from which the adapter continues to read (for Claude: the id of the last line).
    pub cursor: Option<String>,
    /// Total cost of the session by the CLI's own count.
    pub total: Option<Micros>,
    /// Total tokens of the session, if the CLI counts over the whole session.
    pub usage: Option<Usage>,
    pub context: Option<Context>,
    pub model: Option<String>,
    pub provider: Option<String>,
    /// Failed resumes in a row.
    pub failures: u32,
    pub compacted: bool,
    /// Hash of the standing instructions that the session last received, or
    /// [`SUMMARISED_INSTRUCTIONS`].
    pub instructions: Option<String>,
}

/// Placeholder for the hash of instructions that a session received before its agent compacted it.
pub const SUMMARISED_INSTRUCTIONS: &str = "";

impl Pin {
    /// Returns the value of [`Pin::instructions`] after a run, given the hash that the session
    /// received.
    pub fn instructions_after(told: Option<&str>, compacted: bool) -> Option<String> {
        let told = told?;
        Some(
            if compacted {
                SUMMARISED_INSTRUCTIONS
            } else {
                told
            }
            .to_owned(),
        )
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PinState {
    /// Recorded before the run: this turn uses the session, and its result was not read yet.
    Open(TurnId),
    Confirmed,
    /// Never offered again. Holds the reason.
    Retired(String),
}

/// The prefix of the history that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenPrefix {
    pub value: ScopeValue,
    /// Number of messages of the scope in that prefix.
    pub messages: u64,
    /// Number of these messages that the session holds only in the summary of a compaction.
    pub summarised: u64,
    pub last_seq: i64,
    pub last: Option<MessageId>,
}

/// A working folder as evidence: only compared, never used as a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    pub path: String,
    pub device: u64,
    pub inode: u64,
    /// First commit of the surrounding checkout, and the path within it.
    pub checkout: Option<(String, String)>,
}

/// State of one session file when it was confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Path relative to the agent's home.
    pub path: String,
    pub length: u64,
    pub hash: String,
    /// Device, inode, mtime and ctime in nanoseconds. If unchanged, the file need not be read.
    pub stat: (u64, u64, i64, i64),
}

//! What we know of a session that could serve the next turn.

use serde::{Deserialize, Serialize};

use crate::agent::{AgentName, Runtime};
use crate::ids::{MessageId, PinId, SessionId, TurnId};
use crate::scope::ScopeValue;
use crate::usage::{Context, Micros, Usage};

/// Binds a conversation and an agent to one session. Everything but `state` describes the session
/// as it was last confirmed: read, and found to hold what we sent and what we got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub id: PinId,
    pub agent: AgentName,
    pub session: SessionId,
    pub state: PinState,
    pub seen: Seen,
    pub folder: Folder,
    pub runtime: Runtime,
    pub machine: String,
    /// The agent's own home there; empty: of a build that did not say.
    pub home: String,
    pub files: Vec<FileMark>,
    /// What the adapter needs to read on from here (for Claude: the id of the last line).
    pub cursor: Option<String>,
    /// The session's running total in the CLI's own books.
    pub total: Option<Micros>,
    /// Its running total of tokens, if the CLI counts over the whole session.
    pub usage: Option<Usage>,
    pub context: Option<Context>,
    pub model: Option<String>,
    pub provider: Option<String>,
    /// Failed resumes in a row.
    pub failures: u32,
    pub compacted: bool,
    /// The hash of the standing instructions that it was last told, or
    /// [`SUMMARISED_INSTRUCTIONS`].
    pub instructions: Option<String>,
}

/// Stands for the hash of instructions that a session received before its agent compacted it.
pub const SUMMARISED_INSTRUCTIONS: &str = "";

impl Pin {
    /// Returns the state of the standing instructions `told` to a session, after a compaction or not.
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
    /// Written ahead: this turn is using it, and nobody has read yet what it left behind.
    Open(TurnId),
    Confirmed,
    /// Never to be offered again; the text says why.
    Retired(String),
}

/// The prefix of the history that a session holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    pub value: ScopeValue,
    /// How many messages of the scope that is.
    pub messages: u64,
    /// Messages of these that it holds only in the summary that its agent wrote when it compacted.
    pub summarised: u64,
    pub last_seq: i64,
    pub last: Option<MessageId>,
}

/// A working folder as evidence: compared, never used as a path to go to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folder {
    pub path: String,
    pub device: u64,
    pub inode: u64,
    /// First commit of the checkout it lies in, and where in it.
    pub checkout: Option<(String, String)>,
}

/// One file of a session, as it was when confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileMark {
    /// Relative to the agent's own home.
    pub path: String,
    pub length: u64,
    pub hash: String,
    /// Device, inode, mtime and ctime in nanoseconds: unchanged means no need to read.
    pub stat: (u64, u64, i64, i64),
}

//! Parsers that turn the output of a CLI into events and, at the end, into one report.

use std::time::Duration;

use rejoin_core::{Asked, Context, EventBody, Given, Micros, Outcome, SessionId, ToolNote, Usage};
use serde::{Deserialize, Serialize};

/// Reads the output of one run. Parsing never fails: an unknown line becomes `Raw` and is counted.
pub trait StreamParser: Send {
    /// Parses one complete line of stdout, without its newline. It may contain any bytes.
    fn line(&mut self, line: &[u8]) -> Vec<EventBody>;

    /// Parses the bytes after the last newline, once stdout has ended. Ignored by parsers of JSON
    /// lines, where an incomplete line is invalid.
    fn rest(&mut self, _bytes: &[u8]) -> Vec<EventBody> {
        vec![]
    }

    /// Reads one line of stderr.
    fn stderr(&mut self, line: &[u8]);

    /// Reads one line of the side channel in which a hook of the run writes notes
    /// ([`HeldCall::line`](crate::HeldCall::line)).
    fn aside(&mut self, _line: &[u8]) {}

    /// True if the run may have such a hook.
    fn has_aside(&self) -> bool {
        false
    }

    /// Returns the id of the deferred tool call, if the run ended because of it.
    fn deferred(&self) -> Option<String> {
        None
    }

    /// Takes the questions that the CLI asked a person since the last call.
    fn asked(&mut self) -> Vec<Asked> {
        vec![]
    }

    /// Returns the line for the CLI's stdin that answers its question about a tool call. `given` is
    /// none if no person is available. Returns none if the CLI did not ask about this call, or is
    /// not waiting for an answer.
    fn reply(&mut self, _call_id: &str, _given: Option<&Given>) -> Option<Reply> {
        None
    }

    /// Takes the messages that the adapter itself sends to the CLI because of the lines since the
    /// last call.
    fn says(&mut self) -> Vec<Say> {
        vec![]
    }

    /// True if stderr must be read during the run, not only at its end.
    fn hears_stderr(&self) -> bool {
        false
    }

    /// Returns how long the CLI may stay silent after its last output. None: no limit.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// Handles a silence that was longer than that.
    fn give_up(&mut self) {}

    /// Returns the reason why the run must be stopped. None if it may continue.
    fn stop(&self) -> Option<String> {
        None
    }

    /// Returns the tokens and the cost so far. None if the CLI reports them only at the end of a run.
    fn spent(&self) -> Option<Spent> {
        None
    }

    /// Produces the report. Must be called once, after the last line.
    fn finish(self: Box<Self>, end: &ProcessEnd) -> RunReport;
}

/// Tokens and cost of a run so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spent {
    /// Token counts, in the scope of [`RunReport::usage`].
    pub usage: Usage,
    /// The CLI's running total, in the scope of [`RunReport::total`].
    pub total: Option<Micros>,
    /// True if another model call follows.
    pub goes_on: bool,
}

/// A message to the CLI on its stdin, written once. A run that is parsed again from its beginning
/// produces the same message with the same key, and the shim does not write it a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// Unique in the run, and derived from the parsed output alone.
    pub key: String,
    /// Text to write, including the newline.
    pub line: String,
}

/// An answer in the CLI's own format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// Line for stdin, including the newline.
    pub line: String,
    /// Text that the model receives instead of the result of a denied call. None if the call is
    /// allowed.
    pub message: Option<String>,
}

/// End of the process, as far as it was observed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProcessEnd {
    /// Exit code. Neither a code nor a signal is known if the shim died before the end.
    pub code: Option<i32>,
    /// Signal that killed the process.
    pub signal: Option<i32>,
    /// Cause of the end.
    pub cause: EndCause,
    /// True if the last line of stdout is incomplete. Such a run never succeeded.
    pub torn: bool,
    /// Session that the run was asked to use. None: the CLI chose a new session.
    pub asked_session: Option<SessionId>,
}

/// Cause of the end of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    /// The process ended without being stopped.
    #[default]
    ByItself,
    /// The user cancelled the turn.
    Cancelled,
    /// The turn took longer than allowed.
    WallLimit,
    /// The CLI printed nothing for longer than allowed.
    IdleLimit,
    /// The turn cost more than allowed.
    CostLimit,
    /// The output is larger than the limit.
    SpoolFull,
    /// The disk is full.
    DiskFull,
    /// The program could not be started.
    NotStarted,
    /// The shim is gone, so only the files are evidence.
    Unseen,
}

/// Report about one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunReport {
    /// Outcome of the run.
    pub outcome: Outcome,
    /// True if the CLI reported that it does not know the session to resume.
    pub refused: bool,
    /// Complete text of the answer, from the main thread only.
    pub text: String,
    /// Session id that the CLI reported.
    pub session: Option<SessionId>,
    /// Model that answered.
    pub model: Option<String>,
    /// Version of the CLI.
    pub version: Option<String>,
    /// Token counts of the run.
    pub usage: Usage,
    /// The CLI's running total. Its range differs by CLI ([`Facts::totals`](crate::Facts::totals)).
    pub total: Option<Micros>,
    /// Use of the context window at the last call.
    pub context: Option<Context>,
    /// Tokens in the session at its last call, if the context window is not known.
    pub used: Option<u64>,
    /// Tool calls that were not allowed.
    pub denied: Vec<Denied>,
    /// Number of observed tool calls, finished or not, including those of sub-agents.
    pub tools_run: u64,
    /// Tool calls that ran, in order.
    pub trail: Vec<ToolNote>,
    /// Calls among `trail` that waited for a person until the end and never ran.
    pub withheld: Vec<ToolNote>,
    /// True if the CLI compacted the session.
    pub compacted: bool,
    /// Number of lines that the parser does not know.
    pub unknown_lines: u64,
}

/// A tool call that was not allowed. Always reported to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    /// Name of the tool.
    pub tool: String,
    /// Id of the call.
    pub id: String,
    /// Input of the call, shortened.
    pub input: String,
}

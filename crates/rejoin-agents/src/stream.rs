//! What a CLI prints, turned into events and, at the end, into one report.

use std::time::Duration;

use rejoin_core::{Asked, Context, EventBody, Given, Micros, Outcome, SessionId, ToolNote, Usage};
use serde::{Deserialize, Serialize};

/// Reads one run's output. Never fails: a line nobody understands becomes `Raw` and is counted.
pub trait StreamParser: Send {
    /// One complete line of stdout, without its newline; any bytes.
    fn line(&mut self, line: &[u8]) -> Vec<EventBody>;

    /// What follows the last line end of stdout, once it is over. Lines of JSON are whole or nothing.
    fn rest(&mut self, _bytes: &[u8]) -> Vec<EventBody> {
        vec![]
    }

    /// One line of stderr.
    fn stderr(&mut self, line: &[u8]);

    /// One line of what a hook of the run noted beside its output ([`crate::claude_hook`]).
    fn aside(&mut self, _line: &[u8]) {}

    /// May there be such a hook?
    fn has_aside(&self) -> bool {
        false
    }

    /// The call that the run has put off, if that is why it ended.
    fn deferred(&self) -> Option<String> {
        None
    }

    /// What the CLI asked a person in the lines since the last call.
    fn asked(&mut self) -> Vec<Asked> {
        vec![]
    }

    /// What is written to the CLI's stdin as the answer to a call it asked about; `given` is none if
    /// nobody is there. None: the CLI did not ask that, or does not listen.
    fn reply(&mut self, _call_id: &str, _given: Option<&Given>) -> Option<Reply> {
        None
    }

    /// What the adapter itself has to say to the CLI because of the lines since the last call.
    fn says(&mut self) -> Vec<Say> {
        vec![]
    }

    /// What it says on stderr counts while it runs, not only at its end.
    fn hears_stderr(&self) -> bool {
        false
    }

    /// How long it may be silent after what was heard last; none: for as long as it likes.
    fn patience(&self) -> Option<Duration> {
        None
    }

    /// It was silent for longer.
    fn give_up(&mut self) {}

    /// Why the run must not go on, if it must not.
    fn stop(&self) -> Option<String> {
        None
    }

    /// Call once, after the last line.
    fn finish(self: Box<Self>, end: &End) -> Ran;
}

/// What is said to the CLI on its stdin, once: a run that is read again from its beginning says the same
/// under the same key, and its shim does not write it a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Say {
    /// Follows from what was read alone; unlike any other of the run.
    pub key: String,
    /// With its newline.
    pub line: String,
}

/// An answer in the CLI's own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// To be written to stdin, with its newline.
    pub line: String,
    /// What the model is told in place of what it wanted.
    pub message: Option<String>,
}

/// How the process ended, as far as anybody saw.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct End {
    /// None: nobody saw it end (the shim died).
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub cause: EndCause,
    /// The last line of stdout has no end: it is never success.
    pub torn: bool,
    /// The session the run was told to use; none: it was to begin one of its own choice.
    pub asked_session: Option<SessionId>,
}

/// What made it end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EndCause {
    #[default]
    ByItself,
    Cancelled,
    WallLimit,
    IdleLimit,
    CostLimit,
    SpoolFull,
    DiskFull,
    NotStarted,
    /// The shim is gone; judged by the files alone.
    Unseen,
}

/// What one run came to.
#[derive(Debug, Clone, PartialEq)]
pub struct Ran {
    pub outcome: Outcome,
    /// The CLI said it does not know the session it was to resume.
    pub refused: bool,
    /// All main-thread text of the answer.
    pub text: String,
    /// As the CLI reported it.
    pub session: Option<SessionId>,
    pub model: Option<String>,
    pub version: Option<String>,
    pub usage: Usage,
    /// The CLI's running total, whatever that covers.
    pub total: Option<Micros>,
    pub context: Option<Context>,
    /// How many tokens the session held at its last call, where the window is not known.
    pub used: Option<u64>,
    pub denied: Vec<Denied>,
    /// Tool calls seen, finished or not; sub-agents' included.
    pub tools_run: u64,
    pub trail: Vec<ToolNote>,
    /// Calls among these that waited for a person to the end, and so never ran.
    pub withheld: Vec<ToolNote>,
    pub compacted: bool,
    pub unknown_lines: u64,
}

/// A tool call that was not allowed. Shown, never swallowed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Denied {
    pub tool: String,
    pub id: String,
    pub input: String,
}

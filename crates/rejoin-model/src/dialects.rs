//! The wire formats the model speaks. A new one is a file here and a line in [`ALL`].

mod anthropic;
mod chat;
mod gemini;
mod openai;
mod responses;

use serde_json::Value;

use crate::{
    answer::{Answer, Fault},
    conversation::Conversation,
    script::ToolCall,
};

/// All dialects, in the order in which they are asked for a path.
const ALL: &[&dyn Dialect] = &[
    &anthropic::Anthropic,
    &responses::Responses,
    &gemini::Gemini,
    &chat::Chat,
];

/// Paths and JSON of one API. Never waits, sends or keeps state.
pub(crate) trait Dialect: Sync {
    /// Returns the kind of request of a POST to this path, if the path belongs to this API.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Reads a request. The path counts too, because some APIs name the model there.
    fn read(&self, path: &str, body: &Value) -> Result<Conversation, Fault>;

    /// Returns the answer to a GET on this path, if this API has one: CLIs ask for the list of
    /// models.
    fn lookup(&self, _path: &str) -> Option<Value> {
        None
    }

    /// Translates a tool call of a script for this dialect's CLI. Scripts name tools as Claude Code
    /// does, so that one script works everywhere. A name without counterpart stays unchanged.
    fn tool(&self, call: ToolCall) -> ToolCall {
        call
    }

    /// Refuses a history that the real API would refuse.
    fn check(&self, body: &Value) -> Result<(), Fault>;

    /// Returns the answer to a request for a token count.
    fn token_count(&self, bytes: usize) -> Value;

    /// Returns the answer in one piece.
    fn whole(&self, answer: &Answer) -> Value;

    /// Returns the answer as a stream.
    fn frames(&self, answer: &Answer) -> Vec<Frame>;

    /// Returns the stream of a failure that this API reports after it has begun to answer, not by a
    /// status.
    fn failure_frames(&self, _fault: &Fault) -> Option<Vec<Frame>> {
        None
    }

    /// Returns the body of a failure.
    fn failure(&self, fault: &Fault) -> Value;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Generate,
    CountTokens,
}

/// A piece of a stream. Its tag lets delivery stop at the right place without knowing the dialect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) part: Part,
    pub(crate) bytes: String,
}

impl Frame {
    /// A server-sent event without a name.
    fn data(part: Part, data: &Value) -> Self {
        let bytes = format!("data: {data}\n\n");
        Self { part, bytes }
    }

    /// A server-sent event with a name.
    fn event(part: Part, name: &str, data: &Value) -> Self {
        let bytes = format!("event: {name}\ndata: {data}\n\n");
        Self { part, bytes }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Part {
    /// Comes before any content.
    Opening,
    /// Carries one piece of the text.
    Text,
    /// Everything else.
    Rest,
}

/// Returns the dialect that owns this path.
pub(crate) fn speaking(path: &str) -> Option<(&'static dyn Dialect, Endpoint)> {
    ALL.iter()
        .find_map(|dialect| dialect.endpoint(path).map(|endpoint| (*dialect, endpoint)))
}

/// Returns the answer to a GET on this path.
pub(crate) fn looked_up(path: &str) -> Option<Value> {
    ALL.iter().find_map(|dialect| dialect.lookup(path))
}

/// Returns the failure body for a path that no dialect owns.
pub(crate) fn stranger(fault: &Fault) -> Value {
    anthropic::Anthropic.failure(fault)
}

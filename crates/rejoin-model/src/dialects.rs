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

/// Every dialect, asked in this order whether a path is theirs.
const ALL: &[&dyn Dialect] = &[
    &anthropic::Anthropic,
    &responses::Responses,
    &gemini::Gemini,
    &chat::Chat,
];

/// One API's paths and JSON. Nothing here waits, sends or keeps state.
pub(crate) trait Dialect: Sync {
    /// What a POST to this path asks for, if the path belongs to this API.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Reads a request; the path counts too, as some APIs name the model there.
    fn read(&self, path: &str, body: &Value) -> Result<Conversation, Fault>;

    /// The answer to a GET on this path, if this API has one: CLIs ask which models there are.
    fn lookup(&self, _path: &str) -> Option<Value> {
        None
    }

    /// A tool call of a script as this dialect's CLI knows it. Scripts name tools the way Claude
    /// Code does, so that one script runs everywhere; a name without counterpart stays as it is.
    fn tool(&self, call: ToolCall) -> ToolCall {
        call
    }

    /// Refuses a history the real API would refuse.
    fn check(&self, body: &Value) -> Result<(), Fault>;

    /// The answer to a question about the size of a request.
    fn token_count(&self, bytes: usize) -> Value;

    /// The answer in one piece.
    fn whole(&self, answer: &Answer) -> Value;

    /// The answer as it is streamed.
    fn frames(&self, answer: &Answer) -> Vec<Frame>;

    /// A failure that this API tells in a stream it has begun, not by a status.
    fn failure_frames(&self, _fault: &Fault) -> Option<Vec<Frame>> {
        None
    }

    /// The body of a failure.
    fn failure(&self, fault: &Fault) -> Value;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Endpoint {
    Generate,
    CountTokens,
}

/// A piece of a stream, tagged so that delivery can stop at the right place without knowing the
/// dialect.
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

/// The dialect that owns this path.
pub(crate) fn speaking(path: &str) -> Option<(&'static dyn Dialect, Endpoint)> {
    ALL.iter()
        .find_map(|dialect| dialect.endpoint(path).map(|endpoint| (*dialect, endpoint)))
}

/// What a GET on this path answers.
pub(crate) fn looked_up(path: &str) -> Option<Value> {
    ALL.iter().find_map(|dialect| dialect.lookup(path))
}

/// The failure body for a path that no dialect owns.
pub(crate) fn stranger(fault: &Fault) -> Value {
    anthropic::Anthropic.failure(fault)
}

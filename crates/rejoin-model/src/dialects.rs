//! The wire formats the model speaks. A new one is a file here and a line in [`ALL`].

mod anthropic;

use serde_json::Value;

use crate::{
    answer::{Answer, Fault},
    conversation::Conversation,
};

/// Every dialect, asked in this order whether a path is theirs.
const ALL: &[&dyn Dialect] = &[&anthropic::Anthropic];

/// One API's paths and JSON. Nothing here waits, sends or keeps state.
pub(crate) trait Dialect: Sync {
    /// What a POST to this path asks for, if the path belongs to this API.
    fn endpoint(&self, path: &str) -> Option<Endpoint>;

    /// Reads a request; the path counts too, as some APIs name the model there.
    fn read(&self, path: &str, body: &Value) -> Result<Conversation, Fault>;

    /// Refuses a history the real API would refuse.
    fn check(&self, body: &Value) -> Result<(), Fault>;

    /// The answer to a question about the size of a request.
    fn token_count(&self, bytes: usize) -> Value;

    /// The answer in one piece.
    fn whole(&self, answer: &Answer) -> Value;

    /// The answer as it is streamed.
    fn frames(&self, answer: &Answer) -> Vec<Frame>;

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

/// The failure body for a path that no dialect owns.
pub(crate) fn stranger(fault: &Fault) -> Value {
    anthropic::Anthropic.failure(fault)
}

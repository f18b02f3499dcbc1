//! Events of a turn: agent-neutral, ordered, durable. Their JSON is a contract: fields may be
//! added, never renamed, and readers ignore unknown types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ConversationId, QuestionId, TurnId};
use crate::question::{Asked, Given, QuestionKind};
use crate::tool::{ToolKind, tool_subject};
use crate::usage::{Context, Usage};

/// An event as stored and shown. `seq` is unique in the store, and events become visible in its
/// order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    pub seq: i64,
    pub conversation_id: ConversationId,
    /// `None`: the event concerns the conversation as a whole.
    pub turn_id: Option<TurnId>,
    /// Time in RFC 3339.
    pub at: String,
    #[serde(flatten)]
    pub body: EventBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
pub enum EventBody {
    #[serde(rename = "turn.accepted")]
    TurnAccepted { message_id: crate::ids::MessageId },
    #[serde(rename = "turn.decided")]
    TurnDecided {
        verdict: String,
        reason: Option<String>,
        checks: Value,
        sent: Value,
    },
    #[serde(rename = "turn.started")]
    TurnStarted {
        session_id: Option<String>,
        model: Option<String>,
        version: Option<String>,
        tools: Vec<String>,
        permission: Option<String>,
    },
    #[serde(rename = "turn.ended")]
    TurnEnded { status: String, summary: String },
    #[serde(rename = "text.delta")]
    TextDelta { text: String },
    #[serde(rename = "text")]
    Text {
        text: String,
        /// Set for text of a sub-agent, which is never part of the answer.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent_tool: Option<String>,
    },
    #[serde(rename = "thinking")]
    Thinking { text: String },
    #[serde(rename = "tool.call")]
    ToolCall {
        id: String,
        tool: String,
        input: Value,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent_tool: Option<String>,
        /// Kind of the tool, whatever the agent calls it. Not stored: derived when shown.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        kind: Option<ToolKind>,
        /// Subject of the call on one line. Not stored: derived when shown.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        subject: Option<String>,
    },
    #[serde(rename = "tool.result")]
    ToolResult {
        id: String,
        is_error: bool,
        text: String,
        /// Exit code of a command, if the agent reports it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        exit_code: Option<i64>,
    },
    #[serde(rename = "file.changed")]
    FileChanged { path: String, tool: String },
    #[serde(rename = "question")]
    Question {
        id: String,
        /// Id under which the question can be answered. `None`: no person can answer it.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        question_id: Option<QuestionId>,
        questions: Value,
    },
    #[serde(rename = "approval")]
    Approval {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        question_id: Option<QuestionId>,
        tool: String,
        input: Value,
    },
    #[serde(rename = "answered")]
    Answered {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        question_id: Option<QuestionId>,
        decision: String,
        message: Option<String>,
        #[serde(skip_serializing_if = "BTreeMap::is_empty", default)]
        answers: BTreeMap<String, Vec<String>>,
        #[serde(skip_serializing_if = "Option::is_none", default)]
        by: Option<String>,
    },
    /// Decision about the request of a turn for a higher tier.
    #[serde(rename = "escalation")]
    Escalation {
        requested: Option<String>,
        reason: String,
        decision: String,
        checks: Value,
        /// Turn that the climb began.
        next_turn_id: Option<TurnId>,
    },
    #[serde(rename = "todo")]
    Todo { items: Value },
    #[serde(rename = "usage")]
    Usage {
        #[serde(flatten)]
        usage: Usage,
        context: Option<Context>,
    },
    #[serde(rename = "compacted")]
    Compacted {
        trigger: String,
        before: Option<u64>,
        after: Option<u64>,
    },
    #[serde(rename = "notice")]
    Notice { level: String, message: String },
    #[serde(rename = "history.changed")]
    HistoryChanged {
        change: String,
        affected: Value,
        /// The message that was changed, if it was one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        message_id: Option<crate::ids::MessageId>,
        /// Messages that were removed from the history, and put back into it.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        removed: Vec<crate::ids::MessageId>,
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        restored: Vec<crate::ids::MessageId>,
    },
    #[serde(rename = "conversation.created")]
    ConversationCreated {
        #[serde(skip_serializing_if = "Option::is_none", default)]
        parent_id: Option<ConversationId>,
    },
    #[serde(rename = "conversation.changed")]
    ConversationChanged {
        /// Names of the changed fields.
        fields: Vec<String>,
    },
    #[serde(rename = "conversation.deleted")]
    ConversationDeleted {},
    /// A line that the parser does not understand, unchanged.
    #[serde(rename = "raw")]
    Raw { line: String },
}

macro_rules! kinds {
    ($($variant:ident => $kind:literal,)+) => {
        impl EventBody {
            /// Every event type, in the order of the reference page.
            pub const KINDS: &'static [&'static str] = &[$($kind),+];

            /// Returns the event type, as the field `type` of the JSON has it.
            pub fn kind(&self) -> &'static str {
                match self { $(Self::$variant { .. } => $kind),+ }
            }
        }
    };
}

kinds! {
    TurnAccepted => "turn.accepted",
    TurnDecided => "turn.decided",
    TurnStarted => "turn.started",
    TurnEnded => "turn.ended",
    TextDelta => "text.delta",
    Text => "text",
    Thinking => "thinking",
    ToolCall => "tool.call",
    ToolResult => "tool.result",
    FileChanged => "file.changed",
    Question => "question",
    Approval => "approval",
    Answered => "answered",
    Escalation => "escalation",
    Todo => "todo",
    Usage => "usage",
    Compacted => "compacted",
    Notice => "notice",
    HistoryChanged => "history.changed",
    ConversationCreated => "conversation.created",
    ConversationChanged => "conversation.changed",
    ConversationDeleted => "conversation.deleted",
    Raw => "raw",
}

impl EventBody {
    /// Builds the event of a question. `id` is the id under which it can be answered.
    pub fn asked(asked: &Asked, id: Option<QuestionId>) -> Self {
        match asked.kind {
            QuestionKind::Question => Self::Question {
                id: asked.call_id.clone(),
                question_id: id,
                questions: serde_json::to_value(&asked.questions).unwrap_or_default(),
            },
            QuestionKind::Approval => Self::Approval {
                id: asked.call_id.clone(),
                question_id: id,
                tool: asked.tool.clone(),
                input: asked.input.clone(),
            },
        }
    }

    pub fn answered(call_id: &str, id: QuestionId, given: &Given, by: &str) -> Self {
        Self::Answered {
            id: call_id.to_owned(),
            question_id: Some(id),
            decision: given.decision.to_string(),
            message: given.message.clone(),
            answers: given.answers.clone(),
            by: Some(by.to_owned()),
        }
    }

    /// Adds the fields that are derived from others when the event is shown.
    #[must_use]
    pub fn described(mut self) -> Self {
        if let Self::ToolCall {
            tool,
            input,
            kind,
            subject,
            ..
        } = &mut self
        {
            *kind = Some(ToolKind::of(tool));
            *subject = Some(tool_subject(tool, input));
        }
        self
    }

    /// Builds the event of changed fields of a conversation.
    pub fn changed<'a>(fields: impl IntoIterator<Item = &'a str>) -> Self {
        Self::ConversationChanged {
            fields: fields.into_iter().map(str::to_owned).collect(),
        }
    }

    pub fn notice(message: impl Into<String>) -> Self {
        Self::Notice {
            level: "info".into(),
            message: message.into(),
        }
    }

    pub fn warning(message: impl Into<String>) -> Self {
        Self::Notice {
            level: "warning".into(),
            message: message.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_type_is_the_kind() {
        let bodies = [
            EventBody::Text {
                text: "x".into(),
                parent_tool: None,
            },
            EventBody::TextDelta { text: "x".into() },
            EventBody::notice("x"),
            EventBody::Raw { line: "x".into() },
            EventBody::Usage {
                usage: Usage::default(),
                context: None,
            },
        ];
        for body in bodies {
            let json = serde_json::to_value(&body).unwrap();
            assert_eq!(json["type"], body.kind());
            assert_eq!(serde_json::from_value::<EventBody>(json).unwrap(), body);
        }
    }
}

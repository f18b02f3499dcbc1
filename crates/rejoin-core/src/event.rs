//! What happened in a turn, agent-neutral, in order, durable. The JSON is a contract: fields may be
//! added, none renamed; readers ignore unknown types.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ids::{ConversationId, QuestionId, TurnId};
use crate::question::{Asked, Given, QuestionKind};
use crate::usage::{Context, Usage};

/// An event as stored and shown. `seq` is one store-wide number, visible in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredEvent {
    pub seq: i64,
    pub conversation_id: ConversationId,
    /// None: it is of the conversation as a whole.
    pub turn_id: Option<TurnId>,
    /// RFC 3339.
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
        /// Set for what a sub-agent said: never part of the answer.
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
    },
    #[serde(rename = "tool.result")]
    ToolResult {
        id: String,
        is_error: bool,
        text: String,
    },
    #[serde(rename = "file.changed")]
    FileChanged { path: String, tool: String },
    #[serde(rename = "question")]
    Question {
        id: String,
        /// Under which it can be answered; none: nobody is there who could.
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
    HistoryChanged { change: String, affected: Value },
    /// A line nobody here understands, kept as it came.
    #[serde(rename = "raw")]
    Raw { line: String },
}

impl EventBody {
    pub fn kind(&self) -> &'static str {
        match self {
            Self::TurnAccepted { .. } => "turn.accepted",
            Self::TurnDecided { .. } => "turn.decided",
            Self::TurnStarted { .. } => "turn.started",
            Self::TurnEnded { .. } => "turn.ended",
            Self::TextDelta { .. } => "text.delta",
            Self::Text { .. } => "text",
            Self::Thinking { .. } => "thinking",
            Self::ToolCall { .. } => "tool.call",
            Self::ToolResult { .. } => "tool.result",
            Self::FileChanged { .. } => "file.changed",
            Self::Question { .. } => "question",
            Self::Approval { .. } => "approval",
            Self::Answered { .. } => "answered",
            Self::Todo { .. } => "todo",
            Self::Usage { .. } => "usage",
            Self::Compacted { .. } => "compacted",
            Self::Notice { .. } => "notice",
            Self::HistoryChanged { .. } => "history.changed",
            Self::Raw { .. } => "raw",
        }
    }

    /// `id`: under which it can be answered.
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

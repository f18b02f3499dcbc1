//! The request to send a message: the body of `POST /api/send`, and what `rejoin send` sends.
//!
//! A new option of a turn is a field of [`MessageRequest`], a line in the builder of
//! `rejoin-runner/src/send.rs` and a flag of `rejoin send`.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use rejoin_core::{ConversationId, Tiers};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::fields::has_control;
use crate::questions::LateAnswer;
use crate::request::IfBusy;

/// Longest name of an attachment, in bytes: that of a path.
const NAME: usize = 4096;
/// Longest text of one message with its attachments, in bytes.
const TEXT: usize = 8 << 20;

/// A file that comes with a message. Its text becomes part of the message, so that every later agent
/// sees it too.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct Attachment {
    pub name: String,
    pub text: String,
}

/// Defaults of the sender's own configuration; without a value the daemon's default counts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct SenderDefaults {
    /// Working folder of a new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Agent of a new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Permission of a new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Scope of a new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Models by agent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub models: BTreeMap<String, String>,
    /// Tiers of the sender; none: those of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub tiers: Option<Tiers>,
}

/// A message with the options of its turn, and the conversation: by id, or by a key, under which it
/// is created if it does not exist; by neither a new one. Unset options are not sent, so that an
/// older daemon need not know them.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct MessageRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// Title of a new conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Scope of a new conversation: `full` or `agent`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<String>,
    /// Defaults where neither the message nor the conversation has a value.
    #[serde(default, skip_serializing_if = "is_default")]
    pub defaults: SenderDefaults,
    /// Text of the message.
    pub text: String,
    /// Text files that belong to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attachments: Vec<Attachment>,
    /// Agent that answers; none: the agent of the newest turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Standing text of the product that embeds rejoin: sent once, and again when it changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// Start a new session with the transcript.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh_session: bool,
    /// Refuse the turn rather than send the transcript.
    #[serde(default, skip_serializing_if = "is_default")]
    pub no_reseed: bool,
    /// Resume also in another folder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub relocate: bool,
    /// `read-only`, `edit`, `full` or `ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Exactly these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Not these tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deny_tools: Option<Vec<String>>,
    /// Tier of the configuration: its agent, model, permissions and limits are those of the turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<String>,
    /// Climb to higher tiers by policy, as long as the agent asks for one.
    #[serde(default, skip_serializing_if = "is_default")]
    pub climb: bool,
    /// Idempotency key: a repeated key returns the same turn and never runs it twice.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_key: Option<String>,
    /// Stop the turn after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Stop the turn if the agent prints nothing for this time; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Stop the turn once it has cost this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Continue a conversation that asks first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm: bool,
    /// Working folder; none: the conversation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Let the agent's CLI read /commands and @files in the message.
    #[serde(default, skip_serializing_if = "is_default")]
    pub raw: bool,
    /// Keep processes that outlive the turn.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keep_background: bool,
    /// `wait`, or `fail`: then nothing is kept.
    #[serde(default, skip_serializing_if = "is_default")]
    pub if_busy: IfBusy,
    /// Receives a signed notification when the turn waits, and when it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notify_url: Option<String>,
    /// Set if the message answers a question whose process is gone.
    #[serde(skip)]
    pub answers: Option<Box<LateAnswer>>,
    /// True if the message is a command or approval step of a workflow. No request can set it.
    #[serde(skip)]
    pub workflow_step: bool,
}

/// The options with which a message runs again.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct RetryRequest {
    /// Agent that answers; none: the agent that answered before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `read-only`, `edit`, `full` or `ask`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission: Option<String>,
    /// Working folder; none: the conversation's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workdir: Option<String>,
    /// Stop the turn after this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// Stop the turn if the agent prints nothing for this time; 0: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u64>,
    /// Stop the turn once it has cost this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_cost_usd: Option<f64>,
    /// Continue a conversation that asks first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub confirm: bool,
}

impl RetryRequest {
    /// Returns the same options as those of a message to this conversation.
    pub fn as_message(&self, conversation: ConversationId) -> MessageRequest {
        MessageRequest {
            conversation_id: Some(conversation.to_string()),
            agent: self.agent.clone(),
            model: self.model.clone(),
            permission: self.permission.clone(),
            workdir: self.workdir.clone(),
            timeout_ms: self.timeout_ms,
            idle_timeout_ms: self.idle_timeout_ms,
            max_cost_usd: self.max_cost_usd,
            confirm: self.confirm,
            ..MessageRequest::default()
        }
    }
}

impl MessageRequest {
    /// Returns the text of the message with its attachments.
    pub fn whole_text(&self) -> Result<String> {
        let usage = |text: String| Err(Error::Usage(text));
        let mut text = self.text.clone();
        for file in &self.attachments {
            let name = &file.name;
            let plain = !name.contains(['"', '<', '>']) && !has_control(name);
            if name.is_empty() || name.len() > NAME || !plain {
                return usage(format!(
                    "an attachment has a name of 1 to {NAME} plain characters"
                ));
            }
            let content = file.text.trim_end();
            let _ = write!(text, "\n\n<file name=\"{name}\">\n{content}\n</file>");
        }
        if text.trim().is_empty() {
            return usage("the message is empty".into());
        }
        if text.contains('\0') {
            return usage("the message contains a NUL character".into());
        }
        if text.len() > TEXT {
            let most = TEXT >> 20;
            return usage(format!("a message has at most {most} MiB"));
        }
        Ok(text)
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

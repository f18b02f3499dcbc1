//! A message of a conversation's history, and the digest of its content.

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::ids::MessageId;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum Role {
    User,
    Assistant,
}

/// State of a message. Only `Ok` and `Unanswered` ones are history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub enum MessageState {
    Ok,
    /// The turn failed, was cancelled or got lost; the next turn shows the message once, marked so.
    Unanswered,
    /// Accepted, its turn not claimed yet: no place in the history.
    Queued,
}

/// Actions of a turn's tools, stored with the answer (or with the unanswered message) so that a
/// re-telling can list them without the events.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ToolNote {
    pub tool: String,
    /// A file or a command line, shortened.
    pub subject: String,
    pub changed_file: bool,
    /// False if it was started and its end never seen: "outcome unknown".
    pub finished: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub id: MessageId,
    /// Position in the conversation, from 1.
    pub seq: i64,
    pub role: Role,
    /// Agent that wrote the message. `None` for the user.
    pub agent: Option<AgentName>,
    pub text: String,
    /// Content hashes of the attachments, in order.
    pub attachments: Vec<String>,
    pub state: MessageState,
    pub trail: Vec<ToolNote>,
}

impl Message {
    /// Digest of the content: role, agent, text, attachments. Excludes id and state, so that
    /// undoing an edit restores it.
    pub fn digest(&self) -> Digest {
        let mut hasher = blake3::Hasher::new_derive_key("rejoin 2026-11 message digest");
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(match self.role {
            Role::User => b"user",
            Role::Assistant => b"assistant",
        });
        field(self.agent.as_ref().map_or("", AgentName::as_str).as_bytes());
        field(self.text.as_bytes());
        for attachment in &self.attachments {
            field(attachment.as_bytes());
        }
        Digest(*hasher.finalize().as_bytes())
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Message {
        Message {
            id: MessageId::from_parts(1, [1; 10]),
            seq: 1,
            role: Role::User,
            agent: None,
            text: text.into(),
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        }
    }

    #[test]
    fn a_digest_is_about_content_only() {
        let a = message("x");
        let mut b = message("x");
        b.id = MessageId::from_parts(2, [2; 10]);
        b.seq = 9;
        b.state = MessageState::Unanswered;
        assert_eq!(a.digest(), b.digest());
        b.text = "y".into();
        assert_ne!(a.digest(), b.digest());
        let mut with_file = message("x");
        with_file.attachments.push("y".into());
        assert_ne!(a.digest(), with_file.digest());
        let mut assistant = message("x");
        assistant.role = Role::Assistant;
        assert_ne!(a.digest(), assistant.digest());
    }
}

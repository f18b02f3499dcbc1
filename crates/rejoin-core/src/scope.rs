//! The part of the history that an agent sees, and the value that identifies it.
//!
//! A session is an immutable replay of a prefix. The value of a scope is the fold of the digests of
//! its messages in order. A session may be resumed if the value it has seen is the value of a
//! prefix of today's scope. So edits, truncation and boundary changes invalidate exactly the
//! sessions they affect, and undoing them makes those usable again; there is no counter to
//! increment.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::ids::MessageId;
use crate::message::{Digest, Message, Role};

/// Selects the messages that an agent sees. A setting of the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Every agent sees all messages.
    #[default]
    Full,
    /// An agent sees the messages after the last answer of another agent.
    Agent,
}

impl Scope {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Full => "full",
            Self::Agent => "agent",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ScopeValue(pub [u8; 32]);

impl ScopeValue {
    /// Returns the value of an empty scope. Under scope `agent` it begins with the id of the
    /// boundary message, so that replacing that message changes it and editing its text does not
    /// . Without a boundary both scopes begin with the same value, because they show
    /// the same messages.
    pub fn begin(boundary: Option<MessageId>) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("rejoin 2026-11 scope value");
        if let Some(id) = boundary {
            hasher.update(id.uuid().as_bytes());
        }
        Self(*hasher.finalize().as_bytes())
    }

    #[must_use]
    pub fn fold(self, digest: &Digest) -> Self {
        let mut bytes = [0; 64];
        bytes[..32].copy_from_slice(&self.0);
        bytes[32..].copy_from_slice(&digest.0);
        Self(*blake3::hash(&bytes).as_bytes())
    }
}

impl fmt::Debug for ScopeValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::hex(&self.0[..6]))
    }
}

/// Part of a history that one agent sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scoped<'a> {
    pub boundary: Option<MessageId>,
    pub messages: &'a [Message],
}

impl Scoped<'_> {
    pub fn value(&self) -> ScopeValue {
        self.value_at(self.messages.len())
    }

    /// Returns the value of the first `count` messages.
    pub fn value_at(&self, count: usize) -> ScopeValue {
        let begin = ScopeValue::begin(self.boundary);
        self.messages
            .iter()
            .take(count)
            .fold(begin, |value, m| value.fold(&m.digest()))
    }

    pub fn answered(&self) -> bool {
        self.messages.iter().any(|m| m.role == Role::Assistant)
    }
}

/// Cuts a history to the part that `agent` sees.
pub fn in_scope<'a>(scope: Scope, agent: &AgentName, history: &'a [Message]) -> Scoped<'a> {
    let foreign = |m: &Message| m.role == Role::Assistant && m.agent.as_ref() != Some(agent);
    let cut = match scope {
        Scope::Full => None,
        Scope::Agent => history.iter().rposition(foreign),
    };
    match cut {
        None => Scoped {
            boundary: None,
            messages: history,
        },
        Some(at) => Scoped {
            boundary: Some(history[at].id),
            messages: &history[at + 1..],
        },
    }
}

/// Returns true if a change altered the part of the history that this agent sees; its epoch then
/// increases. Compares the results, not the positions of the change.
pub fn scope_differs(
    scope: Scope,
    agent: &AgentName,
    before: &[Message],
    after: &[Message],
) -> bool {
    in_scope(scope, agent, before).value() != in_scope(scope, agent, after).value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::MessageState;

    fn said(n: u8, agent: Option<&str>, text: &str) -> Message {
        Message {
            id: MessageId::from_parts(u64::from(n), [n; 10]),
            seq: i64::from(n),
            role: if agent.is_some() {
                Role::Assistant
            } else {
                Role::User
            },
            agent: agent.map(|a| AgentName::new(a).unwrap()),
            text: text.into(),
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        }
    }

    fn mixed() -> Vec<Message> {
        vec![
            said(1, None, "a"),
            said(2, Some("codex"), "b"),
            said(3, None, "c"),
            said(4, Some("claude"), "d"),
        ]
    }

    fn claude() -> AgentName {
        AgentName::new("claude").unwrap()
    }

    ///
    #[test]
    fn scope_agent_is_cut_after_the_last_foreign_answer() {
        let history = mixed();
        let scoped = in_scope(Scope::Agent, &claude(), &history);
        assert_eq!(scoped.boundary, Some(history[1].id));
        assert_eq!(scoped.messages, &history[2..]);
        assert_eq!(
            in_scope(Scope::Full, &claude(), &history).messages,
            &history[..]
        );
    }

    /// editing the text of the boundary changes nothing for the agent behind it.
    #[test]
    fn editing_the_boundary_does_not_count() {
        let (before, mut after) = (mixed(), mixed());
        after[1].text = "other".into();
        assert!(!scope_differs(Scope::Agent, &claude(), &before, &after));
        assert!(scope_differs(Scope::Full, &claude(), &before, &after));
    }

    /// removing or replacing the boundary does count.
    #[test]
    fn truncating_or_retrying_the_boundary_counts() {
        let before = mixed();
        assert!(scope_differs(
            Scope::Agent,
            &claude(),
            &before,
            &before[..1]
        ));
        let mut retried = mixed();
        retried[1].id = MessageId::from_parts(9, [9; 10]);
        assert!(scope_differs(Scope::Agent, &claude(), &before, &retried));
    }

    ///
    #[test]
    fn an_edit_counts_where_it_is_seen_and_undoing_it_restores_the_value() {
        let (before, mut after) = (mixed(), mixed());
        after[2].text = "other".into();
        assert!(scope_differs(Scope::Agent, &claude(), &before, &after));
        after[2].text = "c".into();
        assert!(!scope_differs(Scope::Agent, &claude(), &before, &after));
        let codex = AgentName::new("codex").unwrap();
        after[2].text = "other".into();
        assert!(!scope_differs(Scope::Agent, &codex, &before, &after));
    }

    #[test]
    fn both_scopes_agree_without_a_boundary() {
        let history = &mixed()[2..];
        let [full, own] =
            [Scope::Full, Scope::Agent].map(|s| in_scope(s, &claude(), history).value());
        assert_eq!(full, own);
    }
}

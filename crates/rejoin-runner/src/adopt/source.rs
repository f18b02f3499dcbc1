//! Fingerprint of the messages that were taken in from a session which we do not write to, for
//! detecting new ones later.

use rejoin_agents::SessionMessage;
use rejoin_core::Role;
use serde::{Deserialize, Serialize};

use super::find::Found;

/// Stored with the adoption. The path is only a hint: the session is searched for again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) path: String,
    /// Stamp that is unchanged as long as the session was not written.
    pub(super) stamp: String,
    /// Number of messages that were taken in, and a hash of them.
    pub(super) messages: u64,
    fold: String,
    /// Length in bytes of the last of them.
    #[serde(default)]
    last_length: u64,
    /// True if our session is a copy.
    pub(super) copied: bool,
}

impl Source {
    pub(super) fn of(found: &Found, said: &[SessionMessage], copied: bool) -> Self {
        Self {
            path: found.path.clone(),
            stamp: found.stamp.clone(),
            messages: said.len() as u64,
            fold: fold(said),
            last_length: said.last().map_or(0, |last| last.text.len() as u64),
            copied,
        }
    }

    /// Returns the messages that follow those that were taken in, or None if the session no longer
    /// begins with them. The last answer may have been incomplete then: its remainder becomes a
    /// message of its own.
    pub(super) fn since(&self, said: &[SessionMessage]) -> Option<Vec<SessionMessage>> {
        let taken = usize::try_from(self.messages).ok()?;
        let (before, after) = said.split_at_checked(taken)?;
        if fold(before) == self.fold {
            return Some(after.to_vec());
        }
        let (last, first) = before.split_last()?;
        let length = usize::try_from(self.last_length).ok()?;
        let then = last.text.get(..length).filter(|_| length > 0)?;
        let was = SessionMessage {
            text: then.to_owned(),
            ..last.clone()
        };
        let begun: Vec<SessionMessage> = first.iter().cloned().chain([was]).collect();
        if last.role != Role::Assistant || fold(&begun) != self.fold {
            return None;
        }
        let rest = SessionMessage {
            text: last.text[length..].trim_start().to_owned(),
            ..last.clone()
        };
        Some([rest].into_iter().chain(after.iter().cloned()).collect())
    }
}

fn fold(said: &[SessionMessage]) -> String {
    let mut hasher = blake3::Hasher::new();
    for one in said {
        let role = match one.role {
            Role::User => b"u",
            Role::Assistant => b"a",
        };
        hasher.update(role);
        hasher.update(&(one.text.len() as u64).to_le_bytes());
        hasher.update(one.text.as_bytes());
    }
    hasher.finalize().to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_follows_what_was_taken_in() {
        let said = |texts: &[&str]| -> Vec<SessionMessage> {
            let one = |text: &&str| SessionMessage {
                role: Role::User,
                text: (*text).to_owned(),
                trail: vec![],
                at: None,
            };
            texts.iter().map(one).collect()
        };
        let taken = said(&["a", "b"]);
        let source = Source {
            path: String::new(),
            stamp: String::new(),
            messages: 2,
            fold: fold(&taken),
            last_length: 1,
            copied: true,
        };
        let new = |texts: &[&str]| source.since(&said(texts)).map(|new| new.len());
        assert_eq!(new(&["a", "b"]), Some(0));
        assert_eq!(new(&["a", "b", "c", "d"]), Some(2));
        assert_eq!(new(&["a", "x", "c"]), None);
        assert_eq!(new(&["ab", "", "c"]), None);
        assert_eq!(new(&["a"]), None);
    }

    /// The session was adopted while its last answer was still being written.
    #[test]
    fn an_answer_that_grew_is_told_on() {
        let one = |role, text: &str| SessionMessage {
            role,
            text: text.to_owned(),
            trail: vec![],
            at: None,
        };
        let taken = [one(Role::User, "do it"), one(Role::Assistant, "I look")];
        let source = Source {
            path: String::new(),
            stamp: String::new(),
            messages: 2,
            fold: fold(&taken),
            last_length: 6,
            copied: false,
        };
        let today = [
            one(Role::User, "do it"),
            one(Role::Assistant, "I look\n\nDone now"),
            one(Role::User, "thanks"),
        ];
        let new = source.since(&today).unwrap();
        let texts: Vec<&str> = new.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["Done now", "thanks"]);
        assert_eq!(
            source.since(&[one(Role::User, "do it"), one(Role::Assistant, "You look")]),
            None
        );
    }
}

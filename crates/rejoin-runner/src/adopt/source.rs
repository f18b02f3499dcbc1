//! What was taken in of a session that is not written to by us: to tell later what is new in it.

use rejoin_agents::Said;
use rejoin_core::Role;
use serde::{Deserialize, Serialize};

use super::find::Found;

/// Kept with the adoption. Its path is evidence: the session is looked for anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Source {
    pub(super) path: String,
    /// Unchanged: nobody wrote to it.
    pub(super) stamp: String,
    /// So many messages were taken in, and what they said.
    pub(super) messages: u64,
    fold: String,
    /// Ours is a copy.
    pub(super) copied: bool,
}

impl Source {
    pub(super) fn of(found: &Found, said: &[Said], copied: bool) -> Self {
        Self {
            path: found.path.clone(),
            stamp: found.stamp.clone(),
            messages: said.len() as u64,
            fold: fold(said),
            copied,
        }
    }

    /// What follows what was taken in; none: it does not begin with that any more.
    pub(super) fn since<'s>(&self, said: &'s [Said]) -> Option<&'s [Said]> {
        let taken = usize::try_from(self.messages).ok()?;
        let (before, after) = said.split_at_checked(taken)?;
        (fold(before) == self.fold).then_some(after)
    }
}

fn fold(said: &[Said]) -> String {
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
        let said = |texts: &[&str]| -> Vec<Said> {
            let one = |text: &&str| Said {
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
            copied: true,
        };
        let new = |texts: &[&str]| source.since(&said(texts)).map(<[Said]>::len);
        assert_eq!(new(&["a", "b"]), Some(0));
        assert_eq!(new(&["a", "b", "c", "d"]), Some(2));
        assert_eq!(new(&["a", "x", "c"]), None);
        assert_eq!(new(&["ab", "", "c"]), None);
        assert_eq!(new(&["a"]), None);
    }
}

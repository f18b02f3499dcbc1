//! How much of a session was confirmed: so many things said, and a fold over them.

use std::fmt;

use super::record::Said;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cursor {
    pub(super) count: usize,
    fold: blake3::Hash,
}

impl Cursor {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (count, fold) = text.split_once(' ')?;
        Some(Self {
            count: count.parse().ok()?,
            fold: blake3::Hash::from_hex(fold).ok()?,
        })
    }

    pub(super) fn of<'a>(said: impl Iterator<Item = &'a Said>) -> Self {
        let nothing = Self {
            count: 0,
            fold: blake3::hash(b""),
        };
        nothing.on(said)
    }

    /// This, and what follows it.
    pub(super) fn on<'a>(&self, said: impl Iterator<Item = &'a Said>) -> Self {
        let mut cursor = self.clone();
        for one in said {
            let (who, text) = match one {
                Said::Prompt { text, .. } => (b"p", text),
                Said::Answer { text } => (b"a", text),
            };
            let mut hasher = blake3::Hasher::new();
            hasher.update(cursor.fold.as_bytes());
            hasher.update(who);
            hasher.update(text.as_bytes());
            cursor.fold = hasher.finalize();
            cursor.count += 1;
        }
        cursor
    }

    /// Does this list begin with what was confirmed?
    pub(super) fn begins<'a>(&self, said: impl Iterator<Item = &'a Said>) -> bool {
        Self::of(said.take(self.count)) == *self
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.fold)
    }
}

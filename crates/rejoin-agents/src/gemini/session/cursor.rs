//! Confirmed part of a session: the number of its messages and a running hash over them.

use std::fmt;

use super::record::StoredText;

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

    pub(super) fn of<'a>(said: impl Iterator<Item = &'a StoredText>) -> Self {
        let nothing = Self {
            count: 0,
            fold: blake3::hash(b""),
        };
        nothing.on(said)
    }

    /// Returns a cursor that also covers the following messages.
    pub(super) fn on<'a>(&self, said: impl Iterator<Item = &'a StoredText>) -> Self {
        let mut cursor = self.clone();
        for one in said {
            let (who, text) = match one {
                StoredText::Prompt { text, .. } => (b"p", text),
                StoredText::Answer { text } => (b"a", text),
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

    /// True if this list begins with the confirmed messages.
    pub(super) fn begins<'a>(&self, said: impl Iterator<Item = &'a StoredText>) -> bool {
        Self::of(said.take(self.count)) == *self
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.count, self.fold)
    }
}

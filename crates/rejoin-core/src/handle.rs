//! Short names for users to type: the random hex digits of an id written `z`..`k`, as jj does, so
//! that they never look like a number, a commit or a word.

use std::fmt;

use crate::ids::ConversationId;

/// Minimum number of letters that a handle is shown with.
const SHORTEST: usize = 4;

/// All letters of one id. Shown cut to the shortest unique prefix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Handle(String);

impl Handle {
    pub fn of(id: ConversationId) -> Self {
        let hex = id.uuid().simple().to_string();
        // Digits 0..12 are the time, 12 the version, 16 the variant; the rest is random.
        Self(
            hex[13..16]
                .chars()
                .chain(hex[17..].chars())
                .map(letter)
                .collect(),
        )
    }

    pub fn letters(&self) -> &str {
        &self.0
    }

    /// Returns the shortest prefix that no neighbour shares, with at least four letters.
    pub fn short<'a>(&'a self, neighbours: impl IntoIterator<Item = &'a str>) -> &'a str {
        &self.0[..self.unique(neighbours).clamp(SHORTEST, self.0.len())]
    }

    /// Returns the number of letters that make the handle unique. With few conversations that is
    /// less than it is shown with.
    pub fn unique<'a>(&self, neighbours: impl IntoIterator<Item = &'a str>) -> usize {
        let shared = |other: &str| {
            self.0
                .bytes()
                .zip(other.bytes())
                .take_while(|(a, b)| a == b)
                .count()
        };
        let needed = neighbours.into_iter().map(|n| shared(n) + 1).max();
        needed.unwrap_or(1)
    }

    /// Returns true if the text can only be a handle or the beginning of one.
    pub fn looks_like(text: &str) -> bool {
        !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| (b'k'..=b'z').contains(&b))
    }
}

fn letter(hex: char) -> char {
    let digit = hex.to_digit(16).unwrap_or(0) as u8;
    char::from(b'z' - digit)
}

/// A reference as typed: `tmqx` is a conversation, `tmqx:4` its fourth message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandleRef<'a> {
    pub conversation: &'a str,
    pub message: Option<i64>,
}

impl<'a> HandleRef<'a> {
    pub fn parse(text: &'a str) -> Self {
        let numbered = text
            .rsplit_once(':')
            .and_then(|(c, n)| Some((c, n.parse::<i64>().ok()?)));
        match numbered {
            Some((conversation, n)) if !conversation.is_empty() && n > 0 => Self {
                conversation,
                message: Some(n),
            },
            _ => Self {
                conversation: text,
                message: None,
            },
        }
    }
}

impl fmt::Display for HandleRef<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.conversation)?;
        self.message.map_or(Ok(()), |n| write!(f, ":{n}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_come_from_the_random_part() {
        let id: ConversationId = "01932b54-0000-7abc-8def-0123456789ab".parse().unwrap();
        let handle = Handle::of(id);
        assert_eq!(handle.letters(), "pon".to_owned() + "mlkzyxwvutsrqpo");
        assert_eq!(handle.short([]), "ponm");
        assert_eq!(handle.short(["ponmlzzz"]), "ponmlk");
        assert_eq!((handle.unique([]), handle.unique(["pozz", "xkkk"])), (1, 3));
        assert!(Handle::looks_like("tmqx") && !Handle::looks_like("abcd"));
    }

    #[test]
    fn references() {
        assert_eq!(HandleRef::parse("tmqx:4").message, Some(4));
        assert_eq!(HandleRef::parse("tmqx").message, None);
        assert_eq!(HandleRef::parse("issue:x").conversation, "issue:x");
    }
}

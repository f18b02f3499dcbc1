//! Lines that are written a second time. A CLI that resumes (2.0.77 to 2.1.20; not 2.1.31 and later)
//! makes several messages of a prompt that has several blocks, and appends them with all that followed,
//! under other ids and at the times of the first.

use super::Node;

/// When what was confirmed last was said: from the last prompt to the last message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Span {
    from: i64,
    to: i64,
}

/// What a line says that was said already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The last message: what hangs off it follows from everything that was confirmed.
    Last,
    Earlier,
}

/// So that it is told from the ids beside it.
const SIGN: char = '@';

impl Span {
    pub(super) fn of<'a>(branch: impl Iterator<Item = &'a Node>) -> Option<Self> {
        let mut span = None;
        for node in branch.filter(|node| node.spoken) {
            let Some(at) = node.at else { continue };
            span = match span {
                Some(Self { from, to }) if !node.asks() => Some(Self {
                    from,
                    to: at.max(to),
                }),
                Some(_) | None => Some(Self { from: at, to: at }),
            };
        }
        span
    }

    /// As a cursor has it.
    pub(super) fn read(word: &str) -> Option<Self> {
        let (from, to) = word.strip_prefix(SIGN)?.split_once('-')?;
        let (from, to) = (from.parse().ok()?, to.parse().ok()?);
        Some(Self { from, to })
    }

    pub(super) fn word(self) -> String {
        format!("{SIGN}{}-{}", self.from, self.to)
    }

    /// None: it says something new.
    pub(super) fn has(self, node: &Node) -> Option<Again> {
        let at = node.at.filter(|_| node.spoken)?;
        match at {
            _ if at == self.to => Some(Again::Last),
            _ if (self.from..self.to).contains(&at) => Some(Again::Earlier),
            _ => None,
        }
    }
}

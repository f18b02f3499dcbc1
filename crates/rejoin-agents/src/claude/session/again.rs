//! Lines that are written a second time. A CLI that resumes (1.0.128 to 2.1.20; not 2.1.31 and later)
//! makes several messages of a prompt that has several blocks, and appends them with all that followed,
//! under other ids. From 2.0.77 on they keep their times. What is written again never hangs off what was
//! confirmed, but off what came before it.

use rejoin_core::Version;

use super::Node;
use crate::session::ReadEntry;

/// From here on nothing is written again: whatever looks so was said.
const MENDED: &str = "2.1.31";

/// Does a CLI of this version write lines again?
pub(super) fn repeats(version: String) -> bool {
    Version(version).older_than(&Version(MENDED.to_owned()))
}

/// What was confirmed last, as it would be known again.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LastTurn {
    /// When: from the last prompt to the last message.
    span: Option<(i64, i64)>,
    /// The last message.
    answer: Option<String>,
}

/// What a line says that was said already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    /// The last message: what hangs off it follows from everything that was confirmed.
    Last,
    Earlier,
}

/// So that they are told from the ids beside them.
const TIMES: char = '@';
const ANSWER: char = '#';

impl LastTurn {
    /// Of a branch, or what was known before where it says nothing new.
    pub(super) fn on<'a>(branch: impl Iterator<Item = &'a Node>, before: &Self) -> Self {
        let mut last = Self::default();
        for node in branch.filter(|node| node.spoken && node.repeats) {
            last.answer = print(node);
            let Some(at) = node.at else { continue };
            last.span = match last.span {
                Some((from, _)) if !node.asks() => Some((from, at)),
                Some(_) | None => Some((at, at)),
            };
        }
        if last == Self::default() {
            return before.clone();
        }
        last
    }

    /// Takes a word of a cursor that is meant for it.
    pub(super) fn take(&mut self, word: &str) -> bool {
        if let Some(print) = word.strip_prefix(ANSWER) {
            self.answer = Some(print.to_owned());
            return true;
        }
        let Some((from, to)) = word.strip_prefix(TIMES).and_then(|w| w.split_once('-')) else {
            return false;
        };
        self.span = from.parse().ok().zip(to.parse().ok());
        true
    }

    /// As a cursor has it.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let times = self.span.map(|(from, to)| format!("{TIMES}{from}-{to}"));
        let answer = self.answer.as_ref().map(|print| format!("{ANSWER}{print}"));
        times.into_iter().chain(answer)
    }

    /// None: it says something new.
    pub(super) fn has(&self, node: &Node) -> Option<Again> {
        if !node.repeats {
            return None;
        }
        if self.answer.is_some() && self.answer == print(node) {
            return Some(Again::Last);
        }
        let at = node.at.filter(|_| node.spoken)?;
        match self.span? {
            (_, to) if at == to && !node.asks() => Some(Again::Last),
            (from, to) if (from..=to).contains(&at) => Some(Again::Earlier),
            _ => None,
        }
    }
}

/// Of an answer that its API has given an id: the same words under the same one.
fn print(node: &Node) -> Option<String> {
    let (id, texts) = (
        node.message.as_ref().filter(|id| !id.is_empty())?,
        texts(node),
    );
    let words = format!("{id}\n{}", texts.join("\n"));
    let hash = blake3::hash(words.as_bytes()).to_hex();
    (!texts.is_empty()).then(|| hash.chars().take(24).collect())
}

/// What an agent says in this line.
pub(super) fn texts(node: &Node) -> Vec<&str> {
    let texts = node.entries.iter().filter_map(|entry| match entry {
        ReadEntry::Answer { text, .. } => Some(text.as_str()),
        ReadEntry::Prompt { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
    });
    texts.collect()
}

//! Detection of lines that the CLI writes a second time. When it resumes, a CLI of version 1.0.128
//! to 2.1.20 (not 2.1.31 and later) splits a prompt of several blocks into several messages, and
//! appends them together with all lines that followed, under new ids. From 2.0.77 on they keep
//! their times. A repeated line never descends from the confirmed end, only from an earlier line.

use rejoin_core::Version;

use super::Node;
use crate::session::ReadEntry;

/// First version that repeats no lines. In its sessions, a line that looks repeated is new.
const MENDED: &str = "2.1.31";

/// True if a CLI of this version writes lines a second time.
pub(super) fn repeats(version: String) -> bool {
    Version(version).older_than(&Version(MENDED.to_owned()))
}

/// Last confirmed turn, in a form that recognises its repetition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct LastTurn {
    /// Times of the last prompt and of the last message.
    span: Option<(i64, i64)>,
    /// Fingerprint of the last message.
    answer: Option<String>,
}

/// Kind of a repeated line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeat {
    /// The last message: its descendants follow the confirmed end.
    Last,
    Earlier,
}

/// Prefixes that distinguish these words of a cursor from the ids beside them.
const TIMES: char = '@';
const ANSWER: char = '#';

impl LastTurn {
    /// Determines the last turn of a branch. Returns `before` if the branch has no line that can be
    /// repeated.
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

    /// Parses a word of a cursor. Returns false if the word is not part of this type.
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

    /// Returns the words that store this value in a cursor.
    pub(super) fn words(&self) -> impl Iterator<Item = String> {
        let times = self.span.map(|(from, to)| format!("{TIMES}{from}-{to}"));
        let answer = self.answer.as_ref().map(|print| format!("{ANSWER}{print}"));
        times.into_iter().chain(answer)
    }

    /// Checks for a line that repeats the last turn. None if the line is new.
    pub(super) fn has(&self, node: &Node) -> Option<Repeat> {
        if !node.repeats {
            return None;
        }
        if self.answer.is_some() && self.answer == print(node) {
            return Some(Repeat::Last);
        }
        let at = node.at.filter(|_| node.spoken)?;
        match self.span? {
            (_, to) if at == to && !node.asks() => Some(Repeat::Last),
            (from, to) if (from..=to).contains(&at) => Some(Repeat::Earlier),
            _ => None,
        }
    }
}

/// Returns a fingerprint of an answer with an API id: a hash of the id and the text. None without
/// id or text.
fn print(node: &Node) -> Option<String> {
    let (id, texts) = (
        node.message.as_ref().filter(|id| !id.is_empty())?,
        texts(node),
    );
    let words = format!("{id}\n{}", texts.join("\n"));
    let hash = blake3::hash(words.as_bytes()).to_hex();
    (!texts.is_empty()).then(|| hash.chars().take(24).collect())
}

/// Returns the texts of the agent in this line.
pub(super) fn texts(node: &Node) -> Vec<&str> {
    let texts = node.entries.iter().filter_map(|entry| match entry {
        ReadEntry::Answer { text, .. } => Some(text.as_str()),
        ReadEntry::Prompt { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
    });
    texts.collect()
}

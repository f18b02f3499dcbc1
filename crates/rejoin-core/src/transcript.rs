//! The transcript for a new session: newest turns verbatim, older ones shortened before they are
//! dropped, tool calls as a short list, and a note about everything left out.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::marker::escape;
use crate::message::{Message, MessageState, Role, ToolNote};
use crate::usage::Context;

/// Assumed window of an unknown model, in tokens.
const USUAL_WINDOW: u64 = 200_000;
/// Share of the budget for verbatim messages, in percent.
const VERBATIM: u64 = 75;
/// Length of a shortened older message, in characters.
const SHORT: usize = 480;
/// Maximum number of tool entries per message.
const LEDGER: usize = 12;

/// Maximum size of the transcript, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    pub tokens: u64,
}

impl Budget {
    /// Budget for the catch-up of a resumed session, which must fit into the rest of its window.
    pub fn for_catch_up(context: Option<Context>, prompt: &str) -> Self {
        let window = context.map(|c| c.window).filter(|w| *w > 0);
        let usual = Self::for_window(window, prompt);
        let left = context
            .filter(|c| c.window > 0)
            .map_or(u64::MAX, |c| c.window.saturating_sub(c.used) / 2);
        Self {
            tokens: usual.tokens.min(left),
        }
    }

    /// Returns at most half the size of a request of `bytes` that did not fit the model, so that
    /// repeated tries shrink until one fits.
    #[must_use]
    pub fn after_overflow(self, bytes: u64) -> Self {
        Self {
            tokens: self.tokens.min(bytes / 7),
        }
    }

    /// Budget for a new session: two fifths of the window. The rest is for the agent's own
    /// instructions and the work to come.
    pub fn for_window(window: Option<u64>, prompt: &str) -> Self {
        let window = window.filter(|w| *w > 0).unwrap_or(USUAL_WINDOW);
        Self {
            tokens: (window * 2 / 5).saturating_sub(tokens_of(prompt)),
        }
    }
}

/// Estimates tokens without any vendor's tokenizer, on the high side for all of them.
pub fn tokens_of(text: &str) -> u64 {
    let ascii = text.bytes().filter(u8::is_ascii).count() as u64;
    let other = text.chars().filter(|c| !c.is_ascii()).count() as u64;
    ascii * 2 / 7 + other * 3 / 2 + 1
}

/// A finished transcript.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TranscriptText {
    pub(crate) text: String,
    pub(crate) told: u64,
    pub(crate) shortened: u64,
    pub(crate) left_out: u64,
    agents: BTreeSet<String>,
}

impl TranscriptText {
    /// Returns the agents whose answers it contains.
    pub fn agents(&self) -> impl Iterator<Item = &str> {
        self.agents.iter().map(String::as_str)
    }
}

/// Builds a transcript from messages, newest first, until it is full. So a long history is never
/// loaded completely.
#[derive(Debug)]
pub struct TranscriptBuilder {
    budget: u64,
    used: u64,
    entries: Vec<String>,
    shortened: u64,
    full: bool,
    agents: BTreeSet<String>,
}

impl TranscriptBuilder {
    pub fn new(budget: Budget) -> Self {
        Self {
            budget: budget.tokens,
            used: 0,
            entries: vec![],
            shortened: 0,
            full: false,
            agents: BTreeSet::new(),
        }
    }

    /// Adds the next older message. Returns false if neither it nor any older one fits.
    pub fn push(&mut self, message: &Message) -> bool {
        if self.full {
            return false;
        }
        let words = readable(message);
        let whole = entry(message, &words);
        let verbatim = self.used + tokens_of(&whole) <= self.budget * VERBATIM / 100;
        let told = if verbatim {
            whole
        } else {
            // The newest exchange gets more room than the rest.
            let room = if self.entries.len() < 2 {
                self.budget as usize / 2
            } else {
                SHORT
            };
            let short = shorten(&words, room.max(SHORT));
            self.shortened += u64::from(short != words);
            entry(message, &short)
        };
        let cost = tokens_of(&told);
        if !verbatim && self.used + cost > self.budget && !self.entries.is_empty() {
            self.full = true;
            return false;
        }
        self.used += cost;
        self.entries.push(told);
        self.agents
            .extend(message.agent.as_ref().map(ToString::to_string));
        true
    }

    /// Finishes the transcript. `total` is the number of messages in scope, `earlier` the tool
    /// notes of omitted messages, as far as known.
    pub fn finish(self, total: u64, earlier: &[ToolNote]) -> TranscriptText {
        let told = self.entries.len() as u64;
        let left_out = total.saturating_sub(told);
        let mut text = String::new();
        if left_out > 0 {
            let _ = writeln!(
                text,
                "The first {left_out} of {total} messages are left out for want of room."
            );
            if let Some(ledger) = ledger(earlier, LEDGER * 3) {
                let _ = writeln!(text, "In them: {ledger}");
            }
        }
        if self.shortened > 0 {
            let _ = writeln!(
                text,
                "{} of those that follow are shortened, marked […].",
                self.shortened
            );
        }
        for entry in self.entries.iter().rev() {
            text.push_str(entry);
        }
        TranscriptText {
            text,
            told,
            shortened: self.shortened,
            left_out,
            agents: self.agents,
        }
    }
}

/// Formats one message as an element. Its text is escaped and cannot end the element.
fn entry(message: &Message, words: &str) -> String {
    let by = match (message.role, &message.agent) {
        (Role::User, _) => "user",
        (Role::Assistant, None) => "assistant",
        (Role::Assistant, Some(agent)) => agent.as_str(),
    };
    let mark = match message.state {
        MessageState::Unanswered => " unanswered=\"true\"",
        MessageState::Ok | MessageState::Queued => "",
    };
    let mut out = format!(
        "<said n=\"{}\" by=\"{by}\"{mark}>\n{}\n",
        message.seq,
        escape(words)
    );
    if let Some(ledger) = ledger(&message.trail, LEDGER) {
        let _ = writeln!(out, "</said>\n(tools: {ledger})");
    } else {
        out.push_str("</said>\n");
    }
    out
}

/// Formats tool notes: `changed a.rs, b.rs; used cargo test; started sleep 9 (outcome unknown)`.
fn ledger(trail: &[ToolNote], most: usize) -> Option<String> {
    if trail.is_empty() {
        return None;
    }
    let list = |verb: &str, keep: &dyn Fn(&ToolNote) -> bool, tail: &str| {
        let mut seen: Vec<&str> = vec![];
        for note in trail.iter().filter(|n| keep(n)) {
            let subject = if note.subject.is_empty() {
                &note.tool
            } else {
                &note.subject
            };
            if !seen.contains(&subject.as_str()) {
                seen.push(subject);
            }
        }
        let more = seen.len().saturating_sub(most);
        let skipped = if more > 0 {
            format!(" and {more} more")
        } else {
            String::new()
        };
        seen.truncate(most);
        (!seen.is_empty()).then(|| format!("{verb} {}{skipped}{tail}", seen.join(", ")))
    };
    let parts: Vec<String> = [
        list("changed", &|n| n.finished && n.changed_file, ""),
        list("used", &|n| n.finished && !n.changed_file, ""),
        list("started", &|n| !n.finished, " (outcome unknown)"),
    ]
    .into_iter()
    .flatten()
    .collect();
    Some(escape(&parts.join("; ")))
}

/// Removes the tags of question forms from an earlier answer and keeps their text: those questions
/// were answered or dropped.
fn readable(message: &Message) -> String {
    if message.role == Role::User || !message.text.contains("question-form") {
        return message.text.clone();
    }
    let mut out = String::with_capacity(message.text.len());
    let mut rest = message.text.as_str();
    while let Some(at) = rest.find('<') {
        let tag = rest[at + 1..].strip_prefix('/').unwrap_or(&rest[at + 1..]);
        match rest[at..].find('>') {
            Some(end) if tag.starts_with("question-form") => {
                out.push_str(&rest[..at]);
                rest = &rest[at + end + 1..];
            }
            _ => {
                out.push_str(&rest[..=at]);
                rest = &rest[at + 1..];
            }
        }
    }
    out.push_str(rest);
    out
}

fn shorten(text: &str, room: usize) -> String {
    let count = text.chars().count();
    if count <= room {
        return text.to_owned();
    }
    let head: String = text.chars().take(room * 2 / 3).collect();
    let tail: String = text.chars().skip(count - room / 3).collect();
    format!(
        "{head}\n[… {} characters left out …]\n{tail}",
        count - room * 2 / 3 - room / 3
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::MessageId;

    fn message(seq: i64, text: String) -> Message {
        Message {
            id: MessageId::from_parts(seq as u64, [1; 10]),
            seq,
            role: Role::User,
            agent: None,
            text,
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        }
    }

    fn transcript(history: &[Message], tokens: u64) -> TranscriptText {
        let mut builder = TranscriptBuilder::new(Budget { tokens });
        let _ = history.iter().rev().take_while(|m| builder.push(m)).count();
        builder.finish(history.len() as u64, &[])
    }

    #[test]
    fn all_of_a_short_history_is_told_in_order() {
        let history: Vec<_> = (1..=5).map(|n| message(n, format!("word{n}"))).collect();
        let transcript = transcript(&history, 10_000);
        assert_eq!(
            (transcript.told, transcript.shortened, transcript.left_out),
            (5, 0, 0)
        );
        let places: Vec<_> = (1..=5)
            .map(|n| transcript.text.find(&format!("word{n}")).unwrap())
            .collect();
        assert!(places.is_sorted());
    }

    #[test]
    fn a_long_one_keeps_its_budget_and_says_what_is_missing() {
        let history: Vec<_> = (1..=200)
            .map(|n| message(n, format!("{n} {}", "x ".repeat(1000))))
            .collect();
        let transcript = transcript(&history, 20_000);
        assert!(
            tokens_of(&transcript.text) < 21_000,
            "{}",
            tokens_of(&transcript.text)
        );
        assert!(transcript.shortened > 0 && transcript.left_out > 0);
        assert_eq!(transcript.told + transcript.left_out, 200);
        assert!(
            transcript
                .text
                .contains(&format!("The first {} of 200", transcript.left_out))
        );
        assert!(transcript.text.contains("200 x"));
    }

    #[test]
    fn one_huge_message_is_shortened_not_dropped() {
        let transcript = transcript(&[message(1, "y".repeat(1_000_000))], 5_000);
        assert_eq!(
            (transcript.told, transcript.shortened, transcript.left_out),
            (1, 1, 0)
        );
        assert!(transcript.text.len() < 20_000);
    }

    #[test]
    fn the_trail_is_a_short_ledger() {
        let note = |subject: &str, changed_file, finished| ToolNote {
            tool: "Bash".into(),
            subject: subject.into(),
            changed_file,
            finished,
        };
        let mut m = message(1, "x".into());
        m.state = MessageState::Unanswered;
        m.trail = vec![
            note("a.rs", true, true),
            note("a.rs", true, true),
            note("cargo test", false, true),
            note("sleep 9", false, false),
        ];
        let text = entry(&m, &readable(&m));
        assert!(text.contains("unanswered=\"true\""));
        assert!(
            text.contains(
                "(tools: changed a.rs; used cargo test; started sleep 9 (outcome unknown))"
            ),
            "{text}"
        );
    }

    ///
    #[test]
    fn question_markup_goes_its_words_stay() {
        let mut m = message(
            1,
            "Pick <question-form id=\"1\">red or <b>blue</b></question-form> now".into(),
        );
        m.role = Role::Assistant;
        assert_eq!(readable(&m), "Pick red or <b>blue</b> now");
    }
}

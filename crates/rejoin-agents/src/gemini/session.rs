//! Reads the CLI's session files: JSON lines that are only appended, and that update a list of
//! messages.
//!
//! A message is stored under its id, and again under the same id if it changed. `$set.messages`
//! replaces the whole list, which every resume does (0.61.0). New messages can therefore only be
//! found by comparison with the earlier ones: the cursor is the number of messages and a running
//! hash over them.

use super::escape;
use crate::session::{ReadEntry, Reading, SessionReader};

mod cursor;
mod history;
mod record;
mod repair;

use cursor::Cursor;
use history::History;

pub(super) use record::{Message, Record, StoredText, read, refuses};
pub(super) use repair::repair;

/// Answers that the CLI itself writes in the model's name: to its summary of an older history, and
/// after a turn that failed although a tool had run.
const TO_A_SUMMARY: &str = "Got it. Thanks for the additional context!";
const CLI_ANSWERS: &[&str] = &[
    TO_A_SUMMARY,
    "[The previous response was interrupted before it completed.]",
];
/// Prefixes of prompts that the CLI itself writes in a person's name.
const CLI_PROMPTS: &[&str] = &[
    "System: Please continue.",
    "System: Potential loop detected.",
    "<hook_context>",
];

pub(super) struct Reader {
    before: Option<Cursor>,
    /// False if the cursor is not in the format of this reader.
    sound: bool,
    history: History,
    /// Ids of the confirmed messages, from a time when the list began with them. None if it never
    /// did.
    known: Option<Vec<String>>,
    /// Ids and marks of all prompts that were ever in the list, in order.
    prompts: Vec<(String, String)>,
    sessions: Vec<String>,
    /// Ids of summaries that replace an older history.
    summaries: Vec<String>,
    /// Entries before these summaries, which are no longer in the list.
    summed_up: Vec<ReadEntry>,
    compacted: bool,
    damaged: u64,
}

impl Reader {
    pub(super) fn new(cursor: Option<&str>) -> Self {
        let before = cursor.and_then(Cursor::parse);
        Self {
            sound: before.is_some() == cursor.is_some(),
            // Without a cursor, all messages are new.
            known: cursor.is_none().then(Vec::new),
            before,
            history: History::default(),
            prompts: vec![],
            sessions: vec![],
            summaries: vec![],
            summed_up: vec![],
            compacted: false,
            damaged: 0,
        }
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Header { session, messages } => {
                if let Some(session) = session.filter(|id| !self.sessions.contains(id)) {
                    self.sessions.push(session);
                }
                for message in messages {
                    self.history.add(message);
                }
            }
            Record::Message(message) => {
                self.note(&message);
                self.history.add(message);
            }
            Record::Messages(messages) => self.replace(messages),
            Record::Rewind(id) => self.history.rewind(&id),
            Record::Other => {}
        }
    }

    fn replace(&mut self, messages: Vec<Message>) {
        let had = self.history.said().count();
        let has = messages.iter().filter(|m| m.is_said()).count();
        let summaries = summaries(&messages);
        let new: Vec<String> = summaries
            .filter(|id| !self.summaries.contains(id))
            .collect();
        if !new.is_empty() {
            let stays = |id: &str| messages.iter().any(|message| message.id() == id);
            let gone = self.entries(|id| !stays(id));
            self.summed_up.extend(gone);
        }
        self.summaries.extend(new.iter().cloned());
        for message in &messages {
            self.note(message);
        }
        self.history.replace(messages);
        if let Some(before) = &self.before
            && self.known.is_none()
            && before.begins(self.history.said().map(|(_, said)| said))
        {
            let confirmed = self.history.said().take(before.count);
            self.known = Some(confirmed.map(|(id, _)| id.to_owned()).collect());
        }
        // At the start of a process the list is empty for a moment.
        let shorter = 0 < has && has < had && !self.begins();
        if let Some(known) = &self.known {
            self.compacted |= shorter || new.iter().any(|id| !known.contains(id));
        }
    }

    /// True if the current list begins with the confirmed messages.
    fn begins(&self) -> bool {
        let Some(before) = &self.before else {
            return false;
        };
        before.begins(self.history.said().map(|(_, said)| said))
    }

    /// Returns the entries after the confirmed ones, for the messages that `of` selects.
    fn entries(&self, of: impl Fn(&str) -> bool) -> Vec<ReadEntry> {
        let old = self.known.as_deref().unwrap_or_default();
        let returned = self.history.returned();
        let mut entries = vec![];
        for (message, said) in self.history.after(old) {
            if !of(message.id()) {
                continue;
            }
            let summary = self.summaries.iter().any(|id| id == message.id());
            entries.extend(said.map(|said| match said {
                StoredText::Prompt { .. } if summary => ReadEntry::Synthetic,
                StoredText::Prompt { .. } | StoredText::Answer { .. } => entry(said, message.at()),
            }));
            entries.extend(message.did(&returned).into_iter().map(ReadEntry::Did));
        }
        entries
    }

    fn note(&mut self, message: &Message) {
        if self.summaries.iter().any(|id| id == message.id()) {
            return;
        }
        if let Some(StoredText::Prompt { mark, .. }) = message.said() {
            self.prompts.push((message.id().to_owned(), mark));
        }
    }
}

impl SessionReader for Reader {
    fn line(&mut self, line: &[u8]) {
        if line.iter().all(u8::is_ascii_whitespace) {
            return;
        }
        match read(line) {
            Some(record) => self.apply(record),
            None => self.damaged += 1,
        }
    }

    fn finish(self: Box<Self>) -> Reading {
        let old = self.known.clone().unwrap_or_default();
        let is_new = |id: &str| !old.iter().any(|known| known == id);
        // Without a complete list, only the appended messages are known.
        let appended = self.before.is_some() && !self.history.replaced;
        let connected = self.sound
            && !self.history.lost
            && self.sessions.len() <= 1
            && match &self.before {
                // Without its first line the CLI does not recognise the file as a session.
                None => !self.sessions.is_empty() || self.history.is_empty(),
                Some(_) if appended => true,
                Some(_) => self.known.is_some() && (self.begins() || self.compacted),
            };
        let cursor = match &self.before {
            Some(before) if appended => before.on(self.history.said().map(|(_, said)| said)),
            Some(_) | None => Cursor::of(self.history.said().map(|(_, said)| said)),
        };
        let mut prompts: Vec<String> = vec![];
        for (_, mark) in self.prompts.iter().filter(|(id, _)| is_new(id)) {
            if !prompts.contains(mark) {
                prompts.push(mark.clone());
            }
        }
        let now = self.entries(|_| true);
        let summed_up = self.summed_up.len();
        let entries = self.summed_up.into_iter().chain(now).collect();
        let added: Vec<&Message> = self.history.after(&old).map(|(m, _)| m).collect();
        let denied = added.iter().flat_map(|m| m.not_found()).collect();
        let cached = added.iter().map(|m| m.cached()).sum();
        let spoke = self.history.messages().filter_map(Message::model);
        let model = spoke.last().map(str::to_owned);
        Reading {
            entries,
            prompts,
            connected,
            only_added: appended || (self.before.is_some() && self.known.is_some()),
            damaged_lines: self.damaged,
            orphaned_calls: self.history.orphans(),
            compacted: self.compacted,
            summed_up,
            model,
            denied,
            cached,
            repeats: self.history.repeats(),
            session: self.sessions.into_iter().next(),
            cursor: Some(cursor.to_string()),
            ..Reading::default()
        }
    }
}

/// Returns the ids of the messages that the CLI wrote as summaries of an older history.
fn summaries(messages: &[Message]) -> impl Iterator<Item = String> {
    messages.windows(2).filter_map(|pair| {
        let answered =
            matches!(pair[1].said(), Some(StoredText::Answer { text }) if text.trim() == TO_A_SUMMARY);
        let asked = matches!(pair[0].said(), Some(StoredText::Prompt { .. }));
        (asked && answered).then(|| pair[0].id().to_owned())
    })
}

fn entry(said: &StoredText, at: Option<i64>) -> ReadEntry {
    match said {
        StoredText::Prompt { text, .. } if CLI_PROMPTS.iter().any(|w| text.starts_with(w)) => {
            ReadEntry::Synthetic
        }
        StoredText::Prompt { mark, text } => ReadEntry::Prompt {
            id: mark.clone(),
            text: escape::message_of(text),
            at,
        },
        StoredText::Answer { text } if CLI_ANSWERS.contains(&text.trim()) => ReadEntry::Synthetic,
        StoredText::Answer { text } => ReadEntry::Answer {
            text: text.clone(),
            at,
        },
    }
}

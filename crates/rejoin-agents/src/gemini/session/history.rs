//! List of messages as the CLI would load it.

use std::collections::HashSet;

use super::record::{Message, Returned, StoredText};

#[derive(Default)]
pub(super) struct History {
    /// Messages, each with its parsed text.
    list: Vec<(Message, Option<StoredText>)>,
    /// True if the whole list was read, not only the added messages.
    pub(super) replaced: bool,
    /// True if a message was taken back that is not in this list. The remaining messages are then
    /// unknown.
    pub(super) lost: bool,
}

impl History {
    /// Adds a message. A message with a known id replaces the earlier one.
    pub(super) fn add(&mut self, message: Message) {
        let said = message.said();
        let known = self
            .list
            .iter_mut()
            .rev()
            .find(|(m, _)| m.id() == message.id());
        match known {
            Some(place) => *place = (message, said),
            None => self.list.push((message, said)),
        }
    }

    pub(super) fn replace(&mut self, messages: Vec<Message>) {
        self.list.clear();
        self.replaced = true;
        for message in messages {
            self.add(message);
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn rewind(&mut self, id: &str) {
        match self.list.iter().position(|(message, _)| message.id() == id) {
            Some(at) => self.list.truncate(at),
            None => {
                self.lost |= !self.replaced;
                self.list.clear();
            }
        }
    }

    pub(super) fn messages(&self) -> impl Iterator<Item = &Message> {
        self.list.iter().map(|(message, _)| message)
    }

    /// Returns the texts, each with the id of its message.
    pub(super) fn said(&self) -> impl Iterator<Item = (&str, &StoredText)> {
        let said = self.list.iter();
        said.filter_map(|(message, said)| Some((message.id(), said.as_ref()?)))
    }

    /// Returns the messages after the known ones, each with its text.
    pub(super) fn after<'a>(
        &'a self,
        known: &[String],
    ) -> impl Iterator<Item = (&'a Message, Option<&'a StoredText>)> {
        let is_known = |(message, _): &(Message, _)| known.iter().any(|id| id == message.id());
        let from = self.list.iter().rposition(is_known).map_or(0, |at| at + 1);
        let rest = self.list[from..].iter();
        rest.map(|(message, said)| (message, said.as_ref()))
    }

    pub(super) fn returned(&self) -> Returned {
        self.messages().flat_map(Message::returned).collect()
    }

    /// Counts the calls without a result.
    pub(super) fn orphans(&self) -> u64 {
        let results: HashSet<String> = self.messages().flat_map(Message::results).collect();
        self.calls().difference(&results).count() as u64
    }

    pub(super) fn calls(&self) -> HashSet<String> {
        self.messages().flat_map(Message::calls).collect()
    }

    /// True if the CLI would replay tool results that the API refuses. The CLI makes a message of
    /// the results stored with their calls, and also sends those that are messages of their own
    /// (0.61.0). For a call that it denied over the protocol, only the result exists.
    pub(super) fn repeats(&self) -> bool {
        let calls = self.calls();
        let mut seen = HashSet::new();
        self.messages()
            .flat_map(Message::results)
            .any(|id| !calls.contains(&id) || !seen.insert(id))
    }
}

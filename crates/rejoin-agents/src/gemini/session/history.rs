//! The list of messages as the CLI would load it.

use std::collections::HashSet;

use super::record::{Message, Returned, Said};

#[derive(Default)]
pub(super) struct History {
    /// With what was said in each, read once.
    list: Vec<(Message, Option<Said>)>,
    /// The whole list was given, not only what was added.
    pub(super) replaced: bool,
    /// Something was taken back that is not in this list: nobody here knows what is left.
    pub(super) lost: bool,
}

impl History {
    /// The same id again replaces what stood there.
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

    /// What was said, with the id of its message.
    pub(super) fn said(&self) -> impl Iterator<Item = (&str, &Said)> {
        let said = self.list.iter();
        said.filter_map(|(message, said)| Some((message.id(), said.as_ref()?)))
    }

    /// What was said and done after these, message by message.
    pub(super) fn after<'a>(
        &'a self,
        known: &[String],
    ) -> impl Iterator<Item = (&'a Message, Option<&'a Said>)> {
        let is_known = |(message, _): &(Message, _)| known.iter().any(|id| id == message.id());
        let from = self.list.iter().rposition(is_known).map_or(0, |at| at + 1);
        let rest = self.list[from..].iter();
        rest.map(|(message, said)| (message, said.as_ref()))
    }

    pub(super) fn returned(&self) -> Returned {
        self.messages().flat_map(Message::returned).collect()
    }

    /// Calls without a result.
    pub(super) fn orphans(&self) -> u64 {
        let results: HashSet<String> = self.messages().flat_map(Message::results).collect();
        self.calls().difference(&results).count() as u64
    }

    pub(super) fn calls(&self) -> HashSet<String> {
        self.messages().flat_map(Message::calls).collect()
    }

    /// The CLI makes a message of the results that stand with their calls, and sends those that are
    /// messages of their own as well (0.61.0). Of a call that it did not let run over its protocol
    /// there is only the result.
    pub(super) fn repeats(&self) -> bool {
        let calls = self.calls();
        let mut seen = HashSet::new();
        self.messages()
            .flat_map(Message::results)
            .any(|id| !calls.contains(&id) || !seen.insert(id))
    }
}

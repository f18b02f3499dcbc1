//! The branch that the CLI would replay, and its connection to the confirmed end.

use std::collections::{HashMap, HashSet};

use super::super::tool_note;
use super::Node;
use super::repeated::{LastTurn, Repeat, texts};
use crate::session::{ReadEntry, Reading};

/// Maximum number of lines that a cursor names.
const CURSOR_LINES: usize = 12;

pub(super) struct Tree {
    nodes: Vec<Node>,
    by_uuid: HashMap<String, usize>,
    /// Ids of the confirmed end: its last message, and the following lines of the chain. 2.1.325
    /// appends the next turn to an attachment after the answer, 2.1.197 to the answer itself. A
    /// branch from any of them has lost no message.
    confirmed: Option<Vec<String>>,
    /// Last confirmed turn, to recognise its repetition.
    last: LastTurn,
}

impl Tree {
    pub(super) fn new(cursor: Option<&str>) -> Self {
        let mut last = LastTurn::default();
        let confirmed = cursor.map(|cursor| {
            let ids = cursor.split_whitespace().filter(|word| !last.take(word));
            ids.map(str::to_owned).collect()
        });
        Self {
            nodes: vec![],
            by_uuid: HashMap::new(),
            confirmed,
            last,
        }
    }

    /// Adds a line. 2.1.197 writes some lines again before a compaction; the first one counts.
    pub(super) fn add(&mut self, node: Node) {
        if self.by_uuid.contains_key(&node.uuid) || self.is_confirmed(&node.uuid) {
            return;
        }
        let again = self.last.has(&node).filter(|_| !self.follows(&node));
        let node = match again {
            Some(Repeat::Last) => {
                self.take_back(node.parent);
                self.confirmed.get_or_insert_default().push(node.uuid);
                return;
            }
            // The line adds no message, but connects its descendants.
            Some(Repeat::Earlier) => Node {
                uuid: node.uuid,
                parent: node.parent,
                ..Node::default()
            },
            None => node,
        };
        self.by_uuid.insert(node.uuid.clone(), self.nodes.len());
        self.nodes.push(node);
    }

    /// True if the line descends from the confirmed end. Then it is new, even if it looks repeated.
    fn follows(&self, node: &Node) -> bool {
        let mut parent = node.parent.as_deref();
        // A damaged file may contain a cycle.
        for _ in 0..=self.nodes.len() {
            match parent {
                Some(uuid) if self.is_confirmed(uuid) => return true,
                Some(uuid) => match self.by_uuid.get(uuid) {
                    Some(&at) => parent = self.nodes[at].parent.as_deref(),
                    None => return false,
                },
                None => return false,
            }
        }
        false
    }

    /// Removes the ancestors of a repeated message: they are repetitions too.
    fn take_back(&mut self, mut uuid: Option<String>) {
        while let Some(at) = uuid.and_then(|uuid| self.by_uuid.remove(&uuid)) {
            let before = std::mem::take(&mut self.nodes[at]);
            uuid = before.parent;
        }
    }

    pub(super) fn reading(self) -> Reading {
        let Some(leaf) = self.nodes.iter().rposition(|node| node.spoken) else {
            let cursor = self.cursor_from(None, &self.last);
            return Reading {
                connected: true,
                only_added: self.confirmed.is_some(),
                cursor,
                ..Reading::default()
            };
        };
        let prompts = self.nodes.iter().flat_map(|node| &node.entries);
        let prompts = prompts.filter_map(|entry| match entry {
            ReadEntry::Prompt { id, .. } => Some(id.clone()),
            ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
        });
        let prompts = prompts.collect();
        let (mut on_branch, connected) = self.chain(leaf);
        self.add_parallel(&mut on_branch);
        let branch = self.nodes.iter().zip(&on_branch);
        let branch = branch.filter(|(_, on)| **on).map(|(node, _)| node);
        let last = LastTurn::on(branch, &self.last);
        let aside = self.aside(&on_branch);
        let mut reading = Reading {
            prompts,
            connected,
            only_added: self.confirmed.is_some(),
            cursor: self.cursor_from(Some(leaf), &last),
            ..Reading::default()
        };
        let (mut nodes, mut beside) = (vec![], vec![]);
        for ((node, on), aside) in self.nodes.into_iter().zip(on_branch).zip(aside) {
            match (on, aside) {
                (true, _) => nodes.push(node),
                (false, true) => beside.push(node),
                (false, false) => {}
            }
        }
        let results = nodes.iter().chain(&beside).flat_map(|node| &node.results);
        let results: HashMap<String, (bool, bool)> = results
            .map(|result| (result.id.clone(), (result.failed, result.denied)))
            .collect();
        let mut orphaned = HashSet::new();
        for node in nodes {
            reading.compacted |= node.compacts;
            if node.compacts {
                reading.summed_up = reading.entries.len();
            }
            reading.model = node.model.clone().or(reading.model);
            let open = node.calls.iter().filter(|id| !results.contains_key(*id));
            orphaned.extend(open.cloned());
            reading.entries.extend(ended(node, &results));
        }
        reading.orphaned_calls = orphaned.len() as u64;
        let beside = beside.into_iter().flat_map(|node| ended(node, &results));
        reading.aside = beside.collect();
        reading
    }

    /// Marks the prompts off the branch, and their descendants. Parents come before children.
    fn aside(&self, on_branch: &[bool]) -> Vec<bool> {
        let mut aside = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let parent = node.parent.as_ref().and_then(|id| self.by_uuid.get(id));
            let follows = parent.is_some_and(|&up| up < at && aside[up]);
            aside[at] = !on_branch[at] && (follows || node.asks());
        }
        aside
    }

    fn is_confirmed(&self, uuid: &str) -> bool {
        self.confirmed.iter().flatten().any(|known| known == uuid)
    }

    /// Marks the lines from the leaf back to the confirmed end, or to the beginning. The second
    /// value is false if the chain does not lead there.
    fn chain(&self, leaf: usize) -> (Vec<bool>, bool) {
        let mut on_branch = vec![false; self.nodes.len()];
        let mut at = leaf;
        loop {
            if std::mem::replace(&mut on_branch[at], true) {
                return (on_branch, false);
            }
            match self.nodes[at].parent.as_deref() {
                None => return (on_branch, self.confirmed.is_none()),
                Some(parent) if self.is_confirmed(parent) => return (on_branch, true),
                Some(parent) => match self.by_uuid.get(parent) {
                    // A fork stores the last messages before the compaction behind the boundary
                    // (2.1.197, 2.1.325).
                    Some(&up) if self.nodes[at].compacts && up > at => {
                        return (on_branch, self.confirmed.is_none());
                    }
                    Some(&up) => at = up,
                    // A fork does not contain the messages before the compaction.
                    None => {
                        let begins = self.confirmed.is_none() && self.nodes[at].compacts;
                        return (on_branch, begins);
                    }
                },
            }
        }
    }

    /// Marks the other lines of parallel calls. Parallel calls are lines of one message, with
    /// results that descend from different lines. The chain contains only one of them, but the CLI
    /// replays them all.
    fn add_parallel(&self, on_branch: &mut [bool]) {
        let mut messages: HashMap<&str, Vec<&Node>> = HashMap::new();
        for (node, _) in self.nodes.iter().zip(&*on_branch).filter(|(_, on)| **on) {
            if let Some(id) = node.message.as_deref() {
                messages.entry(id).or_default().push(node);
            }
        }
        let mut calls = HashSet::new();
        for (node, on) in self.nodes.iter().zip(&mut *on_branch) {
            let lines = node.message.as_deref().and_then(|id| messages.get(id));
            // The line may be a repetition of one of these.
            let same = |line: &&Node| line.calls == node.calls && texts(line) == texts(node);
            *on |= lines.is_some_and(|lines| !lines.iter().any(same));
            calls.extend(node.calls.iter().filter(|_| *on));
        }
        for (node, on) in self.nodes.iter().zip(on_branch) {
            *on |= node.results.iter().any(|result| calls.contains(&result.id));
        }
    }

    /// Returns a cursor: the last message and its descendants, from which the next turn may
    /// continue.
    fn cursor_from(&self, leaf: Option<usize>, last: &LastTurn) -> Option<String> {
        let mut ends: Vec<&str> = match leaf.and_then(|at| self.nodes.get(at)) {
            Some(node) => vec![node.uuid.as_str()],
            None => self
                .confirmed
                .as_ref()?
                .iter()
                .map(String::as_str)
                .collect(),
        };
        for node in self.nodes.iter().skip(leaf.map_or(0, |at| at + 1)) {
            if node
                .parent
                .as_deref()
                .is_some_and(|parent| ends.contains(&parent))
            {
                ends.push(&node.uuid);
            }
        }
        if ends.len() > CURSOR_LINES {
            ends.drain(1..=ends.len() - CURSOR_LINES);
        }
        let words: Vec<String> = last.words().collect();
        ends.extend(words.iter().map(String::as_str));
        Some(ends.join(" "))
    }
}

/// Returns the entries of a line with the results of its calls, and without denied calls.
fn ended(node: Node, results: &HashMap<String, (bool, bool)>) -> Vec<ReadEntry> {
    let mut calls = node.calls.into_iter();
    let entries = node.entries.into_iter().filter_map(|entry| {
        let ReadEntry::Did(mut did) = entry else {
            return Some(entry);
        };
        if let Some((failed, denied)) = calls.next().and_then(|id| results.get(&id)) {
            did.finished = true;
            did.changed_file = !failed && tool_note::edits(&did.tool);
            if *denied {
                return None;
            }
        }
        Some(ReadEntry::Did(did))
    });
    entries.collect()
}

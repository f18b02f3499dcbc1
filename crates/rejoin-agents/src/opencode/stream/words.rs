//! The text of the answer. When the CLI compacts a session, its summary is printed like an answer.

use std::collections::HashSet;

/// All that was said, by message.
#[derive(Default)]
pub(super) struct Words {
    said: Vec<Said>,
    /// Messages that call tools: no summary does.
    calling: HashSet<String>,
    compacted: bool,
}

struct Said {
    message: String,
    text: String,
    /// It ended as answers end.
    stopped: bool,
    /// The CLI went on after that.
    followed: bool,
    summary: bool,
}

impl Words {
    pub(super) fn text(&mut self, message: &str, text: &str) {
        match self.said.last_mut() {
            Some(last) if last.message == message && !last.followed => {
                last.text.push_str("\n\n");
                last.text.push_str(text);
            }
            Some(_) | None => self.said.push(Said {
                message: message.to_owned(),
                text: text.to_owned(),
                stopped: false,
                followed: false,
                summary: false,
            }),
        }
    }

    pub(super) fn calls(&mut self, message: &str) {
        self.calling.insert(message.to_owned());
    }

    pub(super) fn step(&mut self) {
        if let Some(last) = self.said.last_mut() {
            last.followed |= last.stopped;
        }
    }

    pub(super) fn finished(&mut self, message: &str, reason: &str) {
        if let Some(last) = self.said.last_mut().filter(|last| last.message == message) {
            last.stopped = reason == "stop";
        }
    }

    /// What was said last was a summary: the CLI tells itself to go on.
    pub(super) fn summarised(&mut self) {
        self.compacted = true;
        if let Some(last) = self.said.last_mut() {
            last.summary = true;
            last.followed = true;
        }
    }

    /// A session that did not fit is compacted before the answer, and nothing marks that: an end
    /// that was followed by another without such a mark was the summary's. (Some models end like that
    /// and call a tool all the same.)
    fn is_summary(&self, at: usize) -> bool {
        let marked = self.said.iter().any(|said| said.summary);
        let said = &self.said[at];
        said.summary || (!marked && said.followed && !self.calling.contains(&said.message))
    }

    pub(super) fn compacted(&self) -> bool {
        self.compacted || (0..self.said.len()).any(|at| self.is_summary(at))
    }

    pub(super) fn answer(&self) -> String {
        let said = self.said.iter().enumerate();
        let kept = said.filter(|(at, _)| !self.is_summary(*at));
        let texts: Vec<&str> = kept.map(|(_, said)| said.text.as_str()).collect();
        texts.join("\n\n")
    }
}

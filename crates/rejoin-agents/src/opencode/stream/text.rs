//! Text of the answer. When the CLI compacts a session, its summary is printed like an answer.

use std::collections::HashSet;

/// All texts of the run, by message.
#[derive(Default)]
pub(super) struct AnswerText {
    said: Vec<AnswerPart>,
    /// Messages that call tools, which a summary never does.
    calling: HashSet<String>,
    compacted: bool,
}

struct AnswerPart {
    message: String,
    text: String,
    /// True if it ended like an answer.
    stopped: bool,
    /// True if the CLI continued after that.
    followed: bool,
    summary: bool,
}

impl AnswerText {
    pub(super) fn text(&mut self, message: &str, text: &str) {
        match self.said.last_mut() {
            Some(last) if last.message == message && !last.followed => {
                last.text.push_str("\n\n");
                last.text.push_str(text);
            }
            Some(_) | None => self.said.push(AnswerPart {
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

    /// Marks the last text as a summary, because the CLI then tells itself to continue.
    pub(super) fn summarised(&mut self) {
        self.compacted = true;
        if let Some(last) = self.said.last_mut() {
            last.summary = true;
            last.followed = true;
        }
    }

    /// True if the text is a summary. A session that does not fit is compacted before the answer
    /// without any mark. In a run without marks, an answer that is followed by another one was the
    /// summary. (Some models end like an answer and call a tool anyway.)
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

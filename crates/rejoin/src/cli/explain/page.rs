//! The page of an explanation: a headline, the checks, rows of facts.

use rejoin_core::Reason;
use serde_json::Value;

use crate::output::{Line, Output, Tone, edges};

/// Column at which facts begin.
const FACTS: usize = 10;
/// Column at which the evidence of a check begins.
const EVIDENCE: usize = 20;

/// How much of a check is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worth {
    Line,
    Name,
    Nothing,
    /// A line for something that is missing, which is no failure.
    Absent,
}

pub(super) struct Page {
    width: usize,
    /// Nothing is broken or cut for a script.
    screen: bool,
    lines: Vec<Line>,
}

impl Page {
    pub(super) fn new(out: Output) -> Self {
        Self {
            width: out.width(),
            screen: out.screen(),
            lines: vec![],
        }
    }

    /// The verdict and its code at the left, what it is about at the right; in two lines if there is
    /// no room in one.
    pub(super) fn head(&mut self, headline: &Line, code: Option<Reason>, about: &[String]) {
        let about = Line::faint(&about.join("  "));
        let code = code.map(|code| format!("({code})")).unwrap_or_default();
        let mut all = headline.clone();
        if !code.is_empty() {
            all = all.with(Tone::Faint, &format!(" {code}"));
        }
        if let Some(line) = edges(&all, &about, self.width) {
            self.lines.push(line);
            return;
        }
        let width = if self.screen { self.width } else { usize::MAX };
        self.lines.extend(headline.wrap(width));
        let code = Line::faint(&code);
        let column = self
            .width
            .saturating_sub(about.width())
            .max(code.width() + 2);
        self.lines.push(code.to(column).then(about));
    }

    /// Each check that applied, in the order they are asked; two in a line where they are short, and
    /// those of which nothing is to be told by name only.
    pub(super) fn checks(&mut self, checks: &Value, worth: impl Fn(&str, bool) -> Worth) {
        let mut also: Vec<String> = vec![];
        let half = self.width / 2;
        let mut waiting: Option<Line> = None;
        for check in checks.as_array().into_iter().flatten() {
            let (name, evidence) = (text(&check["check"]), text(&check["evidence"]));
            let label = name.replace('_', " ");
            let ok = match check["ok"].as_bool().map(|ok| (ok, worth(name, ok))) {
                None | Some((_, Worth::Nothing)) => continue,
                Some((_, Worth::Name)) => {
                    also.push(label);
                    continue;
                }
                Some((_, Worth::Absent)) => {
                    self.lines.extend(waiting.take());
                    let before = Line::plain(&format!("  -     {label}")).to(EVIDENCE);
                    self.hanging(before, Line::faint(evidence), EVIDENCE);
                    continue;
                }
                Some((ok, Worth::Line)) => ok,
            };
            if !ok {
                self.lines.extend(waiting.take());
                let before = Line::plain("  ")
                    .with(Tone::Bad, "FAIL")
                    .with(Tone::Plain, &format!("  {label}"));
                self.hanging(
                    before.to(EVIDENCE),
                    Line::new().with(Tone::Strong, evidence),
                    EVIDENCE,
                );
                continue;
            }
            let short = Line::new()
                .with(Tone::Good, "ok")
                .with(Tone::Plain, &format!("  {label}  "))
                .with(Tone::Faint, evidence);
            if let Some(left) = waiting.take() {
                if half + short.width() <= self.width {
                    self.lines.push(left.to(half).then(short));
                    continue;
                }
                self.lines.push(left);
            }
            let before = Line::plain("  ")
                .with(Tone::Good, "ok")
                .with(Tone::Plain, &format!("    {label}"));
            let whole = before.clone().to(EVIDENCE).with(Tone::Faint, evidence);
            if whole.width() + 2 <= half {
                waiting = Some(whole);
            } else {
                self.hanging(before.to(EVIDENCE), Line::faint(evidence), EVIDENCE);
            }
        }
        self.lines.extend(waiting);
        if !also.is_empty() {
            let before = Line::plain("  ")
                .with(Tone::Good, "ok")
                .with(Tone::Plain, "    also");
            self.hanging(before.to(EVIDENCE), Line::faint(&also.join(", ")), EVIDENCE);
        }
    }

    /// The reason why a run has no wall, for readers who want everything.
    pub(super) fn wall(&mut self, checks: &Value, raw: bool) {
        let mut checks = checks.as_array().into_iter().flatten();
        let none = |check: &&Value| check["check"] == "wall" && check["ok"].is_null();
        if let Some(wall) = checks.find(none).filter(|_| raw) {
            self.row("wall", text(&wall["evidence"]));
        }
    }

    pub(super) fn row(&mut self, label: &str, fact: &str) {
        self.hanging(Line::plain(label).to(FACTS), Line::plain(fact), FACTS);
    }

    /// Adds a row, cut at the width of the screen.
    pub(super) fn short_row(&mut self, label: &str, fact: &str, note: &str) {
        let room = self.width.saturating_sub(FACTS);
        let fact = Line::plain(fact);
        let line = Line::plain(label).to(FACTS);
        self.lines.push(if fact.width() <= room {
            line.then(fact)
        } else {
            let note = format!("  {note}");
            line.then(fact.cut(room.saturating_sub(note.len())))
                .with(Tone::Faint, &note)
        });
    }

    /// The fact as it is, for copying.
    pub(super) fn long_row(&mut self, label: &str, fact: &str) {
        self.lines
            .push(Line::plain(label).to(FACTS).with(Tone::Plain, fact));
    }

    pub(super) fn print(self, out: Output) {
        out.lines(&self.lines);
    }

    fn hanging(&mut self, before: Line, fact: Line, indent: usize) {
        if !self.screen {
            self.lines.push(before.then(fact));
            return;
        }
        let mut before = Some(before);
        for line in fact.wrap(self.width.saturating_sub(indent)) {
            let start = before
                .take()
                .unwrap_or_else(|| Line::plain(&" ".repeat(indent)));
            self.lines.push(start.then(line));
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

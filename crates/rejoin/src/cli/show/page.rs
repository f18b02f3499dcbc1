//! A conversation for the eyes: numbered messages, verdicts in the margin.

use std::fmt::Write as _;

use rejoin_core::{MessageState, Role, ToolNote};
use rejoin_hub::{MessageView, TurnView};

use super::{Shown, asked_below, verdict, verdict_below, who};
use crate::cli::list::state;
use crate::cli::question::{CHANGED_LINES, changed_lines, hint, in_short};
use crate::hub_client::HubClient;
use crate::output::format::{Now, count, folder, money};
use crate::output::markdown::{plain, rendered};
use crate::output::{Line, Output, Tone, edges, one_line};

/// Before every line of a message.
const MARGIN: &str = "  ";
/// A message longer than this is cut in the overview, not when it is shown alone.
const LONG: usize = 200;
/// Lines of an answer that was not finished.
const PARTIAL: usize = 20;
/// Entries of a ledger.
const LEDGER: usize = 6;

/// Lays out a conversation page by page.
pub(super) struct Layout {
    view: View,
    begun: bool,
}

impl Layout {
    /// `alone`: one message is shown, without the head of its conversation. `all`: number of messages of the
    /// conversation.
    pub(super) fn new(out: Output, alone: bool, all: i64) -> Self {
        let view = View {
            width: out.width(),
            screen: out.screen(),
            now: HubClient::now(),
            alone,
            all: usize::try_from(all).unwrap_or_default(),
        };
        Self { view, begun: false }
    }

    /// Returns the lines of the next page. `total`: number of messages on all pages.
    pub(super) fn page(&mut self, shown: &Shown, total: usize) -> Vec<Line> {
        let mut lines = vec![];
        if !self.begun && !self.view.alone {
            lines.extend(self.view.head(shown, total));
            self.begun = true;
        }
        for message in &shown.messages {
            if std::mem::replace(&mut self.begun, true) {
                lines.push(Line::new());
            }
            lines.extend(self.view.message(shown, message));
        }
        lines
    }
}

struct View {
    width: usize,
    screen: bool,
    now: Now,
    alone: bool,
    all: usize,
}

impl View {
    fn head(&self, shown: &Shown, total: usize) -> Vec<Line> {
        let c = &shown.conversation;
        let (word, tone) = state(c);
        let right = Line::new()
            .with(tone, word)
            .with(Tone::Faint, &format!("  {}", money(c.cost_usd)));
        let room = self
            .width
            .saturating_sub(right.width() + c.handle.len() + 4);
        let title = if self.screen {
            one_line(&c.title, room)
        } else {
            one_line(&c.title, 200)
        };
        let left = Line::new()
            .with(Tone::Name, &c.handle)
            .with(Tone::Plain, "  ")
            .with(Tone::Strong, &title);
        let first = edges(&left, &right, self.width)
            .unwrap_or_else(|| left.clone().with(Tone::Plain, "  ").then(right.clone()));
        let mut facts = vec![c.agent.clone(), folder(&c.workdir), c.permission.clone()];
        facts.extend(c.key.as_ref().map(|key| format!("key {key}")));
        facts.push(if total < self.all {
            format!("{total} of {}", count(self.all as u64, "message"))
        } else {
            count(total as u64, "message")
        });
        facts.push(format!("since {}", self.now.moment(&c.created_at)));
        let second = Line::faint(&facts.join(" · "));
        vec![
            first,
            if self.screen {
                second.cut(self.width)
            } else {
                second
            },
        ]
    }

    fn message(&self, shown: &Shown, message: &MessageView) -> Vec<Line> {
        let mut lines = vec![self.label(shown, message)];
        lines.extend(
            self.body(shown, message)
                .into_iter()
                .map(|line| Line::plain(MARGIN).then(line)),
        );
        for version in &message.versions {
            let label = format!("until {}", self.now.moment(&version.replaced_at));
            lines.push(self.margin(&label, &one_line(&version.text, 200)));
        }
        if !message.tools.is_empty() {
            lines.push(self.margin(
                "tools",
                &ledger(&message.tools, &shown.conversation.workdir),
            ));
        }
        if let Some(turn) = verdict_below(shown, message) {
            lines.extend(turn.partial_text.iter().flat_map(|text| self.partial(text)));
            lines.extend(self.denied(turn));
            let room = if self.screen { self.width } else { usize::MAX };
            let room = room.saturating_sub(MARGIN.len() + "│ ".chars().count());
            lines.push(self.margin("", &verdict(turn, room)));
        }
        for (turn, question) in asked_below(shown, message) {
            lines.push(self.margin("asks", &in_short(&turn.agent, question)));
            for line in changed_lines(&question.diff, self.width, CHANGED_LINES) {
                lines.push(Line::faint(&format!("{MARGIN}│")).then(line));
            }
            lines.push(self.margin("", &hint(question, &turn.handle)));
        }
        lines
    }

    /// `tmqx:4  claude                          14:02`
    fn label(&self, shown: &Shown, message: &MessageView) -> Line {
        let mut left = match message.seq {
            Some(n) => Line::faint(&format!("{}:", shown.conversation.handle))
                .with(Tone::Name, &n.to_string()),
            None => Line::faint(&shown.conversation.handle),
        };
        left = left
            .with(Tone::Plain, "  ")
            .with(Tone::Strong, who(message));
        match message.state {
            MessageState::Ok => {}
            MessageState::Unanswered => left.push(Tone::Bad, "  unanswered"),
            MessageState::Queued => left.push(Tone::Busy, "  queued"),
        }
        if message.removed {
            left.push(Tone::Bad, "  removed");
        }
        if message.edited {
            left.push(Tone::Faint, "  edited");
        }
        if message.origin != "rejoin" {
            left.push(Tone::Faint, &format!("  from {}", message.origin));
        }
        let when = Line::faint(&self.now.moment(&message.created_at));
        edges(&left, &when, self.width).unwrap_or(left)
    }

    fn body(&self, shown: &Shown, message: &MessageView) -> Vec<Line> {
        let width = self.width.saturating_sub(MARGIN.len());
        let mut lines = match (self.screen, message.role) {
            (false, _) => message.text.trim_end().lines().map(Line::plain).collect(),
            (true, Role::User) => plain(&message.text, width),
            (true, Role::Assistant) => rendered(&message.text, width),
        };
        if self.screen && !self.alone && lines.len() > LONG {
            let more = lines.len() - LONG;
            lines.truncate(LONG);
            let number = message.seq.map(|n| format!(":{n}")).unwrap_or_default();
            let all = format!(
                "… {more} more lines: rejoin show {}{number}",
                shown.conversation.handle
            );
            lines.push(Line::faint(&all));
        }
        lines
    }

    /// The text of a turn that ended without an answer.
    fn partial(&self, text: &str) -> Vec<Line> {
        let margin = Line::faint(&format!("{MARGIN}│ "));
        let mut lines: Vec<Line> = if self.screen {
            plain(text, self.width.saturating_sub(margin.width()))
        } else {
            text.lines().map(Line::plain).collect()
        };
        let more = lines.len().saturating_sub(PARTIAL);
        if self.screen && !self.alone && more > 0 {
            lines.truncate(PARTIAL);
            lines.push(Line::faint(&format!("… {more} more lines")));
        }
        let head = self.margin("not finished", "");
        let lines = lines.into_iter().map(|line| margin.clone().then(line));
        std::iter::once(head).chain(lines).collect()
    }

    /// Tool calls that were not allowed: `denied: Write out.txt (nobody could be asked)`.
    fn denied(&self, turn: &TurnView) -> Vec<Line> {
        let calls = turn.denied.as_array().map(Vec::as_slice);
        let calls = calls.unwrap_or_default().iter().map(|call| {
            let input = call["input"].as_str().unwrap_or_default();
            let what = one_line(&format!("{} {}", call["tool"].as_str()?, input), 60);
            Some(what.trim_end().to_owned())
        });
        let mut calls: Vec<String> = calls.flatten().collect();
        calls.dedup();
        if calls.is_empty() {
            return vec![];
        }
        let more = calls.len().saturating_sub(LEDGER);
        calls.truncate(LEDGER);
        let mut text = calls.join("; ");
        if more > 0 {
            let _ = write!(text, "; {more} more");
        }
        if turn.policy["permission"] == "ask" && turn.policy["asks"] == false {
            text.push_str(" (nobody could be asked)");
        }
        vec![self.margin("denied", &text)]
    }

    fn margin(&self, label: &str, text: &str) -> Line {
        let label = if label.is_empty() {
            String::new()
        } else {
            format!("{label}: ")
        };
        let line = Line::faint(&format!("{MARGIN}│ {label}{text}"));
        if self.screen {
            line.cut(self.width)
        } else {
            line
        }
    }
}

/// The tools' actions, each listed once.
fn ledger(tools: &[ToolNote], workdir: &str) -> String {
    let mut entries: Vec<String> = vec![];
    for note in tools {
        let subject = if note.subject.is_empty() {
            &note.tool
        } else {
            &note.subject
        };
        let inside = subject
            .strip_prefix(workdir)
            .and_then(|s| s.strip_prefix('/'));
        let subject = inside.unwrap_or(subject);
        let what = match (note.finished, note.changed_file) {
            (false, _) => format!("started {subject} (outcome unknown)"),
            (true, true) => format!("changed {subject}"),
            (true, false) => format!("used {subject}"),
        };
        let entry = one_line(&what, 60);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    let more = entries.len().saturating_sub(LEDGER);
    entries.truncate(LEDGER);
    if more > 0 {
        entries.push(format!("{more} more"));
    }
    entries.join("; ")
}

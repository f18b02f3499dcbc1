//! A run as it happens: a tree on a terminal, a line per change when piped, JSON lines with
//! `--stream`.

use std::collections::BTreeMap;
use std::io::{IsTerminal as _, Write as _};
use std::time::Instant;

use rejoin_hub::{StepStatus, WorkflowStepView, WorkflowView};
use serde_json::json;

use super::show::tone;
use crate::output::{Line, Output, Tone, format, one_line};

/// Forms of the mark of a running step.
const SPINNER: [&str; 8] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧"];
/// Lines of the screen that the tree leaves free.
const FREE: usize = 2;

/// Shows the progress of a run.
pub(super) struct LiveView {
    out: Output,
    kind: Kind,
    /// Lines that the tree takes up on the screen.
    drawn: usize,
    turned: usize,
    /// Statuses that were printed.
    known: BTreeMap<String, (StepStatus, u32)>,
    since: Instant,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Lines,
    Tree,
    JsonLines,
}

impl LiveView {
    pub(super) fn new(out: Output, stream: bool) -> Self {
        let kind = match (stream, out.json || out.quiet) {
            (true, _) => Kind::JsonLines,
            (false, true) => Kind::Nothing,
            (false, false) if std::io::stderr().is_terminal() => Kind::Tree,
            (false, false) => Kind::Lines,
        };
        Self {
            out,
            kind,
            drawn: 0,
            turned: 0,
            known: BTreeMap::new(),
            since: Instant::now(),
        }
    }

    /// Shows the run as it is now. `tools` are the current tools of running steps.
    pub(super) fn show(&mut self, view: &WorkflowView, tools: &BTreeMap<String, String>) {
        match self.kind {
            Kind::Nothing => {}
            Kind::Tree => self.draw(view, tools),
            Kind::Lines | Kind::JsonLines => self.print_changes(view),
        }
    }

    fn draw(&mut self, view: &WorkflowView, tools: &BTreeMap<String, String>) {
        self.turned += 1;
        let mark = SPINNER.get(self.turned % SPINNER.len()).copied();
        let mut lines = tree_with(view, self.out.width(), mark, tools);
        let rows = terminal_size::terminal_size().map_or(24, |(_, rows)| usize::from(rows.0));
        let room = rows.saturating_sub(FREE).max(3);
        if lines.len() > room {
            lines = shortened(lines, view, room);
        }
        let mut text = String::new();
        if self.drawn > 0 {
            let up = format!("\x1b[{}A", self.drawn);
            text.push_str(&up);
        }
        for line in &lines {
            text.push('\r');
            text.push_str(&self.out.rendered_on_stderr(line));
            text.push_str("\x1b[K\n");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.len();
        let mut screen = std::io::stderr().lock();
        drop(
            screen
                .write_all(text.as_bytes())
                .and_then(|()| screen.flush()),
        );
    }

    fn print_changes(&mut self, view: &WorkflowView) {
        for step in &view.steps {
            let state = (step.status, step.attempts);
            if step.status == StepStatus::Pending || self.known.get(&step.id) == Some(&state) {
                continue;
            }
            self.known.insert(step.id.clone(), state);
            if self.kind == Kind::JsonLines {
                let line = json!({
                    "type": "workflow.step", "workflow_id": view.run.workflow_id, "step": step,
                });
                self.out.json(&line);
            } else {
                let seconds = format::duration(self.since.elapsed().as_millis() as u64);
                let line = Line::faint(&format!("{seconds:>6} ")).then(row(step, None, None));
                self.out.say(&[line]);
            }
        }
    }

    /// Shows the end of the run.
    pub(super) fn end(&mut self, view: &WorkflowView) {
        self.show(view, &BTreeMap::new());
        if !matches!(self.kind, Kind::Tree | Kind::Lines) {
            return;
        }
        for line in details(view) {
            self.out.note(&line);
        }
    }
}

/// Returns the run as lines: one for itself and one per step.
pub(super) fn tree(view: &WorkflowView, width: usize, mark: Option<&str>) -> Vec<Line> {
    tree_with(view, width, mark, &BTreeMap::new())
}

fn tree_with(
    view: &WorkflowView,
    width: usize,
    mark: Option<&str>,
    tools: &BTreeMap<String, String>,
) -> Vec<Line> {
    let run = &view.run;
    let mut head = Line::new().with(Tone::Strong, &one_line(&run.name, 30));
    head.push(Tone::Plain, "  ");
    head.push(tone(run.status), run.status.as_str());
    let cost = match (run.cost_usd, run.cost_complete) {
        (Some(cost), true) => format!(" · {}", format::money(Some(cost))),
        (Some(cost), false) => format!(" · at least {}", format::money(Some(cost))),
        (None, _) => String::new(),
    };
    let took = format::duration(run.duration_ms);
    let name = run
        .key
        .clone()
        .unwrap_or_else(|| run.workflow_id.to_string());
    head.push(Tone::Faint, &format!(" · {took}{cost} · {name}"));
    let mut lines = vec![head.cut(width)];
    for step in &view.steps {
        let tool = tools.get(&step.id).map(String::as_str);
        lines.push(row(step, mark, tool).cut(width));
    }
    lines
}

/// Returns the row of a step.
fn row(step: &WorkflowStepView, mark: Option<&str>, tool: Option<&str>) -> Line {
    let sign = match step.status {
        StepStatus::Pending => "·",
        StepStatus::Running => mark.unwrap_or("▸"),
        StepStatus::Waiting => "?",
        StepStatus::Succeeded => "✓",
        StepStatus::Failed => "✗",
        StepStatus::Skipped => "-",
        StepStatus::Cancelled => "■",
    };
    let running = step.status == StepStatus::Running;
    let tone = if running {
        Tone::Busy
    } else {
        tone(step.status)
    };
    let indent = if step.id.contains('[') { "    " } else { "  " };
    let mut line = Line::plain(indent);
    line.push(tone, sign);
    line.push(Tone::Plain, &format!(" {:<16} ", one_line(&step.id, 24)));
    let mut facts = vec![];
    if !matches!(step.status, StepStatus::Pending | StepStatus::Succeeded) {
        facts.push(step.status.as_str().to_owned());
    }
    if let Some(verdict) = step.verdict.as_ref().filter(|_| step.kind == "agent") {
        facts.push(match &step.continued_from {
            Some(from) => format!("{verdict} from {from}"),
            None => verdict.clone(),
        });
    }
    if let Some(code) = step.exit_code.filter(|code| *code != 0) {
        facts.push(format!("exit code {code}"));
    }
    if step.attempts > 1 {
        facts.push(format!("{} turns", step.attempts));
    }
    if step.status != StepStatus::Pending && step.status != StepStatus::Skipped {
        facts.push(format::duration(step.duration_ms));
    }
    if let Some(cost) = step.cost_usd.filter(|cost| *cost > 0.0) {
        facts.push(format::money(Some(cost)));
    }
    if let (StepStatus::Skipped, Some(why)) = (step.status, &step.reason) {
        facts.push(why.clone());
    }
    if let Some(tool) = tool {
        facts.push(tool.to_owned());
    }
    line.push(Tone::Faint, &facts.join(" · "));
    line
}

/// Cuts a tree that is higher than the screen: steps that have ended go first, from the top.
fn shortened(lines: Vec<Line>, view: &WorkflowView, room: usize) -> Vec<Line> {
    let mut surplus = lines.len() + 1 - room;
    let mut kept = vec![];
    let mut left_out = 0;
    for (n, line) in lines.into_iter().enumerate() {
        let step = n.checked_sub(1).and_then(|n| view.steps.get(n));
        let over = step.is_some_and(|step| step.status.has_ended());
        if surplus > 0 && over {
            surplus -= 1;
            left_out += 1;
            continue;
        }
        kept.push(line);
    }
    let more = kept.len().saturating_sub(room - 1);
    left_out += more;
    kept.truncate(room - 1);
    kept.push(Line::faint(&format!("  … {left_out} more steps")));
    kept
}

/// Returns what a person has to know beside the tree: failures, and what to type.
pub(super) fn details(view: &WorkflowView) -> Vec<String> {
    let mut lines = vec![];
    for step in &view.steps {
        let whole = !step.id.contains('[');
        match (&step.error, step.status) {
            (Some(error), StepStatus::Failed) if whole => {
                lines.push(format!("{} failed: {}", step.id, error.message));
            }
            (_, StepStatus::Waiting) => {
                let turn = step
                    .turn_id
                    .map(|turn| turn.to_string())
                    .unwrap_or_default();
                lines.push(format!(
                    "{} waits: rejoin answer {turn} allow|deny",
                    step.id
                ));
            }
            (Some(_) | None, _) => {}
        }
    }
    if let Some(error) = &view.run.error {
        lines.push(error.clone());
    }
    let name = view.run.key.clone();
    let name = name.unwrap_or_else(|| view.run.workflow_id.to_string());
    match view.run.status {
        StepStatus::Failed => {
            let first = view
                .steps
                .iter()
                .find(|step| step.status == StepStatus::Failed);
            if let Some(step) = first {
                let step = step.id.split('[').next().unwrap_or_default();
                lines.push(format!(
                    "again: rejoin workflow resume {name} --from {step}"
                ));
            }
        }
        StepStatus::Waiting | StepStatus::Running => {
            lines.push(format!("continue: rejoin workflow resume {name}"));
        }
        StepStatus::Pending
        | StepStatus::Succeeded
        | StepStatus::Skipped
        | StepStatus::Cancelled => {}
    }
    lines
}

//! Tool calls of a turn as rows: reads and searches are grouped, edits and commands have a row each.

use rejoin_core::{EventBody, ToolNote};
use rejoin_store::EventRow;
use serde_json::Value;

use super::format::{of, took};
use super::html::{Html, cut, plain};
use super::markdown;

/// Longest output of a tool in a row, in characters.
const OUTPUT: usize = 8_000;
/// Number of lines of a diff in a row.
const LINES: usize = 200;

/// Kind of a tool, whatever its agent calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Read,
    Search,
    Edit,
    Run,
    Web,
    Other,
}

impl Kind {
    fn of(tool: &str) -> Self {
        let tool = tool.to_ascii_lowercase();
        let has = |words: &[&str]| words.iter().any(|word| tool.contains(word));
        if has(&["edit", "write", "patch", "replace"]) {
            Self::Edit
        } else if has(&["grep", "glob", "search_file", "list", "ls"]) {
            Self::Search
        } else if has(&["web", "fetch"]) {
            Self::Web
        } else if has(&["bash", "shell", "exec", "command"]) {
            Self::Run
        } else if has(&["read", "view", "open"]) {
            Self::Read
        } else {
            Self::Other
        }
    }

    const fn icon(self) -> &'static str {
        match self {
            Self::Read => "eye",
            Self::Search => "search",
            Self::Edit => "pencil",
            Self::Run => "term",
            Self::Web => "globe",
            Self::Other => "dial",
        }
    }
}

/// Line of a diff.
pub(super) struct DiffLine {
    pub(super) class: &'static str,
    pub(super) sign: &'static str,
    pub(super) text: String,
}

/// Row of a tool call, or of several in short.
pub(super) struct ToolRow {
    pub(super) id: String,
    pub(super) icon: &'static str,
    pub(super) class: &'static str,
    /// Words before the subject; empty for an edit or a command.
    pub(super) what: String,
    pub(super) subject: String,
    pub(super) side: String,
    pub(super) diff: Vec<DiffLine>,
    pub(super) output: String,
    /// Subjects of a group.
    pub(super) steps: Vec<String>,
    pub(super) running: bool,
}

/// Piece of an answer, in order.
pub(super) enum Block {
    Text(Html),
    Tools(Vec<ToolRow>),
    Notice(String),
}

/// Events of a turn, read up to a number.
#[derive(Default)]
pub(super) struct Progress {
    pub(super) blocks: Vec<Block>,
    /// Text that is not complete yet.
    pub(super) partial: String,
    /// Items of the agent's list, with a class: done, now, or later.
    pub(super) todo: Vec<(&'static str, String)>,
    pub(super) last: i64,
}

/// Builds the pieces of an answer from the events of its turn.
pub(super) fn progress(events: &[EventRow]) -> Progress {
    let mut shown = Progress::default();
    for event in events {
        shown.last = event.seq;
        match &event.body {
            EventBody::TextDelta { text } => shown.partial.push_str(text),
            EventBody::Text {
                text,
                parent_tool: None,
            } => {
                shown.partial.clear();
                if !text.trim().is_empty() {
                    shown.blocks.push(Block::Text(markdown::render(text)));
                }
            }
            EventBody::ToolCall {
                id,
                tool,
                input,
                parent_tool: None,
                ..
            } => {
                let row = row(id, tool, input, event.seq);
                match shown.blocks.last_mut() {
                    Some(Block::Tools(rows)) => rows.push(row),
                    _ => shown.blocks.push(Block::Tools(vec![row])),
                }
            }
            EventBody::ToolResult {
                id, is_error, text, ..
            } => {
                let began = events.iter().find(
                    |e| matches!(&e.body, EventBody::ToolCall { id: call, .. } if call == id),
                );
                let ms = began.map(|began| ((event.at - began.at) / 1000).max(0) as u64);
                if let Some(row) = shown
                    .blocks
                    .iter_mut()
                    .rev()
                    .find_map(|block| find(block, id))
                {
                    end(row, *is_error, text, ms);
                }
            }
            EventBody::Todo { items } => shown.todo = todo(items),
            EventBody::Compacted { .. } => {
                shown
                    .blocks
                    .push(Block::Notice("The agent shortened its own context.".into()));
            }
            EventBody::Notice { message, .. } => {
                shown.blocks.push(Block::Notice(plain(message)));
            }
            EventBody::Text { .. }
            | EventBody::ToolCall { .. }
            | EventBody::TurnAccepted { .. }
            | EventBody::TurnDecided { .. }
            | EventBody::TurnStarted { .. }
            | EventBody::TurnEnded { .. }
            | EventBody::Thinking { .. }
            | EventBody::FileChanged { .. }
            | EventBody::Question { .. }
            | EventBody::Approval { .. }
            | EventBody::Answered { .. }
            | EventBody::Escalation { .. }
            | EventBody::Usage { .. }
            | EventBody::HistoryChanged { .. }
            | EventBody::ConversationCreated { .. }
            | EventBody::ConversationChanged { .. }
            | EventBody::ConversationDeleted {}
            | EventBody::Raw { .. } => {}
        }
    }
    for block in &mut shown.blocks {
        if let Block::Tools(rows) = block {
            group(rows);
        }
    }
    shown
}

fn find<'a>(block: &'a mut Block, id: &str) -> Option<&'a mut ToolRow> {
    let Block::Tools(rows) = block else {
        return None;
    };
    rows.iter_mut().find(|row| row.id == id)
}

fn end(row: &mut ToolRow, is_error: bool, text: &str, ms: Option<u64>) {
    row.running = false;
    row.class = if is_error { "err" } else { "" };
    row.output = plain(&cut(text.trim_end(), OUTPUT));
    if let Some(ms) = ms.filter(|ms| *ms >= 100) {
        row.side = took(ms);
    }
    if is_error {
        row.side.insert_str(
            0,
            if row.side.is_empty() {
                "failed"
            } else {
                "failed, "
            },
        );
    }
}

fn row(id: &str, tool: &str, input: &Value, seq: i64) -> ToolRow {
    let kind = Kind::of(tool);
    let subject = plain(&cut(&subject(input), 300));
    ToolRow {
        id: if id.is_empty() {
            seq.to_string()
        } else {
            id.to_owned()
        },
        icon: kind.icon(),
        class: "now",
        what: match kind {
            Kind::Edit | Kind::Run if !subject.is_empty() => String::new(),
            Kind::Edit | Kind::Run | Kind::Read | Kind::Search | Kind::Web | Kind::Other => {
                plain(tool)
            }
        },
        diff: diff(input),
        subject,
        side: String::new(),
        output: String::new(),
        steps: vec![],
        running: true,
    }
}

/// Returns the file, command or words that a call is about.
fn subject(input: &Value) -> String {
    let names = [
        "file_path",
        "path",
        "filePath",
        "command",
        "cmd",
        "pattern",
        "query",
        "url",
        "description",
        "prompt",
    ];
    let text = names.iter().find_map(|name| match &input[*name] {
        Value::String(text) => Some(text.clone()),
        Value::Array(words) => Some(
            words
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(" "),
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    });
    text.unwrap_or_default()
}

/// Returns the lines that an edit removes and adds.
fn diff(input: &Value) -> Vec<DiffLine> {
    let text = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| input[*name].as_str())
            .unwrap_or_default()
            .to_owned()
    };
    let old = text(["old_string", "oldString"]);
    let mut new = text(["new_string", "newString"]);
    if new.is_empty() && input["file_path"].is_string() {
        input["content"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut new);
    }
    let lines = |text: &str, class: &'static str, sign: &'static str| -> Vec<DiffLine> {
        let line = |line: &str| DiffLine {
            class,
            sign,
            text: plain(line),
        };
        text.lines().map(line).collect()
    };
    let (removed, added) = (lines(&old, "d", "−"), lines(&new, "a", "+"));
    let mut shown: Vec<_> = removed.into_iter().chain(added).collect();
    shown.truncate(LINES);
    shown
}

fn todo(items: &Value) -> Vec<(&'static str, String)> {
    let items = items.as_array().map(Vec::as_slice).unwrap_or_default();
    let item = |item: &Value| {
        let text = ["content", "text", "step", "title"]
            .iter()
            .find_map(|name| item[*name].as_str());
        let class = match item["status"].as_str() {
            Some("completed" | "done") => "d",
            Some("in_progress" | "running") => "n",
            _ => "",
        };
        Some((class, plain(&cut(text?, 200))))
    };
    items.iter().filter_map(item).collect()
}

/// Folds neighbouring reads and searches that have ended into one row.
fn group(rows: &mut Vec<ToolRow>) {
    let folds = |row: &ToolRow| {
        ["eye", "search"].contains(&row.icon) && !row.running && row.class.is_empty()
    };
    let mut grouped: Vec<ToolRow> = vec![];
    for row in rows.drain(..) {
        let joins = folds(&row)
            && grouped
                .last()
                .is_some_and(|last| folds(last) || last.class == "group");
        if !joins {
            grouped.push(row);
            continue;
        }
        if let Some(last) = grouped.last_mut() {
            if last.steps.is_empty() {
                last.steps.push(last.subject.clone());
            }
            last.steps.push(row.subject);
            last.class = "group";
            last.icon = "eye";
            last.what = format!(
                "Read and searched {}",
                of(last.steps.len(), "time", "times")
            );
            last.subject.clear();
            last.output.clear();
        }
    }
    *rows = grouped;
}

/// Returns the tools of an older answer in one row.
pub(super) fn of_notes(notes: &[ToolNote]) -> Option<ToolRow> {
    if notes.is_empty() {
        return None;
    }
    let changed = notes.iter().filter(|note| note.changed_file).count();
    let unfinished = notes.iter().filter(|note| !note.finished).count();
    let mut what = vec![of(notes.len(), "tool call", "tool calls")];
    if changed > 0 {
        what.push(format!("changed {}", of(changed, "file", "files")));
    }
    if unfinished > 0 {
        what.push(format!("{unfinished} with an unknown result"));
    }
    let step = |note: &ToolNote| plain(format!("{} {}", note.tool, note.subject).trim());
    Some(ToolRow {
        id: String::new(),
        icon: if changed > 0 { "pencil" } else { "dial" },
        class: "",
        what: what.join(", "),
        subject: String::new(),
        side: String::new(),
        diff: vec![],
        output: String::new(),
        steps: notes.iter().map(step).collect(),
        running: false,
    })
}

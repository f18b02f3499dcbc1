//! A tool call in short, as it is told later: from the stream or from the session.

use rejoin_core::ToolNote;
use serde_json::Value;

use super::permission;

/// Tools that change the file they name.
const EDITORS: &[&str] = &["edit", "replace", "write_file"];

/// Where a call says what it is about, by rank.
const SUBJECTS: &[&str] = &[
    "file_path",
    "command",
    "path",
    "dir_path",
    "pattern",
    "url",
    "query",
    "prompt",
    "agent_name",
    "name",
    "title",
];
/// How the CLI ends the sentence in which it says that its rules forbid a call.
pub(super) const DENIED: &str = "denied by policy.";
const SUBJECT_CHARS: usize = 120;

/// A call of which no more is known yet.
pub(super) fn begun(tool: &str, input: &Value) -> ToolNote {
    let subject = SUBJECTS.iter().find_map(|field| input[field].as_str());
    ToolNote {
        tool: tool.to_owned(),
        subject: one_line(subject.unwrap_or_default()),
        changed_file: false,
        finished: false,
    }
}

pub(super) fn edits(tool: &str) -> bool {
    EDITORS.contains(&tool)
}

/// A tool that is not allowed is not offered; one that is called all the same is "not found", as is
/// one that the model made up (0.61.0). `kind`: of its error.
pub(super) fn is_denial(tool: &str, kind: Option<&str>) -> bool {
    match kind {
        Some("policy_violation") => true,
        Some("tool_not_registered") => permission::is_known(tool),
        Some(_) | None => false,
    }
}

/// As it stands in a session: with its state and result.
pub(super) fn of_session(call: &Value) -> Option<ToolNote> {
    let tool = call["name"].as_str()?;
    let status = call["status"].as_str();
    let kind = call["errorType"].as_str();
    if status == Some("cancelled") || is_denial(tool, kind) {
        return None;
    }
    let mut note = begun(tool, &call["args"]);
    note.finished = !call["result"].is_null() || matches!(status, Some("success" | "error"));
    note.changed_file = status == Some("success") && edits(tool);
    Some(note)
}

/// As it stands among the words; `well`: how it ended.
pub(super) fn of_part(call: &Value, well: Option<bool>) -> Option<ToolNote> {
    let tool = call["name"].as_str()?;
    let mut note = begun(tool, &call["args"]);
    note.finished = well.is_some();
    note.changed_file = well == Some(true) && edits(tool);
    Some(note)
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

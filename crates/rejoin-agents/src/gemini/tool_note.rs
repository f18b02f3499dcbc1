//! Short summary of a tool call for transcripts, made from the stream or from the session.

use rejoin_core::ToolNote;
use serde_json::Value;

use super::permission;
use crate::tool_note;

/// Tools that change the file they name.
const EDITORS: &[&str] = &["edit", "replace", "write_file"];

/// Input fields that contain the subject of a call, in order of preference.
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
/// Suffix of the CLI's message that its rules forbid a call.
pub(super) const DENIED: &str = "denied by policy.";

/// Summarises a call that has no result yet.
pub(super) fn begun(tool: &str, input: &Value) -> ToolNote {
    tool_note::begun(tool, input, SUBJECTS)
}

pub(super) fn edits(tool: &str) -> bool {
    EDITORS.contains(&tool)
}

/// True if an error of this `kind` is a denial. A forbidden tool is not offered to the model. If
/// the model calls it anyway, it is "not found", like one that the model made up (0.61.0).
pub(super) fn is_denial(tool: &str, kind: Option<&str>) -> bool {
    match kind {
        Some("policy_violation") => true,
        Some("tool_not_registered") => permission::is_known(tool),
        Some(_) | None => false,
    }
}

/// Summarises a call of a session, with its state and result. None if it did not run.
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

/// Summarises a call among the text parts of a message. `well` is true if it succeeded.
pub(super) fn of_part(call: &Value, well: Option<bool>) -> Option<ToolNote> {
    let tool = call["name"].as_str()?;
    let mut note = begun(tool, &call["args"]);
    note.finished = well.is_some();
    note.changed_file = well == Some(true) && edits(tool);
    Some(note)
}

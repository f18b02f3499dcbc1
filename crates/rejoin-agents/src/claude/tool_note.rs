//! Short summary of a tool call for transcripts, made from the stream or from the session.

use rejoin_core::ToolNote;
use serde_json::Value;

use crate::tool_note;

/// Tools that change the file they name.
const EDITORS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Input fields that contain the subject of a call, in order of preference.
const SUBJECTS: &[&str] = &[
    "file_path",
    "notebook_path",
    "command",
    "path",
    "pattern",
    "url",
    "query",
    "skill",
    "description",
    "subject",
];

/// Prefixes of the result of a call that was not allowed (2.1.197, 2.1.325). The session stores no
/// list of denials, so this text is the only evidence.
const NOT_ALLOWED: &[&str] = &[
    "Claude requested permissions to ",
    "Permission for this ",
    "Permission to use ",
    "The user doesn't want to ",
    "This command requires approval",
    "Tool permission request failed",
    "Tool permission stream closed",
];

/// Summarises a call that has no result yet.
pub(super) fn begun(tool: &str, input: &Value) -> ToolNote {
    tool_note::begun(tool, input, SUBJECTS)
}

pub(super) fn edits(tool: &str) -> bool {
    EDITORS.contains(&tool)
}

/// True if the result says that the call was denied and did not run.
pub(super) fn is_denial(is_error: bool, said: &str) -> bool {
    is_error && NOT_ALLOWED.iter().any(|words| said.starts_with(words))
}

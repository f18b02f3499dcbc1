//! A tool call in short, as it is told later: from the stream or from the session.

use rejoin_core::ToolNote;
use serde_json::Value;

/// Tools that change the file they name.
const EDITORS: &[&str] = &["Edit", "MultiEdit", "NotebookEdit", "Write"];

/// Where a call says what it is about, by rank.
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
const SUBJECT_CHARS: usize = 120;

/// How the result of a call begins that was not allowed (2.1.197, 2.1.325). The session keeps no
/// list of denials: these words are all there is.
const NOT_ALLOWED: &[&str] = &[
    "Claude requested permissions to ",
    "Permission for this ",
    "Permission to use ",
    "The user doesn't want to ",
    "This command requires approval",
    "Tool permission request failed",
    "Tool permission stream closed",
];

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

/// Does this result say that nothing was run?
pub(super) fn is_denial(is_error: bool, said: &str) -> bool {
    is_error && NOT_ALLOWED.iter().any(|words| said.starts_with(words))
}

fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

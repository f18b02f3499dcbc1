//! Short summaries of tool calls for transcripts.

use rejoin_core::ToolNote;
use serde_json::Value;

const SUBJECT_CHARS: usize = 120;

/// Summarises a call that has no result yet. `subjects` are the input fields that contain its
/// subject, in order of preference.
pub(crate) fn begun(tool: &str, input: &Value, subjects: &[&str]) -> ToolNote {
    let subject = subjects.iter().find_map(|field| input[field].as_str());
    ToolNote {
        tool: tool.to_owned(),
        subject: one_line(subject.unwrap_or_default()),
        changed_file: false,
        finished: false,
    }
}

/// Puts a subject on one line and limits its length.
pub(crate) fn one_line(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

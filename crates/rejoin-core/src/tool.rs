//! Agent-neutral description of tool calls: each agent names its tools and their input otherwise.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Kind of a tool call, whatever the agent calls the tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolKind {
    Read,
    Search,
    Edit,
    Run,
    Web,
    /// Another agent does a part of the work.
    Agent,
    Other,
}

/// Names of tools by kind, in lower case: those of Claude Code 2.1, Codex 0.166, Gemini CLI 0.61 and OpenCode 1.18.
const NAMES: [(ToolKind, &[&str]); 6] = [
    (
        ToolKind::Read,
        &[
            "read",
            "notebookread",
            "read_file",
            "read_many_files",
            "view_image",
        ],
    ),
    (
        ToolKind::Search,
        &[
            "grep",
            "glob",
            "ls",
            "list",
            "list_directory",
            "search_file_content",
            "grep_search",
            "codesearch",
            "toolsearch",
            "lsp",
        ],
    ),
    (
        ToolKind::Edit,
        &[
            "edit",
            "write",
            "multiedit",
            "notebookedit",
            "apply_patch",
            "replace",
            "write_file",
            "patch",
        ],
    ),
    (
        ToolKind::Run,
        &[
            "bash",
            "bashoutput",
            "killshell",
            "exec_command",
            "shell",
            "local_shell",
            "write_stdin",
            "run_shell_command",
        ],
    ),
    (
        ToolKind::Web,
        &[
            "webfetch",
            "websearch",
            "web_fetch",
            "web_search",
            "google_web_search",
        ],
    ),
    (
        ToolKind::Agent,
        &["task", "agent", "delegate_to_agent", "spawn_agent"],
    ),
];

/// Fields of an input that hold the subject of a call, most telling first.
const SUBJECTS: [&str; 15] = [
    "command",
    "file_path",
    "filePath",
    "absolute_path",
    "notebook_path",
    "pattern",
    "query",
    "url",
    "path",
    "dir_path",
    "paths",
    "changes",
    "description",
    "objective",
    "prompt",
];

/// Longest subject in characters.
const SUBJECT_CHARS: usize = 200;

impl ToolKind {
    /// Returns the kind of a tool by its name.
    pub fn of(tool: &str) -> Self {
        let name = tool.to_lowercase();
        let known = NAMES
            .iter()
            .find(|(_, names)| names.contains(&name.as_str()));
        known.map_or(Self::Other, |(kind, _)| *kind)
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Search => "search",
            Self::Edit => "edit",
            Self::Run => "run",
            Self::Web => "web",
            Self::Agent => "agent",
            Self::Other => "other",
        }
    }
}

/// Returns the subject of a call on one line: its command, file, pattern or address. Empty if the
/// input names none.
pub fn tool_subject(tool: &str, input: &Value) -> String {
    let found = SUBJECTS.iter().find_map(|field| words(&input[*field]));
    let text = found.or_else(|| input.as_str().map(str::to_owned));
    let text = text.unwrap_or_default();
    let text = if ToolKind::of(tool) == ToolKind::Run {
        without_shell(&text)
    } else {
        text
    };
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= SUBJECT_CHARS {
        return line;
    }
    line.chars().take(SUBJECT_CHARS - 1).chain(['…']).collect()
}

/// Returns a text, or a list of texts or of objects with a path, as words.
fn words(value: &Value) -> Option<String> {
    let one = |value: &Value| {
        let path = value["path"].as_str();
        value.as_str().or(path).map(str::to_owned)
    };
    let text = match value.as_array() {
        Some(all) => all.iter().filter_map(one).collect::<Vec<_>>().join(" "),
        None => one(value)?,
    };
    Some(text).filter(|text| !text.trim().is_empty())
}

/// Removes the shell that Codex puts around a command: `/bin/bash -lc 'ls'`.
fn without_shell(text: &str) -> String {
    let inner = text.split_once(" -lc ").map_or(text, |(_, inner)| inner);
    let quoted = inner.len() >= 2 && inner.starts_with('\'') && inner.ends_with('\'');
    if quoted {
        return inner[1..inner.len() - 1].replace("'\\''", "'");
    }
    inner.to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tools_of_every_agent_have_a_kind() {
        for (tool, kind) in [
            ("Bash", ToolKind::Run),
            ("exec_command", ToolKind::Run),
            ("run_shell_command", ToolKind::Run),
            ("apply_patch", ToolKind::Edit),
            ("replace", ToolKind::Edit),
            ("Glob", ToolKind::Search),
            ("read_many_files", ToolKind::Read),
            ("WebFetch", ToolKind::Web),
            ("Task", ToolKind::Agent),
            ("mcp__db__query", ToolKind::Other),
        ] {
            assert_eq!(ToolKind::of(tool), kind, "{tool}");
            assert_eq!(
                serde_json::to_value(kind).ok(),
                Some(json!(kind.as_str())),
                "{tool}"
            );
        }
    }

    #[test]
    fn a_subject_is_one_short_line() {
        let of = |tool, input| tool_subject(tool, &input);
        assert_eq!(of("Bash", json!({"command": "npm\n  test"})), "npm test");
        let wrapped = json!({"command": "/bin/bash -lc 'echo '\\''a'\\'''"});
        assert_eq!(of("exec_command", wrapped), "echo 'a'");
        let changes = json!({"changes": [{"path": "a.rs"}, {"path": "b.rs"}]});
        assert_eq!(of("apply_patch", changes), "a.rs b.rs");
        let search = json!({"pattern": "fn main", "path": "src"});
        assert_eq!(of("Grep", search), "fn main");
        assert_eq!(of("mcp__x__y", json!({"a": 1})), "");
        let long = of("Bash", json!({"command": "ä".repeat(500)}));
        assert_eq!((long.chars().count(), long.ends_with('…')), (200, true));
    }
}

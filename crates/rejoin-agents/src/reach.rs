//! The mode that a set of permissions amounts to, for comparison with a ceiling.

use rejoin_core::{Envelope, PermissionMode};

/// Tools that `edit` permits by itself. A tool outside this list is permitted by being named in `tools`, so
/// it widens the turn. Claude Code's editing tools are not listed: in `edit` it writes inside the folder
/// only, and a named tool is permitted everywhere.
const CLAUDE: &[&str] = &["read", "search", "Read", "Glob", "Grep", "LS", "TodoWrite"];
const GEMINI: &[&str] = &[
    "read",
    "search",
    "edit",
    "read_file",
    "read_many_files",
    "list_directory",
    "glob",
    "grep_search",
    "search_file_content",
    "replace",
    "write_file",
    "write_todos",
];
const OPENCODE: &[&str] = &["read", "search", "edit", "glob", "grep", "list"];

/// Returns the mode whose permissions the envelope stays within. A tool that `edit` does not permit by
/// itself counts as `full` in every mode: a conversation keeps its list, and its mode may change later.
pub fn reach(agent: &str, envelope: &Envelope) -> PermissionMode {
    let tools = envelope.tools.as_deref().unwrap_or_default();
    let within: &[&str] = match agent {
        "claude" => CLAUDE,
        "gemini" => GEMINI,
        "opencode" => OPENCODE,
        // The sandbox follows from the mode alone; a list of tools only takes tools away.
        "codex" => return envelope.mode,
        _ => &[],
    };
    let widens = tools.iter().any(|tool| !within.contains(&tool.as_str()));
    if widens {
        PermissionMode::Full
    } else {
        envelope.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(agent: &str, mode: PermissionMode, tools: &[&str]) -> PermissionMode {
        let envelope = Envelope {
            mode,
            tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()),
            deny_tools: vec![],
        };
        reach(agent, &envelope)
    }

    #[test]
    fn a_tool_that_the_mode_does_not_permit_counts_as_full() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        for agent in ["claude", "gemini", "opencode", "another"] {
            assert_eq!(of(agent, Edit, &["read", "shell"]), Full, "{agent}");
            assert_eq!(of(agent, Edit, &["web"]), Full, "{agent}");
            assert_eq!(of(agent, Ask, &["shell"]), Full, "{agent}");
            assert_eq!(of(agent, Edit, &[]), Edit, "{agent}");
        }
        for agent in ["claude", "gemini", "opencode"] {
            for mode in [ReadOnly, Ask, Edit, Full] {
                assert_eq!(of(agent, mode, &["read", "search"]), mode, "{agent}");
            }
        }
        assert_eq!(of("claude", Edit, &["edit"]), Full);
        assert_eq!(of("codex", Edit, &["edit", "shell"]), Edit);
    }
}

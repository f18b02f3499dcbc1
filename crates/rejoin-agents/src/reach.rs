//! Finds the mode that a set of permissions is equivalent to, for comparison with a ceiling.

use rejoin_core::{PermissionMode, Permissions};

use crate::adapter;
use crate::adapter::NamedTools;

/// Returns the mode that covers these permissions. A tool that `edit` does not permit by
/// itself counts as `full` in every mode: a conversation keeps its list, and its mode may change later.
pub fn reach(agent: &str, permissions: &Permissions) -> PermissionMode {
    let named = adapter(agent).map_or(NamedTools::Permit(&[]), |a| a.profile().named_tools);
    let NamedTools::Permit(within) = named else {
        return permissions.mode;
    };
    let tools = permissions.tools.as_deref().unwrap_or_default();
    let mut tools = tools.iter().map(String::as_str);
    if tools.any(|tool| !within.contains(&tool)) {
        PermissionMode::Full
    } else {
        permissions.mode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(agent: &str, mode: PermissionMode, tools: &[&str]) -> PermissionMode {
        let permissions = Permissions {
            mode,
            tools: Some(tools.iter().map(|&tool| tool.to_owned()).collect()),
            deny_tools: vec![],
            commands: false,
        };
        reach(agent, &permissions)
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

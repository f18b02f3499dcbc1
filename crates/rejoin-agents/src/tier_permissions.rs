//! Permissions of a tier for one agent, and which parts of them the agent can enforce.

use rejoin_core::{LimitState, PermissionMode, Permissions, Tier};
use serde::Serialize;

use crate::adapter::Adapter;

/// Common words for the tools that write and that run commands.
const ACTING: [&str; 2] = ["shell", "edit"];

/// Returns the complete permissions of a turn of this tier. `conversation` is the mode if the tier
/// has none. `adapter` is `None` if the agent is unknown here.
pub fn tier_permissions(
    tier: &Tier,
    conversation: PermissionMode,
    adapter: Option<&dyn Adapter>,
) -> Permissions {
    let permissions = Permissions {
        mode: tier.permission.unwrap_or(conversation),
        tools: tier.tools.clone(),
        deny_tools: tier.deny_tools.clone(),
        commands: tier.tools.is_some(),
    };
    if tier.dry_run {
        return without_actions(permissions, adapter);
    }
    permissions
}

/// Restricts permissions to reading: removes the tools that act from the list, and denies them.
fn without_actions(mut permissions: Permissions, adapter: Option<&dyn Adapter>) -> Permissions {
    let allows = |tools: Option<Vec<String>>, deny_tools: Vec<String>| {
        let alone = Permissions {
            mode: PermissionMode::ReadOnly,
            tools,
            deny_tools,
            commands: false,
        };
        adapter.is_none_or(|adapter| adapter.check_permissions(&alone, false).is_ok())
    };
    if let Some(tools) = &mut permissions.tools {
        tools.retain(|tool| allows(Some(vec![tool.clone()]), vec![]));
    }
    for tool in ACTING.map(str::to_owned) {
        if allows(None, vec![tool.clone()]) && !permissions.deny_tools.contains(&tool) {
            permissions.deny_tools.push(tool);
        }
    }
    Permissions {
        mode: PermissionMode::ReadOnly,
        commands: false,
        ..permissions
    }
}

/// Returns the reason why an agent cannot be held to limits of calls. None if it can, or if there
/// are none.
pub fn limit_refusal(adapter: &dyn Adapter, limits: &[LimitState]) -> Option<String> {
    let cannot = !limits.is_empty() && adapter.capabilities().limits.is_none();
    cannot.then(|| no_limits(adapter))
}

fn no_limits(adapter: &dyn Adapter) -> String {
    let name = adapter.name();
    format!("{name} asks no program before a call, so no limit of calls can be enforced")
}

/// Part of a tier, and how an agent enforces it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct EnforcedPart {
    /// `permission`, `tools`, `deny_tools`, `limit` or `dry_run`.
    pub part: &'static str,
    /// False if the agent cannot enforce the part: a turn of the tier is refused.
    pub enforced: bool,
    /// Mechanism, or the reason why there is none.
    pub by: String,
}

/// Returns how the agent enforces each part of the tier.
pub fn enforced_parts(
    tier: &Tier,
    conversation: PermissionMode,
    adapter: &dyn Adapter,
    as_root: bool,
) -> Vec<EnforcedPart> {
    let whole = tier_permissions(tier, conversation, Some(adapter));
    let name = adapter.name();
    let check = |permissions: &Permissions| adapter.check_permissions(permissions, as_root);
    let part = |part, checked: Result<(), String>, by: String| EnforcedPart {
        part,
        enforced: checked.is_ok(),
        by: checked.err().unwrap_or(by),
    };
    let mode = Permissions {
        mode: whole.mode,
        ..Permissions::default()
    };
    let rows = adapter.profile().allows.iter();
    let row = rows.clone().find(|row| row.mode == whole.mode);
    let by = row.map_or_else(|| format!("{name} itself"), |row| row.by.to_owned());
    let mut parts = vec![part("permission", check(&mode), by)];
    if whole.tools.is_some() {
        let tools = Permissions {
            deny_tools: vec![],
            ..whole.clone()
        };
        let commands = whole.commands && whole.mode == PermissionMode::ReadOnly;
        let plain = Permissions {
            commands: false,
            ..tools.clone()
        };
        let by = if commands && check(&plain).is_err() {
            format!(
                "an exact list on every call of {name}; what a permitted command does is limited by deny_tools alone"
            )
        } else {
            format!("an exact list on every call of {name}")
        };
        parts.push(part("tools", check(&tools), by));
    }
    if !tier.deny_tools.is_empty() {
        let denied = Permissions {
            tools: None,
            deny_tools: tier.deny_tools.clone(),
            ..whole.clone()
        };
        let by = format!("the complete list on every call of {name}");
        parts.push(part("deny_tools", check(&denied), by));
    }
    if !tier.limit.is_empty() {
        let rules = tier.limit.iter().map(|limit| limit.tool.clone());
        let denied = Permissions {
            tools: None,
            deny_tools: rules.collect(),
            ..whole.clone()
        };
        let checked = match adapter.capabilities().limits {
            Some(_) => check(&denied),
            None => Err(no_limits(adapter)),
        };
        let by = format!("a program that {name} runs before each call");
        parts.push(part("limit", checked, by));
    }
    if tier.dry_run {
        let by = "permission read-only; tools that write or run commands denied".to_owned();
        parts.push(part("dry_run", check(&whole), by));
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::adapter;

    fn tier(tools: &[&str], deny: &[&str], dry_run: bool) -> Tier {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        Tier {
            name: "t".into(),
            role: "t".into(),
            agent: None,
            model: None,
            permission: Some(PermissionMode::ReadOnly),
            tools: Some(owned(tools)),
            deny_tools: owned(deny),
            may: vec![],
            dry_run,
            timeout_ms: None,
            max_cost: None,
            cooldown_ms: None,
            approval: false,
            limit: vec![],
            prompt: None,
            window: None,
        }
    }

    /// The observer of the contract: commands by name, and nothing that writes.
    #[test]
    fn a_read_only_tier_may_name_commands_and_no_writers() {
        for (agent, shell, writer) in [
            ("claude", "Bash", "Write"),
            ("gemini", "shell", "edit"),
            ("opencode", "shell", "edit"),
        ] {
            let adapter = adapter(agent).unwrap();
            let of = |tool: &str| {
                let tier = tier(&["read", tool], &[], false);
                tier_permissions(&tier, PermissionMode::Edit, Some(adapter))
            };
            assert_eq!(
                adapter.check_permissions(&of(shell), false),
                Ok(()),
                "{agent}"
            );
            assert!(
                adapter.check_permissions(&of(writer), false).is_err(),
                "{agent}"
            );
            let flag = Permissions {
                commands: false,
                ..of(shell)
            };
            assert!(adapter.check_permissions(&flag, false).is_err(), "{agent}");
        }
    }

    #[test]
    fn a_dry_run_keeps_only_reading_tools() {
        for (agent, tools, left) in [
            ("claude", &["Bash", "Read", "Write"][..], &["Read"][..]),
            ("gemini", &["shell", "read"], &["read"]),
            ("opencode", &["shell", "read"], &["read"]),
        ] {
            let adapter = adapter(agent).unwrap();
            let tier = tier(tools, &[], true);
            let permissions = tier_permissions(&tier, PermissionMode::Full, Some(adapter));
            assert_eq!(permissions.tools.as_deref().unwrap(), left, "{agent}");
            assert_eq!(permissions.deny_tools, ACTING, "{agent}");
            assert_eq!(
                adapter.check_permissions(&permissions, false),
                Ok(()),
                "{agent}"
            );
            assert!(!permissions.commands);
        }
        let codex = adapter("codex").unwrap();
        let tier = tier(&["shell", "edit", "read"], &[], true);
        let permissions = tier_permissions(&tier, PermissionMode::Full, Some(codex));
        assert_eq!(codex.check_permissions(&permissions, false), Ok(()));
    }

    #[test]
    fn parts_that_an_agent_cannot_enforce_are_named() {
        let tier = tier(&["Bash", "Read"], &["Bash(docker restart:*)"], false);
        let parts = |agent: &str| {
            let adapter = adapter(agent).unwrap();
            enforced_parts(&tier, PermissionMode::Edit, adapter, false)
        };
        assert!(parts("claude").iter().all(|part| part.enforced));
        let gemini = parts("gemini");
        let denied = gemini
            .iter()
            .find(|part| part.part == "deny_tools")
            .unwrap();
        assert!(
            !denied.enforced && denied.by.contains("whole tools"),
            "{denied:?}"
        );
    }
}

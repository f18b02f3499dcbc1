//! Permissions of a turn as flags of the CLI. Every call gets all of them: a session remembers
//! none, and without `-s` the configuration decides.
//!
//! The sandbox covers (0.166.0, tried with every existing tool) the shell and `apply_patch`, also
//! if they are called from the JavaScript tool of newer models. It does not cover MCP servers, nor
//! commands that a rule of the user allows.

use crate::adapter::Allows;
use rejoin_core::{PermissionMode, Permissions};

/// Permissions per mode, seen on 0.166.0.
pub(super) const PERMISSION_TABLE: &[Allows] = &[
    Allows {
        mode: PermissionMode::ReadOnly,
        read: "all files",
        write: "no",
        run: "commands that write nothing",
        network: "no",
        by: "sandbox read-only; the user's rules ignored, MCP servers and apps off",
    },
    Allows {
        mode: PermissionMode::Edit,
        read: "all files",
        write: "in the folder, /tmp and TMPDIR",
        run: "everything, within that",
        network: "no, unless configured",
        by: "sandbox workspace-write",
    },
    Allows {
        mode: PermissionMode::Ask,
        read: "images; the rest a person decides, else denied",
        write: "a person decides, else denied",
        run: "a person decides, else denied; not asked: what the user's own rules allow",
        network: "web search; the rest a person decides, else denied",
        by: "approval policy untrusted, sandbox workspace-write; MCP servers, apps, sub-agents, goals and terminals off",
    },
    Allows {
        mode: PermissionMode::Full,
        read: "all files",
        write: "all files",
        run: "everything",
        network: "everything",
        by: "nothing",
    },
];

/// Tools that belong together, and the way to disable them.
struct Kind {
    /// Common word for these tools in all agents.
    alias: Option<&'static str>,
    names: &'static [&'static str],
    off: Off,
}

enum Off {
    /// `--disable`: a Codex that does not know the feature exits at once instead of running with
    /// more permissions.
    Feature(&'static str),
    Setting(&'static str),
    /// Cannot be disabled: only the sandbox prevents writing.
    Never,
}

const KINDS: &[Kind] = &[
    Kind {
        alias: Some("shell"),
        names: &[
            "exec_command",
            "write_stdin",
            "shell",
            "shell_command",
            "local_shell",
        ],
        off: Off::Feature("shell_tool"),
    },
    Kind {
        alias: Some("edit"),
        names: &["apply_patch"],
        off: Off::Never,
    },
    Kind {
        alias: Some("web"),
        names: &["web_search"],
        off: Off::Setting("web_search=\"disabled\""),
    },
    Kind {
        alias: None,
        names: &["view_image"],
        off: Off::Feature("view_image"),
    },
    Kind {
        alias: None,
        names: &["get_goal", "create_goal", "update_goal"],
        off: Off::Feature("goals"),
    },
    Kind {
        alias: None,
        names: &["image_generation"],
        off: Off::Feature("image_generation"),
    },
];

/// Actions for which Codex has no tool except its shell.
const BY_SHELL: &[&str] = &["read", "search"];

/// Features with further tools that the sandbox does not cover.
const UNHELD: &[&str] = &[
    "apps",
    "plugins",
    "browser_use",
    "computer_use",
    "image_generation",
];

/// Features that act without asking: input to a program that was allowed once, sub-agents that ask
/// in threads of their own, and goals, which the server pursues by itself as soon as it opens the
/// session (17 requests in a second).
const UNASKED: &[&str] = &["unified_exec_tty", "multi_agent", "goals"];

fn kind(name: &str) -> Option<&'static Kind> {
    KINDS
        .iter()
        .find(|kind| kind.alias == Some(name) || kind.names.contains(&name))
}

pub(super) fn check(permissions: &Permissions) -> Result<(), String> {
    let read_only = permissions.mode == PermissionMode::ReadOnly;
    for name in &permissions.deny_tools {
        if BY_SHELL.contains(&name.as_str()) {
            return Err(format!(
                "Codex has no tool to {name} but its shell; deny `shell` instead"
            ));
        }
        let denied = kind(name).ok_or_else(|| unknown(name))?;
        if matches!(denied.off, Off::Never) && !read_only {
            return Err(format!(
                "Codex cannot be kept from `{name}` but by the permission read-only"
            ));
        }
    }
    let Some(tools) = &permissions.tools else {
        return Ok(());
    };
    let mut edits = false;
    for name in tools {
        if BY_SHELL.contains(&name.as_str()) {
            if !read_only {
                return Err(format!(
                    "Codex has no tool to {name} but its shell, which may write as well; name `shell` instead, or make the turn read-only"
                ));
            }
            continue;
        }
        let named = kind(name).ok_or_else(|| unknown(name))?;
        edits |= matches!(named.off, Off::Never);
    }
    match (edits, read_only) {
        (true, true) => Err("the tool `apply_patch` may write, and the turn is read-only".into()),
        (false, false) => Err(
            "Codex cannot be kept from `edit` but by the permission read-only; name it as well"
                .into(),
        ),
        (true, false) | (false, true) => Ok(()),
    }
}

fn unknown(name: &str) -> String {
    format!(
        "`{name}` is no tool that Codex can be given or denied; those are shell, edit, web, view_image, goals by their tools, image_generation"
    )
}

pub(super) fn sandbox(mode: PermissionMode) -> &'static str {
    match mode {
        PermissionMode::ReadOnly => "read-only",
        PermissionMode::Edit | PermissionMode::Ask => "workspace-write",
        PermissionMode::Full => "danger-full-access",
    }
}

/// Returns the flags for permissions that [`check`] accepted.
pub(super) fn flags(permissions: &Permissions, servers: &[String]) -> Vec<String> {
    let mut flags = settings(permissions, servers);
    if sandbox(permissions.mode) == "read-only" {
        flags.push("--ignore-rules".into());
    }
    flags
}

/// Returns the subset of these flags that every command of the CLI accepts.
pub(super) fn settings(permissions: &Permissions, servers: &[String]) -> Vec<String> {
    let asks = permissions.mode == PermissionMode::Ask;
    let held = sandbox(permissions.mode) == "read-only" || asks;
    let listed = |names: &[String], kind: &Kind| {
        names.iter().any(|name| {
            let by_shell = BY_SHELL.contains(&name.as_str()) && kind.alias == Some("shell");
            by_shell || kind.alias == Some(name) || kind.names.contains(&name.as_str())
        })
    };
    let mut flags = vec![];
    let mut add = |flag: &str, value: &str| flags.extend([flag.to_owned(), value.to_owned()]);
    for kind in KINDS {
        let left_out = permissions
            .tools
            .as_ref()
            .is_some_and(|set| !listed(set, kind));
        if !left_out && !listed(&permissions.deny_tools, kind) {
            continue;
        }
        match kind.off {
            Off::Feature(feature) => add("--disable", feature),
            Off::Setting(setting) => add("-c", setting),
            Off::Never => {}
        }
        if kind.alias == Some("web") {
            add("-c", "sandbox_workspace_write.network_access=false");
        }
    }
    if held || permissions.tools.is_some() {
        for feature in UNHELD {
            add("-c", &format!("features.{feature}=false"));
        }
        for server in servers {
            add("-c", &format!("mcp_servers.{server}.enabled=false"));
        }
    }
    if asks {
        for feature in UNASKED {
            add("--disable", feature);
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_names::permissions;

    #[test]
    fn flags_by_mode() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        let shown = |mode, tools, deny: &[&str]| {
            let permissions = permissions(mode, tools, deny);
            format!(
                "{}: {}",
                sandbox(mode),
                flags(&permissions, &["files".into()]).join(" ")
            )
        };
        insta::assert_snapshot!(shown(ReadOnly, None, &[]), @"read-only: -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false --ignore-rules");
        insta::assert_snapshot!(shown(ReadOnly, Some(&["read"]), &["web"]), @r#"read-only: -c web_search="disabled" -c sandbox_workspace_write.network_access=false --disable view_image --disable goals --disable image_generation -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false --ignore-rules"#);
        insta::assert_snapshot!(shown(Edit, None, &[]), @"workspace-write:");
        insta::assert_snapshot!(shown(Edit, None, &["shell", "web_search"]), @r#"workspace-write: --disable shell_tool -c web_search="disabled" -c sandbox_workspace_write.network_access=false"#);
        insta::assert_snapshot!(shown(Edit, Some(&["edit"]), &[]), @r#"workspace-write: --disable shell_tool -c web_search="disabled" -c sandbox_workspace_write.network_access=false --disable view_image --disable goals --disable image_generation -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false"#);
        insta::assert_snapshot!(shown(Full, Some(&["edit", "shell"]), &["exec_command"]), @r#"danger-full-access: --disable shell_tool -c web_search="disabled" -c sandbox_workspace_write.network_access=false --disable view_image --disable goals --disable image_generation -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false"#);
        insta::assert_snapshot!(shown(Full, None, &[]), @"danger-full-access:");
        insta::assert_snapshot!(shown(Ask, None, &[]), @"workspace-write: -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false --disable unified_exec_tty --disable multi_agent --disable goals");
    }

    #[test]
    fn what_cannot_be_expressed_is_said() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        fn said(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> Option<String> {
            check(&permissions(mode, tools, deny)).err()
        }
        assert_eq!(
            said(ReadOnly, Some(&["read", "shell"]), &["edit", "web"]),
            None
        );
        assert_eq!(said(ReadOnly, Some(&[]), &[]), None);
        assert_eq!(said(Edit, Some(&["edit", "shell"]), &["view_image"]), None);
        assert_eq!(said(Full, None, &["shell", "create_goal"]), None);
        assert_eq!(said(Ask, None, &["web"]), None);
        let says = |said: Option<String>, word: &str| {
            assert!(
                said.as_deref().is_some_and(|s| s.contains(word)),
                "{said:?}"
            );
        };
        says(said(Ask, None, &["edit"]), "read-only");
        says(said(Edit, None, &["apply_patch"]), "read-only");
        says(said(Edit, None, &["read"]), "deny `shell`");
        says(said(Edit, Some(&["read", "edit"]), &[]), "name `shell`");
        says(said(Full, Some(&["shell"]), &[]), "name it as well");
        says(said(ReadOnly, Some(&["edit"]), &[]), "may write");
        for bad in [
            "",
            "-x",
            "--json",
            "Bash",
            "mcp__m__t",
            "shell(ls:*)",
            "spawn_agent",
        ] {
            assert!(said(Edit, Some(&["edit", bad]), &[]).is_some(), "{bad:?}");
            assert!(said(Edit, None, &[bad]).is_some(), "{bad:?}");
        }
    }
}

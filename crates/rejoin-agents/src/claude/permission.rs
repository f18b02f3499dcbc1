//! Permissions of a turn as flags of the CLI. Every call gets all of them.

use rejoin_core::{PermissionMode, Permissions};

use crate::adapter::Allows;
use crate::tool_names::{self, Aliases, parts};

/// Permissions per mode, seen on 2.1.197 and 2.1.325. A request is denied if no person is there to
/// answer it.
pub(super) const PERMISSION_TABLE: &[Allows] = &[
    Allows {
        mode: PermissionMode::ReadOnly,
        read: "all files",
        write: "no",
        run: "no",
        network: "web search and fetch",
        by: "an exact list of tools; MCP tools denied",
    },
    Allows {
        mode: PermissionMode::Edit,
        read: "all files",
        write: "in the folder",
        run: "file commands (mkdir, mv, …); others with --tools shell",
        network: "a person decides, else denied",
        by: "permission mode acceptEdits",
    },
    Allows {
        mode: PermissionMode::Ask,
        read: "in the folder",
        write: "a person decides, else denied",
        run: "a person decides, else denied",
        network: "a person decides, else denied",
        by: "permission mode default",
    },
    Allows {
        mode: PermissionMode::Full,
        read: "all files",
        write: "all files",
        run: "everything",
        network: "everything",
        by: "nothing; refused to root without IS_SANDBOX=1",
    },
];

/// Tools that cannot change anything in the working folder. This is an exact set, because a list of
/// writing tools is never complete: in `dontAsk` mode `CronCreate` still wrote into the folder
/// (2.1.197, 2.1.325), and versions add tools such as `Monitor`. The set applies to sub-agents too.
const READ_ONLY_TOOLS: &[&str] = &[
    "Agent",
    "Glob",
    "Grep",
    "ListAgents",
    "LS",
    "Read",
    "TaskCreate",
    "TaskGet",
    "TaskList",
    "TaskOutput",
    "TaskUpdate",
    "TodoWrite",
    "ToolSearch",
    "WebFetch",
    "WebSearch",
];

/// Tools that read-only turns deny as well.
const WRITING_TOOLS: &[&str] = &["Bash", "Edit", "Write", "NotebookEdit"];

/// Tools that run commands. A read-only tier may name them.
const COMMANDS: &[&str] = &["Bash"];

/// Pattern that, if denied, removes all tools of MCP servers (2.1.197, 2.1.325). An exact set does
/// not cover them, and the user's settings may allow them.
const ALL_MCP: &str = "mcp__*";

/// Common words for tools that each agent names differently.
const ALIASES: &Aliases = &[
    ("shell", &["Bash"]),
    ("read", &["Read"]),
    ("search", &["Glob", "Grep"]),
    ("edit", &["Edit", "Write", "NotebookEdit"]),
    ("web", &["WebFetch", "WebSearch"]),
];

pub(super) fn check(permissions: &Permissions, as_root: bool) -> Result<(), String> {
    if as_root && permissions.mode == PermissionMode::Full {
        return Err("Claude Code refuses full permission to root unless IS_SANDBOX=1 is set in its environment".into());
    }
    let tools = permissions.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&permissions.deny_tools) {
        parts(name).ok_or_else(|| tool_names::no_tool(name))?;
    }
    if let Some(rule) = tools.iter().find(|name| name.contains('(')) {
        return Err(format!(
            "Claude Code takes whole tools, not the rule `{rule}`, as the set a turn may use; rules can be denied"
        ));
    }
    if let Some(tool) = tools.iter().find(|name| name.starts_with("mcp__")) {
        return Err(format!(
            "Claude Code cannot be held to single MCP tools such as `{tool}`; deny the others instead"
        ));
    }
    // Names of its tools begin with a capital; new versions add some.
    let own = |name: &str| name.starts_with(|c: char| c.is_ascii_uppercase());
    if let Some(tool) = names(tools).find(|name| !own(name)) {
        return Err(tool_names::unknown("Claude Code", tool, ALIASES));
    }
    let chosen = names(tools).filter(|name| *name != "Task");
    tool_names::refuse_writers(permissions, chosen, READ_ONLY_TOOLS, COMMANDS)
}

/// Returns the flags for permissions that [`check`] accepted. A name that it would reject is left
/// out.
pub(super) fn flags(permissions: &Permissions) -> Vec<String> {
    let chosen = permissions
        .tools
        .as_deref()
        .map(|tools| names(tools).collect::<Vec<_>>());
    let read_only = permissions.mode == PermissionMode::ReadOnly;
    let mode = match permissions.mode {
        PermissionMode::ReadOnly => "dontAsk",
        PermissionMode::Edit => "acceptEdits",
        PermissionMode::Ask => "default",
        PermissionMode::Full => "bypassPermissions",
    };
    let mut flags = vec!["--permission-mode".to_owned(), mode.to_owned()];
    let mut list = |flag: &str, names: &[&str]| flags.extend([flag.to_owned(), names.join(",")]);
    match (&chosen, read_only) {
        (Some(tools), _) => list("--tools", tools),
        (None, true) => list("--tools", READ_ONLY_TOOLS),
        (None, false) => {}
    }
    // A set limits but does not permit. In modes where a person decides, naming a tool is no
    // decision.
    match permissions.mode {
        PermissionMode::Edit | PermissionMode::Full => {
            if let Some(tools) = chosen.as_deref().filter(|tools| !tools.is_empty()) {
                list("--allowedTools", tools);
            }
        }
        PermissionMode::ReadOnly if permissions.commands => {
            list("--allowedTools", chosen.as_deref().unwrap_or_default());
        }
        PermissionMode::ReadOnly | PermissionMode::Ask => {}
    }
    let mut denied: Vec<&str> = if read_only {
        WRITING_TOOLS.to_vec()
    } else {
        vec![]
    };
    if permissions.commands {
        let named = chosen.as_deref().unwrap_or_default();
        denied.retain(|tool| !COMMANDS.contains(tool) || !named.contains(tool));
    }
    if read_only || chosen.is_some() {
        denied.push(ALL_MCP);
    }
    for name in names(&permissions.deny_tools) {
        if !denied.contains(&name) {
            denied.push(name);
        }
    }
    if !denied.is_empty() {
        list("--disallowedTools", &denied);
    }
    flags
}

/// Returns a tool that writes or runs commands, is offered, and is excluded by the permissions.
pub(super) fn forbidden_offer<'t>(
    permissions: &Permissions,
    offered: &'t [String],
) -> Option<&'t str> {
    let read_only = permissions.mode == PermissionMode::ReadOnly;
    let chosen = permissions.tools.as_deref();
    let named = |tool: &str| names(chosen.unwrap_or_default()).any(|name| name == tool);
    let denied = |tool: &str| names(&permissions.deny_tools).any(|name| name == tool);
    let excluded = |tool: &str| {
        let commands = permissions.commands && COMMANDS.contains(&tool) && named(tool);
        denied(tool) || (chosen.is_some() && !named(tool)) || (read_only && !commands)
    };
    let mut offered = offered.iter().map(String::as_str);
    offered.find(|tool| WRITING_TOOLS.contains(tool) && excluded(tool))
}

fn names(listed: &[String]) -> impl Iterator<Item = &str> {
    let tools = listed.iter().filter(|name| parts(name).is_some());
    tools.flat_map(|name| tool_names::own(ALIASES, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_names::permissions;

    #[test]
    fn flags_by_mode() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        let shown = |mode, tools, deny: &[&str]| flags(&permissions(mode, tools, deny)).join(" ");
        insta::assert_snapshot!(shown(ReadOnly, None, &[]), @"--permission-mode dontAsk --tools Agent,Glob,Grep,ListAgents,LS,Read,TaskCreate,TaskGet,TaskList,TaskOutput,TaskUpdate,TodoWrite,ToolSearch,WebFetch,WebSearch --disallowedTools Bash,Edit,Write,NotebookEdit,mcp__*");
        insta::assert_snapshot!(shown(ReadOnly, Some(&["read", "search"]), &["Bash", "WebFetch"]), @"--permission-mode dontAsk --tools Read,Glob,Grep --disallowedTools Bash,Edit,Write,NotebookEdit,mcp__*,WebFetch");
        insta::assert_snapshot!(shown(Edit, None, &[]), @"--permission-mode acceptEdits");
        insta::assert_snapshot!(shown(Edit, Some(&["shell", "read"]), &["Bash(docker restart:*)"]), @"--permission-mode acceptEdits --tools Bash,Read --allowedTools Bash,Read --disallowedTools mcp__*,Bash(docker restart:*)");
        insta::assert_snapshot!(shown(Ask, Some(&["edit", "web"]), &[]), @"--permission-mode default --tools Edit,Write,NotebookEdit,WebFetch,WebSearch --disallowedTools mcp__*");
        insta::assert_snapshot!(shown(Full, Some(&[]), &["shell"]), @"--permission-mode bypassPermissions --tools  --disallowedTools mcp__*,Bash");
    }

    #[test]
    fn an_offer_of_an_excluded_tool_is_found() {
        use PermissionMode::{Edit, Full, ReadOnly};
        let offered = ["Task", "Bash", "Edit", "Read"].map(str::to_owned);
        let found = |permissions: &Permissions| forbidden_offer(permissions, &offered);
        assert_eq!(found(&permissions(Full, None, &[])), None);
        assert_eq!(found(&permissions(Edit, None, &["Bash(rm:*)"])), None);
        assert_eq!(found(&permissions(Edit, None, &["edit"])), Some("Edit"));
        assert_eq!(
            found(&permissions(Edit, Some(&["Edit"]), &[])),
            Some("Bash")
        );
        assert_eq!(found(&permissions(ReadOnly, None, &[])), Some("Bash"));
        let tier = Permissions {
            commands: true,
            ..permissions(ReadOnly, Some(&["Bash", "Read"]), &[])
        };
        assert_eq!(found(&tier), Some("Edit"));
        assert_eq!(forbidden_offer(&tier, &offered[..2]), None);
    }

    /// A tier that may run commands: they are offered, permitted, and not denied as a whole.
    #[test]
    fn a_read_only_tier_may_run_commands() {
        let tools = ["Bash", "Read"];
        let tier = Permissions {
            commands: true,
            ..permissions(PermissionMode::ReadOnly, Some(&tools), &["Bash(rm:*)"])
        };
        insta::assert_snapshot!(flags(&tier).join(" "), @"--permission-mode dontAsk --tools Bash,Read --allowedTools Bash,Read --disallowedTools Edit,Write,NotebookEdit,mcp__*,Bash(rm:*)");
    }

    #[test]
    fn what_cannot_be_expressed_is_said() {
        use PermissionMode::{Edit, Full, ReadOnly};
        fn said(
            mode: PermissionMode,
            tools: Option<&[&str]>,
            deny: &[&str],
            root: bool,
        ) -> Option<String> {
            check(&permissions(mode, tools, deny), root).err()
        }
        assert_eq!(
            said(
                ReadOnly,
                Some(&["read", "web", "Task"]),
                &["Bash(docker:*)"],
                true
            ),
            None
        );
        assert_eq!(said(Full, None, &[], false), None);
        assert!(said(Full, None, &[], true).is_some_and(|why| why.contains("IS_SANDBOX=1")));
        assert!(
            said(ReadOnly, Some(&["shell"]), &[], false)
                .is_some_and(|why| why.contains("`Bash` may write"))
        );
        assert!(said(ReadOnly, Some(&["mcp__x__y"]), &[], false).is_some());
        assert!(said(Edit, Some(&["Bash(ls:*)"]), &[], false).is_some());
        assert!(
            said(Edit, Some(&["mcp__x__y"]), &[], false).is_some_and(|why| why.contains("MCP"))
        );
        assert_eq!(said(Edit, None, &["mcp__x__y", "mcp__z"], false), None);
        for bad in [
            "",
            "-p",
            "--tools",
            " Bash",
            "a b",
            "Bash(",
            "Bash(x",
            "a,b",
            "(x)",
            "Bash(a\nb)",
        ] {
            assert!(said(Edit, Some(&[bad]), &[], false).is_some(), "{bad:?}");
            assert!(said(Edit, None, &[bad], false).is_some(), "{bad:?}");
            assert!(
                !flags(&permissions(Edit, None, &[bad]))
                    .iter()
                    .any(|flag| flag == bad && !bad.is_empty())
            );
        }
    }
}

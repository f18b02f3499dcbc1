//! Permissions of a turn as an approval mode and policy rules of the CLI. Every call gets all of
//! them.
//!
//! Rules have tiers: an administrator's win over the user's, and the user's over the CLI's
//! defaults. Forbidden actions are denied in the highest tier. Permitted actions are allowed in the
//! user's tier, below all rules of the user, so that the user's own denials stay in effect. Both
//! files contain the denials, because the first is ignored if the machine has rules of an
//! administrator. A denied tool is not even offered to the model, nor to its sub-agents (0.61.0,
//! also in `yolo`).

use crate::adapter::Allows;
use crate::tool_names::{self, Aliases, parts};
use rejoin_core::{PermissionMode, Permissions};

/// Permissions per mode, seen on 0.61.0.
pub(super) const PERMISSION_TABLE: &[Allows] = &[
    Allows {
        mode: PermissionMode::ReadOnly,
        read: "in the folder",
        write: "no",
        run: "no",
        network: "web search and fetch",
        by: "policies: an exact list of tools; MCP tools denied",
    },
    Allows {
        mode: PermissionMode::Ask,
        read: "in the folder",
        write: "in the folder, each asked for",
        run: "each command asked for; no sub-agents",
        network: "web search; fetch asked for",
        by: "its protocol for editors (--acp), and policies; MCP tools denied, because it does not show what they are called with",
    },
    Allows {
        mode: PermissionMode::Edit,
        read: "in the folder",
        write: "in the folder",
        run: "no, unless the user's policies allow it; with --tools shell",
        network: "web search and fetch",
        by: "approval mode auto_edit, and policies",
    },
    Allows {
        mode: PermissionMode::Full,
        read: "all files",
        write: "all files",
        run: "everything",
        network: "everything",
        by: "nothing; the user's own denials stay",
    },
];

/// Tools that cannot change anything in the working folder. This is an exact set, because a list of
/// writing tools is never complete.
const READERS: &[&str] = &[
    "cli_help",
    "codebase_investigator",
    "complete_task",
    "get_internal_docs",
    "glob",
    "google_web_search",
    "grep_search",
    "invoke_agent",
    "list_directory",
    "read_file",
    "read_many_files",
    "search_file_content",
    "update_topic",
    "web_fetch",
    "write_todos",
];

/// All other known tools. The user's own settings may allow a tool by name, so forbidden tools are
/// denied by name.
const OTHERS: &[&str] = &[
    "activate_skill",
    "ask_user",
    "enter_plan_mode",
    "exit_plan_mode",
    "list_background_processes",
    "list_mcp_resources",
    "read_background_output",
    "read_mcp_resource",
    "replace",
    "run_shell_command",
    "save_memory",
    "tracker_add_dependency",
    "tracker_create_task",
    "tracker_get_task",
    "tracker_list_tasks",
    "tracker_update_task",
    "tracker_visualize",
    "write_file",
];

/// Tools that run commands. A read-only tier may name them.
const COMMANDS: &[&str] = &["run_shell_command"];

/// Tools that change the permissions from then on.
const SWITCHES: &[&str] = &["enter_plan_mode", "exit_plan_mode"];

/// Tool that a sub-agent calls to end.
const ENDS_A_SUB_AGENT: &str = "complete_task";

/// Tool that starts a sub-agent. A sub-agent cannot ask a person and would wait forever.
const SUB_AGENTS: &str = "invoke_agent";

const ALL_MCP: &str = "mcp_*";

/// Common words for tools that each agent names differently.
const ALIASES: &Aliases = &[
    ("shell", &["run_shell_command"]),
    ("read", &["read_file", "read_many_files", "list_directory"]),
    ("search", &["glob", "grep_search", "search_file_content"]),
    ("edit", &["replace", "write_file"]),
    ("web", &["web_fetch", "google_web_search"]),
];

pub(super) fn check(permissions: &Permissions) -> Result<(), String> {
    let tools = permissions.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&permissions.deny_tools) {
        well_formed(name)?;
    }
    if let Some(tool) = tools
        .iter()
        .find(|name| name.starts_with("mcp_") || name.contains('*'))
    {
        return Err(format!(
            "Gemini CLI can be held to built-in tools by name, not to `{tool}`; deny the others instead"
        ));
    }
    if let Some(tool) = names(tools).find(|name| !is_known(name)) {
        return Err(tool_names::unknown("Gemini CLI", tool, ALIASES));
    }
    if permissions.mode == PermissionMode::Ask && names(tools).any(|name| name == SUB_AGENTS) {
        return Err("a sub-agent of Gemini CLI has nobody to ask; allow more than ask, or leave `invoke_agent` out".into());
    }
    tool_names::refuse_writers(permissions, names(tools), READERS, COMMANDS)
}

/// True for a tool of the CLI, offered or not.
pub(super) fn is_known(tool: &str) -> bool {
    READERS.contains(&tool) || OTHERS.contains(&tool) || tool.starts_with("mcp_")
}

pub(super) struct Rules {
    pub(super) flags: Vec<String>,
    pub(super) files: Vec<(String, String)>,
}

/// Returns the flags and files for permissions that [`check`] accepted.
pub(super) fn rules(permissions: &Permissions, home: &str) -> Rules {
    let mode = match permissions.mode {
        PermissionMode::ReadOnly | PermissionMode::Ask => "default",
        PermissionMode::Edit => "auto_edit",
        PermissionMode::Full => "yolo",
    };
    let mut rules = Rules {
        flags: vec!["--approval-mode".into(), mode.into()],
        files: vec![],
    };
    let only = only(permissions);
    let denied = denied(permissions, only.as_deref());
    if denied.is_empty() && only.is_none() {
        return rules;
    }
    let mut highest = rule(&denied, "deny", 999);
    if permissions.mode == PermissionMode::Ask {
        highest.push_str(&asked(&denied));
    }
    let allowed =
        only.map(|only| format!("{}{}", rule(&only, "allow", 1), rule(&["*"], "deny", 0)));
    let users = format!("{highest}{}", allowed.unwrap_or_default());
    let mut add = |flag: &str, text: String| {
        // The file is named by its content, because another run may be reading it.
        let name = blake3::hash(text.as_bytes()).to_hex();
        let place = format!("rejoin-policies/{}.toml", &name[..16]);
        rules
            .flags
            .extend([flag.to_owned(), format!("{home}/{place}")]);
        if !rules.files.iter().any(|(known, _)| *known == place) {
            rules.files.push((place, text));
        }
    };
    add("--admin-policy", highest);
    add("--policy", users);
    // With a policy as argument, the CLI no longer reads the user's own.
    rules
        .flags
        .extend(["--policy".into(), format!("{home}/policies")]);
    rules
}

/// Returns the exact set of permitted tools. None if there is no such set.
fn only(permissions: &Permissions) -> Option<Vec<&str>> {
    let chosen = permissions.tools.as_deref().map(|tools| {
        let mut chosen: Vec<&str> = names(tools).collect();
        chosen.push(ENDS_A_SUB_AGENT);
        chosen
    });
    let readers = permissions.mode == PermissionMode::ReadOnly;
    chosen.or_else(|| readers.then(|| READERS.to_vec()))
}

fn denied<'a>(permissions: &'a Permissions, only: Option<&[&'a str]>) -> Vec<&'a str> {
    let mut denied: Vec<&str> = names(&permissions.deny_tools).collect();
    if let Some(only) = only {
        let known = READERS.iter().chain(OTHERS).copied();
        denied.extend(known.filter(|tool| !only.contains(tool)));
        denied.push(ALL_MCP);
    } else if permissions.mode == PermissionMode::Edit {
        denied.extend(SWITCHES);
    } else if permissions.mode == PermissionMode::Ask {
        denied.extend(SWITCHES);
        denied.push(SUB_AGENTS);
        // The CLI does not show long arguments of MCP tools, and does not ask about tools of
        // servers that its user trusts.
        denied.push(ALL_MCP);
    }
    denied.sort_unstable();
    denied.dedup();
    denied
}

/// Returns rules for all tools that may write or run, including those that the user's own rules
/// allow. With a pattern for its arguments, a rule also covers commands that the CLI considers
/// harmless.
fn asked(denied: &[&str]) -> String {
    let others = OTHERS.iter().copied();
    let asked: Vec<&str> = others.filter(|tool| !denied.contains(tool)).collect();
    let all = rule(&asked, "ask_user", 998);
    all.replace("decision", "argsPattern = \".\"\ndecision")
}

fn rule(tools: &[&str], decision: &str, priority: u32) -> String {
    if tools.is_empty() {
        return String::new();
    }
    let names: Vec<String> = tools.iter().map(|tool| format!("\"{tool}\"")).collect();
    format!(
        "[[rule]]\ntoolName = [{}]\ndecision = \"{decision}\"\npriority = {priority}\n",
        names.join(", ")
    )
}

fn well_formed(name: &str) -> Result<(), String> {
    match parts(name) {
        Some((_, None)) => Ok(()),
        Some((_, Some(_))) => Err(format!(
            "Gemini CLI takes whole tools here, not the rule `{name}`"
        )),
        None => Err(tool_names::no_tool(name)),
    }
}

fn names(listed: &[String]) -> impl Iterator<Item = &str> {
    let tools = listed.iter().filter(|name| well_formed(name).is_ok());
    tools.flat_map(|name| tool_names::own(ALIASES, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_names::permissions;

    fn shown(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> String {
        let Rules { flags, files } = rules(&permissions(mode, tools, deny), "/h");
        let files = files
            .iter()
            .map(|(name, text)| format!("\n# {name}\n{text}"));
        format!("{}{}", flags.join(" "), files.collect::<String>())
    }

    #[test]
    fn rules_by_mode() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        insta::assert_snapshot!(shown(ReadOnly, None, &[]));
        insta::assert_snapshot!(shown(ReadOnly, Some(&["read"]), &["shell"]));
        insta::assert_snapshot!(shown(Edit, None, &[]));
        insta::assert_snapshot!(shown(Edit, Some(&["shell", "edit"]), &["web"]));
        insta::assert_snapshot!(shown(Full, None, &["shell", "mcp_x_*"]));
        insta::assert_snapshot!(shown(Ask, None, &["web"]));
        insta::assert_snapshot!(shown(Ask, Some(&["read", "shell"]), &[]));
        assert_eq!(shown(Full, None, &[]), "--approval-mode yolo");
    }

    #[test]
    fn what_cannot_be_expressed_is_said() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        fn said(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> Option<String> {
            check(&permissions(mode, tools, deny)).err()
        }
        assert_eq!(
            said(ReadOnly, Some(&["read", "web", "invoke_agent"]), &["shell"]),
            None
        );
        assert_eq!(said(Full, None, &["mcp_x_*"]), None);
        assert_eq!(said(Ask, Some(&["read", "shell"]), &["web"]), None);
        assert!(said(Ask, Some(&["invoke_agent"]), &[]).is_some_and(|why| why.contains("nobody")));
        assert!(
            said(ReadOnly, Some(&["edit"]), &[]).is_some_and(|why| why.contains("`replace` may"))
        );
        assert!(said(Edit, Some(&["mcp_x_y"]), &[]).is_some());
        assert!(
            said(Edit, None, &["run_shell_command(rm)"]).is_some_and(|why| why.contains("whole"))
        );
        for bad in ["", "-x", "--policy", " glob", "a b", "a,b", "x\"", "a\nb"] {
            assert!(said(Edit, Some(&[bad]), &[]).is_some(), "{bad:?}");
            assert!(said(Edit, None, &[bad]).is_some(), "{bad:?}");
        }
    }
}

//! The permissions of a turn as an approval mode and rules of the CLI. All of them go into every
//! call.
//!
//! Rules have tiers: an administrator's win over the user's, those over what comes with the CLI.
//! What a turn must not do is denied in the highest; what it may do is allowed in the user's, below
//! all rules of the user, so that nothing the user denied is lifted. Both files hold the denials:
//! the first is ignored where the machine has rules of an administrator. A denied tool is not even
//! offered to the model, nor to its sub-agents (0.61.0, also in `yolo`).

use crate::adapter::Allows;
use rejoin_core::{Envelope, PermissionMode};

/// Seen on 0.61.0.
pub(super) const ALLOWS: &[Allows] = &[
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

/// Tools that cannot change anything in the working folder. An exact set, because a list of what
/// writes is never complete.
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

/// The others that are known. The user's own settings may allow a tool by name, so the ones that are
/// not to be used are denied by name.
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

/// They change what is allowed from then on.
const SWITCHES: &[&str] = &["enter_plan_mode", "exit_plan_mode"];

/// A sub-agent ends by calling it.
const ENDS_A_SUB_AGENT: &str = "complete_task";

/// A sub-agent has nobody to ask: it would wait for ever.
const SUB_AGENTS: &str = "invoke_agent";

const ALL_MCP: &str = "mcp_*";

/// Words for what every agent calls differently.
const ALIASES: &[(&str, &[&str])] = &[
    ("shell", &["run_shell_command"]),
    ("read", &["read_file", "read_many_files", "list_directory"]),
    ("search", &["glob", "grep_search", "search_file_content"]),
    ("edit", &["replace", "write_file"]),
    ("web", &["web_fetch", "google_web_search"]),
];

pub(super) fn express(envelope: &Envelope) -> Result<(), String> {
    let tools = envelope.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&envelope.deny_tools) {
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
    if envelope.mode == PermissionMode::Ask && names(tools).any(|name| name == SUB_AGENTS) {
        return Err("a sub-agent of Gemini CLI has nobody to ask; allow more than ask, or leave `invoke_agent` out".into());
    }
    if envelope.mode == PermissionMode::ReadOnly
        && let Some(writer) = names(tools).find(|name| !READERS.contains(name))
    {
        return Err(format!(
            "the tool `{writer}` may write, and the turn is read-only"
        ));
    }
    Ok(())
}

/// Is it a tool of the CLI, offered or not?
pub(super) fn is_known(tool: &str) -> bool {
    READERS.contains(&tool) || OTHERS.contains(&tool) || tool.starts_with("mcp_")
}

pub(super) struct Rules {
    pub(super) flags: Vec<String>,
    pub(super) files: Vec<(String, String)>,
}

/// Only for what [`express`] let pass.
pub(super) fn rules(envelope: &Envelope, home: &str) -> Rules {
    let mode = match envelope.mode {
        PermissionMode::ReadOnly | PermissionMode::Ask => "default",
        PermissionMode::Edit => "auto_edit",
        PermissionMode::Full => "yolo",
    };
    let mut rules = Rules {
        flags: vec!["--approval-mode".into(), mode.into()],
        files: vec![],
    };
    let only = only(envelope);
    let denied = denied(envelope, only.as_deref());
    if denied.is_empty() && only.is_none() {
        return rules;
    }
    let mut highest = rule(&denied, "deny", 999);
    if envelope.mode == PermissionMode::Ask {
        highest.push_str(&asked(&denied));
    }
    let allowed =
        only.map(|only| format!("{}{}", rule(&only, "allow", 1), rule(&["*"], "deny", 0)));
    let users = format!("{highest}{}", allowed.unwrap_or_default());
    let mut add = |flag: &str, text: String| {
        // By its content: a run at the same time may be reading it.
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
    // Given one, the CLI does not look at the user's any more.
    rules
        .flags
        .extend(["--policy".into(), format!("{home}/policies")]);
    rules
}

/// The exact set, if there is one.
fn only(envelope: &Envelope) -> Option<Vec<&str>> {
    let chosen = envelope.tools.as_deref().map(|tools| {
        let mut chosen: Vec<&str> = names(tools).collect();
        chosen.push(ENDS_A_SUB_AGENT);
        chosen
    });
    let readers = envelope.mode == PermissionMode::ReadOnly;
    chosen.or_else(|| readers.then(|| READERS.to_vec()))
}

fn denied<'a>(envelope: &'a Envelope, only: Option<&[&'a str]>) -> Vec<&'a str> {
    let mut denied: Vec<&str> = names(&envelope.deny_tools).collect();
    if let Some(only) = only {
        let known = READERS.iter().chain(OTHERS).copied();
        denied.extend(known.filter(|tool| !only.contains(tool)));
        denied.push(ALL_MCP);
    } else if envelope.mode == PermissionMode::Edit {
        denied.extend(SWITCHES);
    } else if envelope.mode == PermissionMode::Ask {
        denied.extend(SWITCHES);
        denied.push(SUB_AGENTS);
        // Of long arguments it shows nothing, and those of servers that its user trusts it does not
        // ask for.
        denied.push(ALL_MCP);
    }
    denied.sort_unstable();
    denied.dedup();
    denied
}

/// All that may write or run, also what the user's own rules allow. Commands that the CLI takes for
/// harmless are asked for as well if a rule looks at what they are.
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
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    if name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.chars().all(plain) {
        Ok(())
    } else if name.contains('(') {
        Err(format!(
            "Gemini CLI takes whole tools here, not the rule `{name}`"
        ))
    } else {
        Err(format!("`{name}` is not the name of a tool"))
    }
}

fn names(listed: &[String]) -> impl Iterator<Item = &str> {
    listed
        .iter()
        .filter(|name| well_formed(name).is_ok())
        .flat_map(|name| {
            let name = name.as_str();
            let alias = ALIASES.iter().find(|(alias, _)| *alias == name);
            let own = std::iter::once(name).filter(move |_| alias.is_none());
            alias
                .map(|(_, tools)| tools.iter().copied())
                .into_iter()
                .flatten()
                .chain(own)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn envelope(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> Envelope {
        let owned = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        Envelope {
            mode,
            tools: tools.map(owned),
            deny_tools: owned(deny),
        }
    }

    fn shown(mode: PermissionMode, tools: Option<&[&str]>, deny: &[&str]) -> String {
        let Rules { flags, files } = rules(&envelope(mode, tools, deny), "/h");
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
            express(&envelope(mode, tools, deny)).err()
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

//! The permissions of a turn as flags of the CLI. All of them go into every call.

use rejoin_core::{Envelope, PermissionMode};

use crate::adapter::Allows;

/// Seen on 2.1.197 and 2.1.325. Where the CLI asks, nobody is there to answer yet, so it is denied.
pub(super) const ALLOWS: &[Allows] = &[
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

/// Tools that cannot change anything in the working folder. An exact set, because a list of what
/// writes is never complete: in `dontAsk` mode `CronCreate` still wrote into the folder (2.1.197,
/// 2.1.325), and versions add tools such as `Monitor`. Sub-agents are held to the set as well.
const READERS: &[&str] = &[
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

/// Denied as well when nothing may be written.
const WRITERS: &[&str] = &["Bash", "Edit", "Write", "NotebookEdit"];

/// An exact set does not cover the tools of MCP servers, and the user's settings may allow them;
/// denied, this pattern removes them all (2.1.197, 2.1.325).
const ALL_MCP: &str = "mcp__*";

/// Words for what every agent calls differently.
const ALIASES: &[(&str, &[&str])] = &[
    ("shell", &["Bash"]),
    ("read", &["Read"]),
    ("search", &["Glob", "Grep"]),
    ("edit", &["Edit", "Write", "NotebookEdit"]),
    ("web", &["WebFetch", "WebSearch"]),
];

pub(super) fn express(envelope: &Envelope, as_root: bool) -> Result<(), String> {
    if as_root && envelope.mode == PermissionMode::Full {
        return Err("Claude Code refuses full permission to root unless IS_SANDBOX=1 is set in its environment".into());
    }
    let tools = envelope.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&envelope.deny_tools) {
        well_formed(name)?;
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
    if envelope.mode == PermissionMode::ReadOnly
        && let Some(writer) = names(tools).find(|name| !READERS.contains(name) && *name != "Task")
    {
        return Err(format!(
            "the tool `{writer}` may write, and the turn is read-only"
        ));
    }
    Ok(())
}

/// Only for what [`express`] let pass. A name it would not have is left out rather than passed on.
pub(super) fn flags(envelope: &Envelope) -> Vec<String> {
    let chosen = envelope
        .tools
        .as_deref()
        .map(|tools| names(tools).collect::<Vec<_>>());
    let read_only = envelope.mode == PermissionMode::ReadOnly;
    let mode = match envelope.mode {
        PermissionMode::ReadOnly => "dontAsk",
        PermissionMode::Edit => "acceptEdits",
        PermissionMode::Ask => "default",
        PermissionMode::Full => "bypassPermissions",
    };
    let mut flags = vec!["--permission-mode".to_owned(), mode.to_owned()];
    let mut list = |flag: &str, names: &[&str]| flags.extend([flag.to_owned(), names.join(",")]);
    match (&chosen, read_only) {
        (Some(tools), _) => list("--tools", tools),
        (None, true) => list("--tools", READERS),
        (None, false) => {}
    }
    // A set limits, it does not permit. Where a person decides, naming a tool is no decision.
    match envelope.mode {
        PermissionMode::Edit | PermissionMode::Full => {
            if let Some(tools) = chosen.as_deref().filter(|tools| !tools.is_empty()) {
                list("--allowedTools", tools);
            }
        }
        PermissionMode::ReadOnly | PermissionMode::Ask => {}
    }
    let mut denied: Vec<&str> = if read_only { WRITERS.to_vec() } else { vec![] };
    if read_only || chosen.is_some() {
        denied.push(ALL_MCP);
    }
    for name in names(&envelope.deny_tools) {
        if !denied.contains(&name) {
            denied.push(name);
        }
    }
    if !denied.is_empty() {
        list("--disallowedTools", &denied);
    }
    flags
}

fn well_formed(name: &str) -> Result<(), String> {
    let (tool, rule) = name.split_once('(').unwrap_or((name, ")"));
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    let named = tool.starts_with(|c: char| c.is_ascii_alphabetic()) && tool.chars().all(plain);
    let closed = rule.ends_with(')') && !rule.contains(char::is_control);
    if named && closed {
        Ok(())
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

    #[test]
    fn flags_by_mode() {
        use PermissionMode::{Ask, Edit, Full, ReadOnly};
        let shown = |mode, tools, deny: &[&str]| flags(&envelope(mode, tools, deny)).join(" ");
        insta::assert_snapshot!(shown(ReadOnly, None, &[]), @"--permission-mode dontAsk --tools Agent,Glob,Grep,ListAgents,LS,Read,TaskCreate,TaskGet,TaskList,TaskOutput,TaskUpdate,TodoWrite,ToolSearch,WebFetch,WebSearch --disallowedTools Bash,Edit,Write,NotebookEdit,mcp__*");
        insta::assert_snapshot!(shown(ReadOnly, Some(&["read", "search"]), &["Bash", "WebFetch"]), @"--permission-mode dontAsk --tools Read,Glob,Grep --disallowedTools Bash,Edit,Write,NotebookEdit,mcp__*,WebFetch");
        insta::assert_snapshot!(shown(Edit, None, &[]), @"--permission-mode acceptEdits");
        insta::assert_snapshot!(shown(Edit, Some(&["shell", "read"]), &["Bash(docker restart:*)"]), @"--permission-mode acceptEdits --tools Bash,Read --allowedTools Bash,Read --disallowedTools mcp__*,Bash(docker restart:*)");
        insta::assert_snapshot!(shown(Ask, Some(&["edit", "web"]), &[]), @"--permission-mode default --tools Edit,Write,NotebookEdit,WebFetch,WebSearch --disallowedTools mcp__*");
        insta::assert_snapshot!(shown(Full, Some(&[]), &["shell"]), @"--permission-mode bypassPermissions --tools  --disallowedTools mcp__*,Bash");
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
            express(&envelope(mode, tools, deny), root).err()
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
                !flags(&envelope(Edit, None, &[bad]))
                    .iter()
                    .any(|flag| flag == bad && !bad.is_empty())
            );
        }
    }
}

//! Permissions of a turn as rules of the CLI. Every call gets them twice: as rules of an agent of
//! its own, which no configuration can override, and as rules for all agents.
//!
//! The last rule that matches counts. A tool whose last rule denies it completely is not even
//! offered to the model, and does not run if the model calls it anyway; rejoin relies on this. A
//! rule for single commands is no barrier: `> file` contains no command and passes all such rules.

use std::fmt;

use rejoin_core::{PermissionMode, Permissions};
use serde_json::Value;

use crate::adapter::Allows;
use crate::tool_names::{self, Aliases};

/// Permissions per mode, seen on 1.18.33. The CLI has no sandbox: the CLI itself decides how far a
/// permitted tool can reach.
pub(super) const PERMISSION_TABLE: &[Allows] = &[
    Allows {
        mode: PermissionMode::ReadOnly,
        read: "in the folder, no .env",
        write: "no",
        run: "no",
        network: "web search and fetch",
        by: "rules of an agent of its own: an exact list of tools",
    },
    Allows {
        mode: PermissionMode::Edit,
        read: "in the folder, no .env",
        write: "in the folder",
        run: "no; with --tools shell, edit",
        network: "web search and fetch",
        by: "rules of an agent of its own",
    },
    Allows {
        mode: PermissionMode::Ask,
        read: "in the folder, no .env; elsewhere a person decides, else denied",
        write: "a person decides, else denied",
        run: "a person decides, else denied",
        network: "web search and fetch",
        by: "rules of an agent of its own; its server asks",
    },
    Allows {
        mode: PermissionMode::Full,
        read: "all files",
        write: "all files",
        run: "everything",
        network: "everything",
        by: "nothing; the user's own denials stay, questions are denied",
    },
];

/// Tools that cannot change anything in the working folder. This is an exact set, because plugins,
/// MCP servers and new versions add tools.
const READERS: &[&str] = &[
    "codesearch",
    "glob",
    "grep",
    "list",
    "read",
    "todoread",
    "todowrite",
    "webfetch",
    "websearch",
];

/// Further tools of the CLI, to detect names that differ from its own only by case.
const WRITERS: &[&str] = &["bash", "edit", "task"];

/// Tools that run commands. A read-only tier may name them.
const COMMANDS: &[&str] = &["bash"];

/// Tools that can only be permitted or denied together, as `edit`.
const EDITORS: &[&str] = &["apply_patch", "multiedit", "patch", "write"];

/// Tool with which the CLI asks questions.
const QUESTION: &str = "question";

/// Tools that need a person. Without one the CLI would wait forever.
const NOBODY_THERE: &[&str] = &["plan_enter", "plan_exit", "question"];

/// Common words for tools that each agent names differently.
const ALIASES: &Aliases = &[
    ("shell", &["bash"]),
    ("search", &["codesearch", "glob", "grep", "list"]),
    ("web", &["webfetch", "websearch"]),
];

const ALLOW: &str = "allow";
const ASK: &str = "ask";
const DENY: &str = "deny";

pub(super) fn check(permissions: &Permissions) -> Result<(), String> {
    let tools = permissions.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&permissions.deny_tools) {
        let (tool, _) = parts(name).ok_or_else(|| tool_names::no_tool(name))?;
        let known = READERS.iter().chain(WRITERS).chain(EDITORS);
        let lower = tool.to_lowercase();
        if let Some(own) = known.copied().find(|own| *own == lower && *own != tool) {
            return Err(format!("OpenCode calls the tool `{own}`, not `{tool}`"));
        }
    }
    if let Some(rule) = tools.iter().find(|name| name.contains('(')) {
        return Err(format!(
            "OpenCode takes whole tools, not the rule `{rule}`, as the set a turn may use; rules can be denied"
        ));
    }
    if let Some(tool) = tools.iter().find(|name| EDITORS.contains(&name.as_str())) {
        return Err(format!(
            "OpenCode permits changes to files as a whole: name `edit` instead of `{tool}`"
        ));
    }
    // A tool of a plugin has any name.
    let known = |name: &str| {
        let mut all = READERS.iter().chain(WRITERS).chain(NOBODY_THERE);
        all.any(|own| *own == name)
    };
    let chosen = || names(tools);
    if let Some(tool) = chosen().next().filter(|_| !chosen().any(known)) {
        return Err(tool_names::unknown("OpenCode", tool, ALIASES));
    }
    if names(tools).any(|tool| tool == "task") {
        return Err(
            "OpenCode cannot hold sub-agents to a set of tools; leave out `task`, or --tools"
                .into(),
        );
    }
    tool_names::refuse_writers(permissions, names(tools), READERS, COMMANDS)
}

/// Returns the flags. In full mode, requests that remain after the rules are granted. In other
/// modes they would end the turn.
pub(super) fn flags(permissions: &Permissions) -> Vec<String> {
    match permissions.mode {
        PermissionMode::Full => vec!["--auto".to_owned()],
        PermissionMode::ReadOnly | PermissionMode::Edit | PermissionMode::Ask => vec![],
    }
}

/// Returns the rules for permissions that [`check`] accepted. A name that it would reject is left
/// out.
pub(super) fn rules(permissions: &Permissions) -> Rules {
    let mut rules = Rules::default();
    let full = permissions.mode == PermissionMode::Full;
    let chosen: Option<Vec<&str>> = match (permissions.mode, permissions.tools.as_deref()) {
        (PermissionMode::ReadOnly | PermissionMode::Ask, None) => Some(READERS.to_vec()),
        // In modes where a person decides, naming a tool is no decision.
        (mode @ (PermissionMode::ReadOnly | PermissionMode::Ask), Some(tools)) => {
            let commands = permissions.commands && mode == PermissionMode::ReadOnly;
            let fits =
                |name: &&str| READERS.contains(name) || (commands && COMMANDS.contains(name));
            Some(names(tools).filter(fits).collect())
        }
        (PermissionMode::Edit | PermissionMode::Full, tools) => {
            tools.map(|tools| names(tools).collect())
        }
    };
    match &chosen {
        Some(tools) => {
            rules.set("*", DENY);
            // The tool `invalid` answers a malformed call with an explanation.
            for tool in tools.iter().copied().chain(["invalid"]) {
                rules.set(tool, ALLOW);
            }
            if full {
                rules.set("external_directory", ALLOW);
                rules.set("doom_loop", ALLOW);
            }
        }
        // The user's own rules stay in effect, except for tools that could run a program. The names
        // of MCP tools contain an underscore, as do all names that concern other folders.
        None if !full => {
            rules.set("*_*", DENY);
            rules.set("bash", DENY);
        }
        None => {}
    }
    if !full && chosen.as_ref().is_none_or(|tools| tools.contains(&"read")) {
        // By default the CLI would ask.
        for (file, action) in [("*.env", DENY), ("*.env.*", DENY), ("*.env.example", ALLOW)] {
            rules.add("read", file, action);
        }
    }
    // A sub-agent has rules of its own, from the user's configuration.
    if !full || chosen.is_some() || !permissions.deny_tools.is_empty() {
        rules.set("task", DENY);
    }
    for name in &permissions.deny_tools {
        let Some((tool, rule)) = parts(name) else {
            continue;
        };
        for tool in own_names(tool) {
            match rule {
                None => rules.set(tool, DENY),
                Some(rule) => rules.add(tool, rule, DENY),
            }
        }
    }
    for tool in NOBODY_THERE {
        rules.set(tool, DENY);
    }
    rules
}

/// Returns the rules for a person at a terminal. Actions that a turn denies because no person could
/// be asked are asked about. A read-only conversation still writes nothing, and denied tools stay
/// denied.
pub(super) fn rules_for_a_person(permissions: &Permissions) -> Rules {
    let mut rules = rules(permissions);
    for tool in NOBODY_THERE {
        rules.0.retain(|(known, _)| known != tool);
    }
    let denied = |tool: &str| {
        let mut denied = permissions.deny_tools.iter().filter_map(|name| parts(name));
        denied.any(|(name, rule)| rule.is_none() && own_names(name).any(|own| own == tool))
    };
    let asked: Vec<&str> = match (permissions.mode, permissions.tools.as_deref()) {
        (PermissionMode::Edit, None) => vec!["*_*", "bash"],
        (PermissionMode::Ask, None) => vec!["*_*", "bash", "edit"],
        (PermissionMode::Ask, Some(tools)) => names(tools)
            .filter(|name| !READERS.contains(name))
            .collect(),
        (PermissionMode::ReadOnly | PermissionMode::Full, _) | (PermissionMode::Edit, Some(_)) => {
            vec![]
        }
    };
    for tool in asked.into_iter().filter(|tool| !denied(tool)) {
        rules.put(tool, ASK);
        // No rules for single uses exist for a tool that was denied as a whole.
        for (name, rule) in permissions.deny_tools.iter().filter_map(|name| parts(name)) {
            if let Some(rule) = rule.filter(|_| own_names(name).any(|own| own == tool)) {
                rules.add(tool, rule, DENY);
            }
        }
    }
    // Denials follow all rules that ask: the last rule counts, and `*_*` matches many tools.
    for (name, _) in permissions.deny_tools.iter().filter_map(|name| parts(name)) {
        own_names(name).for_each(|tool| rules.put_last(tool));
    }
    rules
}

/// Returns the rules for a turn whose questions and requests are passed on to a person. There is no
/// plan to approve.
pub(super) fn rules_in_dialogue(permissions: &Permissions, asks: bool) -> Rules {
    let mut rules = rules_for_a_person(permissions);
    let mut denied = permissions.deny_tools.iter().filter_map(|name| parts(name));
    let unwanted = denied.any(|(name, rule)| rule.is_none() && name == QUESTION);
    for tool in NOBODY_THERE {
        let offered = *tool == QUESTION && asks && !unwanted;
        rules.set(tool, if offered { ALLOW } else { DENY });
    }
    rules
}

/// Rules in order of evaluation.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(String, Vec<(String, &'static str)>)>);

impl Rules {
    /// Sets the rule for the whole tool, as the last one.
    fn set(&mut self, tool: &str, action: &'static str) {
        self.0.retain(|(known, _)| known != tool);
        self.0
            .push((tool.to_owned(), vec![("*".to_owned(), action)]));
    }

    /// Denies the tool without moving its rule, and returns the earlier rule. None if the tool has
    /// no rule or was already denied.
    pub(super) fn withhold(&mut self, tool: &str) -> Option<String> {
        let (_, patterns) = self.0.iter_mut().find(|(known, _)| known == tool)?;
        let denied = vec![("*".to_owned(), DENY)];
        let before = std::mem::replace(patterns, denied.clone());
        (before != denied).then(|| value(&before))
    }

    /// Moves the rule of a tool to the end, so that it overrides all others.
    fn put_last(&mut self, tool: &str) {
        if let Some(at) = self.0.iter().position(|(known, _)| known == tool) {
            let rule = self.0.remove(at);
            self.0.push(rule);
        }
    }

    /// Sets the rule for the whole tool, at the position of its earlier rule.
    fn put(&mut self, tool: &str, action: &'static str) {
        let rule = vec![("*".to_owned(), action)];
        match self.0.iter_mut().find(|(known, _)| known == tool) {
            Some((_, patterns)) => *patterns = rule,
            None => self.0.push((tool.to_owned(), rule)),
        }
    }

    /// Adds a rule for some uses of a tool. A tool that is denied as a whole stays denied.
    fn add(&mut self, tool: &str, pattern: &str, action: &'static str) {
        let at = self.0.iter().position(|(known, _)| known == tool);
        let mut patterns = at.map_or_else(Vec::new, |at| self.0.remove(at).1);
        if patterns
            .last()
            .is_none_or(|last| *last != ("*".to_owned(), DENY))
        {
            patterns.push((pattern.to_owned(), action));
        }
        self.0.push((tool.to_owned(), patterns));
    }
}

/// Formats the rules as JSON, with the keys in order.
impl fmt::Display for Rules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tools = self.0.iter();
        let tools = tools.map(|(tool, patterns)| format!("{}:{}", quoted(tool), value(patterns)));
        write!(f, "{{{}}}", tools.collect::<Vec<_>>().join(","))
    }
}

fn value(patterns: &[(String, &'static str)]) -> String {
    let inner = patterns
        .iter()
        .map(|(pattern, action)| format!("{}:{}", quoted(pattern), quoted(action)));
    match patterns {
        [(all, action)] if all == "*" => quoted(action),
        _ => format!("{{{}}}", inner.collect::<Vec<_>>().join(",")),
    }
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Splits `tool` or `tool(rule)` into tool and rule. None if the name has neither form.
fn parts(name: &str) -> Option<(&str, Option<&str>)> {
    tool_names::parts(name).filter(|(_, rule)| *rule != Some(""))
}

/// Returns the names under which the CLI permits the tool.
fn own_names(tool: &str) -> impl Iterator<Item = &str> {
    let editor = EDITORS.contains(&tool);
    tool_names::own(ALIASES, if editor { "edit" } else { tool })
}

fn names(listed: &[String]) -> impl Iterator<Item = &str> {
    let tools = listed.iter().filter_map(|name| parts(name));
    tools.flat_map(|(tool, _)| own_names(tool))
}

#[cfg(test)]
mod tests;

//! The permissions of a turn as rules of the CLI. They go into every call, twice: as rules of an
//! agent of its own, which no configuration can overrule, and as rules for all agents.
//!
//! The last rule that matches counts. A tool whose last rule denies it as a whole is not even
//! offered to the model, and does not run if it is called all the same; that is what is used here.
//! A rule for single commands is no wall: `> file` contains no command, and passes all of them.

use std::fmt;

use rejoin_core::{Envelope, PermissionMode};
use serde_json::Value;

use crate::adapter::Allows;

/// Seen on 1.18.33. It has no sandbox: what a tool that is allowed may reach is up to the CLI.
pub(super) const ALLOWS: &[Allows] = &[
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

/// Tools that cannot change anything in the working folder. An exact set: plugins, MCP servers and
/// versions add tools.
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

/// Further tools of the CLI, to tell a name of its own from one that means nothing to it.
const WRITERS: &[&str] = &["bash", "edit", "task"];

/// Tools that are permitted or denied as `edit` only.
const EDITORS: &[&str] = &["apply_patch", "multiedit", "patch", "write"];

/// The CLI's own questions.
const QUESTION: &str = "question";

/// Nobody is there to answer or to approve: the CLI would wait for ever.
const NOBODY_THERE: &[&str] = &["plan_enter", "plan_exit", "question"];

/// Words for what every agent calls differently.
const ALIASES: &[(&str, &[&str])] = &[
    ("shell", &["bash"]),
    ("search", &["codesearch", "glob", "grep", "list"]),
    ("web", &["webfetch", "websearch"]),
];

const ALLOW: &str = "allow";
const ASK: &str = "ask";
const DENY: &str = "deny";

pub(super) fn express(envelope: &Envelope) -> Result<(), String> {
    let tools = envelope.tools.as_deref().unwrap_or_default();
    for name in tools.iter().chain(&envelope.deny_tools) {
        let not_one = || format!("`{name}` is not the name of a tool");
        let (tool, _) = parts(name).ok_or_else(not_one)?;
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
    if names(tools).any(|tool| tool == "task") {
        return Err(
            "OpenCode cannot hold sub-agents to a set of tools; leave out `task`, or --tools"
                .into(),
        );
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

/// What is still asked after the rules is granted in full mode only; else it would end the turn.
pub(super) fn flags(envelope: &Envelope) -> Vec<String> {
    match envelope.mode {
        PermissionMode::Full => vec!["--auto".to_owned()],
        PermissionMode::ReadOnly | PermissionMode::Edit | PermissionMode::Ask => vec![],
    }
}

/// Only for what [`express`] let pass. A name it would not have is left out rather than passed on.
pub(super) fn rules(envelope: &Envelope) -> Rules {
    let mut rules = Rules::default();
    let full = envelope.mode == PermissionMode::Full;
    let chosen: Option<Vec<&str>> = match (envelope.mode, envelope.tools.as_deref()) {
        (PermissionMode::ReadOnly | PermissionMode::Ask, None) => Some(READERS.to_vec()),
        // Where a person decides, naming a tool is no decision.
        (PermissionMode::ReadOnly | PermissionMode::Ask, Some(tools)) => {
            Some(names(tools).filter(|name| READERS.contains(name)).collect())
        }
        (PermissionMode::Edit | PermissionMode::Full, tools) => {
            tools.map(|tools| names(tools).collect())
        }
    };
    match &chosen {
        Some(tools) => {
            rules.set("*", DENY);
            // Answers a call that makes no sense with what is wrong about it.
            for tool in tools.iter().copied().chain(["invalid"]) {
                rules.set(tool, ALLOW);
            }
            if full {
                rules.set("external_directory", ALLOW);
                rules.set("doom_loop", ALLOW);
            }
        }
        // The user's own rules stay, but for what could run a program: MCP tools have an underscore
        // in their names, and so has everything that concerns other folders.
        None if !full => {
            rules.set("*_*", DENY);
            rules.set("bash", DENY);
        }
        None => {}
    }
    if !full && chosen.as_ref().is_none_or(|tools| tools.contains(&"read")) {
        // To be asked, by default.
        for (file, action) in [("*.env", DENY), ("*.env.*", DENY), ("*.env.example", ALLOW)] {
            rules.add("read", file, action);
        }
    }
    // A sub-agent has rules of its own, from the user's configuration.
    if !full || chosen.is_some() || !envelope.deny_tools.is_empty() {
        rules.set("task", DENY);
    }
    for name in &envelope.deny_tools {
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

/// The same where somebody sits at a terminal: what a turn leaves out because nobody could be asked is
/// asked for. What is to write nothing writes nothing, and what was denied stays so.
pub(super) fn rules_for_a_person(envelope: &Envelope) -> Rules {
    let mut rules = rules(envelope);
    for tool in NOBODY_THERE {
        rules.0.retain(|(known, _)| known != tool);
    }
    let denied = |tool: &str| {
        let mut denied = envelope.deny_tools.iter().filter_map(|name| parts(name));
        denied.any(|(name, rule)| rule.is_none() && own_names(name).any(|own| own == tool))
    };
    let asked: Vec<&str> = match (envelope.mode, envelope.tools.as_deref()) {
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
        // Nothing was said of its uses where it was denied as a whole.
        for (name, rule) in envelope.deny_tools.iter().filter_map(|name| parts(name)) {
            if let Some(rule) = rule.filter(|_| own_names(name).any(|own| own == tool)) {
                rules.add(tool, rule, DENY);
            }
        }
    }
    // Behind everything that is asked for: the last rule counts, and `*_*` is for many tools.
    for (name, _) in envelope.deny_tools.iter().filter_map(|name| parts(name)) {
        own_names(name).for_each(|tool| rules.put_last(tool));
    }
    rules
}

/// The same in a turn whose questions and requests are passed on. There is no plan to approve.
pub(super) fn rules_in_dialogue(envelope: &Envelope, asks: bool) -> Rules {
    let mut rules = rules_for_a_person(envelope);
    let mut denied = envelope.deny_tools.iter().filter_map(|name| parts(name));
    let unwanted = denied.any(|(name, rule)| rule.is_none() && name == QUESTION);
    for tool in NOBODY_THERE {
        let offered = *tool == QUESTION && asks && !unwanted;
        rules.set(tool, if offered { ALLOW } else { DENY });
    }
    rules
}

/// In the order in which they count.
#[derive(Debug, Default)]
pub(super) struct Rules(Vec<(String, Vec<(String, &'static str)>)>);

impl Rules {
    /// For the whole tool, over everything said before.
    fn set(&mut self, tool: &str, action: &'static str) {
        self.0.retain(|(known, _)| known != tool);
        self.0
            .push((tool.to_owned(), vec![("*".to_owned(), action)]));
    }

    /// Denies the tool where it stands, and gives what was said of it until then; none: it was denied
    /// anyway.
    pub(super) fn withhold(&mut self, tool: &str) -> Option<String> {
        let (_, patterns) = self.0.iter_mut().find(|(known, _)| known == tool)?;
        let denied = vec![("*".to_owned(), DENY)];
        let before = std::mem::replace(patterns, denied.clone());
        (before != denied).then(|| value(&before))
    }

    /// What was said of it, over everything else.
    fn put_last(&mut self, tool: &str) {
        if let Some(at) = self.0.iter().position(|(known, _)| known == tool) {
            let rule = self.0.remove(at);
            self.0.push(rule);
        }
    }

    /// For the whole tool, in the place of what was said of it.
    fn put(&mut self, tool: &str, action: &'static str) {
        let rule = vec![("*".to_owned(), action)];
        match self.0.iter_mut().find(|(known, _)| known == tool) {
            Some((_, patterns)) => *patterns = rule,
            None => self.0.push((tool.to_owned(), rule)),
        }
    }

    /// For some of its uses. What is denied as a whole stays so.
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

/// As JSON whose keys keep their order.
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

/// The tool of `tool` or `tool(rule)`, and the rule; none: it is neither.
fn parts(name: &str) -> Option<(&str, Option<&str>)> {
    let (tool, rule) = match name.split_once('(') {
        Some((tool, rest)) => (tool, Some(rest.strip_suffix(')')?)),
        None => (name, None),
    };
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '*' | '.');
    let named = tool.starts_with(|c: char| c.is_ascii_alphabetic()) && tool.chars().all(plain);
    let written = rule.is_none_or(|rule| !rule.is_empty() && !rule.contains(char::is_control));
    (named && written).then_some((tool, rule))
}

/// By the names under which the CLI permits them.
fn own_names(tool: &str) -> impl Iterator<Item = &str> {
    let alias = ALIASES.iter().find(|(alias, _)| *alias == tool);
    let own = if EDITORS.contains(&tool) {
        "edit"
    } else {
        tool
    };
    let own = std::iter::once(own).filter(move |_| alias.is_none());
    let listed = alias.map_or(&[][..], |(_, tools)| tools);
    listed.iter().copied().chain(own)
}

fn names(listed: &[String]) -> impl Iterator<Item = &str> {
    let tools = listed.iter().filter_map(|name| parts(name));
    tools.flat_map(|(tool, _)| own_names(tool))
}

#[cfg(test)]
mod tests;

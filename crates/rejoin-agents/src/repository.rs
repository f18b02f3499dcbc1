//! Files of a repository that a CLI obeys rather than reads: programs, servers, permissions.
//!
//! A repository is data until its user trusts it (`rejoin trust`). Until then each run keeps the CLI
//! from these files ([`Guard::Flags`]), or the turn is refused ([`Guard::Missing`]).

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

/// Whether a repository's own configuration counts in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepositoryConfig {
    #[default]
    Ignored,
    /// The user trusts every one of its files as they are now.
    Obeyed,
}

/// Keeps a CLI from obeying a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Arguments and environment of the run. They count where the binary was proven to obey them.
    Flags,
    /// Nothing does: the turn is refused.
    Missing,
}

/// A file that a CLI would obey, and what it would do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryFile {
    /// Path beneath the folder that was asked about.
    pub path: String,
    /// One entry for each thing the file sets, for people: `hooks.Stop: ./check.sh`.
    pub effects: Vec<String>,
    pub guard: Guard,
}

/// Memory files that a CLI leaves unread in a run that ignores the repository's configuration, from the
/// outermost folder inward.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// Text of the user's own that would be displaced by the memory.
    pub own: Option<String>,
    pub files: Vec<MemoryFile>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    pub path: String,
    pub text: String,
}

impl Memory {
    /// The whole as one text, each file under its path. None: there is nothing to pass on.
    pub(crate) fn text(&self) -> Option<String> {
        let files = self.files.iter();
        let files = files.map(|file| format!("Contents of {}:\n\n{}", file.path, file.text));
        let parts: Vec<String> = self.own.iter().cloned().chain(files).collect();
        (!self.files.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// The bytes of a file, or why it cannot be read.
pub type ReadFile = Result<Vec<u8>, String>;

/// One folder of a repository, as an adapter sees it.
pub struct RepositoryFolder<'a> {
    /// The turn works in this folder. False: the folder lies above the working folder.
    pub is_workdir: bool,
    /// Returns the bytes of a file, none if there is no such file. A file that is not regular, too
    /// large or unreadable is an error.
    pub read: &'a dyn Fn(&str) -> Option<ReadFile>,
    /// Returns the names in a folder; empty if there is none.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
}

/// Folders of definitions are walked so deep, and so many files of them are listed.
const DEPTH: usize = 6;
const MOST: usize = 2000;

/// Longest text of a value that is shown as one effect.
const SHOWN: usize = 300;

impl RepositoryFolder<'_> {
    /// Finds a settings file by `path` and lists its effects: every key but `harmless` ones. A file
    /// that `parse` cannot read counts as one effect, because the CLI's own parser may differ.
    pub(crate) fn settings(
        &self,
        path: &str,
        guard: Guard,
        harmless: &[&str],
        parse: impl Fn(&[u8]) -> Result<Map<String, Value>, String>,
    ) -> Option<RepositoryFile> {
        let parsed = (self.read)(path)?.and_then(|bytes| parse(&bytes));
        let effects = match parsed {
            Err(why) => vec![format!("cannot be read: {why}")],
            Ok(settings) => settings
                .iter()
                .filter(|(key, _)| !harmless.contains(&key.as_str()))
                .flat_map(|(key, value)| effects(key, value))
                .collect(),
        };
        (!effects.is_empty()).then(|| RepositoryFile {
            path: path.to_owned(),
            effects,
            guard,
        })
    }

    /// Lists every file beneath a folder, each with the same effect.
    pub(crate) fn each(&self, folder: &str, guard: Guard, effect: &str) -> Vec<RepositoryFile> {
        let mut paths = vec![];
        self.walk(folder, DEPTH, &mut paths);
        paths
            .into_iter()
            .map(|path| RepositoryFile {
                path,
                effects: vec![effect.to_owned()],
                guard,
            })
            .collect()
    }

    fn walk(&self, folder: &str, depth: usize, paths: &mut Vec<String>) {
        for name in (self.list)(folder) {
            let path = format!("{folder}/{name}");
            // A name that is not UTF-8 cannot be read by it, but the CLI may.
            let is_file = (self.read)(&path).is_some() || name.contains('\u{fffd}');
            if is_file || depth == 0 {
                paths.push(path);
            } else if paths.len() < MOST {
                self.walk(&path, depth - 1, paths);
            }
        }
    }
}

/// One entry for a plain value, one for each member of a table.
fn effects(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) if !members.is_empty() => members
            .iter()
            .map(|(name, inner)| format!("{key}.{name}: {}", shown(inner)))
            .collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => vec![format!("{key}: {}", shown(value))],
    }
}

/// The commands of a hook or server, else the value as JSON, cut where it is long.
fn shown(value: &Value) -> String {
    let mut commands = vec![];
    collect_commands(value, &mut commands);
    let text = match (value, commands.is_empty()) {
        (_, false) => format!("runs {}", commands.join("; ")),
        (Value::String(text), true) => text.clone(),
        (_, true) => value.to_string(),
    };
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// Collects every `command` member, with the `args` beside it.
fn collect_commands(value: &Value, found: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect_commands(item, found)),
        Value::Object(members) => {
            let words = |value: &Value| match value {
                Value::String(text) => vec![text.clone()],
                Value::Array(items) => items
                    .iter()
                    .filter_map(|item| item.as_str().map(str::to_owned))
                    .collect(),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => vec![],
            };
            if let Some(command) = members.get("command") {
                let args = members.get("args").map(words).unwrap_or_default();
                let line: Vec<String> = words(command).into_iter().chain(args).collect();
                found.push(format!("`{}`", line.join(" ")));
                return;
            }
            members
                .values()
                .for_each(|inner| collect_commands(inner, found));
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Parses JSON, with whatever else `options` allow. An empty file is an empty table.
pub(crate) fn jsonc(bytes: &[u8], options: &ParseOptions) -> Result<Map<String, Value>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not text")?;
    let text = text.trim_start_matches('\u{feff}');
    let parsed: Option<Value> =
        parse_to_serde_value(text, options).map_err(|e| format!("it is not JSON: {e}"))?;
    match parsed {
        None => Ok(Map::new()),
        Some(Value::Object(all)) => Ok(all),
        Some(_) => Err("it is not a JSON object".into()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The findings of an adapter in a folder with these files, one line each.
    pub(crate) fn found(
        files: &[(&str, &str)],
        is_workdir: bool,
        find: impl Fn(&RepositoryFolder<'_>) -> Vec<RepositoryFile>,
    ) -> String {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| Ok(text.as_bytes().to_vec()))
        };
        let list = |folder: &str| {
            let begin = format!("{folder}/");
            let below = files
                .iter()
                .filter_map(|(name, _)| name.strip_prefix(&begin));
            let mut names: Vec<String> = below
                .filter_map(|rest| rest.split('/').next())
                .map(str::to_owned)
                .collect();
            names.dedup();
            names
        };
        let found = find(&RepositoryFolder {
            is_workdir,
            read: &read,
            list: &list,
        });
        let line = |file: &RepositoryFile| {
            format!(
                "{} [{:?}] {}",
                file.path,
                file.guard,
                file.effects.join(" | ")
            )
        };
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn commands_of_hooks_and_servers_are_shown() {
        let text = r#"{"hooks":{"Stop":[{"hooks":[{"type":"command","command":"./a.sh"},{"command":"b"}]}]},
            "apiKeyHelper":"./key.sh","mcpServers":{"x":{"command":"npx","args":["-y","evil"]}},"n":{}}"#;
        let shown: Vec<String> = jsonc(text.as_bytes(), &ParseOptions::default())
            .unwrap()
            .iter()
            .flat_map(|(key, value)| effects(key, value))
            .collect();
        assert_eq!(
            shown,
            [
                "apiKeyHelper: ./key.sh",
                "hooks.Stop: runs `./a.sh`; `b`",
                "mcpServers.x: runs `npx -y evil`",
                "n: {}",
            ]
        );
    }

    #[test]
    fn long_values_are_cut_between_characters() {
        let text = "é".repeat(SHOWN + 5);
        assert_eq!(shown(&Value::from(text)).chars().count(), SHOWN + 1);
    }
}

//! Files of a repository that a CLI obeys rather than reads: programs, servers, permissions.
//!
//! A repository is data until its user trusts it (`rejoin trust`). Until then each run keeps the
//! CLI from these files ([`Guard::Flags`]), or the turn is refused ([`Guard::Missing`]).

mod effects;

use jsonc_parser::{ParseOptions, parse_to_serde_value};
use serde_json::{Map, Value};

use self::effects::effects;

/// Treatment of a repository's own configuration in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum RepositoryConfig {
    /// The run keeps the CLI from it.
    #[default]
    Ignored,
    /// Ignored, although the repository defines skills, which some CLIs offer the model even so.
    IgnoredWithSkills,
    /// The user trusts the current content of every one of its files.
    Obeyed,
}

impl RepositoryConfig {
    /// Returns true if the CLI reads the configuration.
    pub fn is_obeyed(self) -> bool {
        self == Self::Obeyed
    }
}

/// Mechanism that keeps a CLI from obeying a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Arguments and environment of the run. They count only if a proof showed that the binary
    /// respects them.
    Flags,
    /// No mechanism exists: the turn is refused.
    Missing,
}

/// A file that a CLI would obey, and its effects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryFile {
    /// Path beneath the inspected folder.
    pub path: String,
    /// Descriptions of all settings in the file, complete, for people:
    /// ``hooks.Stop: runs `./check.sh` ``.
    pub effects: Vec<String>,
    /// Mechanism that keeps the CLI from obeying the file.
    pub guard: Guard,
}

impl RepositoryFile {
    /// Returns true for a file beneath a folder of skills.
    pub fn is_skill(&self) -> bool {
        let mut parts = self.path.split('/');
        parts.any(|part| matches!(part, "skill" | "skills"))
    }
}

/// Memory files that a CLI leaves unread in a run that ignores the repository's configuration, from the
/// outermost folder inward.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Memory {
    /// The user's own text that the memory would displace.
    pub own: Option<String>,
    /// Memory files, from the outermost folder inward.
    pub files: Vec<MemoryFile>,
}

/// A memory file with its content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// Path of the file.
    pub path: String,
    /// Content of the file.
    pub text: String,
}

impl Memory {
    /// Joins all files into one text, each under its path. None if there are no files to pass on.
    pub(crate) fn text(&self) -> Option<String> {
        let files = self.files.iter();
        let files = files.map(|file| format!("Contents of {}:\n\n{}", file.path, file.text));
        let parts: Vec<String> = self.own.iter().cloned().chain(files).collect();
        (!self.files.is_empty()).then(|| parts.join("\n\n"))
    }
}

/// Bytes of a file, or the reason why it cannot be read.
pub type ReadFile = Result<Vec<u8>, String>;

/// A folder of a repository, as an adapter sees it.
pub struct RepositoryFolder<'a> {
    /// True for the working folder of the turn, false for a folder above it.
    pub is_workdir: bool,
    /// Returns the bytes of a file, none if it does not exist. A file that is not regular, too
    /// large or unreadable is an error.
    pub read: &'a dyn Fn(&str) -> Option<ReadFile>,
    /// Returns the names in a folder. Empty if the folder does not exist.
    pub list: &'a dyn Fn(&str) -> Vec<String>,
}

/// Maximum depth to which folders of definitions are walked, and maximum number of their entries.
const DEPTH: usize = 6;
const MOST: usize = 2000;

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

    /// Lists every file beneath a folder, each with the same effect. A folder that is too deep, or
    /// that is reached after too many entries, is listed itself: it cannot be read, so it cannot be
    /// trusted.
    pub(crate) fn each(&self, folder: &str, guard: Guard, effect: &str) -> Vec<RepositoryFile> {
        let mut walk = Walk {
            paths: vec![],
            left: MOST,
        };
        self.walk(folder, DEPTH, &mut walk);
        walk.paths
            .into_iter()
            .map(|(path, whole)| RepositoryFile {
                path,
                effects: vec![if whole {
                    effect.to_owned()
                } else {
                    format!("{effect}; holds more files or deeper folders than are looked at")
                }],
                guard,
            })
            .collect()
    }

    fn walk(&self, folder: &str, depth: usize, walk: &mut Walk) {
        for name in (self.list)(folder) {
            if walk.left == 0 {
                walk.paths.push((folder.to_owned(), false));
                return;
            }
            walk.left -= 1;
            let path = format!("{folder}/{name}");
            // A name that is not UTF-8 cannot be read under this text, but the CLI may read it.
            let is_file = (self.read)(&path).is_some() || name.contains('\u{fffd}');
            if is_file || depth == 0 {
                walk.paths.push((path, is_file));
            } else {
                self.walk(&path, depth - 1, walk);
            }
        }
    }
}

/// Files found so far (false for a folder that was not entered), and the number of entries left.
struct Walk {
    paths: Vec<(String, bool)>,
    left: usize,
}

/// Parses JSON with the extensions that `options` allow. An empty file is an empty table.
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

    /// Returns the findings of an adapter in a folder with these files, one line each.
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
    fn folders_that_are_not_looked_into_are_listed() {
        let deep = format!("x/{}f", "a/".repeat(DEPTH + 2));
        let deep = found(&[(&deep, "")], true, |folder| {
            folder.each("x", Guard::Flags, "e")
        });
        assert!(
            deep.ends_with("a [Flags] e; holds more files or deeper folders than are looked at")
        );
        let names: Vec<String> = (0..MOST + 5).map(|n| format!("x/{n}/f")).collect();
        let files: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "")).collect();
        let many = found(&files, true, |folder| folder.each("x", Guard::Flags, "e"));
        assert!(many.contains("x [Flags] e; holds more"), "{many}");
    }
}

//! Files of a repository that the CLI obeys.
//!
//! Measured on 1.18.33: with `OPENCODE_DISABLE_PROJECT_CONFIG=1` it starts no server, formatter,
//! language server or tool of a repository, but runs every plugin: files in `.opencode/plugin` and
//! `plugins`, and entries of `opencode.json` and `opencode.jsonc`, including those beneath
//! `.opencode`. It searches them up to the root of the checkout as git sees it (an empty `.git` on
//! the way does not stop it), and outside of a checkout up to the root of the file system.

use jsonc_parser::ParseOptions;
use serde_json::{Map, Value};

use super::OpenCode;
use crate::adapter::ReadHome;
use crate::capability::{Nested, Repository};
use crate::repository::{Guard, RepositoryConfig, RepositoryFile, RepositoryFolder, jsonc};

pub(super) const DISABLE: &str = "OPENCODE_DISABLE_PROJECT_CONFIG";

/// Variable that hides the skills in `.claude` and `.agents`, including those in the user's home.
/// The CLI offers them although the repository's configuration is disabled (1.18.33).
const DISABLE_SKILLS: &str = "OPENCODE_DISABLE_EXTERNAL_SKILLS";

const CONFIGS: &[&str] = &[
    "opencode.json",
    "opencode.jsonc",
    ".opencode/opencode.json",
    ".opencode/opencode.jsonc",
];

/// Files that only the terminal interface reads.
const TERMINAL: &[&str] = &[
    "tui.json",
    "tui.jsonc",
    ".opencode/tui.json",
    ".opencode/tui.jsonc",
];

const PLUGIN: &str = "plugin";

/// Keys that only affect the appearance.
const HARMLESS: &[&str] = &["$schema", "keybinds", "theme", "tui"];

const PLUGINS: &[&str] = &[".opencode/plugin", ".opencode/plugins"];

/// Folders of definitions that the variable disables.
const DEFINITIONS: &[(&str, &str)] = &[
    (".opencode/agent", "defines an agent"),
    (".opencode/agents", "defines an agent"),
    (
        ".opencode/command",
        "defines a command, runs the shell commands in it",
    ),
    (
        ".opencode/commands",
        "defines a command, runs the shell commands in it",
    ),
    (".agents/skills", "offers a skill"),
    (".claude/skills", "offers a skill"),
    (".opencode/mode", "defines an agent"),
    (".opencode/modes", "defines an agent"),
    (".opencode/skill", "offers a skill"),
    (".opencode/skills", "offers a skill"),
    (".opencode/tool", "runs in the CLI's process"),
    (".opencode/tools", "runs in the CLI's process"),
];

/// True if a configuration names plugins, or may do so once the CLI has replaced `{env:…}` and
/// `{file:…}` in it.
fn names_plugins(config: &Map<String, Value>) -> bool {
    let empty = |value: &Value| value.as_array().is_some_and(Vec::is_empty) || value.is_null();
    config
        .iter()
        .any(|(key, value)| key.contains('{') || (key == PLUGIN && !empty(value)))
}

/// Returns the variable for a run whose repository is trusted, or defines skills.
pub(super) fn env(config: RepositoryConfig) -> Option<(String, String)> {
    let (name, value) = match config {
        RepositoryConfig::Ignored => return None,
        RepositoryConfig::IgnoredWithSkills => (DISABLE_SKILLS, "1"),
        RepositoryConfig::Obeyed => (DISABLE, "0"),
    };
    Some((name.to_owned(), value.to_owned()))
}

impl Repository for OpenCode {
    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        let parse = |bytes: &[u8]| jsonc(bytes, &ParseOptions::default());
        let plugins = PLUGINS
            .iter()
            .flat_map(|path| folder.each(path, Guard::Missing, "runs in the CLI's process"));
        let configs = CONFIGS.iter().filter_map(|path| {
            let found = folder.settings(path, Guard::Flags, HARMLESS, parse)?;
            let bytes = (folder.read)(path)?;
            let kept_away = bytes
                .and_then(|bytes| parse(&bytes))
                .is_ok_and(|all| !names_plugins(&all));
            let guard = if kept_away {
                Guard::Flags
            } else {
                Guard::Missing
            };
            Some(RepositoryFile { guard, ..found })
        });
        let terminal = TERMINAL.iter().filter_map(|path| {
            let bytes = (folder.read)(path)?;
            let harmless = bytes
                .and_then(|bytes| parse(&bytes))
                .is_ok_and(|all| !names_plugins(&all));
            (!harmless).then(|| RepositoryFile {
                path: (*path).to_owned(),
                effects: vec!["plugin: runs in the CLI's process".to_owned()],
                guard: Guard::Missing,
            })
        });
        let definitions = DEFINITIONS
            .iter()
            .flat_map(|(path, effect)| folder.each(path, Guard::Flags, effect));
        plugins
            .chain(configs)
            .chain(terminal)
            .chain(definitions)
            .collect()
    }

    fn nested(&self) -> Option<Nested> {
        None
    }

    /// Every run already names the memory file of the working folder.
    fn unread_memory(&self, is_workdir: bool) -> &'static [&'static [&'static str]] {
        if is_workdir { &[] } else { &[&["AGENTS.md"]] }
    }

    fn own_memory(&self) -> &'static [&'static str] {
        &["AGENTS.md", "CLAUDE.md", "CONTEXT.md"]
    }

    fn displaced_memory(&self, _read: ReadHome<'_>) -> Option<String> {
        None
    }

    /// Returns the files of a repository that runs `touch MARKER` in every way that the variable
    /// disables.
    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)> {
        let run = serde_json::json!(["sh", "-c", format!("touch {marker}; cat")]);
        let config = serde_json::json!({
            "mcp": {"proof": {"type": "local", "command": run, "enabled": true}},
            "formatter": {"proof": {"command": run, "extensions": [".txt"]}},
            "lsp": {"proof": {"command": run, "extensions": [".txt"]}},
        });
        let tool = format!(
            "require('fs').writeFileSync({}, ''); export default {{}}",
            Value::from(marker)
        );
        [
            (CONFIGS[0], config.to_string()),
            (".opencode/tool/proof.ts", tool),
        ]
        .map(|(path, text)| (path.to_owned(), text))
        .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::found;

    #[test]
    fn plugins_are_not_kept_away_the_rest_is() {
        let shown = found(
            &[
                (".opencode/plugin/evil.js", ""),
                (
                    ".opencode/opencode.jsonc",
                    "{/* x */ \"plugin\": [\"evil\"],}",
                ),
                (
                    "opencode.json",
                    r#"{"$schema":"x","mcp":{"a":{"type":"local","command":["sh","-c","x"]}}}"#,
                ),
                ("opencode.jsonc", "{"),
                (".opencode/tool/t.ts", ""),
                ("tui.json", r#"{"theme":"x"}"#),
                (".opencode/tui.json", r#"{"plugin":["x"]}"#),
                ("AGENTS.md", "memory"),
            ],
            false,
            |folder| OpenCode.repository_files(folder),
        );
        insta::assert_snapshot!(shown, @r#"
        .opencode/plugin/evil.js [Missing] runs in the CLI's process
        opencode.json [Flags] mcp.a: runs `sh -c x`
        opencode.jsonc [Missing] cannot be read: it is not JSON: Unterminated object on line 1 column 2
        .opencode/opencode.jsonc [Missing] plugin: runs `evil`
        .opencode/tui.json [Missing] plugin: runs in the CLI's process
        .opencode/tool/t.ts [Flags] runs in the CLI's process
        "#);
    }

    #[test]
    fn a_key_that_the_cli_completes_may_be_a_plugin() {
        let guarded = |text: &str| {
            found(&[("opencode.json", text)], true, |folder| {
                OpenCode.repository_files(folder)
            })
        };
        assert!(guarded(r#"{"plu{env:X}gin":["evil"]}"#).contains("Missing"));
        assert!(guarded(r#"{"plugin":[],"model":"x"}"#).contains("Flags"));
        assert!(guarded(r#"{"\u0070lugin":["x"]}"#).contains("Missing"));
    }
}

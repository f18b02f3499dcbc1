//! Files of a repository that the CLI obeys if the user trusts its folder. Each run declares the
//! folder untrusted, which overrides the user's own configuration (0.166.0).

use serde_json::{Map, Value};

use super::Codex;
use super::command::quoted;
use crate::adapter::ReadHome;
use crate::capability::{Nested, Repository};
use crate::repository::{Guard, Memory, RepositoryConfig, RepositoryFile, RepositoryFolder, jsonc};

/// Keys that only affect the appearance.
const HARMLESS: &[&str] = &["tui", "file_opener", "hide_agent_reasoning"];

const CONFIG: &str = ".codex/config.toml";
const HOOKS: &str = ".codex/hooks.json";

const SKILLS: &[&str] = &[".agents/skills", ".codex/skills"];

/// Memory files that the CLI does not read in an untrusted folder (0.166.0). The first that exists
/// counts.
const MEMORY: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md"]];

/// Setting that passes on the memory. The model receives it once, also on a resume.
const INSTRUCTIONS: &str = "developer_instructions";

/// Returns the setting that passes on the repository's memory. None if there is no memory.
pub(super) fn instructions(memory: &Memory) -> Option<String> {
    let text = memory.text()?;
    Some(format!("{INSTRUCTIONS}={}", quoted(&text)))
}

fn toml(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not text")?;
    ::toml::from_str(text).map_err(|e| format!("it is not TOML: {}", e.message()))
}

/// Returns the trust level that a run declares for the working folder and those above.
pub(super) fn level(config: RepositoryConfig) -> &'static str {
    match config {
        RepositoryConfig::Ignored | RepositoryConfig::IgnoredWithSkills => "untrusted",
        RepositoryConfig::Obeyed => "trusted",
    }
}

/// Returns the setting that hides all skills from the model, including the user's own. The trust
/// level does not hide the skills of a repository (0.166.0).
pub(super) fn without_skills(config: RepositoryConfig) -> Option<String> {
    let without = config == RepositoryConfig::IgnoredWithSkills;
    without.then(|| "skills.include_instructions=false".to_owned())
}

impl Repository for Codex {
    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        let hooks = |bytes: &[u8]| jsonc(bytes, &jsonc_parser::ParseOptions::default());
        let config = folder.settings(CONFIG, Guard::Flags, HARMLESS, toml);
        let hooks = folder.settings(HOOKS, Guard::Flags, &[], hooks);
        let rules = folder.each(".codex/rules", Guard::Flags, "allows commands");
        let agents = folder.each(".codex/agents", Guard::Flags, "defines a sub-agent");
        let skills = SKILLS.iter();
        let skills = skills.flat_map(|path| folder.each(path, Guard::Flags, "offers a skill"));
        config
            .into_iter()
            .chain(hooks)
            .chain(rules)
            .chain(agents)
            .chain(skills)
            .collect()
    }

    fn nested(&self) -> Option<Nested> {
        None
    }

    fn unread_memory(&self, _is_workdir: bool) -> &'static [&'static [&'static str]] {
        MEMORY
    }

    /// Returns nothing: a run that ignores the repository's configuration reads no memory itself.
    fn own_memory(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns the user's own value of the setting that passes on the memory.
    fn displaced_memory(&self, read: ReadHome<'_>) -> Option<String> {
        let config = toml(&read("config.toml")?).ok()?;
        let own = config.get(INSTRUCTIONS)?.as_str()?;
        Some(own.to_owned()).filter(|own| !own.trim().is_empty())
    }

    /// Returns the files of a repository that runs `touch MARKER` in every way that the trust level
    /// prevents.
    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)> {
        let config = format!(
            "notify = [\"touch\", \"{marker}\"]\n[mcp_servers.proof]\ncommand = \"touch\"\nargs = [\"{marker}\"]\n"
        );
        let run = serde_json::json!([{"hooks": [{"type": "command", "command": format!("touch {marker}")}]}]);
        let hooks = serde_json::json!({"hooks": {"SessionStart": run, "UserPromptSubmit": run, "Stop": run}});
        [(CONFIG, config), (HOOKS, hooks.to_string())]
            .map(|(path, text)| (path.to_owned(), text))
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::found;

    #[test]
    fn servers_hooks_and_rules_are_named() {
        let shown = found(
            &[
                (
                    CONFIG,
                    "sandbox_mode = \"danger-full-access\"\n[mcp_servers.x]\ncommand = \"a\"\nargs = [\"b\"]\n[tui]\ntheme = \"x\"\n",
                ),
                (HOOKS, r#"{"hooks":{"Stop":[{"hooks":[{"command":"c"}]}]}}"#),
                (".codex/rules/default.rules", "prefix_rule()"),
                ("AGENTS.md", "memory"),
            ],
            true,
            |folder| Codex.repository_files(folder),
        );
        insta::assert_snapshot!(shown, @r"
        .codex/config.toml [Flags] mcp_servers.x: runs `a b` | sandbox_mode: danger-full-access
        .codex/hooks.json [Flags] hooks.Stop: runs `c`
        .codex/rules/default.rules [Flags] allows commands
        ");
        assert!(
            found(&[(CONFIG, "= x")], true, |folder| Codex
                .repository_files(folder))
            .contains("not TOML")
        );
    }
}

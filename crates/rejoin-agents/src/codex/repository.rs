//! Files of a repository that the CLI obeys where the user trusts its folder. Each run says that it is
//! not trusted, whatever the user's own configuration says (0.166.0).

use serde_json::{Map, Value};

use super::command::quoted;
use crate::repository::{Guard, Memory, RepositoryConfig, RepositoryFile, RepositoryFolder, jsonc};

/// Keys that only concern looks.
const HARMLESS: &[&str] = &["tui", "file_opener", "hide_agent_reasoning"];

const CONFIG: &str = ".codex/config.toml";
const HOOKS: &str = ".codex/hooks.json";

const SKILLS: &[&str] = &[".agents/skills", ".codex/skills"];

/// Left unread in a folder that is not trusted (0.166.0). The first that exists counts.
pub(super) const MEMORY: &[&[&str]] = &[&["AGENTS.override.md", "AGENTS.md"]];

/// The setting that memory is passed on by. It reaches the model once, also on a resume.
const INSTRUCTIONS: &str = "developer_instructions";

/// The setting of a run that passes on the memory of the repository, if there is any.
pub(super) fn instructions(memory: &Memory) -> Option<String> {
    let text = memory.text()?;
    Some(format!("{INSTRUCTIONS}={}", quoted(&text)))
}

/// The user's own value of that setting.
pub(super) fn own_instructions(config: &[u8]) -> Option<String> {
    let config = toml(config).ok()?;
    let own = config.get(INSTRUCTIONS)?.as_str()?;
    Some(own.to_owned()).filter(|own| !own.trim().is_empty())
}

pub(super) fn files(folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
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

fn toml(bytes: &[u8]) -> Result<Map<String, Value>, String> {
    let text = str::from_utf8(bytes).map_err(|_| "it is not text")?;
    ::toml::from_str(text).map_err(|e| format!("it is not TOML: {}", e.message()))
}

/// The level of trust that a run names for the working folder and those above.
pub(super) fn level(config: RepositoryConfig) -> &'static str {
    match config {
        RepositoryConfig::Ignored | RepositoryConfig::IgnoredWithSkills => "untrusted",
        RepositoryConfig::Obeyed => "trusted",
    }
}

/// The setting that keeps skills from the model, those of the user included. The level of trust does
/// not keep a repository's away (0.166.0).
pub(super) fn without_skills(config: RepositoryConfig) -> Option<String> {
    let without = config == RepositoryConfig::IgnoredWithSkills;
    without.then(|| "skills.include_instructions=false".to_owned())
}

/// A repository that runs `touch MARKER` in every way that the level of trust keeps away.
pub(super) fn hostile(marker: &str) -> Vec<(String, String)> {
    let config = format!(
        "notify = [\"touch\", \"{marker}\"]\n[mcp_servers.proof]\ncommand = \"touch\"\nargs = [\"{marker}\"]\n"
    );
    let run =
        serde_json::json!([{"hooks": [{"type": "command", "command": format!("touch {marker}")}]}]);
    let hooks =
        serde_json::json!({"hooks": {"SessionStart": run, "UserPromptSubmit": run, "Stop": run}});
    [(CONFIG, config), (HOOKS, hooks.to_string())]
        .map(|(path, text)| (path.to_owned(), text))
        .into()
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
            files,
        );
        insta::assert_snapshot!(shown, @r"
        .codex/config.toml [Flags] mcp_servers.x: runs `a b` | sandbox_mode: danger-full-access
        .codex/hooks.json [Flags] hooks.Stop: runs `c`
        .codex/rules/default.rules [Flags] allows commands
        ");
        assert!(found(&[(CONFIG, "= x")], true, files).contains("not TOML"));
    }
}

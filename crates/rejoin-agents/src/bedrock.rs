//! Detects a CLI that logs in to Amazon Bedrock. Its `AWS_*` variables are then its own login;
//! otherwise they are treated as the store's login and withheld.

use std::path::{Path, PathBuf};

use crate::environment::is_on;

type Env<'a> = &'a dyn Fn(&str) -> Option<String>;
type Read<'a> = &'a dyn Fn(&Path) -> Option<Vec<u8>>;

/// Name of the provider in the configurations of Codex (0.166.0) and OpenCode (1.18.33).
const PROVIDER: &str = "amazon-bedrock";

/// Variables that select a service of AWS in Claude Code (2.1.325).
const CLAUDE_SELECTS: &[&str] = &[
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_MANTLE",
    "CLAUDE_CODE_USE_ANTHROPIC_AWS",
];

/// Claude Code: a variable selects it, in the environment or in `env` of the user's settings.
pub(crate) fn claude(env: Env<'_>, home: Option<PathBuf>, read: Read<'_>) -> bool {
    let settings = home.and_then(|home| read(&home.join("settings.json")));
    let settings: serde_json::Value = settings
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default();
    CLAUDE_SELECTS.iter().any(|name| {
        let configured = &settings["env"][name];
        let text = configured.as_str().map(str::to_owned);
        let configured = text.unwrap_or_else(|| configured.to_string());
        env(name).is_some_and(|v| is_on(&v)) || is_on(&configured)
    })
}

/// Codex: `model_provider` of `config.toml` or of one of its profiles.
pub(crate) fn codex(home: Option<PathBuf>, read: Read<'_>) -> bool {
    let text = home.and_then(|home| read(&home.join("config.toml")));
    let text = text.and_then(|bytes| String::from_utf8(bytes).ok());
    let Some(config) = text.and_then(|text| text.parse::<toml::Table>().ok()) else {
        return false;
    };
    let selects = |table: &toml::Table| {
        let provider = table.get("model_provider").and_then(toml::Value::as_str);
        provider == Some(PROVIDER)
    };
    let profiles = config.get("profiles").and_then(toml::Value::as_table);
    let profiles = profiles.into_iter().flat_map(toml::Table::values);
    selects(&config) || profiles.filter_map(toml::Value::as_table).any(selects)
}

/// OpenCode: the user's configuration names the provider, by itself or as the prefix of a model
/// name. No variable selects it: the CLI tries every provider for which it finds a login.
pub(crate) fn opencode(env: Env<'_>, read: Read<'_>) -> bool {
    let set = |name| env(name).filter(|value: &String| !value.is_empty());
    let folder = set("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .or_else(|| set("HOME").map(|home| Path::new(&home).join(".config")))
        .map(|folder| folder.join("opencode"));
    let files = ["config.json", "opencode.json", "opencode.jsonc"];
    let files = folder.iter().flat_map(|at| files.map(|name| at.join(name)));
    let files = files.chain(set("OPENCODE_CONFIG").map(PathBuf::from));
    let mut texts = files
        .filter_map(|file| read(&file))
        .chain(set("OPENCODE_CONFIG_CONTENT").map(String::into_bytes));
    texts.any(|bytes| {
        let text = String::from_utf8_lossy(&bytes);
        let config = jsonc_parser::parse_to_serde_value::<serde_json::Value>(
            &text,
            &jsonc_parser::ParseOptions::default(),
        );
        config.is_ok_and(|config| names_provider(&config))
    })
}

fn names_provider(config: &serde_json::Value) -> bool {
    let of_model = |name: &str| {
        let model = config[name].as_str();
        model.is_some_and(|m| m.split('/').next() == Some(PROVIDER))
    };
    config["provider"].get(PROVIDER).is_some() || of_model("model") || of_model("small_model")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set<'a>(vars: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
        move |name| {
            let var = vars.iter().find(|(n, _)| *n == name);
            var.map(|(_, v)| (*v).to_owned())
        }
    }

    fn file<'a>(path: &'a str, text: &'a str) -> impl Fn(&Path) -> Option<Vec<u8>> + 'a {
        move |asked| (asked == Path::new(path)).then(|| text.into())
    }

    #[test]
    fn claude_selects_it_by_variable_or_by_settings() {
        let home = || Some(PathBuf::from("/h/.claude"));
        let by = |value| {
            claude(&set(&[("CLAUDE_CODE_USE_BEDROCK", value)]), home(), &|_| {
                None
            })
        };
        assert!(by("1") && by("true") && !by("0") && !by(""));
        let settings = |text: &str| {
            let read = file("/h/.claude/settings.json", text);
            claude(&set(&[]), home(), &read)
        };
        assert!(settings(r#"{"env":{"CLAUDE_CODE_USE_BEDROCK":"1"}}"#));
        assert!(settings(r#"{"env":{"CLAUDE_CODE_USE_MANTLE":true}}"#));
        assert!(!settings(r#"{"env":{"CLAUDE_CODE_USE_VERTEX":"1"}}"#));
        assert!(!settings("no json"));
    }

    #[test]
    fn codex_selects_it_by_provider() {
        let by = |text: &str| codex(Some("/h".into()), &file("/h/config.toml", text));
        assert!(by("model_provider = \"amazon-bedrock\""));
        assert!(by("[profiles.work]\nmodel_provider = \"amazon-bedrock\""));
        assert!(!by("model_provider = \"openai\" # amazon-bedrock"));
        assert!(!by(""));
    }

    #[test]
    fn opencode_selects_it_by_configuration() {
        let home = [("HOME", "/h")];
        let by = |text: &str| {
            let read = file("/h/.config/opencode/opencode.jsonc", text);
            opencode(&set(&home), &read)
        };
        assert!(by("{ // mine\n \"model\": \"amazon-bedrock/claude\" }"));
        assert!(by(r#"{"provider":{"amazon-bedrock":{}}}"#));
        assert!(!by(r#"{"model":"anthropic/amazon-bedrock"}"#));
        let content = [("OPENCODE_CONFIG_CONTENT", r#"{"model":"amazon-bedrock/x"}"#)];
        assert!(opencode(&set(&content), &|_| None));
    }
}

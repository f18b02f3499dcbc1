//! What a repository's own files would make the CLI do. They win over the user's settings, and so over
//! ours (0.61.0): hooks and tool servers are run, tools allowed, sessions deleted, whatever the mode.

use serde_json::{Map, Value};

use super::home::parsed;

const SETTINGS: &str = ".gemini/settings.json";

/// Sections that only concern looks. Everything else may name a program, a server or a tool.
const HARMLESS: &[&str] = &["$schema", "output", "theme", "ui"];

/// Beginnings of variables that lead the CLI, or the user's key, somewhere else.
const LEADING: &[&str] = &[
    "CLOUD_CODE",
    "CODE_ASSIST",
    "GEMINI_",
    "GOOGLE_",
    "HTTP",
    "NODE_",
    "OTEL_",
];

pub(super) fn of(here: bool, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
    let instead = "; move it to your own settings, or allow everything (--permission full)";
    if here && let Some(bytes) = read(SETTINGS) {
        let settings = match parsed(&bytes) {
            Ok(settings) => settings,
            Err(why) => return Some(format!("the repository's {SETTINGS} cannot be read: {why}")),
        };
        if let Some(key) = beyond_looks(&settings) {
            return Some(format!(
                "Gemini CLI would obey `{key}` of the repository's {SETTINGS}{instead}"
            ));
        }
    }
    [".env", ".gemini/.env"].iter().find_map(|file| {
        let bytes = read(file)?;
        let text = String::from_utf8_lossy(&bytes);
        let name = text.lines().find_map(leading)?;
        Some(format!(
            "Gemini CLI would take {name} from the repository's {file}{instead}"
        ))
    })
}

fn beyond_looks(settings: &Map<String, Value>) -> Option<String> {
    let (name, section) = settings
        .iter()
        .find(|(name, _)| !HARMLESS.contains(&name.as_str()))?;
    let inner = section.as_object().and_then(|s| s.keys().next());
    Some(inner.map_or_else(|| name.clone(), |inner| format!("{name}.{inner}")))
}

fn leading(line: &str) -> Option<String> {
    let line = line.trim_start().trim_start_matches("export ").trim_start();
    let (name, _) = line.split_once(['=', ':'])?;
    let name = name.trim();
    let leads = LEADING.iter().any(|begin| name.starts_with(begin));
    leads.then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(here: bool, files: &[(&str, &str)]) -> String {
        let read = |path: &str| {
            let found = files.iter().find(|(name, _)| *name == path);
            found.map(|(_, text)| text.as_bytes().to_vec())
        };
        of(here, &read).unwrap_or_default()
    }

    #[test]
    fn looks_are_harmless_programs_are_not() {
        let settings = |text: &str| told(true, &[(SETTINGS, text)]);
        assert_eq!(settings(""), "");
        assert_eq!(settings(r#"{"ui": {"theme": "x"}} // mine"#), "");
        for (text, key) in [
            (r#"{"mcpServers": {"a": {"command": "x"}}}"#, "mcpServers.a"),
            (r#"{"hooks": {"SessionStart": []}}"#, "hooks.SessionStart"),
            (
                r#"{"ui": {}, "tools": {"allowed": ["run_shell_command"]}}"#,
                "tools.allowed",
            ),
            (
                r#"{"general": {"sessionRetention": {}}}"#,
                "general.sessionRetention",
            ),
        ] {
            assert!(settings(text).contains(key), "{}", settings(text));
        }
        assert!(settings("{").contains("cannot be read"));
        // Only the folder's own settings are read by the CLI.
        let above = [(SETTINGS, r#"{"hooks": {}}"#)];
        assert_eq!(told(false, &above), "");
    }

    #[test]
    fn variables_that_lead_elsewhere_are_named() {
        let env = |text: &str| told(false, &[(".env", text)]);
        assert_eq!(env("DATABASE_URL=x\n# GEMINI_X=1\nDEBUG=1"), "");
        assert!(
            env("A=1\nexport GOOGLE_GEMINI_BASE_URL=http://x").contains("GOOGLE_GEMINI_BASE_URL")
        );
        assert!(env("  HTTPS_PROXY = x").contains("HTTPS_PROXY"));
    }
}

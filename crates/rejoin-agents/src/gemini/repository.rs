//! Files of a repository that the CLI obeys. They win over the user's settings, and so over ours
//! (0.61.0): hooks and tool servers are run, tools allowed, sessions deleted, whatever the mode. No
//! argument keeps the CLI from them.

use super::home::parsed;
use crate::repository::{Guard, RepositoryFile, RepositoryFolder};

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

pub(super) fn files(folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
    // Only the working folder's own settings are read by the CLI.
    let settings = folder
        .is_workdir
        .then(|| folder.settings(SETTINGS, Guard::Missing, HARMLESS, parsed))
        .flatten();
    let variables = [".env", ".gemini/.env"].into_iter().filter_map(|path| {
        let effects = match (folder.read)(path)? {
            Err(why) => vec![format!("cannot be read: {why}")],
            Ok(bytes) => {
                let text = String::from_utf8_lossy(&bytes);
                text.lines().filter_map(leading).collect()
            }
        };
        (!effects.is_empty()).then(|| RepositoryFile {
            path: path.to_owned(),
            effects,
            guard: Guard::Missing,
        })
    });
    settings.into_iter().chain(variables).collect()
}

/// Names the variable that a line sets, if it leads elsewhere.
fn leading(line: &str) -> Option<String> {
    let line = line.trim_start().trim_start_matches("export ").trim_start();
    let (name, _) = line.split_once(['=', ':'])?;
    let name = name.trim();
    let leads = LEADING.iter().any(|begin| name.starts_with(begin));
    leads.then(|| format!("sets {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::found;

    #[test]
    fn looks_are_harmless_programs_are_not() {
        let settings = |text: &str| found(&[(SETTINGS, text)], true, files);
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
        let above = [(SETTINGS, r#"{"hooks": {}}"#)];
        assert_eq!(found(&above, false, files), "");
    }

    #[test]
    fn variables_that_lead_elsewhere_are_named() {
        let env = |text: &str| found(&[(".env", text)], false, files);
        assert_eq!(env("DATABASE_URL=x\n# GEMINI_X=1\nDEBUG=1"), "");
        assert!(
            env("A=1\nexport GOOGLE_GEMINI_BASE_URL=http://x").contains("GOOGLE_GEMINI_BASE_URL")
        );
        assert!(env("  HTTPS_PROXY = x").contains("HTTPS_PROXY"));
    }
}

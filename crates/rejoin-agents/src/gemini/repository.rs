//! Files of a repository that the CLI obeys. They override the user's settings, and so rejoin's
//! (0.61.0): they can run hooks and MCP servers, allow tools and delete sessions in every mode. No
//! argument keeps the CLI from them, nor from offering skills to the model.

use super::Gemini;
use super::home::parsed;
use crate::adapter::ReadHome;
use crate::capability::{Nested, Repository};
use crate::repository::{Guard, RepositoryFile, RepositoryFolder};

const SETTINGS: &str = ".gemini/settings.json";

/// Sections that only affect the appearance. Every other section may name a program, a server or a
/// tool.
const HARMLESS: &[&str] = &["$schema", "output", "theme", "ui"];

/// Prefixes of variables that applications use, and that no program started by the CLI is known to
/// obey. Every other variable may load a library, name a proxy or send the user's key to another
/// server.
const APPLICATION: &[&str] = &[
    "APP_",
    "DATABASE_URL",
    "DB_",
    "DEBUG",
    "NEXT_PUBLIC_",
    "NUXT_PUBLIC_",
    "PORT",
    "POSTGRES_",
    "REACT_APP_",
    "REDIS_URL",
    "SECRET_KEY",
    "VITE_",
];

/// Folders of definitions of the working folder. The CLI offers skills to the model (0.61.0), but
/// agents only after the user has accepted them in the CLI itself.
const DEFINITIONS: &[(&str, &str)] = &[
    (".agents/skills", "offers a skill"),
    (".gemini/policies", "allows tools"),
    (".gemini/skills", "offers a skill"),
];

/// Parts of names of variables whose value is not shown.
const SECRET: &[&str] = &["CREDENTIAL", "KEY", "PASSWORD", "SECRET", "TOKEN"];

/// Describes the variables that a file sets, as the CLI parses it: a name at the beginning of a
/// line, followed by `=` or `:`, possibly on a later line.
fn variables(text: &str) -> Vec<String> {
    // JavaScript treats these as line ends.
    let text = text.replace(['\r', '\u{2028}', '\u{2029}'], "\n");
    let space = |c: char| c.is_whitespace() || c == '\u{feff}';
    let starts = text.match_indices('\n').map(|(at, _)| at + 1);
    let mut found = vec![];
    for start in [0].into_iter().chain(starts) {
        let line = text[start..].trim_start_matches(space);
        let exported = line
            .strip_prefix("export")
            .filter(|rest| rest.starts_with(space));
        let line = exported.map_or(line, |rest| rest.trim_start_matches(space));
        let part = |c: char| c.is_alphanumeric() || "_.-".contains(c);
        let (name, rest) = line.split_at(line.find(|c| !part(c)).unwrap_or(line.len()));
        let Some(value) = rest.trim_start_matches(space).strip_prefix(['=', ':']) else {
            continue;
        };
        let value = value.lines().next().unwrap_or_default().trim();
        let effect = variable(name, value);
        if let Some(effect) = effect.filter(|effect| !found.contains(effect)) {
            found.push(effect);
        }
    }
    found
}

/// Describes a variable, without the value of a secret. None if an application uses the variable.
fn variable(name: &str, value: &str) -> Option<String> {
    if name.is_empty() || APPLICATION.iter().any(|begin| name.starts_with(begin)) {
        return None;
    }
    let secret = SECRET.iter().any(|part| name.contains(part));
    Some(match name {
        _ if secret => format!("sets {name}"),
        "NODE_OPTIONS" => format!("runs node with {value} (NODE_OPTIONS)"),
        _ => format!("sets {name}={value}"),
    })
}

impl Repository for Gemini {
    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        // The CLI reads only the settings of the working folder.
        let settings = folder
            .is_workdir
            .then(|| folder.settings(SETTINGS, Guard::Missing, HARMLESS, parsed))
            .flatten();
        let environments = [".env", ".gemini/.env"].into_iter().filter_map(|path| {
            let effects = match (folder.read)(path)? {
                Err(why) => vec![format!("cannot be read: {why}")],
                Ok(bytes) => variables(&String::from_utf8_lossy(&bytes)),
            };
            (!effects.is_empty()).then(|| RepositoryFile {
                path: path.to_owned(),
                effects,
                guard: Guard::Missing,
            })
        });
        let definitions = DEFINITIONS.iter().filter(|_| folder.is_workdir);
        let definitions =
            definitions.flat_map(|(path, effect)| folder.each(path, Guard::Missing, effect));
        settings
            .into_iter()
            .chain(environments)
            .chain(definitions)
            .collect()
    }

    fn nested(&self) -> Option<Nested> {
        None
    }

    fn unread_memory(&self, _is_workdir: bool) -> &'static [&'static [&'static str]] {
        &[]
    }

    fn own_memory(&self) -> &'static [&'static str] {
        &["GEMINI.md"]
    }

    fn displaced_memory(&self, _read: ReadHome<'_>) -> Option<String> {
        None
    }

    fn hostile_repository(&self, _marker: &str) -> Vec<(String, String)> {
        vec![]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repository::tests::found;

    #[test]
    fn looks_are_harmless_programs_are_not() {
        let settings = |text: &str| {
            found(&[(SETTINGS, text)], true, |folder| {
                Gemini.repository_files(folder)
            })
        };
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
        assert_eq!(
            found(&above, false, |folder| Gemini.repository_files(folder)),
            ""
        );
    }

    #[test]
    fn variables_of_no_application_are_named() {
        let env = |text: &str| {
            found(&[(".env", text)], false, |folder| {
                Gemini.repository_files(folder)
            })
        };
        assert_eq!(env("DATABASE_URL=x\n# GEMINI_X=1\nDEBUG=1"), "");
        for text in [
            "LD_PRELOAD=./evil.so",
            "https_proxy=x",
            "PORT=1\rHTTPS_PROXY=x\r",
            "\u{feff}HTTPS_PROXY=x",
            "HTTPS_PROXY\n=x",
            "PORT=1\u{2028}PATH=x",
            "export\tBASH_ENV=x",
            "\u{a0}GIT_SSH_COMMAND: x",
            "PORT='\nHOME=x'",
        ] {
            assert!(env(text).contains("sets "), "{text:?}");
        }
        assert!(
            env("A=1\nexport GOOGLE_GEMINI_BASE_URL=http://x").contains("GOOGLE_GEMINI_BASE_URL")
        );
        assert!(env("  HTTPS_PROXY = x").contains("sets HTTPS_PROXY=x"));
        assert!(env("NODE_OPTIONS=-r ./x.js").contains("runs node with -r ./x.js"));
        assert!(env("GEMINI_API_KEY=secret").ends_with("sets GEMINI_API_KEY"));
    }
}

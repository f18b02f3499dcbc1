//! `REJOIN_SECTION_KEY` for every key.

use super::keys::{KEYS, Key, agents, names_in};
use super::setting::{Origin, Setting, segment};
use super::suggest::nearest;
use rejoin_errors::{CommandError, Result};

/// Values from variables. `named` are the names that files gave to agents and models: a variable
/// cannot spell `gpt-5.1`, but it can mean it.
pub(crate) fn settings(
    variables: impl IntoIterator<Item = (String, String)>,
    named: &[String],
) -> Result<Vec<Setting>> {
    let mut ours: Vec<_> = variables
        .into_iter()
        .filter(|(name, value)| name.starts_with("REJOIN_") && !value.is_empty())
        .collect();
    ours.sort();
    let mut found = vec![];
    for (variable, text) in ours {
        let Some((key, names)) = meant(&variable, named) else {
            if let Some(list) = list_of(&variable) {
                return Err(CommandError::config(format!(
                    "the variable {variable} is no setting: [[{list}]] is set in a file"
                ))
                .try_this(format!("unset {variable}")));
            }
            if in_a_section(&variable) {
                return Err(unknown(&variable, named));
            }
            continue;
        };
        let value = key.kind.parse(&text).ok_or_else(|| {
            let must = key.kind.words();
            let is = if key.all_secret() { "…" } else { &text };
            CommandError::config(format!("{variable} is `{is}`; it must be {must}"))
                .try_this(format!("unset {variable}"))
        })?;
        let path = names.iter().fold(key.name.to_owned(), |path, name| {
            path.replacen('*', &segment(name), 1)
        });
        found.push(Setting {
            key,
            names,
            path,
            value,
            origin: Origin::Environment(variable),
        });
    }
    Ok(found)
}

/// The key a variable stands for: of `…_ENV` and `…_PASS_ENV` the longer.
fn meant(variable: &str, named: &[String]) -> Option<(&'static Key, Vec<String>)> {
    let fits = |key: &'static Key| {
        let pattern = key.variable();
        let Some((before, after)) = pattern.split_once("NAME") else {
            return (pattern == variable).then_some((key, vec![]));
        };
        let middle = variable.strip_prefix(before)?.strip_suffix(after)?;
        (!middle.is_empty()).then(|| (key, vec![name_of(middle, named)]))
    };
    KEYS.iter()
        .filter(|key| !key.in_list())
        .filter_map(fits)
        .max_by_key(|(key, _)| key.name.len())
}

fn name_of(middle: &str, named: &[String]) -> String {
    let known = agents().chain(named.iter().map(String::as_str));
    let spelled = |name: &str| {
        name.chars()
            .map(|c| {
                if c.is_ascii_alphanumeric() {
                    c.to_ascii_uppercase()
                } else {
                    '_'
                }
            })
            .collect::<String>()
    };
    known
        .into_iter()
        .find(|name| spelled(name) == middle)
        .map_or_else(
            || middle.to_ascii_lowercase().replace('_', "-"),
            str::to_owned,
        )
}

/// Other variables of ours (`REJOIN_HOME`, `REJOIN_TOKEN`) are no settings.
fn in_a_section(variable: &str) -> bool {
    let sections = names_in("")
        .into_iter()
        .filter(|n| KEYS.iter().all(|k| k.name != *n));
    sections
        .into_iter()
        .any(|s| variable.starts_with(&format!("REJOIN_{}_", s.to_ascii_uppercase())))
}

/// Returns the list of sections that a variable names. Only a file sets one.
fn list_of(variable: &str) -> Option<&'static str> {
    let lists = KEYS.iter().filter_map(|key| key.name.split_once("[]."));
    let named =
        |list: &str| variable.starts_with(&format!("REJOIN_{}_", list.to_ascii_uppercase()));
    lists.map(|(list, _)| list).find(|list| named(list))
}

fn unknown(variable: &str, named: &[String]) -> CommandError {
    let mut known = vec![];
    for pattern in (KEYS.iter().filter(|key| !key.in_list())).map(Key::variable) {
        if !pattern.contains("NAME") {
            known.push(pattern);
            continue;
        }
        let names = agents().chain(named.iter().map(String::as_str));
        known.extend(names.map(|n| pattern.replace("NAME", &n.to_ascii_uppercase())));
    }
    let near = nearest(variable, known.iter().map(String::as_str));
    let hint = near.map_or_else(String::new, |(near, _)| format!("; did you mean {near}?"));
    CommandError::config(format!("the variable {variable} is no setting{hint}"))
        .try_this(format!("unset {variable}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variable: &str, value: &str) -> Result<Vec<String>> {
        let named = ["gpt-5.1".to_owned()];
        let found = settings([(variable.to_owned(), value.to_owned())], &named)?;
        Ok(found
            .iter()
            .map(|s| format!("{}={}", s.path, s.value))
            .collect())
    }

    #[test]
    fn a_variable_for_every_key() {
        for (variable, value, expected) in [
            ("REJOIN_DEFAULT_AGENT", "codex", "default_agent=\"codex\""),
            ("REJOIN_RESUME_BREAKER", "3", "resume.breaker=3"),
            (
                "REJOIN_AGENTS_CLAUDE_PASS_ENV",
                "A,B",
                "agents.claude.pass_env=[\"A\",\"B\"]",
            ),
            ("REJOIN_AGENTS_MY_OWN_BIN", "x", "agents.my-own.bin=\"x\""),
            (
                "REJOIN_MODELS_GPT_5_1_WINDOW",
                "5000",
                r#"models."gpt-5.1".window=5000"#,
            ),
            (
                "REJOIN_MODELS_GPT_5_1_PRICE_CACHE_READ",
                "0.5",
                r#"models."gpt-5.1".price.cache_read=0.5"#,
            ),
            (
                "REJOIN_DATABASE_URL",
                "sqlite:/x",
                "database.url=\"sqlite:/x\"",
            ),
        ] {
            assert_eq!(read(variable, value).unwrap(), [expected]);
        }
        for other in ["REJOIN_HOME", "REJOIN_TOKEN", "REJOIN_TEST_CLIS", "PATH"] {
            assert!(read(other, "x").unwrap().is_empty());
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (variable, value, expected) in [
            (
                "REJOIN_RESUME_BRAKER",
                "3",
                "the variable REJOIN_RESUME_BRAKER is no setting; did you mean REJOIN_RESUME_BREAKER?",
            ),
            (
                "REJOIN_AGENTS_CLAUDE_MODLE",
                "x",
                "the variable REJOIN_AGENTS_CLAUDE_MODLE is no setting; did you mean REJOIN_AGENTS_CLAUDE_MODEL?",
            ),
            (
                "REJOIN_RESUME_BREAKER",
                "three",
                "REJOIN_RESUME_BREAKER is `three`; it must be a whole number from 1 to 1000",
            ),
            (
                "REJOIN_PERMISSION",
                "all",
                "REJOIN_PERMISSION is `all`; it must be one of \"read-only\", \"edit\", \"full\", \"ask\"",
            ),
            (
                "REJOIN_SNAPSHOTS_KEY",
                "hunter2",
                "REJOIN_SNAPSHOTS_KEY is `…`; it must be 64 hex letters, as from `openssl rand -hex 32`",
            ),
        ] {
            assert_eq!(read(variable, value).unwrap_err().message, expected);
        }
    }
}

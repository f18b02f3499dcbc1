//! Descriptions of the settings of a repository, for the person who decides about trust.
//!
//! Nothing is shortened: a command could hide behind the end of the shown text.

use serde_json::{Map, Value};

/// Suffixes of names, in lower case, whose value is a program: `apiKeyHelper`, `awsAuthRefresh`,
/// `awsCredentialExport`, `discoveryCommand`.
const PROGRAM_ENDS: &[&str] = &["authrefresh", "command", "credentialexport", "helper"];

/// Names, in lower case, whose value is a program or a package that the CLI loads.
const PROGRAMS: &[&str] = &["enabledplugins", "notify", "npm", "plugin", "plugins"];

/// Members of a hook or server that only say when and how its command runs.
const HARMLESS: &[&str] = &["enabled", "matcher", "timeout", "type"];

/// Describes a setting: one entry for a plain value or a program, one for each member of a table.
pub(super) fn effects(key: &str, value: &Value) -> Vec<String> {
    match value {
        Value::Object(members) if !members.is_empty() && !is_program(key) => members
            .iter()
            .map(|(name, inner)| format!("{key}.{name}: {}", described(name, inner)))
            .collect(),
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => vec![format!("{key}: {}", described(key, value))],
    }
}

/// Returns true if the value of a setting with this name is run or loaded.
fn is_program(name: &str) -> bool {
    let name = name.to_lowercase().replace(['_', '-'], "");
    PROGRAMS.contains(&name.as_str()) || PROGRAM_ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns "runs" with every program in the value and the members beside it. Without a program,
/// returns the value itself.
fn described(name: &str, value: &Value) -> String {
    if is_program(name) {
        return match value {
            Value::String(_) | Value::Array(_) | Value::Object(_) => {
                format!("runs {}", line(value))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
    }
    if !names_program(value) {
        return plain(value);
    }
    let mut parts = vec![];
    collect(value, &mut parts);
    format!("runs {}", parts.join("; "))
}

fn names_program(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(names_program),
        Value::Object(members) => members
            .iter()
            .any(|(name, inner)| is_program(name) || names_program(inner)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Collects the programs, each with the members beside it.
fn collect(value: &Value, parts: &mut Vec<String>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| collect(item, parts)),
        Value::Object(members) => collect_members(members, parts),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            parts.push(plain(value));
        }
    }
}

fn collect_members(members: &Map<String, Value>, parts: &mut Vec<String>) {
    let mut beside = Map::new();
    for (name, inner) in members {
        let args_of_command = name == "args" && members.contains_key("command");
        if name == "command" {
            parts.push(with_args(inner, members.get("args")));
        } else if is_program(name) {
            parts.push(format!("{} ({name})", line(inner)));
        } else if names_program(inner) {
            collect(inner, parts);
        } else if !args_of_command && !HARMLESS.contains(&name.as_str()) {
            beside.insert(name.clone(), inner.clone());
        }
    }
    if !beside.is_empty() {
        parts.push(format!("with {}", Value::Object(beside)));
    }
}

fn with_args(command: &Value, args: Option<&Value>) -> String {
    match (command, args) {
        (_, None) => line(command),
        (Value::String(_), Some(Value::Array(args))) => {
            let whole = [command].into_iter().chain(args).cloned().collect();
            line(&Value::Array(whole))
        }
        (_, Some(args)) => format!("{} {}", line(command), line(args)),
    }
}

/// Formats a command line between backticks. A word with spaces in it is quoted.
fn line(command: &Value) -> String {
    let quoted = |word: &Value| match word.as_str() {
        Some(text) if text.is_empty() || text.contains(char::is_whitespace) => format!("'{text}'"),
        _ => plain(word),
    };
    let words = command.as_array();
    let words = words.map(|words| words.iter().map(quoted).collect::<Vec<_>>().join(" "));
    format!("`{}`", words.unwrap_or_else(|| plain(command)))
}

/// Returns the text of a string, or any other value as JSON.
fn plain(value: &Value) -> String {
    value
        .as_str()
        .map_or_else(|| value.to_string(), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(settings: &str) -> Vec<String> {
        let settings: Map<String, Value> = serde_json::from_str(settings).unwrap();
        settings
            .iter()
            .flat_map(|(key, value)| effects(key, value))
            .collect()
    }

    #[test]
    fn commands_of_hooks_and_servers_are_shown() {
        let shown = shown(
            r#"{"hooks":{"Stop":[{"matcher":"*","hooks":[{"type":"command","command":"./a.sh"},{"command":"b"},{"type":"http","url":"http://x"}]}]},
            "mcpServers":{"x":{"command":"npx","args":["-y","evil"],"env":{"A":"b"}},"y":{"command":"sh","args":["-c","a b"]}},"n":{}}"#,
        );
        assert_eq!(
            shown,
            [
                r#"hooks.Stop: runs `./a.sh`; `b`; with {"url":"http://x"}"#,
                r#"mcpServers.x: runs `npx -y evil`; with {"env":{"A":"b"}}"#,
                "mcpServers.y: runs `sh -c 'a b'`",
                "n: {}",
            ]
        );
    }

    #[test]
    fn every_helper_runs() {
        for name in [
            "apiKeyHelper",
            "awsAuthRefresh",
            "awsCredentialExport",
            "gcpAuthRefresh",
            "otelHeadersHelper",
            "proxyAuthHelper",
        ] {
            let settings = format!(r#"{{"{name}":"./key.sh a"}}"#);
            assert_eq!(shown(&settings), [format!("{name}: runs `./key.sh a`")]);
        }
        for (settings, effect) in [
            (
                r#"{"notify":["sh","-c","x y"]}"#,
                "notify: runs `sh -c 'x y'`",
            ),
            (r#"{"plugin":["evil"]}"#, "plugin: runs `evil`"),
            (
                r#"{"enabledPlugins":{"a@b":true}}"#,
                r#"enabledPlugins: runs `{"a@b":true}`"#,
            ),
            (
                r#"{"tools":{"discoveryCommand":"./x"}}"#,
                "tools.discoveryCommand: runs `./x`",
            ),
            (
                r#"{"provider":{"p":{"npm":"evil"}}}"#,
                "provider.p: runs `evil` (npm)",
            ),
            (
                r#"{"mcpServers":{"x":{"url":"http://x","headersHelper":"./h"}}}"#,
                r#"mcpServers.x: runs `./h` (headersHelper); with {"url":"http://x"}"#,
            ),
        ] {
            assert_eq!(shown(settings), [effect]);
        }
    }

    #[test]
    fn long_commands_are_whole() {
        let long = format!("{}; evil", "true ".repeat(2000));
        let settings =
            serde_json::json!({"apiKeyHelper": long, "hooks": {"Stop": {"command": long}}});
        for effect in shown(&settings.to_string()) {
            assert!(effect.ends_with("; evil`"), "{}", effect.len());
        }
    }
}

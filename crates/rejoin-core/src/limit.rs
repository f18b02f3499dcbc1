//! Limits of tools: how often the turns of a tier may call them, and which calls count.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Words before a command that do not change which program runs.
const WRAPPERS: [&str; 7] = ["sudo", "command", "exec", "nohup", "time", "nice", "env"];
/// Programs that only print or look for the words behind them.
const PRINTERS: [&str; 8] = [
    "echo", "printf", "grep", "rg", "cat", "man", "which", "type",
];
/// Programs that run the words behind them with further ones from their input.
const APPENDERS: [&str; 2] = ["xargs", "parallel"];

/// Limit of a tier: at most `max` calls that match the rule `tool`, within any time of `per_ms`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolLimit {
    pub tool: String,
    pub max: u64,
    pub per_ms: u64,
}

/// Limit of a tier with the calls that are left to one turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct LimitState {
    pub tool: String,
    pub max: u64,
    pub per_ms: u64,
    /// Calls that are reserved for the turn.
    pub left: u64,
    /// Time at which the next call becomes available, if none is left and the time is known.
    #[serde(default)]
    pub again_at: Option<String>,
}

/// Returns true if a limit can have this rule: a tool, or the beginning of a command.
pub fn is_limit_rule(rule: &str) -> bool {
    match parts(rule) {
        Some((tool, None)) => is_name(tool),
        Some((tool, Some(words))) => {
            let words = words.strip_suffix(":*").unwrap_or(words);
            is_name(tool) && !words.trim().is_empty() && !words.contains('*')
        }
        None => false,
    }
}

/// Returns the name of the tool in a rule.
pub fn tool_of_rule(rule: &str) -> &str {
    rule.split('(').next().unwrap_or(rule)
}

/// Returns true if a call matches a rule. A command matches if any of its parts does: what is
/// behind `&&`, in quotes or in a subshell counts too.
pub fn rule_matches(rule: &str, tool: &str, input: &Value) -> bool {
    let Some((name, words)) = parts(rule) else {
        return false;
    };
    if name != tool {
        return false;
    }
    let Some(words) = words else {
        return true;
    };
    let Some(command) = command(input) else {
        return true;
    };
    let readings = [command.clone(), joined(&command)];
    match words.strip_suffix(":*") {
        Some(prefix) => {
            let prefix = plain(prefix);
            let prefix: Vec<&str> = prefix.split(' ').collect();
            readings.iter().any(|text| runs(text, &prefix))
        }
        None => readings.iter().any(|text| plain(text) == plain(words)),
    }
}

/// Returns true if one of the simple commands of a text may be one that begins with these words. In
/// doubt it is.
fn runs(text: &str, prefix: &[&str]) -> bool {
    let between = |c: char| "&|;\n(){}`\"'".contains(c);
    let text = text.replace("$(", "(").replace("${", "$");
    let named = |program: &str| {
        prefix
            .first()
            .is_some_and(|first| text.contains(first) && !program.is_empty())
    };
    text.split(between).any(|part| {
        let part = plain(part);
        let part = without_wrappers(&part);
        let program = part.split(' ').next().unwrap_or_default();
        // The program is the value of a variable.
        if program.starts_with('$') && named(program) {
            return true;
        }
        !PRINTERS.contains(&base(program)) && holds(part, prefix)
    })
}

/// Returns true if the words stand in a row in a simple command, flags left out: another program may
/// run them.
fn holds(part: &str, prefix: &[&str]) -> bool {
    let flags = prefix.iter().any(|word| word.starts_with('-'));
    let words = part
        .split(' ')
        .filter(|word| flags || !word.starts_with('-'));
    let words: Vec<&str> = words.collect();
    let (Some((last, before)), Some(program)) = (prefix.split_last(), words.first()) else {
        return false;
    };
    let begins = |at: &[&str]| {
        let mut known = at.iter().zip(before).enumerate();
        let same = |(n, (word, wanted)): (usize, (&&str, &&str))| {
            word == wanted || n == 0 && base(word) == *wanted
        };
        let end = at.get(before.len()).copied().unwrap_or_default();
        let end = if before.is_empty() { base(end) } else { end };
        at.len() > before.len() && known.all(same) && end.starts_with(last)
    };
    let appended = APPENDERS.contains(&base(program))
        && words.iter().any(|word| prefix.first() == Some(&base(word)));
    appended || (0..words.len()).any(|from| words.get(from..).is_some_and(begins))
}

/// Returns the last part of a path.
fn base(word: &str) -> &str {
    word.rsplit('/').next().unwrap_or(word)
}

/// Returns a command without quotes, backslashes and continued lines, as a shell joins its words.
fn joined(command: &str) -> String {
    let text = command.replace("\\\n", "");
    text.chars().filter(|c| !"\\'\"".contains(*c)).collect()
}

fn parts(rule: &str) -> Option<(&str, Option<&str>)> {
    match rule.split_once('(') {
        Some((tool, rest)) => Some((tool, Some(rest.strip_suffix(')')?))),
        None => Some((rule, None)),
    }
}

fn is_name(tool: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.:".contains(c);
    !tool.is_empty() && tool.chars().all(allowed)
}

/// Returns the command of a call. `None`: the call has none.
fn command(input: &Value) -> Option<String> {
    match &input["command"] {
        Value::String(command) => Some(command.clone()),
        Value::Array(words) => {
            let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
            Some(words.join(" "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns the command without leading assignments, wrappers and their flags.
fn without_wrappers(command: &str) -> &str {
    let mut rest = command;
    let mut wrapped = false;
    while let Some((word, after)) = rest.split_once(' ') {
        let assignment = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        });
        let wrapper = WRAPPERS.contains(&word);
        if !(assignment || wrapper || wrapped && word.starts_with('-')) {
            break;
        }
        wrapped |= wrapper;
        rest = after;
    }
    rest
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_command_counts_wherever_it_stands() {
        let rule = "Bash(docker restart:*)";
        for command in [
            "docker restart db",
            "  docker   restart\tdb",
            "cd /srv && docker restart db",
            "docker ps; docker restart db | cat",
            "bash -c \"docker restart db\"",
            "echo $(docker restart db)",
            "sudo -n docker restart db",
            "A=b docker restart db",
            "docker ps\ndocker restart db",
            "'docker' restart db",
            "docker 'restart' db",
            "\\docker restart db",
            "doc''ker restart db",
            "docker \\\n restart db",
            "/usr/bin/docker restart db",
            "docker --debug restart db",
            "d=docker; $d restart db",
            "d=docker; ${d} restart db",
            "echo restart db | xargs docker",
            "timeout 5 docker restart db",
            "find . -exec docker restart db +",
            "watch -n 5 docker restart db",
        ] {
            assert!(
                rule_matches(rule, "Bash", &json!({"command": command})),
                "{command}"
            );
        }
        for command in ["docker ps", "echo docker restart db", "docker start db", ""] {
            assert!(
                !rule_matches(rule, "Bash", &json!({"command": command})),
                "{command}"
            );
        }
        let call = json!({"command": ["docker", "restart", "db"]});
        assert!(rule_matches(rule, "Bash", &call));
        assert!(!rule_matches(rule, "Write", &call));
        assert!(rule_matches("Write", "Write", &json!({"file_path": "x"})));
        assert!(rule_matches(
            "Bash(make)",
            "Bash",
            &json!({"command": " make "})
        ));
        assert!(!rule_matches(
            "Bash(make)",
            "Bash",
            &json!({"command": "make all"})
        ));
        // A call whose command is unknown counts.
        assert!(rule_matches(rule, "Bash", &json!({})));
    }

    #[test]
    fn rules_of_limits() {
        for good in [
            "Bash",
            "Bash(docker restart:*)",
            "Bash(make)",
            "mcp__ops__restart",
        ] {
            assert!(is_limit_rule(good), "{good}");
        }
        for bad in [
            "",
            "Bash(",
            "Bash()",
            "Bash(:*)",
            "Bash(git * x)",
            "not a tool",
            "(x)",
        ] {
            assert!(!is_limit_rule(bad), "{bad}");
        }
        assert_eq!(tool_of_rule("Bash(make)"), "Bash");
    }
}

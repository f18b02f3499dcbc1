//! Suggestions inside a chat: what can be typed at its prompt instead of a command of a shell.

/// Commands that a chat has under the same name.
const SAME: [&str; 6] = ["explain", "undo", "retry", "show", "edit", "truncate"];

/// Programs of a shell that suggestions name.
const PROGRAMS: [&str; 12] = [
    "rejoin", "npm", "df", "export", "rm", "brew", "codex", "claude", "gemini", "opencode",
    "chmod", "git",
];

/// Rewords a suggestion: each of its alternatives on its own.
pub(super) fn in_chat(suggestion: &str) -> String {
    let mut parts: Vec<String> = vec![];
    for part in suggestion.split(", or ") {
        let part = match part.strip_prefix("-a ") {
            Some(agent) => format!("/agent {agent}"),
            None => reworded(part),
        };
        if !parts.contains(&part) {
            parts.push(part);
        }
    }
    parts.join(", or ")
}

fn reworded(text: &str) -> String {
    let mut words = text.split(' ');
    let program = words.next().unwrap_or_default();
    if !PROGRAMS.contains(&program) {
        return text.to_owned();
    }
    let outside = format!("/quit, then {text}");
    if program != "rejoin" {
        return outside;
    }
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    if rest.contains(&"--help") {
        return "/help".to_owned();
    }
    match name {
        "answer" | "inbox" | "wait" | "watch" => "/answer".to_owned(),
        "send" | "reply" => match flag(&rest, "-a") {
            Some(agent) => format!("/agent {agent}"),
            None if rest.contains(&"--if-busy") => "the same message later".to_owned(),
            None => outside,
        },
        name if SAME.contains(&name) => of_this(name, &rest),
        _ => outside,
    }
}

fn flag<'a>(words: &[&'a str], name: &str) -> Option<&'a str> {
    let at = words.iter().position(|word| *word == name)?;
    words.get(at + 1).copied()
}

/// Builds the command of a chat, which needs no name of its conversation.
fn of_this(name: &str, words: &[&str]) -> String {
    let mut line = format!("/{name}");
    for (n, word) in words.iter().enumerate() {
        let word = match word.split_once(':') {
            _ if word.starts_with('-') => word,
            Some((_, message)) if n == 0 => message,
            _ if n == 0 && *word == "MESSAGE" => "N",
            _ if n == 0 => continue,
            _ => word,
        };
        line.push(' ');
        line.push_str(word.trim_matches('"'));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_suggested_can_be_typed_in_a_chat() {
        for (shell, chat) in [
            (
                "rejoin retry tmqx:3, or -a codex",
                "/retry 3, or /agent codex",
            ),
            ("rejoin show tmqx --all", "/show --all"),
            ("rejoin edit tmqx:3 \"other words\"", "/edit 3 other words"),
            (
                "rejoin explain --next, or the same without --no-reseed",
                "/explain --next, or the same without --no-reseed",
            ),
            (
                "rejoin send -a codex \"…\", or npm install -g gemini",
                "/agent codex, or /quit, then npm install -g gemini",
            ),
            ("rejoin send --if-busy wait …", "the same message later"),
            ("rejoin doctor", "/quit, then rejoin doctor"),
            ("rejoin retry --help", "/help"),
            ("type a message", "type a message"),
        ] {
            assert_eq!(in_chat(shell), chat, "{shell}");
        }
    }
}

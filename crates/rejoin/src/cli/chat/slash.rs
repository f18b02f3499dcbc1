//! The commands of a chat: lines that begin with a slash. None of them is ever sent.

use rejoin_core::PermissionMode;

use crate::output::{Line, Tone, table};
use rejoin_errors::{CommandError, Result};

/// A line that begins with a slash.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Slash {
    /// The agent of the next messages; none: show it.
    Agent(Option<String>),
    Model(Option<String>),
    Permission(Option<PermissionMode>),
    Fresh,
    /// A command of rejoin on this conversation, with the words after it.
    Command(&'static str, Vec<String>),
    Help,
    Quit,
}

/// Every command with its argument and its effect, as `/help` shows them.
const ALL: &[(&str, &str, &str)] = &[
    ("agent", "NAME", "the agent that answers the next messages"),
    (
        "model",
        "NAME",
        "the model of the next messages; -: the default",
    ),
    ("permission", "MODE", "read-only, edit, full or ask"),
    ("fresh", "", "a new session with the transcript, once"),
    ("explain", "…", "why the last turn had its verdict"),
    (
        "truncate",
        "N",
        "remove message N and later ones; none: the last exchange",
    ),
    ("edit", "N TEXT", "change message N"),
    ("undo", "", "undo the last edit, retry or truncation"),
    ("retry", "…", "run the last message again"),
    ("show", "…", "the conversation, or its message N"),
    ("answer", "", "a question that still waits, once more"),
    ("help", "", "these lines"),
    ("quit", "", "leave; so does Ctrl-D"),
];

/// The name that removes a model.
const DEFAULT: &str = "-";

/// Parses a line. Returns none for a message: also for one with a space before its slash.
pub(super) fn parse(line: &str) -> Option<Result<Slash>> {
    let rest = line.strip_prefix('/')?;
    let mut words = rest.split_whitespace().map(str::to_owned);
    let name = words.next().unwrap_or_default();
    if name == "edit" {
        return Some(edit(rest[name.len()..].trim()));
    }
    Some(command(&name, words.collect()))
}

/// Parses the arguments of `/edit`: its text is the rest of the line.
fn edit(arguments: &str) -> Result<Slash> {
    let text = arguments.split_once(char::is_whitespace);
    let (number, text) = text.unwrap_or((arguments, ""));
    let text = text.trim();
    let is_number = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    if !is_number || ["", "-"].contains(&text) {
        let failure = CommandError::usage("/edit takes the number of a message and its new text");
        return Err(failure.try_this("/edit 3 use port 8080"));
    }
    let words = [number, "--", text].map(str::to_owned);
    Ok(Slash::Command("edit", words.to_vec()))
}

fn command(name: &str, words: Vec<String>) -> Result<Slash> {
    let one = |words: Vec<String>| match words.len() {
        0 | 1 => Ok(words.into_iter().next()),
        _ => Err(CommandError::usage(format!("/{name} takes one word")).try_this("/help")),
    };
    Ok(match name {
        "agent" => Slash::Agent(one(words)?),
        "model" => Slash::Model(one(words)?),
        "permission" => {
            let mode = one(words)?.map(|word| word.parse::<PermissionMode>());
            let mode = mode.transpose().map_err(|e| {
                CommandError::usage(e.to_string()).try_this("/permission read-only|edit|full|ask")
            })?;
            Slash::Permission(mode)
        }
        "fresh" => Slash::Fresh,
        "explain" => Slash::Command("explain", words),
        "truncate" => Slash::Command("truncate", words),
        "undo" => Slash::Command("undo", words),
        "retry" => Slash::Command("retry", words),
        "show" => Slash::Command("show", words),
        "answer" => Slash::Command("watch", words),
        "help" => Slash::Help,
        "quit" | "exit" => Slash::Quit,
        other => return Err(unknown(other)),
    })
}

fn unknown(name: &str) -> CommandError {
    // Typed by mistake, `/quit` would end the chat.
    let names = ALL.iter().map(|(name, ..)| *name).filter(|n| *n != "quit");
    let near = names.min_by_key(|known| strsim::damerau_levenshtein(name, known));
    let near = near.filter(|near| strsim::damerau_levenshtein(name, near) <= 2);
    let text = format!("chat has no command `/{name}`; nothing was sent");
    let hint = "to send a line that begins with a slash, type a space before it";
    CommandError::usage(text).try_this(match near {
        Some(near) => format!("/{near}, or /help; {hint}"),
        None => format!("/help; {hint}"),
    })
}

/// Returns the model that a word names; none: the default.
pub(super) fn model(word: String) -> Option<String> {
    Some(word).filter(|word| word != DEFAULT)
}

/// Returns the words with which a line may go on, for completion.
pub(super) fn completions(line: &str) -> Vec<String> {
    let Some(begun) = line.strip_prefix('/') else {
        return vec![];
    };
    let of = |command: &str, words: &[&str]| -> Vec<String> {
        let all = words.iter().map(|word| format!("/{command} {word}"));
        all.filter(|word| word.starts_with(line)).collect()
    };
    match begun.split_once(' ') {
        None => {
            let names = ALL.iter().map(|(name, ..)| format!("/{name}"));
            names.filter(|name| name.starts_with(line)).collect()
        }
        Some(("agent", _)) => {
            let names: Vec<&str> = rejoin_agents::ADAPTERS.iter().map(|a| a.name()).collect();
            of("agent", &names)
        }
        Some(("permission", _)) => of("permission", &["read-only", "edit", "full", "ask"]),
        Some(_) => vec![],
    }
}

/// Returns the page of `/help`.
pub(super) fn help() -> Vec<Line> {
    let rows: Vec<Vec<Line>> = ALL
        .iter()
        .map(|(name, argument, effect)| {
            let typed = Line::plain("  ").with(Tone::Name, &format!("/{name} {argument}"));
            vec![typed, Line::plain(effect)]
        })
        .collect();
    let mut lines = table(&rows, None);
    lines.push(Line::plain(
        "  A backslash at the end of a line, or \"\"\", begins a message of several lines.",
    ));
    lines.push(Line::plain(
        "  Ctrl-C stops an answer; a space before a slash sends the line.",
    ));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_with_a_slash_are_commands() {
        let words = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            parse("/agent codex").unwrap().unwrap(),
            Slash::Agent(Some("codex".into()))
        );
        assert_eq!(
            parse("/retry -a codex").unwrap().unwrap(),
            Slash::Command("retry", words(&["-a", "codex"]))
        );
        assert_eq!(parse("/quit").unwrap().unwrap(), Slash::Quit);
        assert!(parse(" /etc/hosts is wrong").is_none());
        assert!(parse("hello /quit").is_none());
        assert_eq!(
            parse("/edit 3  use port  8080").unwrap().unwrap(),
            Slash::Command("edit", words(&["3", "--", "use port  8080"]))
        );
        assert!(parse("/edit 3").unwrap().is_err());
        assert!(parse("/edit three words").unwrap().is_err());
        for (line, near) in [
            ("/agnet x", "/agent"),
            ("/xyzzy", "/help"),
            ("/quti", "/help"),
            ("/", "/help"),
        ] {
            let failure = parse(line).unwrap().unwrap_err();
            assert!(failure.message.contains("nothing was sent"), "{line}");
            assert!(failure.next.unwrap().starts_with(near), "{line}");
        }
        assert!(parse("/permission everything").unwrap().is_err());
    }

    #[test]
    fn commands_agents_and_modes_are_completed() {
        assert_eq!(completions("/un"), ["/undo"]);
        assert_eq!(completions("/agent cod"), ["/agent codex"]);
        assert_eq!(completions("/permission f"), ["/permission full"]);
        assert!(completions("hello").is_empty());
    }
}

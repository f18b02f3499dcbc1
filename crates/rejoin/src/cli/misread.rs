//! A command line that cannot be read: one sentence about it, and the line that was probably meant.

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use rejoin_core::PermissionMode;

use super::COMMANDS;
use super::help::names;
use rejoin_errors::CommandError;

/// Commands of other tools, and the command here with its argument.
const OTHER_TOOLS: [(&str, &str, &str); 6] = [
    ("resume", "reply", ""),
    ("continue", "reply", ""),
    ("approve", "answer", "allow"),
    ("deny", "answer", "deny"),
    ("history", "show", ""),
    ("version", "--version", ""),
];

/// Commands that are not suggested: typed by mistake they block, trust, log out or remove.
const NEVER: [&str; 8] = [
    "serve",
    "model-server",
    "trust",
    "login",
    "logout",
    "delete",
    "sweep",
    "open",
];

/// Returns the failure of a command line that cannot be read.
pub(super) fn misread(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let mut said = paragraph.join(" ").trim_start_matches("error: ").to_owned();
    let command = named();
    // Without an error's own words clap prints the whole page.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let verbs: Vec<_> = verbs_of(&command).collect();
        said = format!("{command} needs a subcommand: {}", verbs.join(", "));
    }
    if error.kind() == ErrorKind::InvalidSubcommand {
        return mistyped(error, &command, said);
    }
    let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
    let suggested = kinds.iter().find_map(|kind| context(error, *kind));
    let suggested = suggested.or_else(|| permission(error));
    if let Some(meant) = &suggested {
        let _ = write!(said, "; did you mean `{meant}`?");
    }
    let unknown = error.kind() == ErrorKind::UnknownArgument && suggested.is_none();
    let mut next = format!("{command} --help");
    let talks = ["rejoin send", "rejoin reply"].contains(&command.as_str());
    if unknown && let Some(line) = extra_word(error, talks) {
        said.push_str(if talks {
            "; a message of several words needs quotes"
        } else {
            "; a message is CONV:N"
        });
        return CommandError::usage(said).try_this(line);
    }
    if unknown && command == "rejoin reply" && named_conversation(error).is_some() {
        let flag = named_conversation(error).unwrap_or_default();
        next = format!("rejoin send {flag} \"…\"");
    }
    if unknown && talks {
        said.push_str("; a message that begins with a dash goes behind `--`");
    }
    CommandError::usage(said).try_this(next)
}

/// Returns the failure for a command that does not exist, with the nearest one and the same arguments.
fn mistyped(error: &clap::Error, command: &str, said: String) -> CommandError {
    let typed = context(error, ContextKind::InvalidSubcommand).unwrap_or_default();
    let other = OTHER_TOOLS.iter().find(|(word, ..)| *word == typed);
    let (meant, argument) = match other {
        Some((_, meant, argument)) if command == "rejoin" => ((*meant).to_owned(), *argument),
        _ => match nearest(&typed, command) {
            Some(near) => (near, ""),
            None => return CommandError::usage(said).try_this(format!("{command} --help")),
        },
    };
    let words = arguments();
    let at = words.iter().position(|word| *word == typed);
    let (before, after) = words.split_at(at.unwrap_or(words.len()));
    let mut after: Vec<String> = after.iter().skip(1).cloned().collect();
    let flagged = after.iter().any(|word| word.starts_with('-'));
    let mut meant_word = meant.clone();
    match meant.as_str() {
        "--version" => after.clear(),
        "reply" if other.is_some() && !flagged => match after.as_slice() {
            [] => after = vec!["…".to_owned()],
            // Other tools continue the conversation that is named.
            [conversation] => {
                "send".clone_into(&mut meant_word);
                after = vec!["-c".to_owned(), conversation.clone(), "…".to_owned()];
            }
            _ => after = vec![after.join(" ")],
        },
        "send" | "reply" if !flagged && !after.is_empty() => after = vec![after.join(" ")],
        _ => {}
    }
    let mut line = vec!["rejoin".to_owned()];
    line.extend(before.iter().map(|word| quoted(word)));
    line.push(meant_word);
    line.extend(after.iter().map(|word| quoted(word)));
    if !argument.is_empty() {
        line.push(argument.to_owned());
    }
    CommandError::usage(format!("{said}; did you mean `{meant}`?")).try_this(line.join(" "))
}

/// Returns the word after `command` whose letters are nearest to the typed word, two that changed
/// places counted as one. None if more than two letters differ.
fn nearest(typed: &str, command: &str) -> Option<String> {
    let words: Vec<String> = if command == "rejoin" {
        let all = names().filter(|name| !NEVER.contains(name));
        all.map(str::to_owned).collect()
    } else {
        verbs_of(command).collect()
    };
    let far = |word: &String| strsim::damerau_levenshtein(typed, word);
    let near = words.into_iter().min_by_key(&far)?;
    (far(&near) <= (typed.len() / 3).clamp(1, 2)).then_some(near)
}

/// Returns the line that was meant with a word too many: the rest of a message without quotes, or the number of
/// a message behind its conversation.
fn extra_word(error: &clap::Error, talks: bool) -> Option<String> {
    let extra = context(error, ContextKind::InvalidArg)?;
    if extra.starts_with('-') {
        return None;
    }
    let words = arguments();
    if !talks {
        let at = words.iter().rposition(|word| *word == extra)?;
        let number = |word: &str| word.starts_with(|c: char| c.is_ascii_digit());
        // `edit tmqx 3 "text"`: the text is the word too many.
        let at = if number(&words[at]) { at } else { at - 1 };
        let before = words.get(at.checked_sub(1)?)?;
        if !number(&words[at]) || at < 2 || before.starts_with('-') || before.contains(':') {
            return None;
        }
        let joined = format!("{before}:{}", words[at]);
        let line = [&words[..at - 1], &[joined], &words[at + 1..]].concat();
        return Some(shell_line(&line));
    }
    let flags = words.iter().rposition(|word| word.starts_with('-'));
    let mut begin = flags.map_or(1, |at| at + 1);
    // The value of the last option is no part of the message.
    if flags.is_some_and(|at| takes_value(&words[at])) {
        begin += 1;
    }
    let message = words.get(begin..).filter(|words| words.len() > 1)?;
    let line = [&words[..begin], &[message.join(" ")]].concat();
    Some(shell_line(&line))
}

fn shell_line(words: &[String]) -> String {
    let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    format!("rejoin {}", words.join(" "))
}

/// Returns true if the option of `rejoin send` takes the next word as its value.
fn takes_value(option: &str) -> bool {
    let command = super::command_line();
    let send = command.find_subcommand("send");
    let own = send.into_iter().flat_map(clap::Command::get_arguments);
    let mut all = own.chain(command.get_arguments());
    let named = |arg: &&clap::Arg| {
        let short = arg.get_short().map(|letter| format!("-{letter}"));
        let long = arg.get_long().map(|name| format!("--{name}"));
        short.as_deref() == Some(option) || long.as_deref() == Some(option)
    };
    all.find(named)
        .is_some_and(|arg| arg.get_action().takes_values())
}

/// Quotes a word for a shell, if it needs quotes.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:#/@,=+%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    if word.contains(['"', '$', '`', '\\', '!']) {
        return format!("'{}'", word.replace('\'', "'\\''"));
    }
    format!("\"{word}\"")
}

/// Returns the permission mode that a wrong value of `--permission` means.
fn permission(error: &clap::Error) -> Option<String> {
    let option = context(error, ContextKind::InvalidArg)?;
    if error.kind() != ErrorKind::ValueValidation || !option.starts_with("--permission") {
        return None;
    }
    let typed = context(error, ContextKind::InvalidValue)?.to_lowercase();
    let modes = PermissionMode::ALL.iter().map(|mode| mode.as_str());
    let far = |mode: &&str| strsim::damerau_levenshtein(&typed, mode);
    let begun = |mode: &&str| typed.len() > 1 && mode.starts_with(&typed);
    let near = modes.clone().min_by_key(far).filter(|mode| far(mode) <= 2);
    near.or_else(|| modes.clone().find(begun))
        .map(str::to_owned)
}

/// Returns the flag of `rejoin send` and its value with which a conversation was named where none
/// can be: `-c tmqx`.
fn named_conversation(error: &clap::Error) -> Option<String> {
    let typed = context(error, ContextKind::InvalidArg)?;
    if !["-c", "-k", "--conversation", "--key"].contains(&typed.as_str()) {
        return None;
    }
    let mut words = arguments().into_iter().skip_while(|arg| *arg != typed);
    let value = words.nth(1)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:#/@".contains(c);
    let value = if value.chars().all(plain) {
        value
    } else {
        "CONV".to_owned()
    };
    Some(format!("{typed} {value}"))
}

/// Returns the words after `rejoin`. `--json` is left out: a person types the suggestion.
fn arguments() -> Vec<String> {
    let words = std::env::args_os().skip(1);
    let words = words.map(|arg| arg.to_string_lossy().into_owned());
    words.filter(|word| word != "--json").collect()
}

/// Returns `rejoin send`, or `rejoin token create`, if that is the command that was typed.
fn named() -> String {
    let mut args = arguments().into_iter();
    let entry = args.find_map(|arg| COMMANDS.iter().find(|entry| entry.is_named(&arg)));
    let Some(name) = entry.map(|entry| entry.name) else {
        return "rejoin".to_owned();
    };
    let command = format!("rejoin {name}");
    match args.find(|arg| verbs_of(&command).any(|verb| verb == *arg)) {
        Some(verb) => format!("{command} {verb}"),
        None => command,
    }
}

/// Returns `create`, `list`, … of `rejoin token`.
fn verbs_of(command: &str) -> impl Iterator<Item = String> {
    let name = command.strip_prefix("rejoin ").unwrap_or_default();
    let found = super::command_line();
    let found = found.find_subcommand(name).cloned();
    let shown = |verb: &clap::Command| !verb.is_hide_set() && verb.get_name() != "help";
    let verbs = found.iter().flat_map(clap::Command::get_subcommands);
    let names: Vec<_> = verbs
        .filter(|verb| shown(verb))
        .map(|verb| verb.get_name().to_owned())
        .collect();
    names.into_iter()
}

fn context(error: &clap::Error, kind: ContextKind) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "suggestions are strings")]
    match error.get(kind)? {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}

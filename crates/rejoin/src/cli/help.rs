//! Help that fits a screen, and what is said about a command line that cannot be read.

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use super::COMMANDS;
use super::command::Help;
use rejoin_errors::CommandError;

/// Columns of the names and of the words in a row of the page.
const NAMES: usize = 24;
const WORDS: usize = 53;

const EVERYWHERE: &str = "Everywhere: --json, -q, --config FILE, -h";
const OF_A_COMMAND: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n\n{all-args}{after-help}";

/// The command line with its help arranged and its arguments completable.
pub(super) fn dressed(command: Command) -> Command {
    let help = Arg::new("help")
        .short('h')
        .long("help")
        .help("Print help")
        .global(true);
    let help = help.action(ArgAction::HelpShort).hide_short_help(true);
    command
        .disable_help_flag(true)
        .arg(help)
        .help_template(page())
        .mut_subcommands(of_a_command)
}

fn of_a_command(command: Command) -> Command {
    let has_own = command.has_subcommands();
    let command = super::completions::with_candidates(command);
    let command = command.mut_args(|arg| {
        let rare = arg.is_hide_short_help_set() && !every_option();
        arg.hide_short_help(rare)
    });
    if has_own {
        return command
            .disable_help_subcommand(true)
            .mut_subcommands(of_a_command);
    }
    let examples = command.get_after_help().map(|text| format!("{text}\n\n"));
    let rare = command.get_arguments().any(Arg::is_hide_short_help_set);
    let more = if rare { "; all options: --help" } else { "" };
    let after = format!("{}{EVERYWHERE}{more}", examples.unwrap_or_default());
    command.after_help(after).help_template(OF_A_COMMAND)
}

/// Returns true if the command line asks for every option. `-h` leaves out the rare ones.
fn every_option() -> bool {
    let words = std::env::args_os().skip(1);
    words
        .take_while(|word| word != "--")
        .any(|word| word == "--help")
}

fn page() -> String {
    let mut page = String::from("{about}\n");
    let mut group = "";
    for (title, names, words) in rows() {
        if title != group {
            let _ = writeln!(page, "{title}:");
            group = title;
        }
        let _ = writeln!(page, "  {names:24} {words}");
    }
    let _ = write!(
        page,
        "Usage: rejoin COMMAND …, and everywhere: --json, -q, --config FILE, --hub H, -h"
    );
    page
}

/// Rows of the page: a group, its next commands as far as they fit, and their words.
fn rows() -> Vec<(&'static str, String, String)> {
    let mut rows: Vec<(&str, String, String)> = vec![];
    for (group, entry, words) in grouped() {
        if let Some((last, names, phrases)) = rows.last_mut()
            && *last == group
            && names.len() + 2 + entry.len() <= NAMES
            && phrases.chars().count() + 2 + words.chars().count() <= WORDS
        {
            let _ = write!(names, ", {entry}");
            let _ = write!(phrases, "; {words}");
            continue;
        }
        let mut first = words.to_owned();
        first[..1].make_ascii_uppercase();
        rows.push((group, entry.to_owned(), first));
    }
    rows
}

/// A command line that cannot be read, in one sentence and with what to type.
pub(super) fn misread(error: &clap::Error) -> CommandError {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let mut said = paragraph.join(" ").trim_start_matches("error: ").to_owned();
    // Without an error's own words clap prints the whole page.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let verbs: Vec<_> = verbs_of(&named()).collect();
        said = format!("{} needs a word more: {}", named(), verbs.join(", "));
    }
    let command = named();
    let suggested = if error.kind() == ErrorKind::InvalidSubcommand {
        mistyped(error, &command)
    } else {
        let kinds = [ContextKind::SuggestedArg, ContextKind::SuggestedValue];
        kinds
            .iter()
            .find_map(|kind| error.get(*kind).and_then(first))
    };
    if let Some(meant) = &suggested {
        let _ = write!(said, "; did you mean `{meant}`?");
    }
    let unknown = error.kind() == ErrorKind::UnknownArgument && suggested.is_none();
    let next = match suggested {
        Some(meant) if error.kind() == ErrorKind::InvalidSubcommand => {
            format!("{command} {meant}")
        }
        None if unknown && command == "rejoin reply" && named_conversation(error).is_some() => {
            let flag = named_conversation(error).unwrap_or_default();
            format!("rejoin send {flag} \"…\"")
        }
        Some(_) | None => format!("{command} --help"),
    };
    if unknown && ["rejoin send", "rejoin reply"].contains(&command.as_str()) {
        said.push_str("; a message that begins with a dash goes behind `--`");
    }
    CommandError::usage(said).try_this(next)
}

/// Returns the flag of `rejoin send` and its value with which a conversation was named where none
/// can be: `-c tmqx`.
fn named_conversation(error: &clap::Error) -> Option<String> {
    let typed = error.get(ContextKind::InvalidArg).and_then(first)?;
    if !["-c", "-k", "--conversation", "--key"].contains(&typed.as_str()) {
        return None;
    }
    let mut args = std::env::args_os()
        .map(|arg| arg.to_string_lossy().into_owned())
        .skip_while(|arg| *arg != typed);
    let value = args.nth(1)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.:#/@".contains(c);
    let value = if value.chars().all(plain) {
        value
    } else {
        "CONV".to_owned()
    };
    Some(format!("{typed} {value}"))
}

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

/// Returns the word after `command` whose letters are nearest to what was typed, two that changed
/// places counted as one. None if more than two letters differ.
fn mistyped(error: &clap::Error, command: &str) -> Option<String> {
    let typed = error.get(ContextKind::InvalidSubcommand).and_then(first)?;
    let words: Vec<String> = if command == "rejoin" {
        let all = names().filter(|name| !NEVER.contains(name));
        all.map(str::to_owned).collect()
    } else {
        verbs_of(command).collect()
    };
    let far = |word: &String| strsim::damerau_levenshtein(&typed, word);
    let near = words.into_iter().min_by_key(&far)?;
    (far(&near) <= (typed.len() / 3).clamp(1, 2)).then_some(near)
}

/// `rejoin send`, or `rejoin token create`, if that is the command that was typed.
fn named() -> String {
    let mut args = std::env::args_os()
        .skip(1)
        .map(|arg| arg.to_string_lossy().into_owned());
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

/// `create`, `list`, … of `rejoin token`.
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

/// Every command on the page with its group and its words.
fn grouped() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    COMMANDS.iter().filter_map(|entry| {
        let (group, words) = match entry.help {
            Help::Talk(words) => ("Talk", words),
            Help::Look(words) => ("Look", words),
            Help::Change(words) => ("Change", words),
            Help::SetUp(words) => ("Set up", words),
            Help::Hidden => return None,
        };
        Some((group, entry.name, words))
    })
}

fn names() -> impl Iterator<Item = &'static str> {
    grouped().map(|(_, name, _)| name)
}

fn first(value: &ContextValue) -> Option<String> {
    #[expect(clippy::wildcard_enum_match_arm, reason = "suggestions are strings")]
    match value {
        ContextValue::String(text) => Some(text.clone()),
        ContextValue::Strings(texts) => texts.first().cloned(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::command_line;

    /// Commands that processes and builds use, and no person types.
    const FOR_NO_PERSON: [&str; 3] = ["run-turn", "man", "reference"];

    #[test]
    fn every_command_is_on_the_page() {
        command_line().debug_assert();
        let page = page();
        for command in command_line().get_subcommands() {
            let name = command.get_name();
            let on_page = page.lines().any(|line| {
                let names = line.get(2..26).unwrap_or_default();
                names.split(", ").any(|word| word.trim() == name)
            });
            let hidden = FOR_NO_PERSON.contains(&name);
            assert_eq!(
                on_page, !hidden,
                "{name} is in no group: its `HELP`\n{page}"
            );
            assert_eq!(command.is_hide_set(), hidden, "{name}");
        }
    }

    #[test]
    fn no_row_is_wider_than_a_screen() {
        for (_, names, words) in rows() {
            assert!(
                names.len() <= NAMES && words.chars().count() <= WORDS,
                "{names} {words}"
            );
        }
    }
}

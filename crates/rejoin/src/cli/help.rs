//! Help that fits a screen.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command};

use super::COMMANDS;
use super::command::Help;

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

/// Returns the commands of the page.
pub(super) fn names() -> impl Iterator<Item = &'static str> {
    grouped().map(|(_, name, _)| name)
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

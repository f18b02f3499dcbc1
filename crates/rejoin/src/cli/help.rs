//! Help that fits a screen, and what is said about a command line that cannot be read.

use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use crate::failure::Failure;

/// The commands as one looks for them.
const GROUPS: [(&str, &[(&str, &str)]); 4] = [
    (
        "Talk",
        &[
            (
                "send, reply, open",
                "A message; to the last one here; its own terminal",
            ),
            (
                "watch, wait, cancel",
                "Follow a running turn; wait for its answer; stop it",
            ),
            (
                "adopt, export, import",
                "Sessions made outside; a conversation as one file",
            ),
        ],
    ),
    (
        "Look",
        &[
            (
                "list, search",
                "Conversations, newest first; messages by words",
            ),
            ("show", "A conversation, or one message of it"),
            (
                "explain",
                "Why a turn went as it did, or what the next would do",
            ),
        ],
    ),
    (
        "Change",
        &[
            (
                "edit, truncate, retry",
                "Other words; cut short; run a message again",
            ),
            (
                "fork, merge, undo",
                "Go on in two, or in one; take back the last change",
            ),
            (
                "reset, set",
                "New sessions next time; model, permission, scope, …",
            ),
            (
                "rename, archive, delete",
                "Another title; put away; delete for good",
            ),
            (
                "snapshot, sweep",
                "Sessions that are kept: list, verify, …; free space",
            ),
        ],
    ),
    (
        "Set up",
        &[
            (
                "demo, doctor",
                "Ten seconds, no key: what it does; check what is here",
            ),
            (
                "config, trust",
                "Where each value comes from; trust a repository's",
            ),
            ("completions", "The completion script of bash, zsh or fish"),
            (
                "model-server",
                "A scripted model on loopback, to use a CLI offline",
            ),
        ],
    ),
];

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
    if has_own {
        return command
            .disable_help_subcommand(true)
            .mut_subcommands(of_a_command);
    }
    let examples = command.get_after_help().map(|text| format!("{text}\n\n"));
    let after = format!("{}{EVERYWHERE}", examples.unwrap_or_default());
    command.after_help(after).help_template(OF_A_COMMAND)
}

fn page() -> String {
    let mut page = String::from("{about}\n\n");
    for (title, commands) in GROUPS {
        let _ = writeln!(page, "{title}:");
        for (name, about) in commands {
            let _ = writeln!(page, "  {name:24} {about}");
        }
    }
    let _ = write!(
        page,
        "\nUsage: rejoin COMMAND …, and with every command: --json, -q, --config FILE, -h"
    );
    page
}

/// A command line that cannot be read, in one sentence and with what to type.
pub(super) fn misread(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraph: Vec<&str> = text
        .lines()
        .take_while(|line| !line.is_empty())
        .map(str::trim)
        .collect();
    let mut said = paragraph.join(" ").trim_start_matches("error: ").to_owned();
    let suggested = [
        ContextKind::SuggestedSubcommand,
        ContextKind::SuggestedArg,
        ContextKind::SuggestedValue,
    ]
    .iter()
    .find_map(|kind| error.get(*kind).and_then(first));
    let suggested = mistyped(error).or(suggested);
    let command = named();
    if let Some(meant) = &suggested {
        let _ = write!(said, "; did you mean `{meant}`?");
    }
    let as_text = text
        .lines()
        .find_map(|line| line.trim().strip_prefix("tip: to pass "));
    let next = match (error.kind(), suggested, as_text) {
        (ErrorKind::InvalidSubcommand, Some(meant), _) => format!("rejoin {meant}"),
        (ErrorKind::UnknownArgument, None, Some(tip)) => {
            let value = tip.split('\'').nth(1).unwrap_or("…");
            format!("{command} -- '{value}'")
        }
        _ => format!("{command} --help"),
    };
    Failure::usage(said).try_this(next)
}

/// The command whose letters are nearest to what was typed, two that changed places counted as one.
fn mistyped(error: &clap::Error) -> Option<String> {
    let typed = error.get(ContextKind::InvalidSubcommand).and_then(first)?;
    let far = |name: &str| strsim::damerau_levenshtein(&typed, name);
    let near = grouped().min_by_key(|name| far(name))?;
    (far(near) <= (typed.len() / 3).max(1)).then(|| near.to_owned())
}

/// `rejoin send`, if that is the command that was typed.
fn named() -> String {
    let typed = std::env::args()
        .skip(1)
        .find_map(|arg| grouped().find(|name| *name == arg));
    typed.map_or_else(|| "rejoin".to_owned(), |name| format!("rejoin {name}"))
}

/// Every command that stands in a group; some share a line.
fn grouped() -> impl Iterator<Item = &'static str> {
    let lines = GROUPS.iter().flat_map(|(_, commands)| commands.iter());
    lines.flat_map(|(names, _)| names.split(", "))
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
    use clap::CommandFactory;

    use super::*;
    use crate::cli::Cli;

    #[test]
    fn every_command_stands_in_a_group() {
        dressed(Cli::command()).debug_assert();
        let grouped: Vec<&str> = grouped().collect();
        for command in Cli::command()
            .get_subcommands()
            .filter(|c| !c.is_hide_set())
        {
            assert!(
                grouped.contains(&command.get_name()),
                "{} is in no group of help.rs",
                command.get_name()
            );
        }
    }
}

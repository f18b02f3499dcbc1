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
                "inbox, answer",
                "What waits for a person; say something to it",
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
                "list, search, show",
                "Conversations; messages by words; one of them",
            ),
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
                "demo, completions",
                "Ten seconds, no key: what it does; for your shell",
            ),
            (
                "doctor, config, trust",
                "What is here; where values come from; trust a file",
            ),
            (
                "serve, model-server",
                "The daemon and its HTTP API; a model to use offline",
            ),
            (
                "token, login, logout",
                "Who may talk to the daemon; one elsewhere, for --hub",
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
        "\nUsage: rejoin COMMAND …, and everywhere: --json, -q, --config FILE, --hub H, -h"
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
    // Without an error's own words clap prints the whole page.
    if error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        let verbs: Vec<_> = verbs_of(&named()).collect();
        said = format!("{} needs a word more: {}", named(), verbs.join(", "));
    }
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

/// `rejoin send`, or `rejoin token create`, if that is the command that was typed.
fn named() -> String {
    let mut args = std::env::args().skip(1);
    let Some(name) = args.find(|arg| grouped().any(|name| name == arg)) else {
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

//! Parses the command line. A command is parsed on its own first: to build all commands takes longer than many a
//! command runs.

use std::ffi::OsString;

use clap::{ArgMatches, Args as _, Error, FromArgMatches as _};

use super::command::Entry;
use super::{COMMANDS, Global, command_line};

pub(super) struct CommandLine {
    pub(super) global: Global,
    pub(super) command: Option<(&'static Entry, ArgMatches)>,
}

pub(super) fn parse(words: Vec<OsString>) -> Result<CommandLine, Error> {
    // Help and errors come from the whole command line.
    match parse_alone(&words) {
        Some(line) => Ok(line),
        None => parse_whole(words),
    }
}

fn parse_whole(words: Vec<OsString>) -> Result<CommandLine, Error> {
    command_line_of(command_line().try_get_matches_from(words)?)
}

/// Parses with only the command that the first word names. Returns none if that word is an option's value.
fn parse_alone(words: &[OsString]) -> Option<CommandLine> {
    let name = words.iter().skip(1).find_map(|word| {
        let word = word.to_str()?;
        (!word.starts_with('-')).then_some(word)
    })?;
    let entry = COMMANDS.iter().find(|entry| entry.is_named(name))?;
    let line = Global::augment_args(clap::Command::new("rejoin")).subcommand(entry.clap());
    command_line_of(line.try_get_matches_from(words).ok()?).ok()
}

fn command_line_of(mut matches: ArgMatches) -> Result<CommandLine, Error> {
    let command = matches.remove_subcommand().and_then(|(name, its)| {
        let entry = COMMANDS.iter().find(|entry| entry.name == name)?;
        Some((entry, its))
    });
    let global = Global::from_arg_matches(&matches)?;
    Ok(CommandLine { global, command })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        let words = ["rejoin"].into_iter().chain(line.split(' '));
        words.map(Into::into).collect()
    }

    fn shown(line: &CommandLine) -> String {
        let command = line.command.as_ref();
        let command = command.map(|(entry, matches)| (entry.name, (entry.shown)(matches)));
        format!("{:?} {command:?}", line.global)
    }

    #[test]
    fn alone_as_among_all() {
        for line in [
            "send hello",
            "--json send -k key --tools a,b --timeout 5m -- -hello",
            "send --json -q --if-busy fail --file a --file b -",
            "--config send send --bundle f x",
            "reply --fresh-session again",
            "wait abc",
            "list --json",
            "show --hub none abc",
            "explain --next abc",
            "--quiet doctor",
            "token create laptop --scope read",
            "snapshot list --json abc",
            "set abc model=x",
        ] {
            let one = parse_alone(&words(line)).unwrap_or_else(|| panic!("{line} was not parsed"));
            let all = parse_whole(words(line)).unwrap();
            assert_eq!(shown(&one), shown(&all), "{line}");
        }
    }

    #[test]
    fn help_and_errors_come_from_the_whole() {
        for line in [
            "send --help",
            "send --nothing",
            "send -c a -k b x",
            "--version",
            "--version send",
            "--config send list",
            "help send",
            "token",
            "token help",
            "--json",
        ] {
            assert!(parse_alone(&words(line)).is_none(), "{line}");
        }
    }
}

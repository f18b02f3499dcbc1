//! Reads the command line. Those commands that are given most often are read on their own: to put all of
//! them together takes longer than many a command.

use std::ffi::OsString;

use clap::{Args, FromArgMatches};

use super::{Cli, Command, Global, command_line, explain, list, send, show, watch};

pub(super) fn read(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    // What cannot be read, and help, is said by the whole.
    match alone(&words) {
        Some(cli) => Ok(cli),
        None => whole(words),
    }
}

fn whole(words: Vec<OsString>) -> Result<Cli, clap::Error> {
    Cli::from_arg_matches(&command_line().try_get_matches_from(words)?)
}

fn alone(words: &[OsString]) -> Option<Cli> {
    let name = words.iter().skip(1).find_map(|word| {
        let word = word.to_str()?;
        (!word.starts_with('-')).then_some(word)
    })?;
    match name {
        "send" => only::<send::SendArgs>("send", words, Command::Send),
        "reply" => only::<send::ReplyArgs>("reply", words, Command::Reply),
        "wait" => only::<watch::WaitArgs>("wait", words, Command::Wait),
        "list" => only::<list::ListArgs>("list", words, Command::List),
        "show" => only::<show::ShowArgs>("show", words, Command::Show),
        "explain" => only::<explain::ExplainArgs>("explain", words, Command::Explain),
        _ => None,
    }
}

fn only<A: Args>(name: &'static str, words: &[OsString], command: fn(A) -> Command) -> Option<Cli> {
    let one = A::augment_args(clap::Command::new(name));
    let all = Global::augment_args(clap::Command::new("rejoin")).subcommand(one);
    let matches = all.try_get_matches_from(words).ok()?;
    let (_, its) = matches.subcommand()?;
    Some(Cli {
        global: Global::from_arg_matches(&matches).ok()?,
        command: Some(command(A::from_arg_matches(its).ok()?)),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<OsString> {
        let words = ["rejoin"].into_iter().chain(line.split(' '));
        words.map(Into::into).collect()
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
        ] {
            let one = alone(&words(line)).unwrap_or_else(|| panic!("{line} was not read"));
            let all = whole(words(line)).unwrap();
            assert_eq!(format!("{one:?}"), format!("{all:?}"), "{line}");
        }
    }

    #[test]
    fn the_rest_is_left_to_the_whole() {
        for line in [
            "send --help",
            "send --nothing",
            "send -c a -k b x",
            "--version",
            "--version send",
            "--config send list",
            "help send",
            "doctor",
            "--json",
        ] {
            assert!(alone(&words(line)).is_none(), "{line}");
        }
    }
}

//! `rejoin completions`, and the answers to a shell while one types.

mod offers;

use std::ffi::OsStr;

use clap::{Args, Command, ValueEnum};
use clap_complete::ArgValueCompleter;
use clap_complete::engine::{ArgValueCandidates, PathCompleter};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};

use crate::cli::command::{Help, Run, Task};
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// Set by the script for the one call in which the shell asks.
const ASKED: &str = "_REJOIN_COMPLETE";

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Handles are completed live. To install:\n  bash   echo 'source <(rejoin completions bash)' >>~/.bashrc\n  zsh    echo 'source <(rejoin completions zsh)' >>~/.zshrc\n  fish   rejoin completions fish >~/.config/fish/completions/rejoin.fish"
)]
pub(crate) struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

impl Run for CompletionsArgs {
    const NAME: &'static str = "completions";
    const HELP: Help = Help::SetUp("for a shell");

    fn task(self) -> Task {
        Task::machine(self, async |on, args| run(args, on.out)).unrouted()
    }
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

fn run(args: &CompletionsArgs, out: Output) -> Result<u8> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = vec![];
    shell
        .write_registration(ASKED, "rejoin", "rejoin", "rejoin", &mut script)
        .map_err(|e| CommandError::unavailable(e.to_string()))?;
    out.text(&String::from_utf8_lossy(&script));
    Ok(0)
}

/// Answers a shell that asks; then the process ends here.
pub(crate) fn answer_shell(command: fn() -> Command) {
    if std::env::var_os(ASKED).is_some() {
        CompleteEnv::with_factory(command)
            .var(ASKED)
            .bin("rejoin")
            .complete();
    }
}

/// Says for every argument, by the name of its value, what can stand there.
pub(super) fn with_candidates(command: Command) -> Command {
    command.mut_args(|arg| {
        let name = arg
            .get_value_names()
            .and_then(|names| names.first())
            .map(ToString::to_string);
        match name.as_deref() {
            Some("CONV" | "FROM" | "INTO") => {
                arg.add(ArgValueCandidates::new(offers::conversations))
            }
            Some("TURN" | "MESSAGE") => arg.add(ArgValueCompleter::new(offers::messages)),
            Some("AGENT") => arg.add(ArgValueCandidates::new(offers::agents)),
            Some("MODE") => arg.add(ArgValueCandidates::new(offers::modes)),
            _ if arg.get_id() == "model" => arg.add(ArgValueCandidates::new(offers::models)),
            Some("KEY") if arg.get_id() == "key" => arg.add(ArgValueCandidates::new(offers::keys)),
            Some("SETTING") => arg.add(ArgValueCandidates::new(offers::settings)),
            Some("DIR") => arg.add(ArgValueCompleter::new(PathCompleter::dir())),
            Some("FILE") => arg.add(ArgValueCompleter::new(PathCompleter::file())),
            Some("PROMPT" | "TEXT" | "TITLE") => {
                arg.add(ArgValueCompleter::new(|_: &OsStr| vec![]))
            }
            _ => arg,
        }
    })
}

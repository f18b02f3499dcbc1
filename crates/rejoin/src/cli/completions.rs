//! `rejoin completions`, and what a shell asks for while one types.

use std::ffi::OsStr;

use clap::builder::StyledStr;
use clap::{Args, Command, ValueEnum};
use clap_complete::ArgValueCompleter;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, PathCompleter};
use clap_complete::env::{Bash, CompleteEnv, EnvCompleter, Fish, Zsh};
use rejoin_store::ListFilter;

use crate::app;
use crate::config::Config;
use crate::failure::{Failure, Result};
use crate::output::{Output, one_line};
use crate::store_at::StoreAt;

/// Set by the script for the one call in which the shell asks.
const ASKED: &str = "_REJOIN_COMPLETE";
/// Conversations offered, newest first.
const OFFERED: i64 = 50;

/// Print the completion script of a shell
#[derive(Debug, Args)]
#[command(
    after_help = "Handles are completed live. To install:\n  bash   echo 'source <(rejoin completions bash)' >>~/.bashrc\n  zsh    echo 'source <(rejoin completions zsh)' >>~/.zshrc\n  fish   rejoin completions fish >~/.config/fish/completions/rejoin.fish"
)]
pub(crate) struct CompletionsArgs {
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Shell {
    Bash,
    Zsh,
    Fish,
}

pub(crate) fn run(args: &CompletionsArgs, out: Output) -> Result<u8> {
    let shell: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Zsh => &Zsh,
        Shell::Fish => &Fish,
    };
    let mut script = vec![];
    shell
        .write_registration(ASKED, "rejoin", "rejoin", "rejoin", &mut script)
        .map_err(|e| Failure::unavailable(e.to_string()))?;
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
            Some("CONV" | "TURN" | "MESSAGE" | "FROM" | "INTO") => {
                arg.add(ArgValueCandidates::new(conversations))
            }
            Some("AGENT") => arg.add(ArgValueCandidates::new(agents)),
            Some("DIR") => arg.add(ArgValueCompleter::new(PathCompleter::dir())),
            Some("FILE") => arg.add(ArgValueCompleter::new(PathCompleter::file())),
            Some("PROMPT" | "TEXT" | "TITLE") => {
                arg.add(ArgValueCompleter::new(|_: &OsStr| vec![]))
            }
            _ => arg,
        }
    })
}

fn agents() -> Vec<CompletionCandidate> {
    rejoin_agents::ADAPTERS
        .iter()
        .map(|a| CompletionCandidate::new(a.name()))
        .collect()
}

/// Handles with their titles. Whatever goes wrong, a shell is told nothing.
fn conversations() -> Vec<CompletionCandidate> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    let found = runtime.ok().and_then(|runtime| runtime.block_on(handles()));
    found.unwrap_or_default()
}

async fn handles() -> Option<Vec<CompletionCandidate>> {
    let config = Config::load(None, &app::here().ok()?).ok()?;
    if config.untrusted.as_ref().is_some_and(|u| u.names_store) {
        return None;
    }
    let at = StoreAt::named(&app::data_home().ok()?, config.database_url.as_deref()).ok()?;
    if matches!(&at, StoreAt::File(file) if !file.exists()) {
        return None;
    }
    let store = at.open().await.ok()?;
    let mut read = store.read().await.ok()?;
    let filter = ListFilter {
        limit: OFFERED,
        ..ListFilter::default()
    };
    let mut offered =
        vec![CompletionCandidate::new("last").help(Some("last used in this folder".into()))];
    for (n, conversation) in read
        .list_conversations(&filter)
        .await
        .ok()?
        .iter()
        .enumerate()
    {
        let handle = read.short_handle(&conversation.handle).await.ok()?;
        let title = StyledStr::from(one_line(&conversation.title, 60));
        offered.push(
            CompletionCandidate::new(handle)
                .help(Some(title))
                .display_order(Some(n + 1)),
        );
    }
    Some(offered)
}

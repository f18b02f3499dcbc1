//! The command line: a file per command. A new command is a file with its `mod` line and a line in [`COMMANDS`].

mod adopt;
mod answer;
mod archive;
mod chain;
mod change;
mod chat;
mod command;
mod completions;
mod config;
mod confirm;
mod costs;
mod delete;
mod demo;
mod dialog;
mod diff;
mod doctor;
mod edit;
mod escalate;
mod events;
mod explain;
mod export;
mod follow;
mod fork;
mod handoff;
mod help;
mod hold;
mod home;
mod import;
mod inbox;
mod list;
mod login;
mod logout;
mod man;
mod merge;
mod misread;
mod model_server;
mod models;
mod open;
mod pair;
mod parse;
mod progress_view;
mod prompt;
mod proving;
mod question;
mod reference;
mod rename;
mod report;
mod reset;
mod retry;
mod routing;
mod schedule;
mod search;
mod seen;
pub(crate) mod send;
mod serve;
mod set;
mod share;
mod show;
mod snapshot;
mod sweep;
mod text_editor;
mod tiers;
mod token;
mod truncate;
mod trust;
mod typed_lines;
mod undo;
mod verdict_line;
mod watch;
mod workflow;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;

use crate::app::{App, Invocation};
use crate::hub_client::HubClient;
use crate::output::{self, Colors, Output};
use crate::traces::Traces;
use command::{Entry, Task, TrustCheck, Work};
use home::HomeArgs;
use parse::CommandLine;
use rejoin_errors::{CommandError, Result};
use routing::Target;
pub(crate) use routing::must_not_be_deleted;

pub(crate) use doctor::agents_page;
pub(crate) use import::refused as refused_import;
pub(crate) use send::folder_text;
pub(crate) use serve::SOCKET;

#[derive(Debug, Clone, Args)]
struct Global {
    /// Print one JSON document on stdout
    #[arg(long, global = true, hide_short_help = true)]
    json: bool,
    /// Print the answer and errors only
    #[arg(short, long, global = true, hide_short_help = true)]
    quiet: bool,
    /// Colours: auto, always, never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_short_help = true
    )]
    color: Colors,
    /// Use this configuration file instead of your own
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
    /// Use this daemon, or `none`
    #[arg(
        long,
        global = true,
        value_name = "URL|NAME|none",
        hide_short_help = true
    )]
    hub: Option<String>,
}

/// All commands, in the order of the help page.
const COMMANDS: &[Entry] = &[
    Entry::of::<send::SendArgs>(),
    Entry::of::<send::ReplyArgs>(),
    Entry::of::<chat::ChatArgs>(),
    Entry::of::<open::OpenArgs>(),
    Entry::of::<workflow::WorkflowArgs>(),
    Entry::of::<watch::WatchArgs>(),
    Entry::of::<watch::WaitArgs>(),
    Entry::of::<watch::CancelArgs>(),
    Entry::of::<inbox::InboxArgs>(),
    Entry::of::<answer::AnswerArgs>(),
    Entry::of::<escalate::EscalateArgs>(),
    Entry::of::<export::ExportArgs>(),
    Entry::of::<import::ImportArgs>(),
    Entry::of::<list::ListArgs>(),
    Entry::of::<search::SearchArgs>(),
    Entry::of::<show::ShowArgs>(),
    Entry::of::<diff::DiffArgs>(),
    Entry::of::<explain::ExplainArgs>(),
    Entry::of::<costs::CostsArgs>(),
    Entry::of::<chain::ChainArgs>(),
    Entry::of::<handoff::HandoffArgs>(),
    Entry::of::<events::EventsArgs>(),
    Entry::of::<share::ShareArgs>(),
    Entry::of::<edit::EditArgs>(),
    Entry::of::<retry::RetryArgs>(),
    Entry::of::<fork::ForkArgs>(),
    Entry::of::<merge::MergeArgs>(),
    Entry::of::<undo::UndoArgs>(),
    Entry::of::<reset::ResetArgs>(),
    Entry::of::<set::SetArgs>(),
    Entry::of::<seen::SeenArgs>(),
    Entry::of::<truncate::TruncateArgs>(),
    Entry::of::<rename::RenameArgs>(),
    Entry::of::<delete::DeleteArgs>(),
    Entry::of::<archive::ArchiveArgs>(),
    Entry::of::<snapshot::SnapshotArgs>(),
    Entry::of::<sweep::SweepArgs>(),
    Entry::of::<tiers::TiersArgs>(),
    Entry::of::<schedule::ScheduleArgs>(),
    Entry::of::<hold::HoldArgs>(),
    Entry::of::<demo::DemoArgs>(),
    Entry::of::<adopt::AdoptArgs>(),
    Entry::of::<completions::CompletionsArgs>(),
    Entry::of::<model_server::ModelServerArgs>(),
    Entry::of::<serve::ServeArgs>(),
    Entry::of::<prompt::PromptArgs>(),
    Entry::of::<doctor::DoctorArgs>(),
    Entry::of::<config::ConfigArgs>(),
    Entry::of::<trust::TrustArgs>(),
    Entry::of::<models::ModelsArgs>(),
    Entry::of::<pair::PairArgs>(),
    Entry::of::<token::TokenArgs>(),
    Entry::of::<login::LoginArgs>(),
    Entry::of::<logout::LogoutArgs>(),
    Entry::of::<watch::RunTurnArgs>(),
    Entry::of::<man::ManArgs>(),
    Entry::of::<reference::ReferenceArgs>(),
];

/// Returns true if a person at a terminal could answer a question.
pub(crate) fn person_is_here(out: Output) -> bool {
    dialog::Dialog::possible(out)
}

pub(crate) fn run() -> ExitCode {
    completions::answer_shell(command_line);
    let parsed = parse::parse(std::env::args_os().collect());
    let (global, task, threads) = match parsed.and_then(planned) {
        Ok(planned) => planned,
        Err(error) => return usage(&error),
    };
    global.color.choose();
    let out = Output {
        json: global.json,
        quiet: global.quiet,
    };
    let runtime = match runtime(threads) {
        Ok(runtime) => runtime,
        Err(error) => {
            out.failure(&CommandError::unavailable(format!("no runtime: {error}")));
            return ExitCode::from(6);
        }
    };
    let traces = match Traces::by_environment().transpose() {
        Ok(traces) => traces,
        Err(why) => {
            out.note(&format!("rejoin: {why}"));
            None
        }
    };
    let invocation = Invocation::new(out, global.hub, global.config);
    let outcome = runtime.block_on(async {
        match task {
            Some(task) => carry_out(task, &invocation).await,
            None => without_command(&invocation).await,
        }
    });
    runtime.shutdown_background();
    if let Some(traces) = traces {
        traces.end();
    }
    match (outcome, output::take_unwritten()) {
        (Ok(code), None) => ExitCode::from(code),
        (Ok(_), Some(error)) => {
            let failure = output::unwritten("the output", &error);
            // Not as JSON: stdout takes no more.
            Output { json: false, ..out }.failure(&failure);
            ExitCode::from(failure.exit)
        }
        (Err(failure), _) => {
            out.failure(&failure);
            if output::take_unwritten().is_some() {
                // As JSON it did not reach stdout.
                Output { json: false, ..out }.failure(&failure);
            }
            ExitCode::from(failure.exit)
        }
    }
}

/// Reads the arguments of the command, if there is one. Returns its task and its number of threads.
fn planned(line: CommandLine) -> Result<(Global, Option<Task>, usize), clap::Error> {
    let Some((entry, matches)) = &line.command else {
        return Ok((line.global, None, 0));
    };
    let task = entry.task(matches)?;
    Ok((line.global, Some(task), entry.threads))
}

/// Builds a runtime of one thread, or of `threads` more: for a daemon, which serves connections on them.
fn runtime(threads: usize) -> std::io::Result<tokio::runtime::Runtime> {
    if threads > 0 {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        return builder.worker_threads(threads).enable_all().build();
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

pub(crate) fn command_line() -> clap::Command {
    let rejoin = clap::Command::new("rejoin")
        .version(env!("CARGO_PKG_VERSION"))
        .about("Keep conversations with coding agents going across processes and machines")
        .max_term_width(100);
    let rejoin = Global::augment_args(rejoin).subcommands(COMMANDS.iter().map(Entry::clap));
    help::dressed(rejoin)
}

/// Carries a task out by the daemon that routing chooses, or in this process.
async fn carry_out(task: Task, invocation: &Invocation) -> Result<u8> {
    let remote = routing::choose(invocation, task.target).await?;
    match (task.work, remote) {
        (Work::Hub(work), Some(remote)) => work(HubClient::Remote(&remote)).await,
        (Work::Hub(work), None) => {
            let app = open(invocation, task.target, task.trust).await?;
            work(HubClient::Local(&app)).await
        }
        (Work::Store(work), _) => {
            let app = open(invocation, task.target, task.trust).await?;
            work(&app).await
        }
        (Work::Machine(work), _) => {
            if task.trust == TrustCheck::Required {
                invocation.config()?.must_be_trusted()?;
            }
            work(invocation).await
        }
    }
}

/// Opens the store for a command, and checks the trust that the command needs.
async fn open(invocation: &Invocation, target: Target, trust: TrustCheck) -> Result<App> {
    let app = App::open(invocation).await?;
    // The process of a turn is one of those that this would start.
    if target != Target::Unrouted {
        watch::see_to_answered(&app).await?;
    }
    match trust {
        TrustCheck::Required => app.config.must_be_trusted()?,
        TrustCheck::Unneeded => app.say_what_is_left_out(),
        TrustCheck::ByWork => {}
    }
    Ok(app)
}

/// Without a command: a person sees what goes on, a script gets the help.
async fn without_command(invocation: &Invocation) -> Result<u8> {
    let out = invocation.out;
    if out.json {
        return Err(CommandError::usage("there is no command"));
    }
    if !out.screen() {
        out.text(&command_line().render_help().to_string());
        return Ok(0);
    }
    carry_out(Task::hub(HomeArgs, home::run), invocation).await
}

/// Help and version are results; what cannot be read is exit 2, as JSON if that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        output::written(error.print());
        if let Some(error) = output::take_unwritten() {
            let failure = output::unwritten("the output", &error);
            Output {
                json: false,
                quiet: false,
            }
            .failure(&failure);
            return ExitCode::from(failure.exit);
        }
        return ExitCode::SUCCESS;
    }
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    let failure = misread::misread(error);
    Output { json, quiet: false }.failure(&failure);
    ExitCode::from(failure.exit)
}

//! The command line: one file per verb.

mod adopt;
mod archive;
mod change;
mod completions;
mod config;
mod delete;
mod demo;
mod doctor;
mod edit;
mod explain;
mod export;
mod follow;
mod fork;
mod help;
mod home;
mod import;
mod list;
mod live;
mod man;
mod merge;
mod model_server;
mod open;
mod outcome;
mod rename;
mod reset;
mod retry;
mod search;
mod send;
mod set;
mod show;
mod snapshot;
mod sweep;
mod truncate;
mod trust;
mod undo;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::Output;

pub(crate) use import::refused as refused_import;
pub(crate) use send::folder_text;

/// Keep a conversation with a coding agent going, whatever happens underneath
#[derive(Debug, Parser)]
#[command(name = "rejoin", version, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Clone, Args)]
struct Global {
    /// Print one JSON document on stdout
    #[arg(long, global = true, hide_short_help = true)]
    json: bool,
    /// Print the answer and errors only
    #[arg(short, long, global = true, hide_short_help = true)]
    quiet: bool,
    /// Use this configuration file instead of your own
    #[arg(long, global = true, value_name = "FILE", hide_short_help = true)]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Send(send::SendArgs),
    Reply(send::ReplyArgs),
    Open(open::OpenArgs),
    Watch(watch::WatchArgs),
    Wait(watch::WaitArgs),
    Cancel(watch::CancelArgs),
    #[command(hide = true)]
    RunTurn(watch::RunTurnArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Explain(explain::ExplainArgs),
    Search(search::SearchArgs),
    Adopt(adopt::AdoptArgs),
    Export(export::ExportArgs),
    Import(import::ImportArgs),
    Edit(edit::EditArgs),
    Truncate(truncate::TruncateArgs),
    Retry(retry::RetryArgs),
    Fork(fork::ForkArgs),
    Merge(merge::MergeArgs),
    Undo(undo::UndoArgs),
    Reset(reset::ResetArgs),
    Set(set::SetArgs),
    Rename(rename::RenameArgs),
    Snapshot(snapshot::SnapshotArgs),
    Sweep(sweep::SweepArgs),
    Archive(archive::ArchiveArgs),
    Delete(delete::DeleteArgs),
    Doctor(doctor::DoctorArgs),
    Config(config::ConfigArgs),
    Trust(trust::TrustArgs),
    Completions(completions::CompletionsArgs),
    ModelServer(model_server::ModelServerArgs),
    #[command(hide = true)]
    Man(man::ManArgs),
}

impl Command {
    /// Those that do refuse to without trust; the others go on without what needs it.
    fn runs_an_agent(&self) -> bool {
        matches!(
            self,
            Self::Send(_)
                | Self::Reply(_)
                | Self::Open(_)
                | Self::Retry(_)
                | Self::RunTurn(_)
                | Self::Explain(explain::ExplainArgs { next: true, .. })
        )
    }
}

pub(crate) fn run() -> ExitCode {
    completions::answer_shell(command_line);
    let parsed = command_line().try_get_matches();
    let cli = match parsed.and_then(|matches| Cli::from_arg_matches(&matches)) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let out = Output {
        json: cli.global.json,
        quiet: cli.global.quiet,
    };
    let runtime = match tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            out.failure(&Failure::unavailable(format!("no runtime: {error}")));
            return ExitCode::from(6);
        }
    };
    let outcome = runtime.block_on(dispatch(cli, out));
    runtime.shutdown_background();
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            out.failure(&failure);
            ExitCode::from(failure.exit)
        }
    }
}

fn command_line() -> clap::Command {
    help::dressed(Cli::command())
}

async fn dispatch(cli: Cli, out: Output) -> Result<u8> {
    let Cli { global, command } = cli;
    let Some(command) = command else {
        return bare(out, global.config.as_deref()).await;
    };
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others need the store")]
    let command = match command {
        Command::Demo(args) => return demo::run(&args, out).await,
        Command::ModelServer(args) => return model_server::run(&args, out).await,
        Command::Completions(args) => return completions::run(&args, out),
        Command::Man(args) => return man::run(&args, out, command_line()),
        Command::Doctor(args) => return doctor::run(&args, out, global.config.as_deref()).await,
        Command::Config(args) => return config::run(&args, out, global.config.as_deref()),
        Command::Trust(args) => return trust::run(&args, out, global.config.as_deref()),
        Command::Send(args) if args.bundle.is_some() => {
            return send::in_bundle(args, out, global.config.as_deref()).await;
        }
        Command::Show(args) if args.bundle.is_some() => {
            return show::of_bundle(args, out, global.config.as_deref()).await;
        }
        Command::Explain(args) if args.bundle.is_some() => {
            return explain::of_bundle(args, out, global.config.as_deref()).await;
        }
        needs_store => needs_store,
    };
    let app = App::open(out, global.config.as_deref()).await?;
    if !command.runs_an_agent() {
        app.say_what_is_left_out();
    }
    match command {
        Command::Send(args) => send::run(&app, args).await,
        Command::Reply(args) => send::reply(&app, args).await,
        Command::Open(args) => open::run(&app, &args).await,
        Command::Watch(args) => watch::watch(&app, &args).await,
        Command::Wait(args) => watch::wait(&app, &args).await,
        Command::Cancel(args) => watch::cancel(&app, &args).await,
        Command::RunTurn(args) => watch::run_turn(&app, &args).await,
        Command::List(args) => list::run(&app, &args).await,
        Command::Show(args) => show::run(&app, &args).await,
        Command::Explain(args) => explain::run(&app, &args).await,
        Command::Search(args) => search::run(&app, &args).await,
        Command::Adopt(args) => adopt::run(&app, &args).await,
        Command::Export(args) => export::run(&app, &args).await,
        Command::Import(args) => import::run(&app, &args).await,
        Command::Edit(args) => edit::run(&app, &args).await,
        Command::Truncate(args) => truncate::run(&app, &args).await,
        Command::Retry(args) => retry::run(&app, &args).await,
        Command::Fork(args) => fork::run(&app, &args).await,
        Command::Merge(args) => merge::run(&app, &args).await,
        Command::Undo(args) => undo::run(&app, &args).await,
        Command::Reset(args) => reset::run(&app, &args).await,
        Command::Set(args) => set::run(&app, &args).await,
        Command::Rename(args) => rename::run(&app, &args).await,
        Command::Snapshot(args) => snapshot::run(&app, &args).await,
        Command::Sweep(args) => sweep::run(&app, &args).await,
        Command::Archive(args) => archive::run(&app, &args).await,
        Command::Delete(args) => delete::run(&app, &args).await,
        Command::Demo(_)
        | Command::ModelServer(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Trust(_) => Ok(0),
    }
}

/// Without a command: a person sees what goes on, a script gets the help.
async fn bare(out: Output, config: Option<&std::path::Path>) -> Result<u8> {
    if out.json {
        return Err(Failure::usage("there is no command"));
    }
    if !out.screen() {
        out.text(&command_line().render_help().to_string());
        return Ok(0);
    }
    let app = App::open(out, config).await?;
    app.say_what_is_left_out();
    home::run(&app).await
}

/// Help and version are results; what cannot be read is exit 2, as JSON if that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        let _gone = error.print();
        return ExitCode::SUCCESS;
    }
    let json = std::env::args_os()
        .take_while(|arg| arg != "--")
        .any(|arg| arg == "--json");
    let failure = help::misread(error);
    Output { json, quiet: false }.failure(&failure);
    ExitCode::from(failure.exit)
}

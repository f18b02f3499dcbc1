//! The command line: one file per verb.

mod config;
mod demo;
mod doctor;
mod explain;
mod list;
mod live;
mod model_server;
mod outcome;
mod reset;
mod send;
mod show;
mod trust;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::app::App;
use crate::failure::{Failure, Result};
use crate::output::Output;

/// Keep a conversation with a coding agent going, whatever happens underneath
#[derive(Debug, Parser)]
#[command(
    name = "rejoin",
    version,
    propagate_version = true,
    max_term_width = 100
)]
#[command(after_help = "Try `rejoin demo`: ten seconds, no key, nothing left behind.")]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Clone, Args)]
struct Global {
    /// Print one JSON document on stdout
    #[arg(long, global = true)]
    json: bool,
    /// Print the answer and errors only
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Use this configuration file instead of your own
    #[arg(long, global = true, value_name = "FILE")]
    config: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum Command {
    Demo(demo::DemoArgs),
    Send(send::SendArgs),
    Reply(send::ReplyArgs),
    Watch(watch::WatchArgs),
    Wait(watch::WaitArgs),
    Cancel(watch::CancelArgs),
    #[command(hide = true)]
    RunTurn(watch::RunTurnArgs),
    List(list::ListArgs),
    Show(show::ShowArgs),
    Explain(explain::ExplainArgs),
    Reset(reset::ResetArgs),
    Doctor(doctor::DoctorArgs),
    Config(config::ConfigArgs),
    Trust(trust::TrustArgs),
    ModelServer(model_server::ModelServerArgs),
}

impl Command {
    /// Those that do refuse to without trust; the others go on without what needs it.
    fn runs_an_agent(&self) -> bool {
        matches!(
            self,
            Self::Send(_)
                | Self::Reply(_)
                | Self::RunTurn(_)
                | Self::Explain(explain::ExplainArgs { next: true, .. })
        )
    }
}

pub(crate) fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
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

async fn dispatch(cli: Cli, out: Output) -> Result<u8> {
    let Cli { global, command } = cli;
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others need the store")]
    let command = match command {
        Command::Demo(args) => return demo::run(&args, out).await,
        Command::ModelServer(args) => return model_server::run(&args, out).await,
        Command::Doctor(args) => return doctor::run(&args, out, global.config.as_deref()).await,
        Command::Config(args) => return config::run(&args, out, global.config.as_deref()),
        Command::Trust(args) => return trust::run(&args, out, global.config.as_deref()),
        needs_store => needs_store,
    };
    let app = App::open(out, global.config.as_deref()).await?;
    if !command.runs_an_agent() {
        app.say_what_is_left_out();
    }
    match command {
        Command::Send(args) => send::run(&app, args).await,
        Command::Reply(args) => send::reply(&app, args).await,
        Command::Watch(args) => watch::watch(&app, &args).await,
        Command::Wait(args) => watch::wait(&app, &args).await,
        Command::Cancel(args) => watch::cancel(&app, &args).await,
        Command::RunTurn(args) => watch::run_turn(&app, &args).await,
        Command::List(args) => list::run(&app, &args).await,
        Command::Show(args) => show::run(&app, &args).await,
        Command::Explain(args) => explain::run(&app, &args).await,
        Command::Reset(args) => reset::run(&app, &args).await,
        Command::Demo(_)
        | Command::ModelServer(_)
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Trust(_) => Ok(0),
    }
}

/// Help and version are results; a wrong flag is exit 2, as JSON if that was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    let json = std::env::args_os().any(|arg| arg == "--json");
    if error.use_stderr() && json {
        let text = error.to_string();
        let line = text
            .lines()
            .next()
            .unwrap_or("wrong usage")
            .trim_start_matches("error: ")
            .to_owned();
        let failure = Failure::usage(line).try_this("rejoin --help");
        Output { json, quiet: false }.failure(&failure);
    } else {
        let _gone = error.print();
    }
    ExitCode::from(if error.use_stderr() { 2 } else { 0 })
}

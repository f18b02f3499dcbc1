//! The command line: one file per verb.

mod demo;
mod explain;
mod list;
mod model_server;
mod reset;
mod send;
mod show;

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
    List(list::ListArgs),
    Show(show::ShowArgs),
    Explain(explain::ExplainArgs),
    Reset(reset::ResetArgs),
    ModelServer(model_server::ModelServerArgs),
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
    match command {
        Command::Demo(args) => return demo::run(&args, out).await,
        Command::ModelServer(args) => return model_server::run(&args, out).await,
        Command::Send(_)
        | Command::Reply(_)
        | Command::List(_)
        | Command::Show(_)
        | Command::Explain(_)
        | Command::Reset(_) => {}
    }
    let app = App::open(out, global.config.as_deref()).await?;
    let outcome = match command {
        Command::Send(args) => send::run(&app, args).await,
        Command::Reply(args) => send::reply(&app, args).await,
        Command::List(args) => list::run(&app, &args).await,
        Command::Show(args) => show::run(&app, &args).await,
        Command::Explain(args) => explain::run(&app, &args).await,
        Command::Reset(args) => reset::run(&app, &args).await,
        Command::Demo(_) | Command::ModelServer(_) => Ok(0),
    };
    app.close().await;
    outcome
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

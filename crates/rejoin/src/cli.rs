//! The command line: one file per verb.

mod adopt;
mod answer;
mod archive;
mod change;
mod completions;
mod config;
mod confirm;
mod delete;
mod demo;
mod dialog;
mod doctor;
mod edit;
mod explain;
mod export;
mod follow;
mod fork;
mod help;
mod home;
mod import;
mod inbox;
mod list;
mod live;
mod login;
mod logout;
mod man;
mod merge;
mod model_server;
mod open;
mod outcome;
mod question;
mod reach;
mod read;
mod rename;
mod reset;
mod retry;
mod search;
mod send;
mod serve;
mod set;
mod show;
mod snapshot;
mod sweep;
mod there;
mod token;
mod truncate;
mod trust;
mod undo;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, CommandFactory, Parser, Subcommand};

use crate::app::App;
use crate::at::At;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::traces::Traces;
pub(crate) use reach::must_not_be_deleted;
use reach::{Reach, carried_out_by};

pub(crate) use import::refused as refused_import;
pub(crate) use send::folder_text;
pub(crate) use serve::SOCKET;

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
    /// Talk to this daemon, or to `none`
    #[arg(
        long,
        global = true,
        value_name = "URL|NAME|none",
        hide_short_help = true
    )]
    hub: Option<String>,
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
    Inbox(inbox::InboxArgs),
    Answer(answer::AnswerArgs),
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
    Serve(serve::ServeArgs),
    Token(token::TokenArgs),
    Login(login::LoginArgs),
    Logout(logout::LogoutArgs),
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
                | Self::Answer(_)
                | Self::Explain(explain::ExplainArgs { next: true, .. })
        )
    }
}

/// Is there somebody at a terminal who could answer a question?
pub(crate) fn person_is_here(out: Output) -> bool {
    dialog::Dialog::possible(out)
}

pub(crate) fn run() -> ExitCode {
    completions::answer_shell(command_line);
    let cli = match read::read(std::env::args_os().collect()) {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let out = Output {
        json: cli.global.json,
        quiet: cli.global.quiet,
    };
    let runtime = match runtime(cli.command.as_ref()) {
        Ok(runtime) => runtime,
        Err(error) => {
            out.failure(&Failure::unavailable(format!("no runtime: {error}")));
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
    let outcome = runtime.block_on(dispatch(cli, out));
    runtime.shutdown_background();
    if let Some(traces) = traces {
        traces.end();
    }
    match outcome {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            out.failure(&failure);
            ExitCode::from(failure.exit)
        }
    }
}

/// One thread. For a daemon three more: connections are served there, turns are run here.
fn runtime(command: Option<&Command>) -> std::io::Result<tokio::runtime::Runtime> {
    if matches!(command, Some(Command::Serve(_))) {
        let mut threads = tokio::runtime::Builder::new_multi_thread();
        return threads.worker_threads(3).enable_all().build();
    }
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

fn command_line() -> clap::Command {
    help::dressed(Cli::command())
}

async fn dispatch(cli: Cli, out: Output) -> Result<u8> {
    let Cli { global, command } = cli;
    let config = global.config.as_deref();
    let Some(command) = command else {
        return bare(out, &global).await;
    };
    if let Some(remote) = carried_out_by(&global, command.reach(), out).await? {
        return anywhere(At::There(&remote), command).await;
    }
    #[expect(clippy::wildcard_enum_match_arm, reason = "all others need the store")]
    let command = match command {
        Command::Demo(args) => return demo::run(&args, out).await,
        Command::ModelServer(args) => return model_server::run(&args, out).await,
        Command::Completions(args) => return completions::run(&args, out),
        Command::Man(args) => return man::run(&args, out, command_line()),
        Command::Doctor(args) => return doctor::run(&args, out, config).await,
        Command::Config(args) => return config::run(&args, out, config),
        Command::Trust(args) => return trust::run(&args, out, config),
        Command::Serve(args) => return serve::run(&args, out, config).await,
        Command::Login(args) => return login::run(&args, out).await,
        Command::Logout(args) => return logout::run(&args, out),
        Command::Send(args) if args.bundle.is_some() => {
            return send::in_bundle(args, out, config).await;
        }
        Command::Show(args) if args.bundle.is_some() => {
            return show::of_bundle(args, out, config).await;
        }
        Command::Explain(args) if args.bundle.is_some() => {
            return explain::of_bundle(args, out, config).await;
        }
        needs_store => needs_store,
    };
    let app = App::open(out, config).await?;
    if !matches!(command, Command::RunTurn(_)) {
        watch::see_to_answered(&app).await?;
    }
    if !command.runs_an_agent() {
        app.say_what_is_left_out();
    }
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "all others work with any hub"
    )]
    match command {
        Command::Open(args) => open::run(&app, &args).await,
        Command::RunTurn(args) => watch::run_turn(&app, &args).await,
        Command::Adopt(args) => adopt::run(&app, &args).await,
        Command::Export(args) => export::run(&app, &args).await,
        Command::Import(args) => import::run(&app, &args).await,
        Command::Snapshot(args) => snapshot::run(&app, &args).await,
        Command::Sweep(args) => sweep::run(&app, &args).await,
        command => anywhere(At::Here(&app), command).await,
    }
}

/// What any hub can do.
async fn anywhere(at: At<'_>, command: Command) -> Result<u8> {
    match command {
        Command::Send(args) => send::run(at, args).await,
        Command::Reply(args) => send::reply(at, args).await,
        Command::Watch(args) => watch::watch(at, &args).await,
        Command::Wait(args) => watch::wait(at, &args).await,
        Command::Cancel(args) => watch::cancel(at, &args).await,
        Command::Inbox(args) => inbox::run(at, &args).await,
        Command::Answer(args) => answer::run(at, &args).await,
        Command::List(args) => list::run(at, &args).await,
        Command::Show(args) => show::run(at, &args).await,
        Command::Explain(args) => explain::run(at, &args).await,
        Command::Search(args) => search::run(at, &args).await,
        Command::Edit(args) => edit::run(at, &args).await,
        Command::Truncate(args) => truncate::run(at, &args).await,
        Command::Retry(args) => retry::run(at, &args).await,
        Command::Fork(args) => fork::run(at, &args).await,
        Command::Merge(args) => merge::run(at, &args).await,
        Command::Undo(args) => undo::run(at, &args).await,
        Command::Reset(args) => reset::run(at, &args).await,
        Command::Set(args) => set::run(at, &args).await,
        Command::Rename(args) => rename::run(at, &args).await,
        Command::Token(args) => token::run(at, &args).await,
        Command::Archive(args) => archive::run(at, &args).await,
        Command::Delete(args) => delete::run(at, &args).await,
        Command::Open(_)
        | Command::RunTurn(_)
        | Command::Adopt(_)
        | Command::Export(_)
        | Command::Import(_)
        | Command::Snapshot(_)
        | Command::Sweep(_)
        | Command::Login(_)
        | Command::Logout(_)
        | Command::Demo(_)
        | Command::ModelServer(_)
        | Command::Serve(_)
        | Command::Completions(_)
        | Command::Man(_)
        | Command::Doctor(_)
        | Command::Config(_)
        | Command::Trust(_) => Ok(0),
    }
}

/// Without a command: a person sees what goes on, a script gets the help.
async fn bare(out: Output, global: &Global) -> Result<u8> {
    if out.json {
        return Err(Failure::usage("there is no command"));
    }
    if !out.screen() {
        out.text(&command_line().render_help().to_string());
        return Ok(0);
    }
    if let Some(remote) = carried_out_by(global, Reach::Anywhere, out).await? {
        return home::run(At::There(&remote)).await;
    }
    let app = App::open(out, global.config.as_deref()).await?;
    app.say_what_is_left_out();
    home::run(At::Here(&app)).await
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

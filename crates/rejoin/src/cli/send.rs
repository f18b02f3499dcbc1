//! `rejoin send` and `rejoin reply`

mod limits;
mod text;
mod there;

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, FromArgMatches, ValueEnum};
use rejoin_core::{AgentName, ConversationId, Micros, PermissionMode, TurnId};
use rejoin_hub::{
    Accepted, FreshWish, Incoming, LateAnswer, STORED, Target, TurnFlags, TurnRequest, TurnView,
    fault,
};
use rejoin_runner::{IfBusy, look};

pub(super) use self::limits::{parse_dollars, parse_duration, parse_idle};
pub(super) use self::text::prompt;
use self::text::with_files;
use crate::app::App;
use crate::at::At;
use crate::cli::confirm;
use crate::cli::follow::to_its_rest;
use crate::cli::outcome::{Reported, interrupted, report};
use crate::cli::watch::leave_running;
use crate::failure::{Failure, Result};
use crate::output::Output;
use crate::portable::{Bundle, Wait};

/// Answered, but not saved.
const UNSAVED: u8 = 10;

/// Send a message and wait for the answer
///
/// Without -c or -k a new conversation is started. The answer goes to stdout, one line that says how
/// the conversation was continued to stderr.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin send \"fix the failing test\"\n  rejoin send -c last \"and the other one\"\n  git diff | rejoin send -k review-42 -"
)]
pub(crate) struct SendArgs {
    /// Continue this one: handle, id, key, or `last`
    #[arg(
        short = 'c',
        long = "conversation",
        value_name = "CONV",
        conflicts_with = "key"
    )]
    conversation: Option<String>,
    /// Continue the one with this key, or start it
    #[arg(short, long, value_name = "KEY")]
    key: Option<String>,
    /// Give a new conversation this title
    #[arg(long, value_name = "TITLE")]
    title: Option<String>,
    /// Keep the conversation in this file only
    #[arg(long, value_name = "FILE", conflicts_with_all = ["conversation", "detach"])]
    pub(super) bundle: Option<PathBuf>,
    #[command(flatten)]
    turn: TurnArgs,
}

/// Send a message to the conversation last used in this folder
#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    #[command(flatten)]
    turn: TurnArgs,
}

#[derive(Debug, Args)]
struct TurnArgs {
    /// Agent; default: the one of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// What the agent may do: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Exactly these tools
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    tools: Option<Vec<String>>,
    /// Not these tools
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    deny_tools: Option<Vec<String>>,
    /// Start a new session and tell it what was said
    #[arg(long)]
    fresh_session: bool,
    /// Refuse rather than re-tell what was said
    #[arg(long)]
    no_reseed: bool,
    /// Resume also in another folder
    #[arg(long)]
    relocate: bool,
    /// Let the CLI read /commands and @files in it
    #[arg(long)]
    raw: bool,
    /// Stop the turn after this time, e.g. 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Stop the turn after this much silence, or never
    #[arg(long, value_name = "TIME", value_parser = parse_idle)]
    idle_timeout: Option<Duration>,
    /// Stop the turn once it has cost this, e.g. 0.5
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<Micros>,
    /// Standing text; sent again only when it changes
    #[arg(long, value_name = "TEXT")]
    instructions: Option<String>,
    /// Tell this address how it ends (daemon only)
    #[arg(long, value_name = "URL")]
    notify_url: Option<String>,
    /// Add a text file to the message (may be repeated)
    #[arg(long, value_name = "F")]
    file: Vec<PathBuf>,
    /// While another turn runs
    #[arg(long, value_enum, default_value_t = Busy::Wait)]
    if_busy: Busy,
    /// Send at most once, however often repeated
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Exit 10 if the session could not be saved
    #[arg(long, conflicts_with = "detach")]
    must_save: bool,
    /// Continue a conversation that asks first
    #[arg(long)]
    confirm: bool,
    /// Keep what it leaves running until `cancel`
    #[arg(long)]
    keep_background: bool,
    /// Return at once; the turn runs on
    #[arg(long, conflicts_with = "stream")]
    detach: bool,
    /// Print events as JSON lines while they happen
    #[arg(long)]
    stream: bool,
    /// The message; `-` or nothing: stdin
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    #[arg(skip)]
    answers: Option<Box<LateAnswer>>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Busy {
    Wait,
    Fail,
}

pub(crate) async fn reply(at: At<'_>, args: ReplyArgs) -> Result<u8> {
    let last = SendArgs {
        conversation: Some("last".into()),
        key: None,
        title: None,
        bundle: None,
        turn: args.turn,
    };
    run(at, last).await
}

pub(crate) async fn run(at: At<'_>, mut args: SendArgs) -> Result<u8> {
    if let At::Here(app) = at {
        app.must_be_trusted()?;
    }
    let text = with_files(prompt(args.turn.prompt.as_deref())?, &args.turn.file)?;
    let confirmed = args.turn.confirm;
    confirm::or_ask(at.out(), confirmed, async |confirmed| {
        args.turn.confirm = confirmed;
        match at {
            At::Here(app) => say(app, &args, text.clone()).await,
            At::There(remote) => there::say(at, remote, &args, text.clone()).await,
        }
    })
    .await
}

/// Sends the answer to a question whose process is gone, as if it had been typed here.
pub(super) async fn as_message(
    app: &App,
    c: ConversationId,
    text: String,
    answer: Box<LateAnswer>,
) -> Result<u8> {
    app.must_be_trusted()?;
    let command = SendArgs::augment_args(clap::Command::new("send"));
    let typed = command.try_get_matches_from(["send", "-c", &c.to_string()]);
    let args = typed.and_then(|typed| SendArgs::from_arg_matches(&typed));
    let mut args = args.map_err(|e| Failure::usage(e.to_string()))?;
    args.turn.answers = Some(answer);
    args.turn.confirm = true;
    say(app, &args, text).await
}

async fn say(app: &App, args: &SendArgs, text: String) -> Result<u8> {
    if args.turn.notify_url.is_some() {
        let text = "--notify-url needs a daemon: without one nothing sends notifications; the message was not kept";
        return Err(Failure::usage(text).try_this("rejoin serve"));
    }
    if args.turn.detach {
        let (incoming, _) = incoming(app, args, text).await?;
        let accepted = app.hub().accept(&incoming, None).await?;
        fault::point("after_accept");
        return detach(app, &accepted).await;
    }
    let ran = to_rest(app, args, text).await?;
    told(app, args, &ran).await
}

/// A turn that was run and is settled.
struct Ran {
    turn: TurnId,
    signal: Option<u8>,
}

async fn to_rest(app: &App, args: &SendArgs, text: String) -> Result<Ran> {
    let (mut incoming, answering) = incoming(app, args, text).await?;
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let holder = app.runner.holder()?;
    let turn = app.hub().clock.turn_id()?;
    incoming.turn = Some(turn);
    app.runner.expect(turn, answering);
    let accepted = app.hub().accept(&incoming, Some(holder.as_str())).await;
    if !accepted.as_ref().is_ok_and(|it| it.claimed.is_some()) {
        app.runner.expect_none();
    }
    let accepted = accepted?;
    fault::point("after_accept");
    let if_busy = match args.turn.if_busy {
        Busy::Wait => IfBusy::Wait,
        Busy::Fail => IfBusy::Fail,
    };
    let stream = args.turn.stream;
    let signal = to_its_rest(app, &accepted, if_busy, stream, interrupted).await?;
    let turn = accepted.turn;
    Ok(Ran { turn, signal })
}

async fn told(app: &App, args: &SendArgs, ran: &Ran) -> Result<u8> {
    let stream = Reported::of(args.turn.stream);
    let code = report(app, ran.turn, stream, ran.signal).await?;
    if !args.turn.must_save || code != 0 {
        return Ok(code);
    }
    let view = app.hub().turn_view(ran.turn).await?;
    Ok(if view.saved == STORED { 0 } else { UNSAVED })
}

/// One turn of a conversation that lives in a file.
pub(crate) async fn in_bundle(
    mut args: SendArgs,
    out: Output,
    config_file: Option<&std::path::Path>,
) -> Result<u8> {
    let text = with_files(prompt(args.turn.prompt.as_deref())?, &args.turn.file)?;
    let file = args.bundle.clone().unwrap_or_default();
    let wait = match args.turn.if_busy {
        Busy::Wait => Wait::UntilFree,
        Busy::Fail => Wait::No,
    };
    let bundle = Bundle::open(out, config_file, &file, wait).await?;
    let ran = match in_its_store(&bundle, &mut args).await {
        Ok(()) => to_rest(&bundle.app, &args, text).await,
        Err(failure) => Err(failure),
    };
    let ran = match ran {
        Ok(ran) => ran,
        Err(failure) => {
            // Whatever came before it is written all the same.
            if let Err(unwritten) = bundle.put_back().await {
                out.note(&unwritten.message);
            }
            return Err(failure);
        }
    };
    // The answer is told from the store, and that goes with the bundle.
    let (bundle, unwritten) = bundle.put_back_and_tell(ran.turn).await;
    let code = told(bundle.app(), &args, &ran).await;
    bundle.go().await;
    let Some(unwritten) = unwritten else {
        return code;
    };
    out.note(&format!("error: {}", unwritten.message));
    out.note(&format!(
        "  try: {}",
        unwritten.next.as_deref().unwrap_or_default()
    ));
    match (code?, unwritten.exit) {
        // An answer that could not be saved is an answer.
        (0, 6) => Ok(0),
        (0 | UNSAVED, exit) if exit != 6 => Ok(exit),
        (code, _) => Ok(code),
    }
}

/// Names the conversation that is in the bundle, and the folder that we are in.
async fn in_its_store(bundle: &Bundle, args: &mut SendArgs) -> Result<()> {
    bundle.app.must_be_trusted()?;
    let Some(id) = bundle.conversation else {
        return Ok(());
    };
    let found = bundle
        .app
        .hub()
        .store
        .read()
        .await?
        .conversation(id)
        .await?;
    let Some(conversation) = found else {
        return Ok(());
    };
    if let (Some(wanted), Some(key)) = (&args.key, &conversation.key)
        && wanted != key
    {
        let text = format!("the bundle holds the conversation `{key}`, not `{wanted}`");
        return Err(Failure::conflict(text + "; nothing was sent")
            .try_this(format!("rejoin send -k {key} --bundle …")));
    }
    args.key = None;
    args.conversation = Some(id.to_string());
    // Also if its store was left by a turn that was run elsewhere.
    let here = &bundle.app.here;
    args.turn.workdir.get_or_insert_with(|| here.clone());
    Ok(())
}

async fn detach(app: &App, accepted: &Accepted) -> Result<u8> {
    // Before it runs: what is printed must not depend on how far it has come.
    let view = app.hub().turn_view(accepted.turn).await?;
    leave_running(app, accepted.conversation, accepted.turn)?;
    detached(app.out, &view);
    Ok(0)
}

fn detached(out: Output, view: &TurnView) {
    if out.json {
        out.json(view);
    } else {
        out.text(&view.handle);
        out.note(&format!(
            "running in the background; try: rejoin watch {0}, rejoin wait {0}",
            view.handle
        ));
    }
}

/// The message, and who will answer it.
async fn incoming(app: &App, args: &SendArgs, text: String) -> Result<(Incoming, AgentName)> {
    let config = &app.config;
    let target = match (&args.conversation, &args.key) {
        (Some(name), _) => {
            Target::Conversation(app.hub().find(name, &app.folders()).await?.conversation.id)
        }
        (None, Some(key)) => Target::Key(valid_key(key)?),
        (None, None) => Target::New,
    };
    let known = match &target {
        Target::Conversation(id) => app.hub().store.read().await?.conversation(*id).await?,
        Target::Key(key) => {
            app.hub()
                .store
                .read()
                .await?
                .conversation_by_key("", key)
                .await?
        }
        Target::New => None,
    };
    let name = |text: &str| AgentName::new(text).map_err(|e| Failure::usage(e.to_string()));
    let agent = args.turn.agent.as_deref().map(name).transpose()?;
    let default_agent = name(&config.default_agent)?;
    let answering = agent
        .clone()
        .or_else(|| known.as_ref().map(|c| c.agent.clone()))
        .unwrap_or_else(|| default_agent.clone());
    must_be_enabled(app, &answering)?;
    let here = folder_text(&app.here)?;
    let workdir = args
        .turn
        .workdir
        .as_ref()
        .map(|dir| folder_text(dir))
        .transpose()?;
    // A missing agent or folder is said before the message is accepted.
    let place = workdir
        .clone()
        .or_else(|| known.as_ref().map(|c| c.workdir.clone()))
        .unwrap_or_else(|| here.clone());
    look::ground(app.hub(), &app.runner.config, answering.as_str(), &place).await?;
    let request = TurnRequest {
        fresh: args.turn.fresh_session.then_some(FreshWish::Asked),
        no_reseed: args.turn.no_reseed,
        relocate: args.turn.relocate,
        raw: args.turn.raw,
        keep_background: args.turn.keep_background,
        timeout_ms: args.turn.timeout.map(|t| t.as_millis() as u64),
        idle_ms: args.turn.idle_timeout.map(|t| t.as_millis() as u64),
        max_cost: args.turn.max_cost,
        instructions: args.turn.instructions.clone(),
        ..app.base_request()
    };
    let incoming = Incoming {
        turn: None,
        target,
        text,
        agent,
        default_agent,
        here,
        title: args.title.clone(),
        scope: config.scope,
        flags: TurnFlags {
            workdir,
            permission: args.turn.permission.or(if known.is_none() {
                config.permission
            } else {
                None
            }),
            tools: args.turn.tools.clone(),
            deny_tools: args.turn.deny_tools.clone(),
            model: args.turn.model.clone(),
            default_model: config.models.get(answering.as_str()).cloned(),
        },
        request,
        client_key: args.turn.idempotency_key.clone(),
        refuse_if_busy: matches!(args.turn.if_busy, Busy::Fail),
        confirmed: args.turn.confirm,
        queue_limit: None,
        answers: args.turn.answers.clone(),
    };
    Ok((incoming, answering))
}

pub(super) fn must_be_enabled(app: &App, agent: &AgentName) -> Result<()> {
    if app.config.disabled.iter().any(|d| d == agent.as_str()) {
        let text = format!("{agent} is switched off in the configuration");
        return Err(Failure::usage(text).try_this("another agent with -a"));
    }
    Ok(())
}

/// A folder as it is stored: its real path.
pub(crate) fn folder_text(dir: &std::path::Path) -> Result<String> {
    let looked = rejoin_runner::folder::look(dir);
    looked
        .map(|folder| folder.path)
        .map_err(|e| Failure::folder(&dir.display().to_string(), &e))
}

pub(super) fn valid_key(key: &str) -> Result<String> {
    if key.is_empty() || key.len() > 200 || key.chars().any(char::is_control) {
        return Err(Failure::usage(
            "a key has 1 to 200 characters and no control characters",
        ));
    }
    Ok(key.to_owned())
}

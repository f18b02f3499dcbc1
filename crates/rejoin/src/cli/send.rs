//! `rejoin send` and `rejoin reply`

mod bundle;
mod limits;
mod piped;
mod remote;
mod text;

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Args, FromArgMatches};
use rejoin_core::{AgentName, ConversationId, Micros, PermissionMode, TurnId};
use rejoin_hub::{
    Accepted, Attachment, IfBusy, Incoming, LateAnswer, MessageRequest, STORED, SenderDefaults,
    Target, TurnView, fault, fields,
};
use rejoin_runner::Error as RunnerError;
use rejoin_runner::send::Draft;

use self::limits::if_busy;
pub(super) use self::limits::{milliseconds, parse_dollars, parse_duration, parse_idle};
use self::piped::piped;
pub(super) use self::text::prompt;
use self::text::{attachments, checked};
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::cli::confirm;
use crate::cli::escalate::{follow_climbs, next_turn, with_chain};
use crate::cli::follow::local::run_until_idle;
use crate::cli::proving;
use crate::cli::report::{Reported, interrupted, report, report_view};
use crate::cli::text_editor;
use crate::cli::watch::leave_running;
use crate::config::Ask;
use crate::hub_client::HubClient;
use crate::output::Output;
use rejoin_errors::{CommandError, Result};

/// Receives the conversation and the turn of a message, once the message is stored.
pub(super) type OnAccepted<'a> = &'a dyn Fn(ConversationId, TurnId);

/// Answered, but not saved.
const UNSAVED: u8 = 10;

/// Send a message and wait for the answer
///
/// Without -c or -k rejoin starts a new conversation. The answer goes to stdout. The verdict line,
/// which says how the conversation was continued, goes to stderr.
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  rejoin send \"fix the failing test\"\n  git diff | rejoin send -k review-42 \"review this\""
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
    /// Title of a new conversation
    #[arg(long, value_name = "TITLE", hide_short_help = true)]
    title: Option<String>,
    /// Store the conversation in this file only
    #[arg(long, value_name = "FILE", conflicts_with_all = ["conversation", "detach"], hide_short_help = true)]
    pub(super) bundle: Option<PathBuf>,
    #[command(flatten)]
    turn: TurnArgs,
}

impl Run for SendArgs {
    const NAME: &'static str = "send";
    const HELP: Help = Help::Talk("send a message");

    fn task(self) -> Task {
        if self.bundle.is_some() {
            return Task::machine(self, bundle::send).trust(TrustCheck::Required);
        }
        Task::hub(self, run).by_daemon().trust(TrustCheck::Required)
    }
}

/// Send a message to the last conversation of this folder
#[derive(Debug, Clone, Args)]
pub(crate) struct ReplyArgs {
    #[command(flatten)]
    turn: TurnArgs,
}

impl Run for ReplyArgs {
    const NAME: &'static str = "reply";
    const HELP: Help = Help::Talk("to the last one");

    fn task(self) -> Task {
        Task::hub(self, reply)
            .by_daemon()
            .trust(TrustCheck::Required)
    }
}

#[derive(Debug, Clone, Args)]
struct TurnArgs {
    /// Agent; default: the agent of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// Permissions: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Allow exactly these tools
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        hide_short_help = true
    )]
    tools: Option<Vec<String>>,
    /// Deny these tools
    #[arg(
        long,
        value_name = "A,B",
        value_delimiter = ',',
        hide_short_help = true
    )]
    deny_tools: Option<Vec<String>>,
    /// Run a turn of this tier of the configuration
    #[arg(long, value_name = "TIER", conflicts_with_all = ["model", "permission", "tools", "deny_tools"], hide_short_help = true)]
    tier: Option<String>,
    /// Climb to higher tiers by policy while it asks
    #[arg(
        long,
        requires = "tier",
        conflicts_with = "detach",
        hide_short_help = true
    )]
    climb: bool,
    /// Start a new session with the transcript
    #[arg(long)]
    fresh_session: bool,
    /// Refuse if the session cannot be resumed
    #[arg(long, hide_short_help = true)]
    no_reseed: bool,
    /// Resume the session in another folder
    #[arg(long, hide_short_help = true)]
    relocate: bool,
    /// Let the CLI interpret /commands and @files
    #[arg(long, hide_short_help = true)]
    raw: bool,
    /// Stop the turn after this time, e.g. 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration, hide_short_help = true)]
    timeout: Option<Duration>,
    /// Stop the turn if it is silent this long, or never
    #[arg(long, value_name = "TIME", value_parser = parse_idle, hide_short_help = true)]
    idle_timeout: Option<Duration>,
    /// Stop the turn at this cost, e.g. 0.5
    #[arg(long, value_name = "USD", value_parser = parse_dollars, hide_short_help = true)]
    max_cost: Option<Micros>,
    /// Standing instructions; re-sent when they change
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    instructions: Option<String>,
    /// Post the result to this URL (daemon only)
    #[arg(long, value_name = "URL", hide_short_help = true)]
    notify_url: Option<String>,
    /// Add a text file to the message (may be repeated)
    #[arg(long, value_name = "F")]
    file: Vec<PathBuf>,
    /// If another turn is running
    #[arg(long, value_parser = if_busy(), default_value = "wait", hide_short_help = true)]
    if_busy: IfBusy,
    /// Send at most once, even if repeated
    #[arg(long, value_name = "KEY", hide_short_help = true)]
    idempotency_key: Option<String>,
    /// Exit with 10 if the session could not be saved
    #[arg(long, conflicts_with = "detach", hide_short_help = true)]
    must_save: bool,
    /// Confirm a conversation with continue=ask
    #[arg(long, hide_short_help = true)]
    confirm: bool,
    /// Keep background processes until `cancel`
    #[arg(long, hide_short_help = true)]
    keep_background: bool,
    /// Return at once; the turn runs in the background
    #[arg(long, conflicts_with = "stream")]
    detach: bool,
    /// Print events as JSON lines as they happen
    #[arg(long, hide_short_help = true)]
    stream: bool,
    /// The message; `-` or none: stdin, or your $EDITOR
    #[arg(value_name = "PROMPT")]
    prompt: Option<String>,
    /// Text that was piped in beside the message.
    #[arg(skip)]
    piped: Option<Attachment>,
    #[arg(skip)]
    answers: Option<Box<LateAnswer>>,
}

impl SendArgs {
    /// Returns the request to send `text`. `folder` returns the stored form of a working folder.
    fn request(
        &self,
        text: String,
        folder: impl Fn(&Path) -> Result<String>,
    ) -> Result<MessageRequest> {
        let turn = &self.turn;
        Ok(MessageRequest {
            workflow_step: false,
            conversation_id: None,
            key: self.key.clone(),
            title: self.title.clone(),
            scope: None,
            defaults: SenderDefaults::default(),
            text,
            attachments: attachments(&turn.file, turn.piped.as_ref())?,
            agent: turn.agent.clone(),
            model: turn.model.clone(),
            instructions: turn.instructions.clone(),
            fresh_session: turn.fresh_session,
            no_reseed: turn.no_reseed,
            relocate: turn.relocate,
            permission: turn.permission.map(|mode| mode.as_str().to_owned()),
            tools: turn.tools.clone(),
            deny_tools: turn.deny_tools.clone(),
            tier: turn.tier.clone(),
            climb: turn.climb,
            client_key: turn.idempotency_key.clone(),
            timeout_ms: turn.timeout.map(milliseconds),
            idle_timeout_ms: turn.idle_timeout.map(milliseconds),
            max_cost_usd: turn.max_cost.map(Micros::dollars),
            confirm: turn.confirm,
            workdir: turn.workdir.as_deref().map(folder).transpose()?,
            raw: turn.raw,
            keep_background: turn.keep_background,
            if_busy: turn.if_busy,
            notify_url: turn.notify_url.clone(),
            answers: turn.answers.clone(),
        })
    }

    /// Parses flags of `rejoin send`.
    pub(crate) fn of_flags(flags: &[String]) -> Result<Self> {
        let command = Self::augment_args(clap::Command::new("send").no_binary_name(true));
        let typed = command.try_get_matches_from(flags);
        let args = typed.and_then(|typed| Self::from_arg_matches(&typed));
        args.map_err(|e| CommandError::usage(e.to_string()))
    }
}

async fn reply(hub: HubClient<'_>, args: &ReplyArgs) -> Result<u8> {
    let last = SendArgs {
        conversation: Some("last".into()),
        key: None,
        title: None,
        bundle: None,
        turn: args.turn.clone(),
    };
    run(hub, &last).await
}

async fn run(hub: HubClient<'_>, args: &SendArgs) -> Result<u8> {
    if args.turn.prompt.is_none()
        && let Some(written) = text_editor::write("")?
    {
        if written.text.trim().is_empty() {
            written.done();
            let text = "nothing was written in the editor; nothing was sent";
            return Err(CommandError::usage(text).try_this("rejoin send \"your message\""));
        }
        checked(&written.text).map_err(|failure| written.kept(failure))?;
        let sent = send_text(hub, args, written.text.clone(), &|_, _| written.done()).await;
        return sent.map_err(|failure| written.kept(failure));
    }
    let text = prompt(args.turn.prompt.as_deref())?;
    let mut args = args.clone();
    args.turn.piped = piped(hub.out(), args.turn.prompt.as_deref())?;
    send_text(hub, &args, text, &|_, _| ()).await
}

/// Sends `text` with the options of `args`, follows its turn and reports it.
pub(super) async fn send_text(
    hub: HubClient<'_>,
    args: &SendArgs,
    text: String,
    accepted: OnAccepted<'_>,
) -> Result<u8> {
    let mut args = args.clone();
    let confirmed = args.turn.confirm;
    confirm::or_ask(hub.out(), confirmed, async |confirmed| {
        args.turn.confirm = confirmed;
        match hub {
            HubClient::Local(app) => send_local(app, &args, text.clone(), accepted).await,
            HubClient::Remote(remote) => {
                remote::send(hub, remote, &args, text.clone(), accepted).await
            }
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
    app.config.must_be_trusted()?;
    let mut args = SendArgs::of_flags(&["-c".into(), c.to_string()])?;
    args.turn.answers = Some(answer);
    args.turn.confirm = true;
    send_local(app, &args, text, &|_, _| ()).await
}

async fn send_local(
    app: &App,
    args: &SendArgs,
    text: String,
    on_accepted: OnAccepted<'_>,
) -> Result<u8> {
    if args.turn.notify_url.is_some() {
        let text = "--notify-url needs a daemon: without one nothing sends notifications; the message was not kept";
        return Err(CommandError::usage(text).try_this("rejoin serve"));
    }
    if args.turn.detach {
        let (incoming, _) = incoming(app, args, text).await?;
        let accepted = app.hub().accept(&incoming, None).await?;
        fault::point("after_accept");
        return detach(app, &accepted).await;
    }
    let ended = run_turn(app, args, text, on_accepted).await?;
    if args.turn.climb {
        let view = app.hub().turn_view(ended.turn).await?;
        return after_turn(HubClient::Local(app), &view, ended.signal, args.turn.stream).await;
    }
    report_turn(app, args, &ended).await
}

/// Reports a turn of a chain, and follows the climb from it, if there is one.
async fn after_turn(
    hub: HubClient<'_>,
    view: &TurnView,
    signal: Option<u8>,
    stream: bool,
) -> Result<u8> {
    let (out, reported) = (hub.out(), Reported::of(stream));
    let Some(next) = next_turn(view) else {
        if out.json && !stream && view.ended() {
            return with_chain(hub, view, signal).await;
        }
        return Ok(report_view(out, view, reported, signal));
    };
    if !out.json {
        report_view(out, view, reported, signal);
    }
    follow_climbs(hub, view.conversation_id, next, stream).await
}

/// A turn that has ended or waits, and the signal that interrupted it.
struct EndedTurn {
    turn: TurnId,
    signal: Option<u8>,
}

async fn run_turn(
    app: &App,
    args: &SendArgs,
    text: String,
    on_accepted: OnAccepted<'_>,
) -> Result<EndedTurn> {
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let accepted = accept(app, args, text).await?;
    on_accepted(accepted.conversation, accepted.turn);
    let (if_busy, stream) = (args.turn.if_busy, args.turn.stream);
    let signal = run_until_idle(app, &accepted, if_busy, stream, interrupted).await?;
    let turn = accepted.turn;
    Ok(EndedTurn { turn, signal })
}

/// Accepts a message. This process then holds its turn, if no other turn has to run first.
pub(crate) async fn accept(app: &App, args: &SendArgs, text: String) -> Result<Accepted> {
    let (mut incoming, answering) = incoming(app, args, text).await?;
    let holder = app.runner.holder()?;
    let turn = app.hub().clock.turn_id()?;
    incoming.turn = Some(turn);
    app.runner.prespawn(turn, answering);
    let accepted = app.hub().accept(&incoming, Some(holder.as_str())).await;
    if !accepted.as_ref().is_ok_and(|it| it.claimed.is_some()) {
        app.runner.discard_prespawned();
    }
    let accepted = accepted?;
    fault::point("after_accept");
    Ok(accepted)
}

async fn report_turn(app: &App, args: &SendArgs, ended: &EndedTurn) -> Result<u8> {
    let stream = Reported::of(args.turn.stream);
    let code = report(app, ended.turn, stream, ended.signal).await?;
    if !args.turn.must_save || code != 0 {
        return Ok(code);
    }
    let view = app.hub().turn_view(ended.turn).await?;
    Ok(if view.saved == STORED { 0 } else { UNSAVED })
}

/// Note for a turn in the background that would have to ask.
const NOBODY_ASKED: &str = "nobody is asked in the background: calls that need approval are denied; \
     to be asked (rejoin inbox): rejoin config set questions.ask always";

async fn detach(app: &App, accepted: &Accepted) -> Result<u8> {
    // Before it runs: what is printed must not depend on how far it has come.
    let view = app.hub().turn_view(accepted.turn).await?;
    let stored = app
        .hub()
        .store
        .read()
        .await?
        .turns()
        .get(accepted.turn)
        .await?;
    leave_running(app, accepted.conversation, accepted.turn)?;
    detached(app.out, &view);
    let mode = stored.map(|turn| turn.request["envelope"]["mode"].clone());
    let asks = mode.is_some_and(|mode| mode == PermissionMode::Ask.as_str());
    if asks && app.config.ask != Ask::Always && !app.out.json {
        app.out.note(NOBODY_ASKED);
    }
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

/// Checks the message. Returns the input of the hub, and the agent that will answer.
async fn incoming(app: &App, args: &SendArgs, text: String) -> Result<(Incoming, AgentName)> {
    let hub = app.hub();
    let request = args.request(text, folder_text)?;
    let (target, known) = match (&args.conversation, &request.key) {
        (Some(name), _) => {
            let found = hub.find(name, &app.folders()).await?.conversation;
            (Target::Conversation(found.id), Some(found))
        }
        (None, Some(key)) => {
            let key = fields::key(key)?;
            let mut read = hub.store.read().await?;
            let found = read.conversations().by_key(&hub.namespace, &key).await?;
            (Target::Key(key), found)
        }
        (None, None) => (Target::New, None),
    };
    let defaults = app.defaults()?;
    let draft = Draft::new(&request, &defaults, known.as_ref())?;
    let answering = draft.answering().clone();
    let folder = match &known {
        // The turn checks the folder of its conversation when it enters it.
        Some(_) => draft.folder(),
        None => folder_text(Path::new(&draft.folder()))?,
    };
    let incoming = draft.incoming(hub, &app.runner.config, target, folder);
    match (proving::with_words(app.out, incoming).await, &known) {
        (Ok(incoming), _) => Ok((incoming, answering)),
        (Err(RunnerError::Folder { path, source }), Some(known)) => {
            let handle = hub.store.read().await?;
            let handle = { handle }
                .conversations()
                .short_handle(&known.handle)
                .await?;
            let next = format!("rejoin send -c {handle} -w . --relocate \"…\"");
            Err(CommandError::folder(&path, &source).try_this(next))
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// A folder as it is stored: its real path.
pub(crate) fn folder_text(dir: &Path) -> Result<String> {
    let looked = rejoin_runner::folder::look(dir);
    looked
        .map(|folder| folder.path)
        .map_err(|e| CommandError::folder(&dir.display().to_string(), &e))
}

//! `rejoin retry`

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use rejoin_core::{AgentName, ConversationId, MessageId, Micros, PermissionMode};
use rejoin_hub::{Again, TurnFlags, TurnRequest, Want};
use rejoin_runner::{IfBusy, look};

use super::change::{removed, report};
use super::confirm;
use super::follow::to_its_end;
use super::outcome::interrupted;
use super::send::{
    folder_text, must_be_enabled, parse_dollars, parse_duration, parse_idle, valid_key,
};
use super::there::{Following, Interrupt};
use super::watch::Waits;
use crate::app::App;
use crate::at::At;
use crate::failure::{Failure, Result, codes};
use crate::remote::{Ask, Remote, new_key};

/// Run a message again, in a new session; what followed it is removed
///
/// Without a message: the last one you sent in the conversation last used in this folder. rejoin undo
/// brings back what was removed.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin retry                    the last message, again\n  rejoin retry tmqx:5 -a codex    message 5, answered by another agent"
)]
pub(crate) struct RetryArgs {
    /// Your message (tmqx:5), or a conversation: its last
    #[arg(value_name = "MESSAGE", default_value = "last")]
    message: String,
    /// Agent; default: the one of the newest turn
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// What the agent may do: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Stop the turn after this time, e.g. 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Stop the turn after this much silence, or never
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_idle)]
    idle_timeout: Option<Duration>,
    /// Stop the turn once it has cost this, e.g. 0.5
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<Micros>,
    /// Run at most once, however often repeated
    #[arg(long, hide = true, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Continue a conversation that asks first
    #[arg(long)]
    confirm: bool,
    /// Print events as JSON lines while they happen
    #[arg(long)]
    stream: bool,
    /// Say what would be removed, and run nothing
    #[arg(long, conflicts_with = "stream")]
    dry_run: bool,
}

pub(crate) async fn run(at: At<'_>, args: &RetryArgs) -> Result<u8> {
    if let At::Here(app) = at {
        app.must_be_trusted()?;
    }
    let named = at.named(&args.message, Want::Said).await?;
    let name = &named.conversation.handle;
    let none = || Failure::not_found(format!("{name} has no message yet"));
    let message = named.message.ok_or_else(none)?;
    if args.dry_run {
        let changed = at.would_retry(message.id).await?;
        let sentence = format!("{name}:{} run again, {}", message.seq, removed(&changed));
        report(at.out(), &changed, &sentence);
        return Ok(0);
    }
    confirm::or_ask(at.out(), args.confirm, async |confirmed| match at {
        At::Here(app) => here(app, args, named.conversation.id, message.id, confirmed).await,
        At::There(remote) => there(at, remote, args, message.id, confirmed).await,
    })
    .await
    .map_err(|failure| not_continued(failure, &format!("{name}:{}", message.seq)))
}

/// Rewords a refusal by the conversation's policy, which speaks of a new message: a retry has none.
fn not_continued(mut failure: Failure, message: &str) -> Failure {
    let kept = "this message was not kept";
    failure.message = failure.message.replace(kept, "nothing was changed");
    if failure.code == codes::CONFIRM.word {
        return failure.try_this(format!("rejoin retry {message} --confirm"));
    }
    failure
}

async fn there(
    at: At<'_>,
    remote: &Remote,
    args: &RetryArgs,
    message: MessageId,
    confirmed: bool,
) -> Result<u8> {
    let workdir = args.workdir.as_deref().map(|dir| at.folder_text(dir));
    let mut body = serde_json::json!({
        "agent": args.agent, "model": args.model, "workdir": workdir.transpose()?,
        "permission": args.permission,
        "timeout_ms": args.timeout.map(|t| t.as_millis() as u64),
        "idle_timeout_ms": args.idle_timeout.map(|t| t.as_millis() as u64),
        "max_cost_usd": args.max_cost.map(Micros::dollars),
        "confirm": confirmed,
    });
    // An older daemon need not know of options that were not given.
    if let Some(body) = body.as_object_mut() {
        body.retain(|_, value| !value.is_null() && *value != false);
    }
    let interrupted = interrupted();
    let id = message.to_string();
    let key = args.idempotency_key.clone().or_else(new_key);
    let ask = Ask::post(&["api", "messages", &id, "retry"]).body(body);
    let ask = ask.known_by(key);
    let following = Following {
        stream: args.stream,
        interrupt: Interrupt::Cancels,
        waits: Waits::Return,
    };
    let turn = remote.ask(ask).await?;
    following.to_its_end(remote, turn, interrupted).await
}

async fn here(
    app: &App,
    args: &RetryArgs,
    c: ConversationId,
    message: MessageId,
    confirmed: bool,
) -> Result<u8> {
    let hub = app.hub();
    let conversation = hub.find(&c.to_string(), &[]).await?.conversation;
    let agent = args.agent.as_deref().map(AgentName::new).transpose();
    let agent = agent.map_err(|e| Failure::usage(e.to_string()))?;
    let answering = agent.clone().unwrap_or_else(|| conversation.agent.clone());
    must_be_enabled(app, &answering)?;
    let workdir = args.workdir.as_deref().map(folder_text).transpose()?;
    let place = workdir.as_deref().unwrap_or(&conversation.workdir);
    look::ground(hub, &app.runner.config, answering.as_str(), place).await?;
    let again = Again {
        message,
        agent,
        flags: TurnFlags {
            workdir: workdir.clone(),
            permission: args.permission,
            model: args.model.clone(),
            default_model: app.config.models.get(answering.as_str()).cloned(),
            ..TurnFlags::default()
        },
        request: TurnRequest {
            timeout_ms: args.timeout.map(|t| t.as_millis() as u64),
            idle_ms: args.idle_timeout.map(|t| t.as_millis() as u64),
            max_cost: args.max_cost,
            ..app.base_request()
        },
        client_key: args.idempotency_key.as_deref().map(valid_key).transpose()?,
        confirmed,
        queue_limit: None,
    };
    // It comes before what is run again, or goes with what follows it.
    app.runner.take_in_before_change(conversation.id).await?;
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let accepted = hub.retry(&again, &app.runner.holder()?).await?;
    to_its_end(app, &accepted, IfBusy::Wait, args.stream, interrupted).await
}

//! `rejoin retry`

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use rejoin_core::{ConversationId, MessageId, Micros, PermissionMode};
use rejoin_hub::{IfBusy, MessageRequest, NameKind, RetryRequest};
use rejoin_runner::send::Draft;

use super::change::{removed, report};
use super::confirm;
use super::follow::local::run_and_report;
use super::follow::remote::follow_and_report;
use super::report::interrupted;
use super::send::{folder_text, milliseconds, parse_dollars, parse_duration, parse_idle};
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::cli::proving;
use crate::hub_client::HubClient;
use crate::remote::{Ask, Remote, new_key};
use rejoin_errors::{CommandError, Result, codes};

/// Run a message again in a new session; remove what followed it
///
/// Default: your last message in the last conversation of this folder. rejoin undo restores the removed
/// messages.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin retry                    the last message, again\n  rejoin retry tmqx:5 -a codex    message 5, answered by another agent"
)]
pub(crate) struct RetryArgs {
    /// Your message (tmqx:5), or a conversation: its last
    #[arg(value_name = "MESSAGE", default_value = "last")]
    message: String,
    /// Agent; default: the one that answered it
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Model
    #[arg(short, long)]
    model: Option<String>,
    /// Working folder; default: the conversation's
    #[arg(short, long, value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// Permissions: read-only, edit, full, ask
    #[arg(long, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// Stop the turn after this time, e.g. 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    timeout: Option<Duration>,
    /// Stop the turn if it is silent this long, or never
    #[arg(long, hide = true, value_name = "TIME", value_parser = parse_idle)]
    idle_timeout: Option<Duration>,
    /// Stop the turn at this cost, e.g. 0.5
    #[arg(long, value_name = "USD", value_parser = parse_dollars)]
    max_cost: Option<Micros>,
    /// Run at most once, even if repeated
    #[arg(long, hide = true, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Confirm a conversation with continue=ask
    #[arg(long)]
    confirm: bool,
    /// Print events as JSON lines as they happen
    #[arg(long)]
    stream: bool,
    /// Show what would be removed, and run nothing
    #[arg(long, conflicts_with = "stream")]
    dry_run: bool,
}

impl RetryArgs {
    /// Returns the options of the retry. `folder` returns the stored form of a working folder.
    fn request(
        &self,
        confirm: bool,
        folder: impl Fn(&Path) -> Result<String>,
    ) -> Result<RetryRequest> {
        Ok(RetryRequest {
            agent: self.agent.clone(),
            model: self.model.clone(),
            permission: self.permission.map(|mode| mode.as_str().to_owned()),
            workdir: self.workdir.as_deref().map(folder).transpose()?,
            timeout_ms: self.timeout.map(milliseconds),
            idle_timeout_ms: self.idle_timeout.map(milliseconds),
            max_cost_usd: self.max_cost.map(Micros::dollars),
            confirm,
        })
    }
}

impl Run for RetryArgs {
    const NAME: &'static str = "retry";
    const HELP: Help = Help::Change("rerun it");

    fn task(self) -> Task {
        Task::hub(self, run).by_daemon().trust(TrustCheck::Required)
    }
}

async fn run(hub: HubClient<'_>, args: &RetryArgs) -> Result<u8> {
    let named = hub.named(&args.message, NameKind::Said).await?;
    let name = &named.conversation.handle;
    let none = || CommandError::not_found(format!("{name} has no message yet"));
    let message = named.message.ok_or_else(none)?;
    if args.dry_run {
        let changed = hub.would_retry(message.id).await?;
        let sentence = format!("{name}:{} run again, {}", message.seq, removed(&changed));
        report(hub.out(), &changed, &sentence);
        return Ok(0);
    }
    confirm::or_ask(hub.out(), args.confirm, async |confirmed| match hub {
        HubClient::Local(app) => {
            run_local(app, args, named.conversation.id, message.id, confirmed).await
        }
        HubClient::Remote(remote) => run_remote(hub, remote, args, message.id, confirmed).await,
    })
    .await
    .map_err(|failure| not_continued(failure, &format!("{name}:{}", message.seq)))
}

/// Rewords a refusal by the conversation's policy, which speaks of a new message: a retry has none.
fn not_continued(mut failure: CommandError, message: &str) -> CommandError {
    let kept = "this message was not kept";
    failure.message = failure.message.replace(kept, "nothing was changed");
    if failure.code == codes::CONFIRM.word {
        return failure.try_this(format!("rejoin retry {message} --confirm"));
    }
    failure
}

async fn run_remote(
    hub: HubClient<'_>,
    remote: &Remote,
    args: &RetryArgs,
    message: MessageId,
    confirmed: bool,
) -> Result<u8> {
    let body = args.request(confirmed, |dir| hub.folder_text(dir))?;
    let interrupted = interrupted();
    let id = message.to_string();
    let key = args.idempotency_key.clone().or_else(new_key);
    let ask = Ask::post(&["api", "messages", &id, "retry"]).body(body);
    let ask = ask.known_by(key);
    let turn = remote.ask(ask).await?;
    follow_and_report(remote, turn, args.stream, interrupted).await
}

async fn run_local(
    app: &App,
    args: &RetryArgs,
    c: ConversationId,
    message: MessageId,
    confirmed: bool,
) -> Result<u8> {
    let hub = app.hub();
    let mut conversation = hub.find(&c.to_string(), &[]).await?.conversation;
    if let Some(agent) = hub.agent_of(message).await? {
        conversation.agent = agent;
    }
    let request = args.request(confirmed, folder_text)?.as_message(c);
    let request = MessageRequest {
        client_key: args.idempotency_key.clone(),
        ..request
    };
    let defaults = app.defaults()?;
    let draft = Draft::new(&request, &defaults, Some(&conversation))?;
    let folder = draft.folder();
    let again = draft.retry(hub, &app.runner.config, message, &folder);
    let again = proving::with_words(app.out, again).await?;
    // External messages come before the message, or are removed with those after it.
    app.runner.take_in_before_change(conversation.id).await?;
    // From here on a signal cancels the turn, and does not leave it to others.
    let interrupted = interrupted();
    let accepted = hub.retry(&again, &app.runner.holder()?).await?;
    run_and_report(app, &accepted, IfBusy::Wait, args.stream, interrupted).await
}

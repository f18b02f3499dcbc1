//! `rejoin escalate`, and the turns that follow a climb.

use clap::Args;
use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, EscalateRequest, EscalateView, IfBusy, NameKind, TurnView};
use serde_json::Value;

use super::chain;
use super::follow::local::run_until_idle;
use super::follow::remote::follow_sent;
use super::report::{Reported, interrupted, report_view};
use crate::app::App;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::hub_client::HubClient;
use crate::output::Output;
use crate::remote::{Ask, Remote};
use rejoin_errors::Result;

/// Climb to a higher tier now
///
/// Continues the conversation with a turn of the next tier, or of the named one. Every check of the
/// policy applies: rejoin tiers, rejoin hold, and [climb] in the configuration.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin escalate health --dry-run      checks and prompt\n  rejoin escalate health --to remediate --reason \"the db is down\""
)]
pub(crate) struct EscalateArgs {
    /// Conversation: handle, id, key, or `last`
    #[arg(value_name = "CONV", default_value = "last")]
    conversation: String,
    /// Tier; default: the next one
    #[arg(long, value_name = "TIER")]
    to: Option<String>,
    /// Reason, stored with the turn
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print the checks and the prompt, and run nothing
    #[arg(short = 'n', long)]
    dry_run: bool,
}

impl Run for EscalateArgs {
    const NAME: &'static str = "escalate";
    const HELP: Help = Help::Talk("climb");

    fn task(self) -> Task {
        Task::hub(self, run).by_daemon().trust(TrustCheck::Required)
    }
}

async fn run(hub: HubClient<'_>, args: &EscalateArgs) -> Result<u8> {
    let found = hub
        .named(&args.conversation, NameKind::Conversation)
        .await?;
    let c = found.conversation.id;
    let mut asked = EscalateRequest {
        to: args.to.clone(),
        reason: args.reason.clone(),
        dry_run: args.dry_run,
        tiers: None,
    };
    let view: EscalateView = match hub {
        HubClient::Local(app) => {
            let (tiers, base) = (&app.config.tiers, app.base_request());
            app.hub().escalate(c, &asked, tiers, &base).await?
        }
        HubClient::Remote(remote) => {
            asked.tiers = remote.config.as_ref().map(|config| config.tiers.clone());
            let path = ["api", "conversations", &c.to_string(), "escalate"];
            remote.ask(Ask::post(&path).body(&asked)).await?
        }
    };
    match view.turn_id {
        Some(turn) => follow_climbs(hub, c, turn, false).await,
        None => {
            print(hub.out(), &view);
            Ok(0)
        }
    }
}

/// Prints the decision of a dry run.
fn print(out: Output, view: &EscalateView) {
    if out.json {
        out.json(view);
        return;
    }
    for check in view.checks.as_array().into_iter().flatten() {
        let word = match check["ok"].as_bool() {
            Some(true) => "ok",
            Some(false) => "refused",
            None => "-",
        };
        let text = |key: &str| check[key].as_str().unwrap_or_default().to_owned();
        out.text(&format!(
            "{word:8} {:14} {}",
            text("check"),
            text("evidence")
        ));
    }
    if let Some(prompt) = &view.prompt {
        out.text(&format!("\n{prompt}"));
    }
}

/// Returns the turn that the climb from a turn began.
pub(super) fn next_turn(turn: &TurnView) -> Option<TurnId> {
    let next = turn.escalation.as_ref()?.get("turn_id")?;
    next.as_str()?.parse().ok()
}

/// Runs or follows a climb and the climbs after it. Reports the last turn; `--json` prints it with
/// its chain.
pub(super) async fn follow_climbs(
    hub: HubClient<'_>,
    c: ConversationId,
    first: TurnId,
    stream: bool,
) -> Result<u8> {
    let (out, mut turn) = (hub.out(), first);
    loop {
        let (view, signal) = match hub {
            HubClient::Local(app) => run_local(app, c, turn, stream).await?,
            HubClient::Remote(remote) => (follow_remote(remote, turn, stream).await?, None),
        };
        if let Some(next) = next_turn(&view) {
            if !out.json {
                report_view(out, &view, Reported::of(stream), signal);
            }
            turn = next;
            continue;
        }
        if !out.json || stream {
            return Ok(report_view(out, &view, Reported::of(stream), signal));
        }
        return with_chain(hub, &view, signal).await;
    }
}

/// Prints a turn with its chain as one document.
pub(super) async fn with_chain(
    hub: HubClient<'_>,
    view: &TurnView,
    signal: Option<u8>,
) -> Result<u8> {
    let out = hub.out();
    let mut document = serde_json::to_value(view).unwrap_or_default();
    let chain = chain::of_turn(hub, view).await?;
    document["chain"] = serde_json::to_value(chain).unwrap_or(Value::Null);
    out.json(&document);
    Ok(report_view(out, view, Reported::AsEvents, signal))
}

async fn run_local(
    app: &App,
    conversation: ConversationId,
    turn: TurnId,
    stream: bool,
) -> Result<(TurnView, Option<u8>)> {
    let accepted = Accepted {
        conversation,
        turn,
        replayed: false,
        created: false,
        claimed: None,
    };
    let signal = run_until_idle(app, &accepted, IfBusy::Wait, stream, interrupted()).await?;
    Ok((app.hub().turn_view(turn).await?, signal))
}

async fn follow_remote(remote: &Remote, turn: TurnId, stream: bool) -> Result<TurnView> {
    let view = remote
        .ask(Ask::get(&["api", "turns", &turn.to_string()]))
        .await?;
    let followed = follow_sent(remote, view, stream, interrupted()).await?;
    Ok(followed.turn)
}

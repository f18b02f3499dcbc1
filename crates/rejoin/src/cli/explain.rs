//! `rejoin explain`

use std::path::PathBuf;

use clap::Args;
use rejoin_core::{AgentName, Hold, TurnPlan, Verdict, decide, tokens_of};
use rejoin_hub::{TurnRequest, TurnView};
use rejoin_runner::look;
use serde_json::{Value, json};

use crate::app::App;
use crate::cli::send::folder_text;
use crate::failure::{Failure, Result};

/// Say why a turn was continued as it was, or what the next one would do
#[derive(Debug, Args)]
pub(crate) struct ExplainArgs {
    /// Turn, message or conversation; a conversation means its last turn
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
    /// What would happen if you sent a message now
    #[arg(long)]
    pub(super) next: bool,
    #[arg(short, long, requires = "next")]
    agent: Option<String>,
    #[arg(short, long, requires = "next")]
    workdir: Option<PathBuf>,
    #[arg(short, long, requires = "next")]
    model: Option<String>,
    /// Show the command as it was run, in full
    #[arg(long)]
    raw: bool,
}

pub(crate) async fn run(app: &App, args: &ExplainArgs) -> Result<u8> {
    if args.next {
        return next(app, args).await;
    }
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let view = app.hub().turn_view(turn.id).await?;
    if app.out.json {
        app.out.json(&view);
    } else {
        past(app, &view, args.raw);
    }
    Ok(0)
}

fn past(app: &App, view: &TurnView, raw: bool) {
    let verdict = view.verdict.as_deref().unwrap_or("not decided");
    let why = view
        .reason
        .as_deref()
        .map(|r| format!(" because {r}"))
        .unwrap_or_default();
    let version = view.version.as_deref().unwrap_or(&view.agent);
    app.out.text(&format!(
        "{verdict}{why}   {}   {version}   {}",
        view.handle, view.status
    ));
    print_checks(app, &view.checks);
    for (n, attempt) in view.attempts.iter().enumerate() {
        let why = attempt
            .reason
            .as_deref()
            .map(|r| format!(", {r}"))
            .unwrap_or_default();
        app.out.text(&format!(
            "attempt {}  {}{why}: {}  session {}",
            n + 1,
            attempt.verdict,
            attempt.status,
            attempt.session_id
        ));
    }
    print_sent(app, &json!(view.sent));
    let cost = view
        .cost_usd
        .map_or_else(|| "unknown".into(), |c| format!("${c:.4}"));
    app.out.text(&format!("cost      {cost}"));
    if let Some(denied) = view.denied.as_array().filter(|d| !d.is_empty()) {
        let list: Vec<String> = denied
            .iter()
            .map(|d| format!("{} {}", text(&d["tool"]), text(&d["input"])))
            .collect();
        app.out.text(&format!("denied    {}", list.join("; ")));
    }
    if !view.leftovers.is_empty() {
        app.out
            .text(&format!("ended     {}", view.leftovers.join("; ")));
    }
    if let Some(error) = &view.error {
        app.out
            .text(&format!("error     {}: {}", error.class, error.message));
    }
    if !view.command.is_empty() {
        let line = view.command.join(" ");
        let shown = if raw || line.len() <= 160 {
            line
        } else {
            format!(
                "{}…  (--raw for all)",
                line.chars().take(150).collect::<String>()
            )
        };
        app.out.text(&format!("command   {shown}"));
    }
}

async fn next(app: &App, args: &ExplainArgs) -> Result<u8> {
    app.must_be_trusted()?;
    let hub = app.hub();
    let conversation = hub.find(&args.turn, &app.folders()).await?.conversation;
    let agent = match &args.agent {
        Some(name) => AgentName::new(name.as_str()).map_err(|e| Failure::usage(e.to_string()))?,
        None => conversation.agent.clone(),
    };
    let own = conversation
        .settings
        .get(agent.as_str())
        .cloned()
        .unwrap_or_default();
    let request = TurnRequest {
        workdir: args
            .workdir
            .as_deref()
            .map(folder_text)
            .transpose()?
            .unwrap_or_else(|| conversation.workdir.clone()),
        model: args
            .model
            .clone()
            .or(own.model)
            .or_else(|| app.config.models.get(agent.as_str()).cloned()),
        envelope: conversation.envelope(&agent),
        context_threshold: app.config.context_threshold,
        breaker: app.config.breaker,
        model_change: app.config.model_change,
        after_compaction: app.config.after_compaction,
        ..TurnRequest::default()
    };
    let outlook = hub
        .outlook(conversation.id, conversation.scope, &agent, None)
        .await?;
    let looked = look::look(hub, &app.runner.config, agent.as_str(), &request, outlook).await?;
    let decision = decide(&looked.situation(&agent, &request));
    let checks: Vec<Value> = decision
        .checks
        .iter()
        .map(|c| json!({"check": c.check.to_string(), "ok": c.ok, "evidence": c.evidence.to_string()}))
        .collect();
    let (verdict, reason, sent) = match &decision.plan {
        Ok(plan) => {
            let (resumed, caught_up, transcribed) = match plan {
                TurnPlan::Start { .. } => (0, 0, 0),
                TurnPlan::Resume { catch_up, .. } => (catch_up.after(), catch_up.messages(), 0),
                TurnPlan::Reseed { transcript, .. } => (0, 0, transcript.messages()),
            };
            let rest = hub.rest(conversation.id, &looked.outlook, plan).await?;
            let bytes: u64 = rest.iter().map(|m| tokens_of(&m.text) * 4).sum();
            let sent = json!({"resumed": resumed, "caught_up": caught_up, "transcribed": transcribed, "left_out": 0, "bytes": bytes});
            (
                Some(plan.verdict()),
                plan.reason().map(|r| r.to_string()),
                sent,
            )
        }
        Err(Hold::InUse { .. }) => (None, Some("in_use".to_owned()), Value::Null),
        Err(Hold::WouldReseed { why }) => (None, Some(why.to_string()), Value::Null),
        Err(Hold::Envelope) => (None, Some("envelope".to_owned()), Value::Null),
    };
    if app.out.json {
        app.out.json(&json!({
            "verdict": verdict.map(Verdict::as_str), "reason": reason, "checks": checks, "sent": sent,
            "cost_estimate_usd": null,
        }));
        return Ok(0);
    }
    let why = reason.map(|r| format!(" because {r}")).unwrap_or_default();
    app.out.text(&format!(
        "next turn: {}{why}",
        verdict.map_or("held", Verdict::as_str)
    ));
    print_checks(app, &Value::Array(checks));
    print_sent(app, &sent);
    Ok(0)
}

fn print_checks(app: &App, checks: &Value) {
    for check in checks.as_array().into_iter().flatten() {
        let mark = match check["ok"].as_bool() {
            Some(true) => "ok  ",
            Some(false) => "FAIL",
            None => continue,
        };
        app.out.text(&format!(
            "  {mark}  {:11} {}",
            text(&check["check"]),
            text(&check["evidence"])
        ));
    }
}

fn print_sent(app: &App, sent: &Value) {
    let n = |key: &str| sent[key].as_u64().unwrap_or(0);
    let mut parts = vec![];
    let mut part = |count: u64, what: &str| {
        if count > 0 {
            parts.push(format!("{count} messages {what}"));
        }
    };
    part(n("resumed"), "known to the session");
    part(n("caught_up"), "caught up on");
    part(n("transcribed"), "re-told");
    part(n("shortened"), "of them shortened");
    part(n("left_out"), "left out");
    if parts.is_empty() {
        parts.push("nothing but the message".into());
    }
    app.out.text(&format!(
        "sent      {}; {} bytes",
        parts.join(", "),
        n("bytes")
    ));
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or("")
}

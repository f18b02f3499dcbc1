//! `rejoin explain`

mod future;
mod page;
pub(super) mod why;

use std::path::{Path, PathBuf};

use clap::Args;
use rejoin_core::{Micros, Reason, TurnStatus};
use rejoin_hub::TurnView;
use rejoin_store::StoredTurn;
use serde_json::Value;

use crate::app::App;
use crate::failure::Result;
use crate::output::figures::{Now, count, duration, money, tokens};
use crate::output::{Line, Output, Tone};
use crate::portable::Glance;
use page::{Page, Worth};
use why::{Case, Tense, allowed, told, version};

/// Say why a turn went as it did, or what the next one would do
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin explain                the last turn in this folder\n  rejoin explain tmqx:14        the turn that message 14 belongs to\n  rejoin explain tmqx --next    what would happen if you sent now"
)]
pub(crate) struct ExplainArgs {
    /// Turn, message or conversation; a conversation means its last turn
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
    /// What would happen if you sent a message now
    #[arg(long)]
    pub(super) next: bool,
    /// With --next: if this agent answered
    #[arg(short, long, requires = "next")]
    agent: Option<String>,
    /// With --next: in this folder
    #[arg(short, long, requires = "next", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// With --next: with this model
    #[arg(short, long, requires = "next")]
    model: Option<String>,
    /// Show every check, and the command in full
    #[arg(long)]
    raw: bool,
    /// Of the conversation in this file
    #[arg(long, value_name = "FILE")]
    pub(super) bundle: Option<PathBuf>,
}

/// Of a conversation that lives in a file.
pub(crate) async fn of_bundle(
    mut args: ExplainArgs,
    out: Output,
    config: Option<&Path>,
) -> Result<u8> {
    let file = args.bundle.clone().unwrap_or_default();
    let glance = Glance::at(out, config, &file).await?;
    args.turn = glance.named(&args.turn);
    run(&glance.app, &args).await
}

pub(crate) async fn run(app: &App, args: &ExplainArgs) -> Result<u8> {
    if args.next {
        return future::run(app, args).await;
    }
    let turn = app.hub().find_turn(&args.turn, &app.folders()).await?;
    let view = app.hub().turn_view(turn.id).await?;
    if app.out.json {
        app.out.json(&view);
    } else {
        past(app, &turn, &view, args.raw).await?;
    }
    Ok(0)
}

async fn past(app: &App, turn: &StoredTurn, view: &TurnView, raw: bool) -> Result<()> {
    let mut page = Page::new(app.out);
    let now = Now::at(app.hub().clock.now());
    let when = view
        .started_at
        .as_deref()
        .map(|at| now.moment(at))
        .unwrap_or_default();
    let version = version(&view.agent, view.version.as_deref());
    // That nothing precedes the first turn is no failure.
    let code = turn.reason.filter(|r| *r != Reason::FirstTurn);
    page.head(
        &headline(turn, view),
        code,
        &[view.handle.clone(), version, when],
    );
    let first = turn.reason == Some(Reason::FirstTurn);
    page.checks(&view.checks, |name, ok| {
        if raw {
            Worth::Line
        } else {
            worth(name, ok, first)
        }
    });
    if turn.verdict.is_some() {
        page.row("sent", &told(&view.sent, Tense::Past));
    }
    if turn.status.ended() {
        let resumed = app.hub().estimate_resumed(turn).await?;
        page.row("cost", &cost(view, resumed));
    }
    page.row("allowed", &permission(turn, view));
    if let Some(denied) = view.denied.as_array().filter(|d| !d.is_empty()) {
        let list: Vec<String> = denied.iter().map(denial).collect();
        page.row("denied", &list.join("; "));
    }
    if view.attempts.len() > 1 {
        for (n, attempt) in view.attempts.iter().enumerate() {
            let label = if n == 0 { "attempts" } else { "" };
            let (verdict, status, session) =
                (&attempt.verdict, &attempt.status, &attempt.session_id);
            page.row(
                label,
                &format!("{}. {verdict}: {status}, session {session}", n + 1),
            );
        }
    } else if let Some(session) = &view.session_id {
        page.row("session", session);
    }
    if !view.leftovers.is_empty() {
        let many = count(view.leftovers.len() as u64, "process").replace("processs", "processes");
        page.row(
            "ended",
            &format!("{many} it had left running: {}", view.leftovers.join("; ")),
        );
    }
    if let Some(error) = &view.error {
        page.row("error", &error.message);
    }
    if turn.status.ended() && turn.status != TurnStatus::Succeeded {
        page.row(
            "kept",
            "the message is unanswered; the next turn shows it once",
        );
    }
    if let Some(next) = next_turn(app, turn, view).await? {
        page.row("next", &next);
    }
    if !view.command.is_empty() {
        if raw {
            page.long_row("command", &command(&view.command));
        } else {
            let mut short = view.command.clone();
            short[0] = match short[0].rsplit('/').next() {
                Some("exe") | None => "rejoin".to_owned(),
                Some(name) => name.trim_end_matches(".exe").to_owned(),
            };
            page.short_row("command", &command(&short), "(--raw for all)");
        }
    }
    page.print(app.out);
    Ok(())
}

fn headline(turn: &StoredTurn, view: &TurnView) -> Line {
    let case = Case {
        agent: &view.agent,
        verdict: turn.verdict,
        reason: turn.reason,
        sent: view.sent,
        evidence: refusal(&view.checks),
    };
    let mut line = Line::new();
    let class = view
        .error
        .as_ref()
        .map(|e| format!(" ({})", e.class))
        .unwrap_or_default();
    match turn.status {
        TurnStatus::Succeeded => {}
        TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting => {
            line = line
                .with(Tone::Busy, turn.status.as_str())
                .with(Tone::Plain, "; ");
        }
        TurnStatus::Failed | TurnStatus::Cancelled | TurnStatus::Lost => {
            line = line
                .with(Tone::Bad, &format!("{}{class}", turn.status))
                .with(Tone::Plain, "; it was ");
        }
    }
    line.with(Tone::Strong, &case.headline(Tense::Past))
}

/// What the check saw that gave the reason. Permissions are no reason not to resume.
pub(super) fn refusal(checks: &Value) -> &str {
    let failed = |c: &&Value| c["ok"] == false && c["check"] != "envelope";
    let found = checks.as_array().into_iter().flatten().find(failed);
    found.and_then(|c| c["evidence"].as_str()).unwrap_or("")
}

/// Checks that say nothing special are named only; `--raw` shows what they saw.
fn worth(name: &str, ok: bool, first_turn: bool) -> Worth {
    match (ok, name) {
        (false, "turns" | "session") if first_turn => Worth::Nothing,
        (false, _) => Worth::Line,
        (true, "envelope" | "turns" | "fresh") => Worth::Nothing,
        (true, "capability" | "history" | "folder" | "runtime" | "context" | "bytes") => {
            Worth::Line
        }
        (true, _) => Worth::Name,
    }
}

fn cost(view: &TurnView, resumed: Option<Micros>) -> String {
    let all = view.usage.all_input();
    let cached = (view.usage.cache_read * 100).checked_div(all).unwrap_or(0);
    let spent = match (view.cost_usd, resumed) {
        (Some(_), Some(resumed)) => format!(
            "{}, a resume would have been ≈ {}",
            money(view.cost_usd),
            money(Some(resumed.dollars()))
        ),
        (Some(_), None) => money(view.cost_usd),
        (None, _) => format!("unknown, {} gave no figure", view.agent),
    };
    let (input, output) = (tokens(all), tokens(view.usage.output));
    format!(
        "{spent}; {input} in ({cached}% cached), {output} out; {}",
        duration(view.duration_ms)
    )
}

fn permission(turn: &StoredTurn, view: &TurnView) -> String {
    let names = |value: &Value| -> Option<Vec<String>> {
        let list = value.as_array()?;
        Some(
            list.iter()
                .filter_map(|t| t.as_str().map(str::to_owned))
                .collect(),
        )
    };
    let envelope = &turn.request["envelope"];
    let mode = view.policy["permission"]
        .as_str()
        .or(envelope["mode"].as_str());
    let denied = names(&envelope["deny_tools"]).unwrap_or_default();
    allowed(
        mode.unwrap_or("edit"),
        names(&envelope["tools"]).as_deref(),
        &denied,
    )
}

fn denial(denied: &Value) -> String {
    let tool = denied["tool"].as_str().unwrap_or("");
    let input = match denied["input"].as_str() {
        Some(text) => text.to_owned(),
        None if denied["input"].is_null() => String::new(),
        None => denied["input"].to_string(),
    };
    crate::output::one_line(&format!("{tool} {input}"), 100)
}

/// What becomes of the session this turn used; only the newest turn can tell.
async fn next_turn(app: &App, turn: &StoredTurn, view: &TurnView) -> Result<Option<String>> {
    let newest = app
        .hub()
        .store
        .read()
        .await?
        .last_turn(turn.conversation)
        .await?;
    if !turn.status.ended() || newest.is_none_or(|t| t.id != turn.id) {
        return Ok(None);
    }
    let name = view.handle.split(':').next().unwrap_or_default();
    let sessions = app.hub().session_views(turn.conversation).await?;
    let mut used = sessions
        .iter()
        .filter(|s| Some(&s.session_id) == view.session_id.as_ref());
    let ask = format!("rejoin explain {name} --next");
    Ok(Some(if used.any(|s| s.state == "confirmed") {
        format!("resumes, unless something changes ({ask})")
    } else {
        format!("from another session, this one is not used again ({ask})")
    }))
}

/// The command so that a shell would read it the same way.
fn command(argv: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = |arg: &String| {
        if !arg.is_empty() && arg.chars().all(plain) {
            arg.clone()
        } else {
            format!("'{}'", arg.replace('\'', r"'\''"))
        }
    };
    argv.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

//! `rejoin explain`

mod next;
mod page;
mod price;
mod prompt;
pub(super) mod reason_text;

use std::path::PathBuf;

use clap::Args;
use rejoin_core::{PermissionMode, Reason, TurnStatus, Verdict, span};
use rejoin_hub::{ExplainView, TurnView};
use serde_json::Value;

use crate::app::Invocation;
use crate::cli::command::{Help, Run, Task, TrustCheck};
use crate::cli::question::{hint, in_short};
use crate::cli::verdict_line;
use crate::hub_client::HubClient;
use crate::output::format::{count, duration, money};
use crate::output::{Line, Output, Tone};
use crate::portable::BundleReader;
use page::{Page, Worth};
use reason_text::{Case, Tense, allowed, told, version};
use rejoin_errors::Result;

/// Explain the verdict of a turn, or predict the next one
#[derive(Debug, Clone, Args)]
#[command(
    after_help = "Examples:\n  rejoin explain                the last turn in this folder\n  rejoin explain tmqx:14        the turn that message 14 belongs to\n  rejoin explain tmqx --next    predicts the next turn"
)]
pub(crate) struct ExplainArgs {
    /// Turn, message or conversation; a conversation means its last turn
    #[arg(value_name = "TURN", default_value = "last")]
    turn: String,
    /// Predict the turn of a message sent now
    #[arg(long)]
    pub(super) next: bool,
    /// With --next: for this agent
    #[arg(short, long, requires = "next")]
    agent: Option<String>,
    /// With --next: in this folder
    #[arg(short, long, requires = "next", value_name = "DIR")]
    workdir: Option<PathBuf>,
    /// With --next: with this model
    #[arg(short, long, requires = "next")]
    model: Option<String>,
    /// With --next: with these permissions (read-only, edit, full, ask)
    #[arg(long, requires = "next", hide_short_help = true, value_name = "MODE")]
    permission: Option<PermissionMode>,
    /// With --next: only with these tools
    #[arg(
        long,
        requires = "next",
        hide_short_help = true,
        value_delimiter = ',',
        value_name = "A,B"
    )]
    tools: Option<Vec<String>>,
    /// With --next: without these tools
    #[arg(
        long,
        requires = "next",
        hide_short_help = true,
        value_delimiter = ',',
        value_name = "A,B"
    )]
    deny_tools: Option<Vec<String>>,
    /// With --next: in a new session
    #[arg(long, requires = "next", hide_short_help = true)]
    fresh_session: bool,
    /// With --next: with the session of another folder
    #[arg(long, requires = "next", hide_short_help = true)]
    relocate: bool,
    /// Show every check, and the whole command
    #[arg(long)]
    raw: bool,
    /// Show what the agent was told, without secrets
    #[arg(long, conflicts_with_all = ["next", "raw"])]
    prompt: bool,
    /// Explain a turn of the conversation in this file
    #[arg(long, value_name = "FILE")]
    pub(super) bundle: Option<PathBuf>,
}

impl Run for ExplainArgs {
    const NAME: &'static str = "explain";
    const HELP: Help = Help::Look("why a turn had its verdict");

    fn task(self) -> Task {
        let trust = if self.next {
            TrustCheck::Required
        } else {
            TrustCheck::Unneeded
        };
        let task = if self.bundle.is_some() {
            Task::machine(self, of_bundle)
        } else {
            Task::hub(self, run)
        };
        task.trust(trust)
    }
}

/// Runs `explain --bundle` on a conversation in a file.
async fn of_bundle(on: &Invocation, args: &ExplainArgs) -> Result<u8> {
    let mut args = args.clone();
    let file = args.bundle.clone().unwrap_or_default();
    let bundle = BundleReader::at(on, &file).await?;
    args.turn = bundle.named(&args.turn);
    run(HubClient::Local(&bundle.app), &args).await
}

async fn run(hub: HubClient<'_>, args: &ExplainArgs) -> Result<u8> {
    if args.next {
        return next::run(hub, args).await;
    }
    let (out, turn) = (hub.out(), hub.turn(&args.turn).await?);
    if args.prompt {
        return prompt::run(hub, &turn).await;
    }
    if out.json {
        out.json(&turn);
    } else {
        let explained = hub.explain(turn.turn_id).await?;
        let unpriced = match hub {
            HubClient::Local(app) => price::missing(app, &explained.turn),
            HubClient::Remote(_) => vec![],
        };
        past(out, &explained, args, &unpriced);
    }
    Ok(0)
}

/// A turn's own words, read.
struct Known {
    status: Option<TurnStatus>,
    verdict: Option<Verdict>,
    reason: Option<Reason>,
}

impl Known {
    fn of(view: &TurnView) -> Self {
        Self {
            status: view.status.parse().ok(),
            verdict: view.verdict.as_deref().and_then(|v| v.parse().ok()),
            reason: view.reason.as_deref().and_then(|r| r.parse().ok()),
        }
    }
}

fn past(out: Output, explained: &ExplainView, args: &ExplainArgs, unpriced: &[String]) {
    let raw = args.raw;
    let view = &explained.turn;
    let turn = Known::of(view);
    let mut page = Page::new(out);
    let now = HubClient::now();
    let when = view
        .started_at
        .as_deref()
        .map(|at| now.moment(at))
        .unwrap_or_default();
    let version = version(&view.agent, view.version.as_deref());
    // That nothing precedes the first turn is no failure.
    let code = turn.reason.filter(|r| *r != Reason::FirstTurn);
    page.head(
        &headline(&turn, view),
        code,
        &[view.handle.clone(), version, when],
    );
    let first = turn.reason == Some(Reason::FirstTurn);
    let joins = turn.reason == Some(Reason::NoSession);
    page.checks(&view.checks, |name, ok| {
        if joins && !ok && name == "session" {
            Worth::Absent
        } else if raw {
            Worth::Line
        } else {
            worth(name, ok, first)
        }
    });
    if turn.verdict == Some(Verdict::Restored) {
        page.row("why", &restored_because(&view.checks));
    }
    if turn.verdict.is_some() {
        page.row("sent", &told(&view.sent, Tense::Past));
    }
    if view.ended() {
        page.row(
            "cost",
            &cost(view, explained.resumed_estimate_usd, unpriced),
        );
    }
    let permissions = &explained.permissions;
    let tools = permissions.tools.as_deref();
    page.row(
        "allowed",
        &allowed(permissions.mode.as_str(), tools, &permissions.deny_tools),
    );
    for (n, limit) in view.limits.iter().enumerate() {
        let (label, per) = (if n == 0 { "limits" } else { "" }, span(limit.per_ms));
        let text = format!("{} {} of {} per {per}", limit.tool, limit.left, limit.max);
        page.row(label, &text);
    }
    page.wall(&view.checks, raw);
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
            "left",
            &format!(
                "{many} running at its end (rejoin cancel ends those that were kept): {}",
                view.leftovers.join("; ")
            ),
        );
    }
    for question in &view.questions {
        page.row("asks", &in_short(&view.agent, question));
        page.row("", &hint(question, &view.handle));
    }
    if let Some(error) = &view.error {
        page.row("error", &error.message);
    }
    if view.ended() && turn.status != Some(TurnStatus::Succeeded) {
        page.row(
            "kept",
            "the message is unanswered; the next turn shows it once",
        );
    }
    if let Some(goes_on) = explained.goes_on {
        page.row("next", &next_turn(goes_on, view, args));
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
    page.print(out);
}

fn headline(turn: &Known, view: &TurnView) -> Line {
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
        .filter(|e| e.class != view.status)
        .map(|e| format!(" ({})", e.class))
        .unwrap_or_default();
    match turn.status {
        Some(TurnStatus::Succeeded) | None => {}
        Some(TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting) => {
            line = line.with(Tone::Busy, &view.status).with(Tone::Plain, "; ");
        }
        Some(TurnStatus::Failed | TurnStatus::Cancelled | TurnStatus::Lost) => {
            line = line
                .with(Tone::Bad, &format!("{}{class}", view.status))
                .with(Tone::Plain, "; it was ");
        }
    }
    if turn.verdict == Some(Verdict::Reseeded) && turn.reason == Some(Reason::NoSession) {
        return line.with(Tone::Strong, &verdict_line::joins(view));
    }
    line.with(Tone::Strong, &case.headline(Tense::Past))
}

/// Evidence of the check that gave the reason. Permissions never prevent a resume.
pub(super) fn refusal(checks: &Value) -> &str {
    let failed = |c: &&Value| c["ok"] == false && c["check"] != "envelope";
    let found = checks.as_array().into_iter().flatten().find(failed);
    found.and_then(|c| c["evidence"].as_str()).unwrap_or("")
}

/// Why the session had to be restored: the evidence of the check that found no usable session.
fn restored_because(checks: &Value) -> String {
    let all = checks.as_array().into_iter().flatten();
    let evidence = all.filter_map(|check| check["evidence"].as_str());
    let found = evidence
        .into_iter()
        .find(|it| it.contains("but there is a"));
    match found {
        Some("not here, but there is a snapshot") => {
            "the session's file was gone; its snapshot was put in its place".to_owned()
        }
        Some("not as confirmed, but there is a verified snapshot") => {
            "the session's file had changed; its snapshot was put in its place".to_owned()
        }
        Some(other) => other.to_owned(),
        None => "the session was on another machine, or in another folder".to_owned(),
    }
}

/// Checks that say nothing special are named only; `--raw` shows what they saw.
fn worth(name: &str, ok: bool, first_turn: bool) -> Worth {
    match (ok, name) {
        (false, "turns" | "session") if first_turn => Worth::Nothing,
        (false, _) => Worth::Line,
        (true, "envelope" | "turns" | "fresh" | "wall") => Worth::Nothing,
        (true, "capability" | "history" | "folder" | "runtime" | "context" | "bytes") => {
            Worth::Line
        }
        (true, _) => Worth::Name,
    }
}

fn cost(view: &TurnView, resumed: Option<f64>, unpriced: &[String]) -> String {
    let spent = match (view.cost_usd, resumed) {
        (Some(_), Some(resumed)) => format!(
            "{}, a resume would have been ≈ {}",
            money(view.cost_usd),
            money(Some(resumed))
        ),
        (Some(_), None) => money(view.cost_usd),
        (None, _) if !unpriced.is_empty() => {
            format!("unknown, no price is set: {}", unpriced.join(", "))
        }
        (None, _) => format!("unknown, {} gave no figure", view.agent),
    };
    let took = duration(view.duration_ms);
    let Some(usage) = view.usage.known() else {
        return format!("{spent}; {took}");
    };
    let counts = rejoin_core::token_counts(usage, ", ");
    format!("{spent}; {counts}; {took}")
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

/// The fate of the session this turn used; known for the newest turn only.
fn next_turn(goes_on: bool, view: &TurnView, args: &ExplainArgs) -> String {
    let name = view.handle.split(':').next().unwrap_or_default();
    let ask = match &args.bundle {
        Some(file) => format!("rejoin explain --next --bundle {}", file.display()),
        None => format!("rejoin explain {name} --next"),
    };
    if goes_on {
        format!("resumes, unless something changes ({ask})")
    } else {
        format!("from another session, this one is not used again ({ask})")
    }
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

//! `rejoin explain CONV --next`: the same look and decision as a turn, and nothing is run.

use rejoin_core::{AgentName, Reason, Verdict};
use rejoin_hub::{NextView, TurnFlags, Want};

use super::page::{Page, Worth};
use super::why::{Case, Tense, allowed, told, version};
use super::{ExplainArgs, refusal, worth};
use crate::app::App;
use crate::at::At;
use crate::cli::send::folder_text;
use crate::failure::{Failure, Result};
use crate::output::figures::money;
use crate::output::{Line, Output, Tone};
use crate::remote::{Ask, Remote};

pub(super) async fn run(at: At<'_>, args: &ExplainArgs) -> Result<u8> {
    let seen = match at {
        At::Here(app) => here(app, args).await?,
        At::There(remote) => there(at, remote, args).await?,
    };
    let out = at.out();
    if let Some(note) = &seen.note {
        out.note(note);
    }
    if out.json {
        out.json(&seen);
    } else {
        page(out, &seen, args.raw).print(out);
    }
    Ok(0)
}

async fn here(app: &App, args: &ExplainArgs) -> Result<NextView> {
    app.must_be_trusted()?;
    let hub = app.hub();
    let conversation = hub.find(&args.turn, &app.folders()).await?.conversation;
    let agent = match &args.agent {
        Some(name) => AgentName::new(name.as_str()).map_err(|e| Failure::usage(e.to_string()))?,
        None => conversation.agent.clone(),
    };
    let flags = TurnFlags {
        workdir: args.workdir.as_deref().map(folder_text).transpose()?,
        model: args.model.clone(),
        default_model: app.config.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    let request = flags.over(&conversation, &agent, &app.base_request());
    let seen = app.runner.foresee(&conversation, &agent, &request).await?;
    let mut read = hub.store.read().await?;
    let handle = read.short_handle(&conversation.handle).await?;
    Ok(seen.view(handle, &agent, &request))
}

async fn there(at: At<'_>, remote: &Remote, args: &ExplainArgs) -> Result<NextView> {
    let found = at.named(&args.turn, Want::Conversation).await?;
    let id = found.conversation.id.to_string();
    let workdir = args.workdir.as_deref().map(|dir| at.folder_text(dir));
    let ask = Ask::get(&["api", "conversations", &id, "next"])
        .with("agent", args.agent.clone())
        .with("model", args.model.clone())
        .with("workdir", workdir.transpose()?);
    remote.ask(ask).await
}

fn page(out: Output, seen: &NextView, raw: bool) -> Page {
    let mut page = Page::new(out);
    let verdict: Option<Verdict> = seen.verdict.as_deref().and_then(|v| v.parse().ok());
    let reason: Option<Reason> = seen.reason.as_deref().and_then(|r| r.parse().ok());
    let case = Case {
        agent: &seen.agent,
        verdict,
        reason,
        sent: seen.sent.unwrap_or_default(),
        evidence: match seen.reason.as_deref() {
            Some("envelope") => seen.cannot.as_deref().unwrap_or(""),
            Some(_) | None => refusal(&seen.checks),
        },
    };
    let tone = match verdict {
        Some(_) => Tone::Strong,
        None => Tone::Bad,
    };
    let headline = Line::new().with(tone, &case.headline(Tense::Future));
    let first = reason == Some(Reason::FirstTurn);
    let version = version(&seen.agent, seen.version.as_deref());
    let facts = [seen.handle.clone(), version];
    page.head(&headline, reason.filter(|_| !first), &facts);
    page.checks(&seen.checks, |name, ok| {
        if raw {
            Worth::Line
        } else {
            worth(name, ok, first)
        }
    });
    if let Some(sent) = &seen.sent {
        page.row("sends", &told(sent, Tense::Future));
    }
    if seen.cost_estimate_usd.is_some() {
        let cost = money(seen.cost_estimate_usd);
        page.row("costs", &format!("≈ {cost}, by what earlier turns cost"));
    }
    let envelope = &seen.envelope;
    let tools = envelope.tools.as_deref();
    page.row(
        "allows",
        &allowed(envelope.mode.as_str(), tools, &envelope.deny_tools),
    );
    page.wall(&seen.checks, raw);
    page
}

//! `rejoin explain CONV --next`: the same look and decision as a turn, and nothing is run.

use rejoin_core::{AgentName, Fresh, Reason, Verdict};
use rejoin_hub::{NameKind, NextView, TurnFlags};

use super::page::{Page, Worth};
use super::reason_text::{Case, Tense, allowed, told, version};
use super::{ExplainArgs, refusal, worth};
use crate::app::App;
use crate::cli::send::folder_text;
use crate::hub_client::HubClient;
use crate::output::format::money;
use crate::output::{Line, Output, Tone};
use crate::remote::{Ask, Remote};
use rejoin_errors::{CommandError, Result};

pub(super) async fn run(hub: HubClient<'_>, args: &ExplainArgs) -> Result<u8> {
    let seen = match hub {
        HubClient::Local(app) => run_local(app, args).await?,
        HubClient::Remote(remote) => run_remote(hub, remote, args).await?,
    };
    let out = hub.out();
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

async fn run_local(app: &App, args: &ExplainArgs) -> Result<NextView> {
    let hub = app.hub();
    let conversation = hub.find(&args.turn, &app.folders()).await?.conversation;
    let agent = match &args.agent {
        Some(name) => {
            AgentName::new(name.as_str()).map_err(|e| CommandError::usage(e.to_string()))?
        }
        None => conversation.agent.clone(),
    };
    let flags = TurnFlags {
        workdir: args.workdir.as_deref().map(folder_text).transpose()?,
        model: args.model.clone(),
        permission: args.permission,
        tools: args.tools.clone(),
        deny_tools: args.deny_tools.clone(),
        default_model: app.config.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    let mut request = flags.over(&conversation, &agent, &app.base_request());
    if args.fresh_session {
        request.fresh = Some(Fresh::Asked);
    }
    request.relocate |= args.relocate;
    let seen = app.runner.predict(&conversation, &agent, &request).await?;
    let mut read = hub.store.read().await?;
    let handle = read
        .conversations()
        .short_handle(&conversation.handle)
        .await?;
    Ok(seen.view(handle, &agent, &request))
}

async fn run_remote(hub: HubClient<'_>, remote: &Remote, args: &ExplainArgs) -> Result<NextView> {
    let found = hub.named(&args.turn, NameKind::Conversation).await?;
    let id = found.conversation.id.to_string();
    let workdir = args.workdir.as_deref().map(|dir| hub.folder_text(dir));
    let ask = Ask::get(&["api", "conversations", &id, "next"])
        .with("agent", args.agent.clone())
        .with("model", args.model.clone())
        .with("workdir", workdir.transpose()?)
        .with("permission", args.permission.map(|mode| mode.to_string()))
        .with("tools", args.tools.as_ref().map(|names| names.join(",")))
        .with(
            "deny_tools",
            args.deny_tools.as_ref().map(|names| names.join(",")),
        )
        .if_so("fresh_session", args.fresh_session)
        .if_so("relocate", args.relocate);
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
        let fresh = match seen.fresh_estimate_usd {
            Some(fresh) if Some(fresh) > seen.cost_estimate_usd => {
                format!("; in a new session ≈ {}", money(seen.fresh_estimate_usd))
            }
            Some(_) | None => String::new(),
        };
        page.row(
            "costs",
            &format!("≈ {cost}, by what earlier turns cost{fresh}"),
        );
    }
    let permissions = &seen.permissions;
    let tools = permissions.tools.as_deref();
    page.row(
        "allows",
        &allowed(permissions.mode.as_str(), tools, &permissions.deny_tools),
    );
    page.wall(&seen.checks, raw);
    page
}

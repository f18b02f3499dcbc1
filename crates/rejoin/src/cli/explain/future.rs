//! `rejoin explain CONV --next`: the same look and decision as a turn, and nothing is run.

use rejoin_core::{
    AgentName, Decision, Hold, Message, MessageState, Micros, Role, Sent, TurnPlan, Verdict, decide,
};
use rejoin_hub::{TurnFlags, TurnRequest};
use rejoin_runner::in_words;
use rejoin_runner::look::{self, Looked};
use rejoin_store::Conversation;
use serde_json::{Value, json};

use super::page::{Page, Worth};
use super::why::{Case, Tense, allowed, told, version};
use super::{ExplainArgs, refusal, worth};
use crate::app::App;
use crate::cli::send::folder_text;
use crate::failure::{Failure, Result};
use crate::output::figures::money;
use crate::output::{Line, Tone};

pub(super) async fn run(app: &App, args: &ExplainArgs) -> Result<u8> {
    app.must_be_trusted()?;
    let hub = app.hub();
    let conversation = hub.find(&args.turn, &app.folders()).await?.conversation;
    let agent = match &args.agent {
        Some(name) => AgentName::new(name.as_str()).map_err(|e| Failure::usage(e.to_string()))?,
        None => conversation.agent.clone(),
    };
    let request = request(app, args, &conversation, &agent)?;
    // A turn would take in first what was said outside; so does the question what it would do.
    if let Some(note) = app.runner.take_in(conversation.id, None).await?.note() {
        app.out.note(&note);
    }
    let outlook = hub
        .outlook(conversation.id, conversation.scope, &agent, None)
        .await?;
    let config = &app.runner.config;
    let mut looked = look::look(hub, config, agent.as_str(), &request, outlook).await?;
    let vault = hub.vault.as_ref();
    looked.check_snapshot(&agent, &request, vault, None).await?;
    let decision = decide(&looked.situation(&agent, &request));
    let sent = match &decision.plan {
        Ok(plan) => Some(sent(app, &conversation, &agent, &looked, plan).await?),
        Err(_) => None,
    };
    let cost = match (&decision.plan, sent) {
        (Ok(plan), Some(sent)) => {
            let model = request.model.as_deref();
            hub.estimate_next(conversation.id, &agent, model, plan, sent)
                .await?
        }
        _ => None,
    };
    let foreseen = Foreseen {
        cost,
        checks: checks(&decision),
        decision,
        sent,
        agent: &agent,
        request: &request,
        looked: &looked,
    };
    if app.out.json {
        app.out.json(&foreseen.json());
    } else {
        let handle = hub
            .store
            .read()
            .await?
            .short_handle(&conversation.handle)
            .await?;
        foreseen.page(app, &handle, args.raw).print(app.out);
    }
    Ok(0)
}

struct Foreseen<'a> {
    decision: Decision<'a>,
    checks: Value,
    /// None if nothing would be sent.
    sent: Option<Sent>,
    /// None if nothing is known to estimate it from.
    cost: Option<Micros>,
    agent: &'a AgentName,
    request: &'a TurnRequest,
    looked: &'a Looked,
}

impl Foreseen<'_> {
    fn json(&self) -> Value {
        let (verdict, reason) = match &self.decision.plan {
            Ok(plan) => (Some(plan.verdict()), plan.reason().map(|r| r.to_string())),
            Err(Hold::InUse { .. }) => (None, Some("in_use".to_owned())),
            Err(Hold::WouldReseed { why }) => (None, Some(why.to_string())),
            Err(Hold::Envelope) => (None, Some("envelope".to_owned())),
        };
        json!({
            "verdict": verdict.map(Verdict::as_str), "reason": reason, "checks": self.checks,
            "sent": self.sent, "cost_estimate_usd": self.cost.map(Micros::dollars),
        })
    }

    fn page(&self, app: &App, handle: &str, raw: bool) -> Page {
        let mut page = Page::new(app.out);
        let plan = self.decision.plan.as_ref();
        let reason = match plan {
            Ok(plan) => plan.reason(),
            Err(Hold::InUse { .. }) => Some(rejoin_core::Reason::InUse),
            Err(Hold::WouldReseed { why }) => Some(*why),
            Err(Hold::Envelope) => None,
        };
        let evidence = match plan {
            Err(Hold::Envelope) => self.looked.cannot.as_deref().unwrap_or(""),
            _ => refusal(&self.checks),
        };
        let case = Case {
            agent: self.agent.as_str(),
            verdict: plan.ok().map(TurnPlan::verdict),
            reason,
            sent: self.sent.unwrap_or_default(),
            evidence,
        };
        let tone = if plan.is_ok() {
            Tone::Strong
        } else {
            Tone::Bad
        };
        let headline = Line::new().with(tone, &case.headline(Tense::Future));
        let first = reason == Some(rejoin_core::Reason::FirstTurn);
        let version = version(
            case.agent,
            Some(&self.looked.binary.facts.runtime.to_string()),
        );
        page.head(
            &headline,
            reason.filter(|_| !first),
            &[handle.to_owned(), version],
        );
        page.checks(&self.checks, |name, ok| {
            if raw {
                Worth::Line
            } else {
                worth(name, ok, first)
            }
        });
        if let Some(sent) = &self.sent {
            page.row("sends", &told(sent, Tense::Future));
        }
        if let Some(cost) = self.cost {
            let cost = money(Some(cost.dollars()));
            page.row("costs", &format!("≈ {cost}, by what earlier turns cost"));
        }
        let envelope = &self.request.envelope;
        page.row(
            "allows",
            &allowed(
                envelope.mode.as_str(),
                envelope.tools.as_deref(),
                &envelope.deny_tools,
            ),
        );
        page
    }
}

fn request(
    app: &App,
    args: &ExplainArgs,
    conversation: &Conversation,
    agent: &AgentName,
) -> Result<TurnRequest> {
    let flags = TurnFlags {
        workdir: args.workdir.as_deref().map(folder_text).transpose()?,
        model: args.model.clone(),
        default_model: app.config.models.get(agent.as_str()).cloned(),
        ..TurnFlags::default()
    };
    Ok(flags.over(conversation, agent, &app.base_request()))
}

fn checks(decision: &Decision<'_>) -> Value {
    decision
        .checks
        .iter()
        .map(|c| json!({"check": c.check.to_string(), "ok": c.ok, "evidence": c.evidence.to_string()}))
        .collect()
}

/// What would travel besides the message: put into words as a turn would, around an empty one.
async fn sent(
    app: &App,
    conversation: &Conversation,
    agent: &AgentName,
    looked: &Looked,
    plan: &TurnPlan,
) -> Result<Sent> {
    let empty = Message {
        id: app.hub().clock.message_id()?,
        seq: 0,
        role: Role::User,
        agent: None,
        text: String::new(),
        attachments: vec![],
        state: MessageState::Queued,
        trail: vec![],
    };
    let (c, outlook) = (conversation.id, &looked.outlook);
    let words = in_words(app.hub(), c, agent, outlook, plan, &empty).await?;
    Ok(words.composed.sent)
}

//! Climbs: the request of an agent for a higher tier, the decision about it, and the next turn, in
//! the transaction that ends the turn.

mod approval;
mod findings;
mod next;
mod notices;

use rejoin_core::{
    Approval, ClimbDecision, ClimbFacts, ClimbRequest, ConversationId, Cost, EventBody,
    MessageState, Micros, Role, TurnId, TurnStatus, climb_request, climb_target, supervise,
};
use rejoin_store::{ChainLink, Conversation, HERE, NewMessage, NewTurn, StoredTurn, Tx};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::Hub;
use crate::accept::{may_continue, to_json};
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::finish::Settled;
use crate::metrics;
use crate::request::{TierTurn, TurnRequest};

use approval::word_for;
pub(crate) use approval::{CLIMB_TOOL, approval_of, shown_escalation, waits_for_approval};
pub use findings::PendingClimb;
use next::NextTurn;

/// Number of events in which the final message of a turn is looked for.
const NEWEST: i64 = 500;

/// Decision about a climb that was carried out.
const CLIMBED: &str = "climbed";
const REFUSED: &str = "refused";
/// A person must approve the climb.
const WAITING: &str = "waiting";
/// The turn does not climb by itself.
const NONE: &str = "none";

/// Triggers of a turn: of the root of a chain, then of a climb.
pub(crate) const BY_USER: &str = "user";
pub(crate) const BY_SCHEDULE: &str = "schedule";
const BY_POLICY: &str = "climb";
const BY_PERSON: &str = "person";

/// Person's command to climb.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(default, deny_unknown_fields)]
pub struct EscalateRequest {
    /// Tier; none: the next one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Return the checks and the prompt, and run nothing.
    pub dry_run: bool,
    /// Tiers of the sender; none: those of the daemon.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", schema(value_type = Option<Object>))]
    pub tiers: Option<rejoin_core::Tiers>,
}

/// Decision about a person's command to climb.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct EscalateView {
    pub conversation_id: ConversationId,
    pub to: Option<String>,
    /// `climbed`, `refused`, or `none` if nothing was to run.
    pub decision: String,
    pub checks: Value,
    /// Prompt of the next turn.
    pub prompt: Option<String>,
    /// The next turn.
    pub turn_id: Option<TurnId>,
}

/// Decision to store, in one word, and the trigger of the next turn.
struct Ruling<'a> {
    word: &'a str,
    trigger: &'a str,
    approval: Approval<'a>,
    /// True if the turn ended in an earlier transaction.
    after_end: bool,
}

/// Turn from which a climb begins.
struct Origin<'a> {
    conversation: &'a Conversation,
    turn: &'a StoredTurn,
    /// Tiers in force, and the ceiling of the caller.
    tier: TierTurn,
    /// Options that the next turn takes over.
    base: TurnRequest,
}

impl Hub {
    /// Returns the request for a higher tier that ends the final message of a turn, and the answer
    /// without it. Only main-thread text after the last tool call counts.
    pub(crate) async fn climb_asked(
        &self,
        claimed: &Claimed,
        settled: &Settled,
    ) -> Result<Option<(ClimbRequest, String)>> {
        let asks = claimed.request.tier.is_some() && settled.status == TurnStatus::Succeeded;
        let Some(answer) = settled.answer.as_ref().filter(|_| asks) else {
            return Ok(None);
        };
        let mut read = self.store.read().await?;
        let newest = read
            .events()
            .newest_of_turn(claimed.turn.id, NEWEST)
            .await?;
        let mut parts = vec![];
        for row in newest {
            #[expect(clippy::wildcard_enum_match_arm, reason = "other events are no text")]
            match row.body {
                EventBody::Text {
                    text,
                    parent_tool: None,
                } => parts.push(text),
                EventBody::ToolResult { .. }
                | EventBody::ToolCall {
                    parent_tool: None, ..
                } => break,
                _ => {}
            }
        }
        parts.reverse();
        let message = parts.concat();
        let asked = climb_request(&message).and_then(|(request, start)| {
            let block = message[start..].trim_end();
            let text = answer.trim_end().strip_suffix(block)?;
            Some((request, text.trim_end().to_owned()))
        });
        let tier = claimed.request.tier.as_ref();
        Ok(match tier.and_then(|tier| tier.findings_for.as_ref()) {
            // The findings of the tier: whatever ends them, the climb before them goes on.
            Some(pending) => {
                let text = asked.map_or_else(|| answer.clone(), |(_, text)| text);
                Some((pending.request(), text))
            }
            None => asked,
        })
    }

    /// Decides about the request of a turn that has just ended, stores the decision, and accepts
    /// the next turn if the turn climbs.
    pub(crate) async fn climb_after(
        &self,
        tx: &mut Tx,
        claimed: &Claimed,
        asked: &ClimbRequest,
        now: i64,
    ) -> Result<()> {
        let (Some(tier), Some(turn)) = (
            claimed.request.tier.clone(),
            tx.turns().get(claimed.turn.id).await?,
        ) else {
            return Ok(());
        };
        let origin = Origin {
            conversation: &claimed.conversation,
            turn: &turn,
            base: taken_over(&claimed.request),
            tier,
        };
        let pending = origin.tier.findings_for.as_ref();
        let approval = pending.map_or(Approval::Open, PendingClimb::approval);
        let (decision, next) = self
            .decide_climb(
                tx,
                &origin,
                (asked.to.as_deref(), &asked.reason),
                approval,
                now,
            )
            .await?;
        let climbs = origin.tier.climb || pending.is_some();
        let ruling = Ruling {
            word: word_for(&decision, climbs),
            trigger: pending.map_or(BY_POLICY, PendingClimb::trigger),
            approval,
            after_end: false,
        };
        if let Some(next) = next.as_ref().filter(|_| ruling.word == WAITING) {
            self.ask_for_approval(tx, &origin, asked, next, now).await?;
        }
        let next = next.filter(|_| ruling.word == CLIMBED);
        self.carry_out(tx, &origin, &decision, ruling, (asked, next), now)
            .await?;
        Ok(())
    }

    /// Climbs by a person's command. `tiers` are the caller's, `base` the options of a turn.
    pub async fn escalate(
        &self,
        c: ConversationId,
        asked: &EscalateRequest,
        tiers: &rejoin_core::Tiers,
        base: &TurnRequest,
    ) -> Result<EscalateView> {
        let now = self.clock.now();
        let mut tx = self.store.begin().await?;
        let found = tx.conversations().get(c).await?;
        let found = found.filter(|found| *found.namespace == *self.namespace);
        let gone = || Error::NotFound(format!("there is no conversation {c}"));
        let conversation = found.ok_or_else(gone)?;
        let none = || Error::NotFound("the conversation has no turn yet".into());
        let turn = tx.turns().last(c).await?.ok_or_else(none)?;
        if tx.turns().is_busy(c).await? || conversation.opened_by.is_some() {
            return Err(Error::Busy);
        }
        may_continue(&mut tx, &conversation, true).await?;
        let was: TurnRequest = serde_json::from_value(turn.request.clone()).unwrap_or_default();
        let origin = Origin {
            tier: TierTurn {
                name: turn.tier.clone().unwrap_or_default(),
                tiers: tiers.clone(),
                climb: was.tier.as_ref().is_some_and(|tier| tier.climb),
                ceiling: self.ceiling,
                findings_for: None,
            },
            base: TurnRequest {
                policy: base.policy,
                roots: base.roots.clone(),
                traceparent: base.traceparent.clone(),
                ..taken_over(&was)
            },
            conversation: &conversation,
            turn: &turn,
        };
        let request = followed(asked, turn.escalation.as_ref());
        let (decision, next) = self
            .decide_climb(
                &mut tx,
                &origin,
                (request.to.as_deref(), &request.reason),
                Approval::Command,
                now,
            )
            .await?;
        let refused = decision.refused().map(|check| check.evidence.clone());
        let mut view = EscalateView {
            conversation_id: c,
            to: decision.to.clone(),
            decision: NONE.into(),
            checks: to_json(&decision.checks)?,
            prompt: next.as_ref().map(|next| next.prompt.clone()),
            turn_id: None,
        };
        if asked.dry_run {
            if refused.is_some() {
                view.decision = REFUSED.into();
            } else if let Some(next) = next {
                let why = (&request, &decision, Approval::Command);
                let first = self.first_turn(&mut tx, &origin, next, why, now).await?;
                view.prompt = Some(first.prompt);
            }
            return Ok(view);
        }
        if let Some(evidence) = refused {
            return Err(Error::ClimbRefused(evidence));
        }
        tx.chains().begin(turn.id).await?;
        self.close_approval(&mut tx, turn.id, now).await?;
        let ruling = Ruling {
            word: CLIMBED,
            trigger: BY_PERSON,
            approval: Approval::Command,
            after_end: true,
        };
        view.turn_id = self
            .carry_out(&mut tx, &origin, &decision, ruling, (&request, next), now)
            .await?;
        view.decision = CLIMBED.into();
        tx.commit().await?;
        Ok(view)
    }

    /// Evaluates every check, and builds the turn that the climb would begin.
    async fn decide_climb(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        (to, reason): (Option<&str>, &str),
        approval: Approval<'_>,
        now: i64,
    ) -> Result<(ClimbDecision, Option<NextTurn>)> {
        let (turn, tiers) = (origin.turn, &origin.tier.tiers);
        let current = Some(origin.tier.name.as_str()).filter(|name| !name.is_empty());
        let target = climb_target(tiers, current, to);
        let chain = turn.chain.unwrap_or(turn.id);
        let mut members = tx.chains().of(chain).await?;
        if members.is_empty() {
            members.push(turn.clone());
        }
        let next = match target {
            Some(target) => {
                let next = self.next_turn(tx, origin, target, (reason, &members), now);
                Some(next.await?)
            }
            None => None,
        };
        let enforceable = match &next {
            Some(next) => self.can_run(origin, next),
            None => Ok(()),
        };
        let last = match target {
            Some((_, tier)) => {
                tx.chains()
                    .last_climb(turn.conversation, &tier.name)
                    .await?
            }
            None => None,
        };
        let known = members.iter().filter_map(|turn| turn.cost.known());
        let decision = supervise(&ClimbFacts {
            tiers,
            current,
            to,
            held: tx.chains().is_held(&origin.conversation.namespace).await?,
            since_last_ms: last.map(|at| (now.saturating_sub(at) / 1000).max(0).unsigned_abs()),
            cost: Micros(known.map(|cost| cost.0).sum()),
            cost_complete: members.iter().all(|turn| turn.cost != Cost::Unknown),
            approval,
            enforceable: match &enforceable {
                Ok(()) => Ok(()),
                Err(why) => Err(why.as_str()),
            },
        });
        Ok((decision, next))
    }

    /// Stores the decision with its turn, and accepts the next turn if there is one.
    async fn carry_out(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        decision: &ClimbDecision,
        ruling: Ruling<'_>,
        (asked, next): (&ClimbRequest, Option<NextTurn>),
        now: i64,
    ) -> Result<Option<TurnId>> {
        let Ruling { word, trigger, .. } = ruling;
        let turn = origin.turn;
        let next_id = match next {
            Some(next) => {
                let why = (asked, decision, ruling.approval);
                let first = self.first_turn(tx, origin, next, why, now).await?;
                Some(self.accept_climb(tx, origin, &first, trigger, now).await?)
            }
            None => None,
        };
        let checks = to_json(&decision.checks)?;
        let stored = json!({
            "requested": decision.to, "reason": asked.reason, "services": asked.services,
            "decision": word, "checks": checks, "turn_id": next_id,
        });
        tx.chains().set_escalation(turn.id, &stored).await?;
        let event = EventBody::Escalation {
            requested: decision.to.clone(),
            reason: asked.reason.clone(),
            decision: word.to_owned(),
            checks,
            next_turn_id: next_id,
        };
        // After the end of a turn no event of it follows.
        let shown = if ruling.after_end {
            next_id.unwrap_or(TurnId::nil())
        } else {
            turn.id
        };
        tx.events()
            .add(turn.conversation, shown, now, &[event])
            .await?;
        let to = decision.to.as_deref().unwrap_or_default();
        metrics::climb(&origin.tier.name, to, word);
        tracing::info!(turn = %turn.id, from = origin.tier.name, to, decision = word, "escalation");
        Ok(next_id)
    }

    async fn accept_climb(
        &self,
        tx: &mut Tx,
        origin: &Origin<'_>,
        next: &NextTurn,
        trigger: &str,
        now: i64,
    ) -> Result<TurnId> {
        let (turn, message) = (self.clock.turn_id()?, self.clock.message_id()?);
        let conversation = origin.turn.conversation;
        tx.messages()
            .accept(&NewMessage {
                id: message,
                conversation,
                turn,
                role: Role::User,
                agent: None,
                text: &next.prompt,
                trail: &[],
                origin: HERE,
                root: None,
                state: MessageState::Ok,
                now,
            })
            .await?;
        tx.turns()
            .add(&NewTurn {
                id: turn,
                conversation,
                message,
                agent: &next.agent,
                request: to_json(&next.request)?,
                client_key: None,
                machine: &self.machine,
                holder: None,
                now,
            })
            .await?;
        let namespace = &origin.conversation.namespace;
        self.reserve_calls(tx, namespace, turn, &next.request)
            .await?;
        let link = ChainLink {
            tier: &next.tier,
            parent: Some(origin.turn.id),
            chain: origin.turn.chain.unwrap_or(origin.turn.id),
            trigger,
        };
        tx.chains().link(turn, link).await?;
        tx.conversations()
            .touch(conversation, &next.agent, &next.request.workdir, now)
            .await?;
        let accepted = EventBody::TurnAccepted {
            message_id: message,
        };
        tx.events()
            .add(conversation, turn, now, &[accepted])
            .await?;
        Ok(turn)
    }
}

/// Returns the request of a person. Reason and services are those of the agent's own request, if it
/// made one and the person names no other.
fn followed(asked: &EscalateRequest, own: Option<&Value>) -> ClimbRequest {
    let of_agent = |key: &str| own.map(|own| &own[key]);
    let reason = of_agent("reason").and_then(Value::as_str);
    let services = of_agent("services").and_then(Value::as_array);
    let services = services.into_iter().flatten().filter_map(Value::as_str);
    ClimbRequest {
        to: asked.to.clone(),
        reason: asked
            .reason
            .clone()
            .or(reason.map(str::to_owned))
            .unwrap_or_default(),
        services: services.map(str::to_owned).collect(),
    }
}

/// Returns the options that a climb takes over from the turn before.
fn taken_over(was: &TurnRequest) -> TurnRequest {
    TurnRequest {
        workdir: was.workdir.clone(),
        idle_ms: was.idle_ms,
        policy: was.policy,
        instructions: was.instructions.clone(),
        notify_url: was.notify_url.clone(),
        traceparent: was.traceparent.clone(),
        roots: was.roots.clone(),
        ..TurnRequest::default()
    }
}

//! Limits of tools: the calls that are left, reserved for a turn when it is accepted, and counted
//! when they are made.

use rejoin_core::{EventBody, LimitState, ToolLimit, TurnId, rule_matches};
use rejoin_store::{LimitKey, Read, Tx};

use crate::Hub;
use crate::claim::Claimed;
use crate::clock::rfc3339;
use crate::error::Result;
use crate::request::TurnRequest;

/// Time for which calls are kept, in microseconds: the longest period of a limit.
const KEPT: i64 = 31 * 86_400 * 1_000_000;

impl Hub {
    /// Gives a turn of a tier the calls that are left, and denies it the tools of which none is.
    pub(crate) async fn limit_request(
        &self,
        tx: &mut Tx,
        namespace: &str,
        request: &mut TurnRequest,
        now: i64,
    ) -> Result<()> {
        request.limits.clear();
        let tier = request.tier.as_ref().and_then(|tier| tier.tier());
        for limit in tier.map(|tier| tier.limit.clone()).unwrap_or_default() {
            let state = limit_state(tx, namespace, &limit, now).await?;
            let denied = &mut request.permissions.deny_tools;
            if state.left == 0 && !denied.contains(&state.tool) {
                denied.push(state.tool.clone());
            }
            request.limits.push(state);
        }
        Ok(())
    }

    /// Reserves the calls of a turn, in the transaction that accepts it.
    pub(crate) async fn reserve_calls(
        &self,
        tx: &mut Tx,
        namespace: &str,
        turn: TurnId,
        request: &TurnRequest,
    ) -> Result<()> {
        for state in &request.limits {
            let tool = state.tool.as_str();
            let key = LimitKey { namespace, tool };
            tx.limits().reserve(key, turn, state.left).await?;
        }
        Ok(())
    }

    /// Counts the limited calls among events, in the transaction that stores them.
    pub(crate) async fn count_calls(
        &self,
        tx: &mut Tx,
        claimed: &Claimed,
        events: &[EventBody],
        now: i64,
    ) -> Result<()> {
        let Some(tier) = &claimed.request.tier else {
            return Ok(());
        };
        let mut rules: Vec<&str> = vec![];
        for limit in tier.tiers.tiers.iter().flat_map(|tier| &tier.limit) {
            if !rules.contains(&limit.tool.as_str()) {
                rules.push(&limit.tool);
            }
        }
        let own = |rule: &str| claimed.request.limits.iter().any(|it| it.tool == rule);
        let namespace = claimed.conversation.namespace.as_str();
        for event in events {
            let EventBody::ToolCall { tool, input, .. } = event else {
                continue;
            };
            for rule in rules.iter().filter(|rule| rule_matches(rule, tool, input)) {
                let turn = claimed.turn.id;
                if own(rule) {
                    tx.limits().take(turn, rule, now).await?;
                } else {
                    let key = LimitKey {
                        namespace,
                        tool: rule,
                    };
                    tx.limits().add(key, turn, now).await?;
                }
            }
        }
        Ok(())
    }

    /// Returns the limits of a turn with the calls that are left to its next run.
    pub async fn limits_of(&self, claimed: &Claimed) -> Result<Vec<LimitState>> {
        let mut limits = claimed.request.limits.clone();
        if limits.is_empty() {
            return Ok(limits);
        }
        let mut read = self.store.read().await?;
        for state in &mut limits {
            state.left = read.limits().left(claimed.turn.id, &state.tool).await?;
        }
        Ok(limits)
    }
}

/// Returns the calls that a limit leaves at this moment.
async fn limit_state(
    tx: &mut Tx,
    namespace: &str,
    limit: &ToolLimit,
    now: i64,
) -> Result<LimitState> {
    let tool = limit.tool.as_str();
    let key = LimitKey { namespace, tool };
    tx.limits().tidy(key, now.saturating_sub(KEPT), now).await?;
    let since = now.saturating_sub(period(limit));
    Ok(state_of(
        limit,
        &tx.limits().used(key, since, limit.max).await?,
    ))
}

/// Returns the calls that a limit leaves, without a change of the store.
pub(crate) async fn limit_left(
    read: &mut Read,
    namespace: &str,
    limit: &ToolLimit,
    now: i64,
) -> Result<LimitState> {
    let tool = limit.tool.as_str();
    let since = now.saturating_sub(period(limit));
    let used = read
        .limits()
        .used(LimitKey { namespace, tool }, since, limit.max)
        .await?;
    Ok(state_of(limit, &used))
}

/// Returns the period of a limit in microseconds.
fn period(limit: &ToolLimit) -> i64 {
    i64::try_from(limit.per_ms.saturating_mul(1000)).unwrap_or(i64::MAX)
}

fn state_of(limit: &ToolLimit, (made, reserved): &(Vec<i64>, u64)) -> LimitState {
    let used = (made.len() as u64).saturating_add(*reserved);
    let full = made.len() as u64 == limit.max;
    let again = made
        .first()
        .filter(|_| full)
        .map(|at| at.saturating_add(period(limit)));
    LimitState {
        tool: limit.tool.clone(),
        max: limit.max,
        per_ms: limit.per_ms,
        left: limit.max.saturating_sub(used),
        again_at: again.map(rfc3339),
    }
}

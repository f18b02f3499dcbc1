//! What the store knows that a decision needs: the history in scope, and the sessions that could
//! serve, each with whether its history is still today's.

use rejoin_core::ConversationId;
use rejoin_core::{
    AgentName, Budget, HistoryFacts, Message, Prefix, Record, Scope, ScopeValue, TranscriptBuilder,
    TurnPlan,
};
use rejoin_store::{ScopeState, StoredPin};

use crate::Hub;
use crate::error::Result;

/// The facts, as of one moment.
#[derive(Debug, Clone)]
pub struct Outlook {
    pub scope: ScopeState,
    /// The value once the new message is added.
    pub value: ScopeValue,
    pub candidates: Vec<Candidate>,
}

#[derive(Debug, Clone)]
pub struct Candidate {
    pub stored: StoredPin,
    pub prefix: Prefix,
}

impl Outlook {
    pub fn history(&self) -> HistoryFacts {
        HistoryFacts {
            messages: self.scope.messages,
            answered: self.scope.answered,
        }
    }

    /// The session to ask about: of those not retired the one that has seen most of today's
    /// history, else the newest, so that the reason shown is about the session people expect.
    pub fn best(&self) -> Option<&Candidate> {
        let confirmed = || self.candidates.iter().filter(|c| c.stored.pin.is_some());
        let retired = |c: &Candidate| matches!(c.stored.state, rejoin_core::PinState::Retired(_));
        let seen = |c: &Candidate| c.stored.pin.as_ref().map_or(0, |p| p.seen.messages);
        let holding = confirmed().filter(|c| !retired(c) && c.prefix == Prefix::Holds);
        // `max_by_key` takes the last of equals; the list is newest first.
        let best = holding.rev().max_by_key(|c| seen(c));
        best.or_else(|| confirmed().find(|c| !retired(c)))
            .or_else(|| confirmed().next())
    }
}

/// Messages loaded at a time for a re-telling.
const PAGE: i64 = 64;

impl Hub {
    /// `new`: the message of the turn, already in its place (or, for a prediction, none).
    pub async fn outlook(
        &self,
        c: ConversationId,
        scope: Scope,
        agent: &AgentName,
        new: Option<&Message>,
    ) -> Result<Outlook> {
        let mut read = self.store.read().await?;
        let before = match new {
            Some(message) => message.seq,
            None => read.last_seq(c).await? + 1,
        };
        let state = read.scope_before(c, scope, agent, before).await?;
        let value = new.map_or(state.value, |m| state.value.fold(&m.digest()));
        let mut candidates = vec![];
        for stored in read.pins_of(c, agent).await? {
            let prefix = match &stored.pin {
                None => Prefix::Changed { at: None },
                Some(pin) => {
                    let today = read
                        .value_through(c, scope, &state, pin.seen.last_seq)
                        .await?;
                    if today == Some(pin.seen.value) {
                        Prefix::Holds
                    } else {
                        Prefix::Changed { at: None }
                    }
                }
            };
            candidates.push(Candidate { stored, prefix });
        }
        Ok(Outlook {
            scope: state,
            value,
            candidates,
        })
    }

    /// The messages a plan asks for, and no others.
    pub async fn rest(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        plan: &TurnPlan,
    ) -> Result<Vec<Message>> {
        let TurnPlan::Resume { catch_up, .. } = plan else {
            return Ok(vec![]);
        };
        let after = outlook.scope.boundary_seq + catch_up.after() as i64;
        let mut read = self.store.read().await?;
        Ok(read
            .messages_between(c, after, outlook.scope.last_seq + 1)
            .await?)
    }

    /// The record of everything in scope, within its budget, read newest first.
    pub async fn record(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        budget: Budget,
    ) -> Result<Record> {
        let mut builder = TranscriptBuilder::new(budget);
        let mut before = outlook.scope.last_seq + 1;
        let mut read = self.store.read().await?;
        let mut earlier = vec![];
        'pages: loop {
            let page = read
                .messages_older(c, outlook.scope.boundary_seq, before, PAGE)
                .await?;
            let Some(oldest) = page.last() else { break };
            before = oldest.seq;
            for (at, message) in page.iter().enumerate() {
                if !builder.push(message) {
                    earlier = page[at..]
                        .iter()
                        .rev()
                        .flat_map(|m| m.trail.clone())
                        .collect();
                    break 'pages;
                }
            }
        }
        Ok(builder.finish(outlook.scope.messages, &earlier))
    }
}

//! What the store knows that a decision needs: the history in scope, and the sessions that could
//! serve, each with whether its history is still today's.

use rejoin_core::ConversationId;
use rejoin_core::{
    AgentName, Budget, HistoryFacts, Message, Prefix, Record, Scope, ScopeValue, TranscriptBuilder,
    TurnPlan,
};
use rejoin_store::{Page, ScopeState, StoredPin};

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

/// Bytes of text loaded at a time for a re-telling, and messages at most.
const PAGE: Page = Page {
    bytes: 1 << 20,
    messages: 64,
};

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

    /// What a resumed session has not seen, and no other message.
    pub async fn rest(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        plan: &TurnPlan,
        budget: Budget,
    ) -> Result<Record> {
        let (after, messages) = match plan {
            TurnPlan::Resume { catch_up, .. } => (catch_up.after(), catch_up.messages()),
            TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => (outlook.scope.messages, 0),
        };
        let after = outlook.scope.boundary_seq + after as i64;
        self.told(c, after, outlook.scope.last_seq + 1, messages, budget)
            .await
    }

    /// The record of everything in scope, within its budget.
    pub async fn record(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        budget: Budget,
    ) -> Result<Record> {
        let ScopeState {
            boundary_seq,
            last_seq,
            messages,
            ..
        } = outlook.scope;
        self.told(c, boundary_seq, last_seq + 1, messages, budget)
            .await
    }

    /// The messages between two places, read newest first and never all at once.
    async fn told(
        &self,
        c: ConversationId,
        after: i64,
        mut before: i64,
        messages: u64,
        budget: Budget,
    ) -> Result<Record> {
        let mut builder = TranscriptBuilder::new(budget);
        let mut read = self.store.read().await?;
        let mut earlier = vec![];
        'pages: while messages > 0 {
            let page = read.messages_older(c, after, before, PAGE).await?;
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
        Ok(builder.finish(messages, &earlier))
    }
}

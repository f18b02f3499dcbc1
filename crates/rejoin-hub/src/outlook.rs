//! What the store knows that a decision needs: the history in scope, and the sessions that could
//! serve, each with whether its history is still today's.

use rejoin_core::ConversationId;
use rejoin_core::{
    AgentName, Altered, Budget, Class, HistoryFacts, Message, PinState, Prefix, Record, Scope,
    ScopeValue, TranscriptBuilder, TurnPlan, TurnStatus,
};
use rejoin_store::{Conversation, Page, Read, ScopeState, StoredPin};

use crate::Hub;
use crate::error::Result;

/// The facts, as of one moment.
#[derive(Debug, Clone)]
pub struct Outlook {
    pub conversation: ConversationId,
    pub kind: Scope,
    pub scope: ScopeState,
    /// The value once the new message is added.
    pub value: ScopeValue,
    pub candidates: Vec<Candidate>,
    /// Of a fork that has had no session of this agent yet: its parent's, if what that has seen is
    /// where this one began.
    pub inherited: Option<Candidate>,
}

/// Why a session is retired whose fork did not work; so many of them count as failures of the one it
/// was made of.
pub const FORK_FAILED: &str = "its first turn, on a copy of its parent's session, failed";

#[derive(Debug, Clone)]
pub struct Candidate {
    pub stored: StoredPin,
    pub prefix: Prefix,
    /// The name of the conversation it belongs to, if that is another.
    pub forked_from: Option<String>,
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
        let retired = |c: &Candidate| matches!(c.stored.state, PinState::Retired(_));
        let seen = |c: &Candidate| c.stored.pin.as_ref().map_or(0, |p| p.seen.messages);
        let holding = confirmed().filter(|c| !retired(c) && c.prefix == Prefix::Holds);
        // `max_by_key` takes the last of equals; the list is newest first.
        let best = holding.rev().max_by_key(|c| seen(c));
        best.or_else(|| confirmed().find(|c| !retired(c)))
            .or_else(|| confirmed().next())
            .or(self.inherited.as_ref())
    }
}

/// Changes that are looked through for the one that altered what a session has seen.
const CHANGES: i64 = 8;
/// Turns that are looked through for a transcript that did not fit.
const OVERFLOWS: i64 = 16;
/// How far back a fork of a fork of a fork looks for a session.
const GENERATIONS: usize = 8;

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
                None => Prefix::Changed { by: None },
                Some(pin) => {
                    let today = read
                        .value_through(c, scope, &state, pin.seen.last_seq)
                        .await?;
                    if today == Some(pin.seen.value) {
                        Prefix::Holds
                    } else {
                        let by = altered(&mut read, c, pin.seen.last_seq).await?;
                        Prefix::Changed { by }
                    }
                }
            };
            candidates.push(Candidate {
                stored,
                prefix,
                forked_from: None,
            });
        }
        let inherited = self.inherited(c, scope, agent, &state, &candidates).await?;
        Ok(Outlook {
            conversation: c,
            kind: scope,
            scope: state,
            value,
            candidates,
            inherited,
        })
    }

    /// The session to fork: of those of the conversations this one comes from the one that has seen
    /// most of today's history. None once this one has had a session of its own: what became of that
    /// is said of it, and who retired it did not mean to go back to an older one.
    async fn inherited(
        &self,
        c: ConversationId,
        scope: Scope,
        agent: &AgentName,
        state: &ScopeState,
        own: &[Candidate],
    ) -> Result<Option<Candidate>> {
        if own.iter().any(|candidate| candidate.stored.pin.is_some()) {
            return Ok(None);
        }
        let failed = |c: &&Candidate| matches!(&c.stored.state, PinState::Retired(why) if why == FORK_FAILED);
        let failures = own.iter().filter(failed).count() as u32;
        let mut read = self.store.read().await?;
        let mut best: Option<Candidate> = None;
        let mut at = c;
        for _ in 0..GENERATIONS {
            // `rejoin reset` gives up what came along, too.
            if read.was_reset(at).await? {
                break;
            }
            let Some(parent) = parent_of(&mut read, at).await? else {
                break;
            };
            at = parent.id;
            for stored in read.pins_of(at, agent).await? {
                if matches!(stored.state, PinState::Retired(_)) {
                    continue;
                }
                let earlier = read.earlier_pins(&stored).await?;
                for mut pin in stored.pin.clone().into_iter().chain(earlier) {
                    let most = best.as_ref().and_then(|b| b.stored.pin.as_ref());
                    if most.is_some_and(|most| most.seen.messages >= pin.seen.messages) {
                        break;
                    }
                    let today = read.value_through(c, scope, state, pin.seen.last_seq);
                    if today.await? != Some(pin.seen.value) {
                        continue;
                    }
                    pin.failures += failures;
                    best = Some(Candidate {
                        stored: StoredPin {
                            pin: Some(pin),
                            ..stored.clone()
                        },
                        prefix: Prefix::Holds,
                        forked_from: Some(read.short_handle(&parent.handle).await?),
                    });
                }
            }
        }
        Ok(best)
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

    /// Returns the bytes of the newest transcript that did not fit the model, if no turn of this agent
    /// has succeeded since.
    pub async fn overflowed(
        &self,
        c: ConversationId,
        agent: &AgentName,
        model: Option<&str>,
    ) -> Result<Option<u64>> {
        let mut read = self.store.read().await?;
        for turn in read.ended_turns(c, OVERFLOWS).await? {
            if turn.agent != *agent || turn.request["model"].as_str() != model {
                continue;
            }
            let class = turn.error.as_ref().map(|error| error.class);
            let sent = turn.record.sent;
            if class == Some(Class::ContextOverflow) && sent.transcribed > 0 {
                return Ok(Some(sent.bytes));
            }
            if turn.status == TurnStatus::Succeeded {
                return Ok(None);
            }
        }
        Ok(None)
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
        if messages == 0 {
            return Ok(Record::default());
        }
        let mut builder = TranscriptBuilder::new(budget);
        let mut read = self.store.read().await?;
        let mut earlier = vec![];
        'pages: loop {
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

/// The newest change that altered what a session has seen, as far as changes tell.
async fn altered(read: &mut Read, c: ConversationId, seen: i64) -> Result<Option<Altered>> {
    let changes = read.changes(c, CHANGES).await?;
    for change in &changes {
        let by = crate::change::altered(read, change).await?;
        let place = by.map(|(Altered::Edited(at) | Altered::Removed(at))| at);
        if place.is_some_and(|at| at <= seen) {
            return Ok(by);
        }
    }
    Ok(None)
}

async fn parent_of(read: &mut Read, c: ConversationId) -> Result<Option<Conversation>> {
    let child = read.conversation(c).await?;
    let parent = child.and_then(|child| child.parent).map(|parent| parent.id);
    match parent {
        Some(parent) => Ok(read.conversation(parent).await?),
        None => Ok(None),
    }
}

//! Facts from the store that a decision needs: the history in scope, and the candidate sessions,
//! each with a check that its history is still a prefix of today's.

use rejoin_core::ConversationId;
use rejoin_core::{
    AgentName, Budget, Class, HistoryChange, HistoryFacts, Message, PinState, Prefix, Scope,
    ScopeValue, TranscriptBuilder, TranscriptText, TurnPlan, TurnStatus,
};
use rejoin_store::{Conversation, Page, Read, ScopeState, StoredPin};

use crate::Hub;
use crate::claim::Claimed;
use crate::error::Result;

/// The facts at one moment.
#[derive(Debug, Clone)]
pub struct StoreFacts {
    pub conversation: ConversationId,
    pub kind: Scope,
    pub scope: ScopeState,
    /// Scope value including the new message.
    pub value: ScopeValue,
    pub candidates: Vec<Candidate>,
    /// Session of the parent, for a fork without a session of this agent yet. `None` unless the
    /// messages that it has seen are the beginning of this conversation.
    pub inherited: Option<Candidate>,
}

/// Reason for retiring the session of a failed fork. Sessions retired for it count as failures of
/// the session that was copied.
pub const FORK_FAILED: &str = "its first turn, on a copy of its parent's session, failed";

#[derive(Debug, Clone)]
pub struct Candidate {
    pub stored: StoredPin,
    pub prefix: Prefix,
    /// Handle of the conversation that owns the session, if it is another one.
    pub forked_from: Option<String>,
}

impl StoreFacts {
    pub fn history(&self) -> HistoryFacts {
        HistoryFacts {
            messages: self.scope.messages,
            answered: self.scope.answered,
        }
    }

    /// Returns the session to decide about: of those not retired the one that has seen most of
    /// today's history, else the newest. So the reason shown concerns the session that users
    /// expect.
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

/// Number of changes to search for the one that altered messages a session has seen.
const CHANGES: i64 = 8;
/// Number of turns to search for a transcript that did not fit.
const OVERFLOWS: i64 = 16;
/// Number of ancestors to search for a session to fork.
const GENERATIONS: usize = 8;

/// Bytes of text and messages loaded at a time for a transcript.
const PAGE: Page = Page {
    bytes: 1 << 20,
    messages: 64,
};

impl Hub {
    /// Collects the facts for a claimed turn.
    pub async fn outlook_of(&self, claimed: &Claimed) -> Result<StoreFacts> {
        let (c, agent) = (&claimed.conversation, &claimed.turn.agent);
        self.outlook(c.id, c.scope, agent, Some(&claimed.message))
            .await
    }

    /// Collects the facts. `new` is the message of the turn, already placed in the history; `None`
    /// for a prediction.
    pub async fn outlook(
        &self,
        c: ConversationId,
        scope: Scope,
        agent: &AgentName,
        new: Option<&Message>,
    ) -> Result<StoreFacts> {
        let mut read = self.store.read().await?;
        let before = match new {
            Some(message) => message.seq,
            None => read.history().last_seq(c).await? + 1,
        };
        let state = read.history().scope_before(c, scope, agent, before).await?;
        let value = new.map_or(state.value, |m| state.value.fold(&m.digest()));
        let mut candidates = vec![];
        for stored in read.pins().of(c, agent).await? {
            let prefix = match &stored.pin {
                None => Prefix::Changed { by: None },
                Some(pin) => {
                    let today = read
                        .history()
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
        Ok(StoreFacts {
            conversation: c,
            kind: scope,
            scope: state,
            value,
            candidates,
            inherited,
        })
    }

    /// Returns the session to fork: among the sessions of this conversation's ancestors, the one
    /// that has seen most of today's history. `None` once this conversation has had a session of
    /// its own: reports then concern that session, and a user who retired it did not mean to return
    /// to an older one.
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
            // `rejoin reset` also gives up inherited sessions.
            if read.changes().was_reset(at).await? {
                break;
            }
            let Some(parent) = parent_of(&mut read, at).await? else {
                break;
            };
            at = parent.id;
            for stored in read.pins().of(at, agent).await? {
                if matches!(stored.state, PinState::Retired(_)) {
                    continue;
                }
                let earlier = read.pins().earlier(&stored).await?;
                for mut pin in stored.pin.clone().into_iter().chain(earlier) {
                    let most = best.as_ref().and_then(|b| b.stored.pin.as_ref());
                    if most.is_some_and(|most| most.seen.messages >= pin.seen.messages) {
                        break;
                    }
                    let today = read
                        .history()
                        .value_through(c, scope, state, pin.seen.last_seq)
                        .await?;
                    if today != Some(pin.seen.value) {
                        continue;
                    }
                    pin.failures += failures;
                    best = Some(Candidate {
                        stored: StoredPin {
                            pin: Some(pin),
                            ..stored.clone()
                        },
                        prefix: Prefix::Holds,
                        forked_from: Some(read.conversations().short_handle(&parent.handle).await?),
                    });
                }
            }
        }
        Ok(best)
    }

    /// Returns the transcript of the messages that a resumed session has not seen.
    pub async fn catch_up(
        &self,
        c: ConversationId,
        outlook: &StoreFacts,
        plan: &TurnPlan,
        budget: Budget,
    ) -> Result<TranscriptText> {
        let (after, messages) = match plan {
            TurnPlan::Resume { catch_up, .. } => (catch_up.after(), catch_up.messages()),
            TurnPlan::Start { .. } | TurnPlan::Reseed { .. } => (outlook.scope.messages, 0),
        };
        let after = outlook.scope.boundary_seq + after as i64;
        self.transcript_between(c, after, outlook.scope.last_seq + 1, messages, budget)
            .await
    }

    /// Returns the transcript of all messages in scope, within the budget.
    pub async fn transcript(
        &self,
        c: ConversationId,
        outlook: &StoreFacts,
        budget: Budget,
    ) -> Result<TranscriptText> {
        let ScopeState {
            boundary_seq,
            last_seq,
            messages,
            ..
        } = outlook.scope;
        self.transcript_between(c, boundary_seq, last_seq + 1, messages, budget)
            .await
    }

    /// Returns true if the agent may have asked a person something since its last answer but one: in
    /// the turn of its last answer, or in a later one. Also true if no such turn is known.
    pub async fn asked_since_last_answer(
        &self,
        c: ConversationId,
        agent: &AgentName,
    ) -> Result<bool> {
        let mut read = self.store.read().await?;
        let turns = read.turns().ended(c, OVERFLOWS).await?;
        for turn in turns.iter().filter(|turn| turn.agent == *agent) {
            if !read.questions().of(turn.id).await?.is_empty() {
                return Ok(true);
            }
            if turn.status == TurnStatus::Succeeded {
                return Ok(false);
            }
        }
        Ok(true)
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
        for turn in read.turns().ended(c, OVERFLOWS).await? {
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

    /// Builds the transcript of the messages between two positions. Reads pages newest first, never
    /// all at once.
    async fn transcript_between(
        &self,
        c: ConversationId,
        after: i64,
        mut before: i64,
        messages: u64,
        budget: Budget,
    ) -> Result<TranscriptText> {
        if messages == 0 {
            return Ok(TranscriptText::default());
        }
        let mut builder = TranscriptBuilder::new(budget);
        let mut read = self.store.read().await?;
        let mut earlier = vec![];
        'pages: loop {
            let page = read
                .history()
                .messages_older(c, after, before, PAGE)
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
        Ok(builder.finish(messages, &earlier))
    }
}

/// Returns the newest change that altered messages a session has seen, or `None` if no recorded
/// change did.
async fn altered(read: &mut Read, c: ConversationId, seen: i64) -> Result<Option<HistoryChange>> {
    let changes = read.changes().list(c, CHANGES).await?;
    for change in &changes {
        let by = crate::change::altered(read, change).await?;
        let place = by.map(|(HistoryChange::Edited(at) | HistoryChange::Removed(at))| at);
        if place.is_some_and(|at| at <= seen) {
            return Ok(by);
        }
    }
    Ok(None)
}

async fn parent_of(read: &mut Read, c: ConversationId) -> Result<Option<Conversation>> {
    let child = read.conversations().get(c).await?;
    let parent = child.and_then(|child| child.parent).map(|parent| parent.id);
    match parent {
        Some(parent) => Ok(read.conversations().get(parent).await?),
        None => Ok(None),
    }
}

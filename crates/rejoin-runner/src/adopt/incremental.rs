//! Messages that were added to a session after it was adopted.

use rejoin_agents::SessionStorage as Sessions;
use rejoin_core::ConversationId;
use rejoin_hub::Claimed;
use rejoin_store::Adoption as Kept;

use super::find::{self, Found};
use super::source::Source;
use super::{Adoption, AdoptionState, OutsideSession, kept_source};
use crate::error::{Error, Result};
use crate::external::ExternalMessages;
use crate::turn::Runner;
use crate::worker_thread::on_worker;

impl Runner {
    /// Returns the state of a known session: the number of messages that were added since it was
    /// taken in.
    pub(super) async fn standing(
        &self,
        session: &OutsideSession,
        c: ConversationId,
    ) -> Result<AdoptionState> {
        let more = match self.kept_by_source(session).await? {
            Some((_, source)) => {
                if source.stamp == session.found.stamp {
                    0
                } else {
                    let read = self.read(session).await;
                    let said = read.map(|read| read.said).unwrap_or_default();
                    source.since(&said).map_or(0, |new| new.len())
                }
            }
            None => self.in_place(session).await?,
        };
        Ok(match more {
            0 => AdoptionState::Known(c),
            more => AdoptionState::Grown(c, more as u64),
        })
    }

    /// Takes in the messages that were added since.
    pub(super) async fn adopt_more(
        &self,
        session: &OutsideSession,
        c: ConversationId,
    ) -> Result<Adoption> {
        let mut taken = Adoption {
            conversation: c,
            messages: 0,
            copied: session.own.copied,
            resumable: true,
            note: None,
        };
        match self.kept_by_source(session).await? {
            Some((kept, source)) => {
                let read = self.read(session).await?;
                taken.resumable = source.copied;
                let Some(said) = source.since(&read.said) else {
                    let note =
                        "it does not begin any more with what was taken in; nothing more was";
                    taken.note = Some(note.into());
                    return Ok(taken);
                };
                let source = kept_source(session, &read)?;
                let done = self
                    .hub
                    .take_in_since(c, None, &kept, source, &said)
                    .await?;
                taken.messages = done.messages;
            }
            None => {
                if session.own.copied {
                    taken.note = Some("rejoin itself made this session".into());
                    return Ok(taken);
                }
                taken.messages = self.take_in(c, None).await?.messages;
            }
        }
        Ok(taken)
    }

    /// Takes in messages that were added to the sessions which this conversation was adopted from
    /// and does not write to. Called before a turn and on request. Sessions that cannot be read now
    /// are left for later.
    pub(crate) async fn take_in_sources(
        &self,
        c: ConversationId,
        mut claimed: Option<&mut Claimed>,
        taken: &mut ExternalMessages,
    ) -> Result<()> {
        let kept = {
            let mut read = self.hub.store.read().await?;
            read.adoptions().of(c).await?
        };
        for kept in kept {
            let Ok(source) = serde_json::from_value::<Source>(kept.source.clone()) else {
                continue;
            };
            if !self
                .by_source(&kept.agent, &kept.session_id, &source)
                .await?
            {
                continue;
            }
            let found = self.source_of(&kept, &source).await?;
            let Some(session) = found.filter(|s| s.found.stamp != source.stamp) else {
                continue;
            };
            let Ok(read) = self.read(&session).await else {
                continue;
            };
            let Some(said) = source.since(&read.said) else {
                continue;
            };
            let now = kept_source(&session, &read)?;
            let in_hand = claimed.as_deref();
            let done = self.hub.take_in_since(c, in_hand, &kept, now, &said).await;
            let done = match done {
                Err(rejoin_hub::Error::Busy) => return Ok(()),
                other => other.map_err(Error::from)?,
            };
            if let (Some(claimed), Some(message)) = (claimed.as_deref_mut(), done.message) {
                claimed.message = message;
            }
            if done.messages > 0 {
                taken.messages += done.messages;
                taken.agents.push(kept.agent.clone());
            }
        }
        Ok(())
    }

    /// Returns the adoption of the session, if new messages are detected by comparison with it.
    async fn kept_by_source(&self, session: &OutsideSession) -> Result<Option<(Kept, Source)>> {
        let Some((kept, source)) = self.kept(session).await? else {
            return Ok(None);
        };
        let (agent, id) = (session.agent.as_str(), session.head.session.as_str());
        let by_source = self.by_source(agent, id, &source).await?;
        Ok(by_source.then_some((kept, source)))
    }

    async fn kept(&self, session: &OutsideSession) -> Result<Option<(Kept, Source)>> {
        let id = session.head.session.as_str();
        let mut read = self.hub.store.read().await?;
        let kept = read.adoptions().get(session.agent.as_str(), id).await;
        let kept = kept?;
        Ok(kept.and_then(|kept| {
            let source = serde_json::from_value(kept.source.clone()).ok()?;
            Some((kept, source))
        }))
    }

    /// Returns true if new messages of the session are detected by comparison with its adoption.
    /// Sessions that we write to ourselves are compared with their pin instead.
    async fn by_source(&self, agent: &str, session: &str, source: &Source) -> Result<bool> {
        if source.copied {
            return Ok(true);
        }
        let mut read = self.hub.store.read().await?;
        let pin = read.pins().of_session(agent, session).await;
        Ok(pin?.is_none())
    }

    /// Counts the new messages in a session of ours, retired or not.
    async fn in_place(&self, session: &OutsideSession) -> Result<usize> {
        if session.own.copied {
            return Ok(0);
        }
        let id = session.head.session.as_str();
        let agent = session.agent.as_str();
        let watched = {
            let mut read = self.hub.store.read().await?;
            let watched = read.external().watched_session(agent, id).await;
            watched?
        };
        let Some((c, watch)) = watched else {
            return Ok(0);
        };
        let mut new = 0;
        for grown in self.went_on(&watch).await? {
            let said = self.hub.not_taken_in(c, &grown.said, grown.now()).await?;
            new += said.len();
        }
        Ok(new)
    }

    /// Finds the session again.
    async fn source_of(&self, kept: &Kept, source: &Source) -> Result<Option<OutsideSession>> {
        let Some(adapter) = self.config.adapter(&kept.agent) else {
            return Ok(None);
        };
        let Some(own) = find::own(&self.config, adapter, None) else {
            return Ok(None);
        };
        let (its, path, id) = (own.clone(), source.path.clone(), kept.session_id.clone());
        let again = move || find::again(adapter, &its, &path, &id);
        // One database holds all sessions of its user, so reading it may take long.
        let found: Option<Found> = match own.kept {
            Sessions::Rows { .. } => on_worker(again).await,
            Sessions::Files { .. } => again(),
        };
        let Some(found) = found else { return Ok(None) };
        let agent = rejoin_core::AgentName::new(kept.agent.as_str())
            .map_err(|e| Error::Internal(e.to_string()))?;
        Ok(Some(OutsideSession {
            agent,
            head: found.head.clone(),
            standing: AdoptionState::Known(kept.conversation),
            adapter,
            own,
            found,
        }))
    }
}

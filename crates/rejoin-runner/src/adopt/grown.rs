//! What was said since in a session that is known already.

use rejoin_agents::Kept as Sessions;
use rejoin_core::ConversationId;
use rejoin_hub::Claimed;
use rejoin_store::Adoption as Kept;

use super::find::{self, Found};
use super::source::Source;
use super::{Adoption, OutsideSession, Standing, kept_source};
use crate::apart::apart;
use crate::error::{Error, Result};
use crate::outside::Taken;
use crate::turn::Runner;

impl Runner {
    /// How many messages were said in it since they were taken in.
    pub(super) async fn standing(
        &self,
        session: &OutsideSession,
        c: ConversationId,
    ) -> Result<Standing> {
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
            0 => Standing::Known(c),
            more => Standing::Grown(c, more as u64),
        })
    }

    /// Takes in what was said since.
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

    /// Before a turn, or when somebody asks: what was said since in the sessions that this
    /// conversation was made of and does not write to. Those that cannot be read now are left for later.
    pub(crate) async fn take_in_sources(
        &self,
        c: ConversationId,
        mut claimed: Option<&mut Claimed>,
        taken: &mut Taken,
    ) -> Result<()> {
        let kept = {
            let mut read = self.hub.store.read().await?;
            read.adoptions_of(c).await?
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

    /// How it was taken in, if what is new in it is told by that.
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
        let kept = read.adoption(session.agent.as_str(), id).await;
        let kept = kept?;
        Ok(kept.and_then(|kept| {
            let source = serde_json::from_value(kept.source.clone()).ok()?;
            Some((kept, source))
        }))
    }

    /// A session that we write to ourselves is known by its pin; the others by what was taken in.
    async fn by_source(&self, agent: &str, session: &str, source: &Source) -> Result<bool> {
        if source.copied {
            return Ok(true);
        }
        let mut read = self.hub.store.read().await?;
        let pin = read.pin_of_session(agent, session).await;
        Ok(pin?.is_none())
    }

    /// Counts the words that are new in a session of ours, retired or not.
    async fn in_place(&self, session: &OutsideSession) -> Result<usize> {
        if session.own.copied {
            return Ok(0);
        }
        let id = session.head.session.as_str();
        let agent = session.agent.as_str();
        let watched = {
            let mut read = self.hub.store.read().await?;
            let watched = read.watched_session(agent, id).await;
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

    /// The session itself, looked for anew.
    async fn source_of(&self, kept: &Kept, source: &Source) -> Result<Option<OutsideSession>> {
        let Some(adapter) = self.config.adapter(&kept.agent) else {
            return Ok(None);
        };
        let Some(own) = find::own(&self.config, adapter, None) else {
            return Ok(None);
        };
        let (its, path, id) = (own.clone(), source.path.clone(), kept.session_id.clone());
        let again = move || find::again(adapter, &its, &path, &id);
        // One database holds all sessions of its user.
        let found: Option<Found> = match own.kept {
            Sessions::Rows { .. } => apart(again).await,
            Sessions::Files { .. } => again(),
        };
        let Some(found) = found else { return Ok(None) };
        let agent = rejoin_core::AgentName::new(kept.agent.as_str())
            .map_err(|e| Error::Internal(e.to_string()))?;
        Ok(Some(OutsideSession {
            agent,
            head: found.head.clone(),
            standing: Standing::Known(kept.conversation),
            adapter,
            own,
            found,
        }))
    }
}

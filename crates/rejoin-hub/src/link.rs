//! What a runner needs of a hub, in-process here, over HTTP in a fleet: both walk the same code.

use std::future::Future;

use rejoin_agents::Facts;
use rejoin_core::{
    AgentName, Budget, ConversationId, EventBody, Pin, PinId, Record, TurnId, TurnPlan,
};
use rejoin_store::{NewQuestion, StoredQuestion};

use crate::claim::Claimed;
use crate::error::Result;
use crate::finish::Settled;
use crate::outlook::Outlook;
use crate::progress::BeginAttempt;
use crate::snapshots::Offers;
use crate::{Clock, Hub};

pub trait HubLink: Send + Sync {
    fn clock(&self) -> Clock;
    fn machine(&self) -> &str;
    fn outlook(&self, claimed: &Claimed) -> impl Future<Output = Result<Outlook>> + Send;
    fn offers(&self, outlook: &Outlook, pin: &Pin) -> impl Future<Output = Result<Offers>> + Send;
    fn restored(&self, claimed: &Claimed, pin: &Pin) -> impl Future<Output = Result<()>> + Send;
    fn rest(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        plan: &TurnPlan,
        budget: Budget,
    ) -> impl Future<Output = Result<Record>> + Send;
    fn record(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        budget: Budget,
    ) -> impl Future<Output = Result<Record>> + Send;
    fn overflowed(
        &self,
        c: ConversationId,
        agent: &AgentName,
        model: Option<&str>,
    ) -> impl Future<Output = Result<Option<u64>>> + Send;
    fn begin(
        &self,
        claimed: &Claimed,
        begin: &BeginAttempt<'_>,
    ) -> impl Future<Output = Result<()>> + Send;
    fn append(
        &self,
        claimed: &Claimed,
        n: i64,
        events: &[EventBody],
        asked: &[NewQuestion],
        spool: u64,
    ) -> impl Future<Output = Result<()>> + Send;
    fn questions(
        &self,
        turn: TurnId,
        n: i64,
    ) -> impl Future<Output = Result<Vec<StoredQuestion>>> + Send;
    fn retire(
        &self,
        claimed: &Claimed,
        pin: PinId,
        why: &str,
    ) -> impl Future<Output = Result<()>> + Send;
    fn finish(
        &self,
        claimed: &Claimed,
        settled: &Settled,
    ) -> impl Future<Output = Result<()>> + Send;
    fn requeue(&self, claimed: &Claimed) -> impl Future<Output = Result<()>> + Send;
    fn withdraw(&self, claimed: &Claimed) -> impl Future<Output = Result<()>> + Send;
    fn cancel_asked(&self, turn: TurnId) -> impl Future<Output = Result<bool>> + Send;
    fn binary(&self, identity: &str) -> impl Future<Output = Result<Option<Facts>>> + Send;
    fn keep_binary(
        &self,
        identity: &str,
        agent: &str,
        facts: &Facts,
    ) -> impl Future<Output = Result<()>> + Send;
}

impl HubLink for Hub {
    fn clock(&self) -> Clock {
        self.clock
    }

    fn machine(&self) -> &str {
        &self.machine
    }

    async fn outlook(&self, claimed: &Claimed) -> Result<Outlook> {
        let (c, agent) = (&claimed.conversation, &claimed.turn.agent);
        Hub::outlook(self, c.id, c.scope, agent, Some(&claimed.message)).await
    }

    async fn offers(&self, outlook: &Outlook, pin: &Pin) -> Result<Offers> {
        Hub::offers(self, outlook, pin).await
    }

    async fn restored(&self, claimed: &Claimed, pin: &Pin) -> Result<()> {
        Hub::restored(self, claimed, pin).await
    }

    async fn rest(
        &self,
        c: ConversationId,
        outlook: &Outlook,
        plan: &TurnPlan,
        budget: Budget,
    ) -> Result<Record> {
        Hub::rest(self, c, outlook, plan, budget).await
    }

    async fn record(&self, c: ConversationId, outlook: &Outlook, budget: Budget) -> Result<Record> {
        Hub::record(self, c, outlook, budget).await
    }

    async fn overflowed(
        &self,
        c: ConversationId,
        agent: &AgentName,
        model: Option<&str>,
    ) -> Result<Option<u64>> {
        Hub::overflowed(self, c, agent, model).await
    }

    async fn begin(&self, claimed: &Claimed, begin: &BeginAttempt<'_>) -> Result<()> {
        self.begin_attempt(claimed, begin).await
    }

    async fn append(
        &self,
        claimed: &Claimed,
        n: i64,
        events: &[EventBody],
        asked: &[NewQuestion],
        spool: u64,
    ) -> Result<()> {
        Hub::append(self, claimed, n, events, asked, spool).await
    }

    async fn questions(&self, turn: TurnId, n: i64) -> Result<Vec<StoredQuestion>> {
        Hub::questions(self, turn, n).await
    }

    async fn retire(&self, claimed: &Claimed, pin: PinId, why: &str) -> Result<()> {
        Hub::retire(self, claimed, pin, why).await
    }

    async fn finish(&self, claimed: &Claimed, settled: &Settled) -> Result<()> {
        Hub::finish(self, claimed, settled).await
    }

    async fn requeue(&self, claimed: &Claimed) -> Result<()> {
        Hub::requeue(self, claimed).await
    }

    async fn withdraw(&self, claimed: &Claimed) -> Result<()> {
        Hub::withdraw(self, claimed).await
    }

    async fn cancel_asked(&self, turn: TurnId) -> Result<bool> {
        Hub::cancel_asked(self, turn).await
    }

    async fn binary(&self, identity: &str) -> Result<Option<Facts>> {
        Ok(self.store.read().await?.binary(identity).await?)
    }

    async fn keep_binary(&self, identity: &str, agent: &str, facts: &Facts) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.keep_binary(identity, agent, facts, self.clock.now())
            .await?;
        Ok(tx.commit().await?)
    }
}

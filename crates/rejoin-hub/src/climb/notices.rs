//! Chains and holds: the root of a chain, the notices that its turns receive, and the hold.

use rejoin_core::{TurnId, TurnStatus, refusal_notice, tier_notice};
use rejoin_store::{ChainLink, Tx};

use super::REFUSED;
use crate::Hub;
use crate::claim::Claimed;
use crate::error::Result;
use crate::request::TurnRequest;

/// Number of turns in which a refusal is looked for that the agent does not know yet.
const TURNS: i64 = 20;

impl Hub {
    /// Makes a turn of a tier the root of a chain.
    pub(crate) async fn begin_chain(
        &self,
        tx: &mut Tx,
        turn: TurnId,
        request: &TurnRequest,
        trigger: &str,
    ) -> Result<()> {
        if let Some(tier) = &request.tier {
            let link = ChainLink {
                tier: &tier.name,
                parent: None,
                chain: turn,
                trigger,
            };
            tx.chains().link(turn, link).await?;
        }
        Ok(())
    }

    /// Returns the text that a turn receives besides its message: how to ask for a higher tier, and
    /// a refusal that the agent does not know yet. A climb receives nothing but its prompt.
    pub async fn tier_notices(&self, claimed: &Claimed) -> Result<Option<String>> {
        if claimed.turn.parent.is_some() {
            return Ok(None);
        }
        let mut notices = vec![];
        let mut read = self.store.read().await?;
        let before = read.turns().ended(claimed.turn.conversation, TURNS).await?;
        let known = before
            .iter()
            .find(|turn| turn.status == TurnStatus::Succeeded && turn.agent == claimed.turn.agent);
        let escalation = known.and_then(|turn| turn.escalation.as_ref());
        if let Some(refused) = escalation.filter(|it| it["decision"] == REFUSED) {
            let checks = refused["checks"].as_array().map_or(&[][..], Vec::as_slice);
            let failed = checks.iter().find(|check| check["ok"] == false);
            let evidence = failed.and_then(|check| check["evidence"].as_str());
            let to = refused["requested"].as_str().unwrap_or("next");
            notices.push(refusal_notice(to, evidence.unwrap_or("not allowed")));
        }
        if let Some(tier) = &claimed.request.tier
            && let Some((rank, _)) = tier.tiers.find(&tier.name)
        {
            notices.push(tier_notice(&tier.tiers, rank, &claimed.request.limits));
        }
        Ok((!notices.is_empty()).then(|| notices.join("\n\n")))
    }

    /// Stops or allows the climbs of this namespace.
    pub async fn set_hold(&self, hold: bool) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.chains()
            .set_hold(&self.namespace, hold, &self.machine, self.clock.now())
            .await?;
        Ok(tx.commit().await?)
    }
}

//! Decision of a turn: made once from the inspection. A plan that needs a copy or a snapshot obtains
//! it first; only if the facts turn out otherwise is it decided again.

use std::path::Path;

use rejoin_core::{
    AgentName, Blocker, Capability, Fresh, PermissionsFact, PinFacts, Request, SessionSource,
    Situation, TurnPlan, decide,
};
use rejoin_hub::TurnRequest;
use rejoin_store::Vault;
use serde_json::{Value, json};

use crate::error::Result;
use crate::inspect::Inspection;

/// Decision with its checks as they are stored.
pub(crate) struct Decided {
    pub(crate) plan: std::result::Result<TurnPlan, Blocker>,
    pub(crate) checks: Vec<Value>,
    /// Evidence of the first check that failed.
    pub(crate) failed: Option<String>,
}

impl Decided {
    fn way(&self) -> Option<SessionSource> {
        let plan = self.plan.as_ref().ok()?;
        plan.session().map(rejoin_core::TrustedSession::way)
    }
}

impl Inspection {
    /// Decides how the turn continues, from the facts as they are.
    pub(crate) fn decide(&self, agent: &AgentName, request: &TurnRequest) -> Decided {
        let situation = self.situation(agent, request);
        let decision = decide(&situation);
        let checks = decision.checks.iter().map(|c| {
            json!({"check": c.check.to_string(), "ok": c.ok, "evidence": c.evidence.to_string()})
        });
        let failed = decision.checks.iter().find(|c| c.ok == Some(false));
        Decided {
            checks: checks.chain([self.wall.check()]).collect(),
            failed: failed.map(|c| c.evidence.to_string()),
            plan: decision.plan,
        }
    }

    /// Obtains the session that the decision would use: copies the parent's session of a fork, and
    /// fetches a snapshot. Decides again if that changed the facts.
    pub(crate) async fn obtain_session(
        &mut self,
        mut decided: Decided,
        agent: &AgentName,
        request: &TurnRequest,
        vault: Option<&Vault>,
        folder: &Path,
    ) -> Result<Decided> {
        if decided.way() == Some(SessionSource::Fork) && !self.copy_parent(folder).await? {
            decided = self.decide(agent, request);
        }
        self.obtain_snapshot(decided, agent, request, vault, Some(folder))
            .await
    }

    /// Checks the snapshot that the decision would use, and decides again: into `folder`, or for a
    /// prediction without storing it.
    pub(crate) async fn obtain_snapshot(
        &mut self,
        decided: Decided,
        agent: &AgentName,
        request: &TurnRequest,
        vault: Option<&Vault>,
        folder: Option<&Path>,
    ) -> Result<Decided> {
        let Some(vault) = vault.filter(|_| decided.way() == Some(SessionSource::Snapshot)) else {
            return Ok(decided);
        };
        self.check_snapshot(vault, folder).await?;
        Ok(self.decide(agent, request))
    }

    /// Builds the situation that the decision is made from.
    fn situation<'a>(&'a self, agent: &'a AgentName, request: &'a TurnRequest) -> Situation<'a> {
        let mut options: Request = request.for_decision();
        if self.settings.resume == Some(false) {
            options.fresh.get_or_insert(Fresh::Always);
        }
        let facts = &self.binary.facts;
        let pin =
            self.outlook
                .best()
                .zip(self.session.as_ref())
                .and_then(|(candidate, session)| {
                    Some(PinFacts {
                        pin: candidate.stored.pin.as_ref()?,
                        prefix: candidate.prefix,
                        folder: session.folder,
                        has_provider: session.has_provider,
                        session: session.fact,
                        snapshot: self.snapshot,
                        elsewhere: self.elsewhere,
                        in_use: session.in_use,
                        writers_visible: session.writers_visible,
                        forked_from: candidate.forked_from.as_deref(),
                    })
                });
        Situation {
            agent,
            request: options,
            policy: request.policy,
            history: self.outlook.history(),
            runtime: &facts.runtime,
            capability: match (
                self.cannot_resume.as_ref().or(facts.no_resume.as_ref()),
                facts.proven,
            ) {
                (Some(why), _) => Capability::Absent(why),
                (None, true) => Capability::Proven,
                (None, false) => Capability::Probed,
            },
            model: request.model.as_deref(),
            window: self.window,
            permissions: self
                .cannot
                .as_deref()
                .map_or(PermissionsFact::Expressible, PermissionsFact::Cannot),
            pin,
        }
    }
}

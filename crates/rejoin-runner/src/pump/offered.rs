//! Tools that a CLI offers to its model although the turn may not use them: a CLI that ignores its
//! list of tools is stopped before a call.

use rejoin_core::{Class, EventBody, Failure, Outcome};

use super::Pump;

impl Pump<'_> {
    /// Notes a tool that the CLI offers and the turn may not use. Returns true if there is one.
    pub(super) fn see_offer(&mut self, events: &[EventBody]) -> bool {
        for event in events {
            if let EventBody::TurnStarted { tools, .. } = event {
                let permissions = &self.run.claimed.request.permissions;
                let found = self.run.adapter.forbidden_offer(permissions, tools);
                self.forbidden = found.map(str::to_owned);
            }
        }
        self.forbidden.is_some()
    }

    /// Returns the failure of a run whose CLI offered such a tool.
    pub(super) fn offer_failure(&self) -> Option<Outcome> {
        let tool = self.forbidden.as_ref()?;
        let agent = &self.run.claimed.turn.agent;
        let message = format!(
            "{agent} ignores the permissions of the turn: it offers {tool}, which they exclude; it was stopped"
        );
        let class = Class::Permissions;
        Some(Outcome::Failed(Failure { class, message }))
    }
}

//! The most that the caller of a hub may ask an agent to do.
//!
//! The check compares the permissions that a turn really gets: those of the request over those of the
//! conversation, inside the transaction that stores them.

use std::fmt;

use rejoin_agents::reach;
use rejoin_core::{AgentName, PermissionMode, Permissions};
use rejoin_store::{Conversation, StoredTurn};

use crate::Hub;
use crate::error::{Error, Result};
use crate::request::TurnRequest;

/// The part of a request that exceeds a ceiling.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitedPart {
    Turn,
    Conversation,
    Tools,
    Background,
    Raw,
    Approval,
    Token,
}

impl LimitedPart {
    /// Returns advice for a caller with that ceiling.
    pub fn advice(self, needs: PermissionMode, ceiling: PermissionMode) -> String {
        let token = format!("rejoin token create NAME --max-permission {needs}");
        match self {
            Self::Turn => format!("\"permission\": \"{ceiling}\" in the request, or {token}"),
            Self::Conversation => {
                format!("rejoin set CONV permission={ceiling} by its owner, or {token}")
            }
            Self::Tools | Self::Background | Self::Raw => {
                format!("the same without it, or {token}")
            }
            Self::Approval => format!("deny, or {token}"),
            Self::Token => {
                format!("\"max_permission\": \"{ceiling}\", or {token} on the daemon's machine")
            }
        }
    }
}

impl fmt::Display for LimitedPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Turn => "this turn",
            Self::Conversation => "a conversation like this",
            Self::Tools => "this list of tools",
            Self::Background => "keep_background",
            Self::Raw => "raw",
            Self::Approval => "to allow an agent what it asks for",
            Self::Token => "such a token",
        })
    }
}

impl Hub {
    /// Refuses a turn that would do more than the caller may ask for.
    ///
    /// `keep_background` and `raw` count as `full`: a process that outlives its turn, and a command file of
    /// the repository that permits tools, are held by no mode.
    pub(crate) fn may_run(&self, agent: &AgentName, request: &TurnRequest) -> Result<()> {
        self.may_use(agent, &request.permissions, LimitedPart::Turn)?;
        for (asked, what) in [
            (request.keep_background, LimitedPart::Background),
            (request.raw, LimitedPart::Raw),
        ] {
            if asked {
                self.may(what, PermissionMode::Full)?;
            }
        }
        Ok(())
    }

    /// Refuses to steer a turn that does more than the caller may ask for.
    pub(crate) fn may_steer(&self, turn: &StoredTurn) -> Result<()> {
        match serde_json::from_value(turn.request.clone()) {
            Ok(request) => self.may_run(&turn.agent, &request),
            Err(_) => self.may(LimitedPart::Turn, PermissionMode::Full),
        }
    }

    /// Refuses a conversation whose next turn, with any of its agents, would do more than the caller may
    /// ask for.
    pub(crate) fn may_have(&self, c: &Conversation) -> Result<()> {
        self.may(LimitedPart::Conversation, c.permission)?;
        for (agent, settings) in &c.settings {
            let permissions = Permissions {
                mode: c.permission,
                tools: settings.tools.clone(),
                deny_tools: vec![],
                commands: false,
            };
            let needs = reach(agent, &permissions);
            self.may(LimitedPart::Tools, needs)?;
        }
        Ok(())
    }

    fn may_use(
        &self,
        agent: &AgentName,
        permissions: &Permissions,
        what: LimitedPart,
    ) -> Result<()> {
        self.may(what, permissions.mode)?;
        self.may(LimitedPart::Tools, reach(agent.as_str(), permissions))
    }

    /// Refuses an action that needs a wider permission mode than the ceiling.
    pub fn may(&self, what: LimitedPart, needs: PermissionMode) -> Result<()> {
        match self.ceiling {
            Some(ceiling) if needs.exceeds(ceiling) => Err(Error::AboveCeiling {
                what,
                needs,
                ceiling,
            }),
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use rejoin_core::Scope;
    use rejoin_store::Store;

    use super::*;
    use crate::{ChangeMode, Clock, IfBusy, Incoming, Target, TurnFlags};

    /// A queued message runs with the permissions of its sender, so a caller below them must not reword it.
    #[tokio::test]
    async fn a_queued_message_above_the_ceiling_is_not_edited() {
        let dir = tempfile::tempdir().unwrap();
        let owner = Hub {
            namespace: "".into(),
            store: Store::open_sqlite(&dir.path().join("s.db")).await.unwrap(),
            clock: Clock,
            machine: "m".into(),
            vault: None,
            ceiling: None,
        };
        let agent = AgentName::new("demo").unwrap();
        let queued = |permission| Incoming {
            turn: None,
            target: Target::Key("k".into()),
            text: "hello".into(),
            agent: None,
            default_agent: agent.clone(),
            here: "/".into(),
            title: None,
            scope: Scope::Full,
            flags: TurnFlags {
                permission: Some(permission),
                ..TurnFlags::default()
            },
            request: TurnRequest::default(),
            client_key: None,
            if_busy: IfBusy::Wait,
            queue_limit: None,
            confirmed: true,
            answers: None,
            occurrence: None,
        };
        let first = owner.accept(&queued(PermissionMode::Edit), None).await;
        let second = owner.accept(&queued(PermissionMode::Full), None).await;
        let (first, second) = (first.unwrap(), second.unwrap());
        let caller = Hub {
            ceiling: Some(PermissionMode::Edit),
            ..owner.clone()
        };
        let message = async |turn| {
            let found = owner.store.read().await.unwrap().turns().get(turn).await;
            found.unwrap().unwrap().message
        };
        let edited = caller
            .edit(message(first.turn).await, "x", ChangeMode::Now)
            .await;
        assert!(edited.is_ok(), "{edited:?}");
        let refused = caller
            .edit(message(second.turn).await, "x", ChangeMode::Now)
            .await;
        assert!(
            matches!(refused, Err(Error::AboveCeiling { .. })),
            "{refused:?}"
        );
        let refused = caller.accept(&queued(PermissionMode::Full), None).await;
        assert!(
            matches!(refused, Err(Error::AboveCeiling { .. })),
            "{refused:?}"
        );
    }
}

//! Restricts the turns that an earlier run of a bundle left, to what the command that finds them may do.

use rejoin_core::{ConversationId, PermissionMode, TurnStatus};

use crate::Hub;
use crate::accept::to_json;
use crate::error::Result;
use crate::request::TurnRequest;

impl Hub {
    /// Restricts a conversation and its unfinished turns to `most`, and those turns to a folder. Returns
    /// true if a turn had more permissions. Lists of allowed tools that exceed `most` are dropped.
    pub async fn restrict(
        &self,
        c: ConversationId,
        most: PermissionMode,
        workdir: &str,
    ) -> Result<bool> {
        let limited = Self {
            ceiling: Some(most),
            ..self.clone()
        };
        let mut lowered = false;
        let mut tx = self.store.begin().await?;
        for turn in tx.turns().of(c).await? {
            if !matches!(
                turn.status,
                TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting
            ) {
                continue;
            }
            // A request that cannot be read asks for nothing.
            let mut request: TurnRequest =
                serde_json::from_value(turn.request.clone()).unwrap_or_default();
            if limited.may_run(&turn.agent, &request).is_err() {
                lowered = true;
                request.permissions.mode = request.permissions.mode.at_most(most);
                request.permissions.tools = None;
                request.permissions.commands = false;
                request.raw = false;
                request.keep_background = false;
                request.tier = None;
            }
            request.workdir = workdir.to_owned();
            if let Some(tier) = &mut request.tier {
                let ceiling = tier.ceiling.unwrap_or(most);
                tier.ceiling = Some(ceiling.at_most(most));
            }
            tx.turns().set_request(turn.id, &to_json(&request)?).await?;
        }
        if let Some(mut conversation) = tx.conversations().get(c).await?
            && limited.may_have(&conversation).is_err()
        {
            conversation.permission = conversation.permission.at_most(most);
            for settings in conversation.settings.values_mut() {
                settings.tools = None;
            }
            tx.conversations().save(&conversation).await?;
        }
        tx.commit().await?;
        Ok(lowered)
    }
}

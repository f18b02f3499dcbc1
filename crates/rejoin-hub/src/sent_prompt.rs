//! The prompt of a turn, for a person to read: what its agent was told beside the message.

use rejoin_core::{TurnId, without_secrets};
use rejoin_store::StoredTurn;
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::error::Result;

/// The prompt of each run of a turn. Keys and passwords of known forms are removed.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct PromptView {
    pub turn_id: TurnId,
    pub runs: Vec<RunPromptView>,
    /// Text of the message; an edited one as it is now.
    pub message: String,
    /// Number of secrets that were removed.
    pub secrets_removed: usize,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct RunPromptView {
    pub attempt: i64,
    /// Text that rejoin added: transcript, catch-up, handoff, instructions and notices.
    pub context: String,
}

impl Hub {
    /// Returns the prompt of a turn. A turn that was sent nothing but its message has no run in it.
    pub async fn prompt_of(&self, turn: &StoredTurn) -> Result<PromptView> {
        let mut read = self.store.read().await?;
        let stored = read.prompts().of(turn.id).await?;
        let message = read.messages().get_ever(turn.message).await?;
        let (message, mut removed) =
            without_secrets(&message.map_or(String::new(), |m| m.message.text));
        let mut runs = vec![];
        for (attempt, context) in stored {
            let (context, secrets) = without_secrets(&context);
            removed += secrets;
            runs.push(RunPromptView { attempt, context });
        }
        Ok(PromptView {
            turn_id: turn.id,
            runs,
            message,
            secrets_removed: removed,
        })
    }
}

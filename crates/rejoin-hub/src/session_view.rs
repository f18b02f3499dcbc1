//! Views of sessions.

use std::collections::HashMap;

use rejoin_core::{AgentName, ConversationId, MessageId, PinState};
use rejoin_store::Read;
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::error::Result;

/// Number of sessions in a view: a conversation that is reseeded often has one per turn.
const SESSIONS: i64 = 100;

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct SessionView {
    pub agent: String,
    pub session_id: String,
    pub state: String,
    pub why: Option<String>,
    pub seen_message_id: Option<MessageId>,
    pub epoch: i64,
    pub machine: Option<String>,
}

impl Hub {
    pub async fn session_views(&self, c: ConversationId) -> Result<Vec<SessionView>> {
        let mut read = self.store.read().await?;
        session_views(&mut read, c).await
    }
}

/// Returns the newest sessions of a conversation, at most [`SESSIONS`].
pub(crate) async fn session_views(read: &mut Read, c: ConversationId) -> Result<Vec<SessionView>> {
    let mut epochs: HashMap<AgentName, i64> = HashMap::new();
    let mut views = vec![];
    for stored in read.pins().newest(c, SESSIONS).await? {
        let (state, why) = match &stored.state {
            PinState::Open(_) => ("open", None),
            PinState::Confirmed => ("confirmed", None),
            PinState::Retired(why) => ("retired", Some(why.clone())),
        };
        let epoch = match epochs.get(&stored.agent) {
            Some(epoch) => *epoch,
            None => {
                let epoch = read.binaries().epoch(c, &stored.agent).await?;
                epochs.insert(stored.agent.clone(), epoch);
                epoch
            }
        };
        views.push(SessionView {
            epoch,
            agent: stored.agent.to_string(),
            session_id: stored.session.to_string(),
            state: state.into(),
            why,
            seen_message_id: stored.pin.as_ref().and_then(|p| p.seen.last),
            machine: stored.pin.map(|p| p.machine),
        });
    }
    Ok(views)
}

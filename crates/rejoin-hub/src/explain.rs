//! Explains a turn: its permissions, its cost if resumed, and whether its session continues.

use rejoin_core::{Micros, Permissions, Sent, TurnId, TurnStatus};
use rejoin_store::StoredTurn;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};
use crate::view::TurnView;

/// A turn, and what explains it besides.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ExplainView {
    pub turn: TurnView,
    /// Permissions of the turn.
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(rename = "envelope")]
    pub permissions: Permissions,
    /// Times of the turn.
    #[serde(default)]
    pub moments: Moments,
    /// Estimated cost, had its session been resumed.
    pub resumed_estimate_usd: Option<f64>,
    /// Would the next turn resume its session, as far as it knows? None: it is not the newest, or has not
    /// ended.
    pub goes_on: Option<bool>,
}

/// Times of a turn; each is null if it has not come, or the agent does not report it.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Moments {
    pub accepted_at: Option<String>,
    /// A runner took the turn.
    pub claimed_at: Option<String>,
    /// The agent's process was about to start.
    pub decided_at: Option<String>,
    pub agent_started_at: Option<String>,
    pub first_text_at: Option<String>,
    pub ended_at: Option<String>,
}

/// Prediction of a turn that is sent now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextView {
    /// The verdict; none: nothing would be run.
    pub verdict: Option<String>,
    pub reason: Option<String>,
    pub checks: Value,
    pub sent: Option<Sent>,
    pub cost_estimate_usd: Option<f64>,
    /// Estimated cost in a new session; null if that is the prediction, or nothing is known.
    #[serde(default)]
    pub fresh_estimate_usd: Option<f64>,
    pub handle: String,
    pub agent: String,
    pub version: Option<String>,
    #[cfg_attr(feature = "schema", schema(value_type = Object))]
    #[serde(rename = "envelope")]
    pub permissions: Permissions,
    /// Why the agent cannot be held to that.
    pub cannot: Option<String>,
    /// External messages that would be imported first.
    pub note: Option<String>,
}

/// Predictions for several agents.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextViews {
    pub agents: Vec<NextOfAgent>,
}

/// Prediction for one agent, or the reason why there is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextOfAgent {
    pub agent: String,
    pub next: Option<NextView>,
    pub error: Option<NextError>,
}

/// Reason for which an agent could not answer.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct NextError {
    pub code: String,
    pub message: String,
    #[serde(rename = "try")]
    pub next: Option<String>,
}

impl Hub {
    pub async fn explain(&self, turn: TurnId) -> Result<ExplainView> {
        let stored = self.store.read().await?.turns().get(turn).await?;
        let stored = stored.ok_or_else(|| Error::NotFound(format!("there is no turn {turn}")))?;
        let view = self.turn_view(turn).await?;
        let mut permissions: Permissions =
            serde_json::from_value(stored.request["envelope"].clone()).unwrap_or_default();
        // The mode in force, if it differs from the requested one.
        let mode = view.policy["permission"].as_str();
        if let Some(mode) = mode.and_then(|mode| mode.parse().ok()) {
            permissions.mode = mode;
        }
        let mut resumed = None;
        if stored.status.ended() {
            resumed = self.estimate_resumed(&stored).await?;
        }
        Ok(ExplainView {
            moments: self.moments(&stored).await?,
            permissions,
            resumed_estimate_usd: resumed.map(Micros::dollars),
            goes_on: self.goes_on(&stored, &view).await?,
            turn: view,
        })
    }

    async fn moments(&self, turn: &StoredTurn) -> Result<Moments> {
        let mut read = self.store.read().await?;
        let mut first = async |kinds: [&'static str; 2]| -> Result<Option<String>> {
            let found = read.events().first_of_turn(turn.id, kinds).await?;
            Ok(found.map(|event| rfc3339(event.at)))
        };
        Ok(Moments {
            accepted_at: Some(rfc3339(turn.created_at)),
            claimed_at: turn.started_at.map(rfc3339),
            decided_at: first(["turn.decided", ""]).await?,
            agent_started_at: first(["turn.started", ""]).await?,
            first_text_at: first(["text", "text.delta"]).await?,
            ended_at: turn.ended_at.map(rfc3339),
        })
    }

    async fn goes_on(&self, turn: &StoredTurn, view: &TurnView) -> Result<Option<bool>> {
        let newest = self
            .store
            .read()
            .await?
            .turns()
            .last(turn.conversation)
            .await?;
        if !TurnStatus::ended(turn.status) || newest.is_none_or(|newest| newest.id != turn.id) {
            return Ok(None);
        }
        let sessions = self.session_views(turn.conversation).await?;
        let used = |id: &String| Some(id) == view.session_id.as_ref();
        let confirmed = |s: &crate::SessionView| used(&s.session_id) && s.state == "confirmed";
        Ok(Some(sessions.iter().any(confirmed)))
    }
}

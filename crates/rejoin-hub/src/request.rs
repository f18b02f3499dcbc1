//! What the sender asked for beyond the text: kept with the turn, so that whoever runs it later
//! runs the same.

use rejoin_core::{Envelope, Fresh, Micros, Policy, Request};
use serde::{Deserialize, Serialize};

/// One turn's wishes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct TurnRequest {
    pub workdir: String,
    pub model: Option<String>,
    pub envelope: Envelope,
    pub fresh: Option<FreshWish>,
    pub no_reseed: bool,
    pub relocate: bool,
    pub raw: bool,
    pub keep_background: bool,
    pub timeout_ms: Option<u64>,
    pub max_cost: Option<Micros>,
    pub context_threshold: f64,
    pub breaker: u32,
    pub model_change: rejoin_core::ModelChange,
    pub after_compaction: rejoin_core::AfterCompaction,
}

impl Default for TurnRequest {
    fn default() -> Self {
        let policy = Policy::default();
        Self {
            workdir: String::new(),
            model: None,
            envelope: Envelope::default(),
            fresh: None,
            no_reseed: false,
            relocate: false,
            raw: false,
            keep_background: false,
            timeout_ms: None,
            max_cost: None,
            context_threshold: policy.context_threshold,
            breaker: policy.breaker,
            model_change: policy.model_change,
            after_compaction: policy.after_compaction,
        }
    }
}

/// Who wants a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FreshWish {
    Asked,
    Retry,
    Always,
}

impl TurnRequest {
    pub fn policy(&self) -> Policy {
        Policy {
            context_threshold: self.context_threshold,
            breaker: self.breaker,
            model_change: self.model_change,
            after_compaction: self.after_compaction,
        }
    }

    pub fn for_decision(&self) -> Request {
        let fresh = self.fresh.map(|wish| match wish {
            FreshWish::Asked => Fresh::Asked,
            FreshWish::Retry => Fresh::Retry,
            FreshWish::Always => Fresh::Always,
        });
        Request {
            fresh,
            no_reseed: self.no_reseed,
            relocate: self.relocate,
        }
    }
}

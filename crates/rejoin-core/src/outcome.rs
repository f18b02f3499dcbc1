//! Ends of an agent's run, and their effect on its session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::reason::words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed(Failure),
    Cancelled,
    /// The process is gone, and its end is unknown.
    Lost(Failure),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub class: Class,
    /// Sentence for a person.
    pub message: String,
}

/// Class of a failure, chosen by the possible remedy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The CLI does not know the session it was asked to resume, or does not load it.
    Refused,
    /// Network, overload or a server error: the same message may work later.
    Transient,
    Quota,
    Auth,
    ContextOverflow,
    /// The API refuses the session's history itself: every turn on it would fail.
    Poisoned,
    /// The API refused this request.
    InvalidRequest,
    Interrupted,
    Crashed,
    DiskFull,
    /// The CLI reported success, but its session does not hold the prompt and the answer.
    NotRecorded,
    TimeLimit,
    /// Stopped, because the CLI printed nothing for too long.
    IdleLimit,
    CostLimit,
    /// The CLI could not be started.
    NotStarted,
    /// Not run because of `--no-reseed`.
    WouldReseed,
    /// The agent cannot enforce a requested permission.
    #[serde(rename = "envelope")]
    Permissions,
    InUse,
    Lost,
    Unknown,
}

words!(Class {
    Refused => "refused",
    Transient => "transient",
    Quota => "quota",
    Auth => "auth",
    ContextOverflow => "context_overflow",
    Poisoned => "poisoned",
    InvalidRequest => "invalid_request",
    Interrupted => "interrupted",
    Crashed => "crashed",
    DiskFull => "disk_full",
    NotRecorded => "not_recorded",
    TimeLimit => "time_limit",
    IdleLimit => "idle_limit",
    CostLimit => "cost_limit",
    NotStarted => "not_started",
    WouldReseed => "would_reseed",
    Permissions => "envelope",
    InUse => "in_use",
    Lost => "lost",
    Unknown => "unknown",
});

/// Effect of a failed run on the session that it resumed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinEffect {
    /// No effect: network, quota and login problems keep the session.
    Keep,
    /// Counts as a failure in a row. The breaker retires the session at its limit.
    Count,
    /// The session will never work again.
    Retire,
}

impl Class {
    /// Returns the command to try next, with `CONV` for the conversation, `MESSAGE` for the failed
    /// message and `OTHER` for another agent. The message is kept, so "please go on" is enough if
    /// the same request may work now.
    pub const fn advice(self) -> &'static str {
        match self {
            Self::Transient
            | Self::Refused
            | Self::ContextOverflow
            | Self::Poisoned
            | Self::Interrupted
            | Self::NotRecorded => r#"rejoin send -c CONV "please go on""#,
            Self::Quota => "rejoin retry MESSAGE, or -a OTHER",
            Self::Auth | Self::NotStarted => "rejoin doctor",
            Self::InvalidRequest | Self::Crashed | Self::Unknown => "rejoin explain CONV",
            Self::DiskFull => "df -h",
            Self::TimeLimit => r#"rejoin send -c CONV --timeout LONGER "please go on""#,
            Self::IdleLimit => r#"rejoin send -c CONV --idle-timeout LONGER "please go on""#,
            Self::CostLimit => r#"rejoin send -c CONV --max-cost MORE "please go on""#,
            Self::Permissions => "rejoin send --help",
            Self::WouldReseed | Self::InUse => "rejoin explain CONV --next",
            Self::Lost => "rejoin show CONV",
        }
    }

    /// Returns [`Self::advice`] for the message `reference` (`tmqx:25`), which `agent` did not answer.
    pub fn advise(self, reference: &str, agent: &str) -> String {
        let conversation = reference.split(':').next().unwrap_or(reference);
        let other = if agent == "claude" { "codex" } else { "claude" };
        self.advice()
            .replace("CONV", conversation)
            .replace("MESSAGE", reference)
            .replace("OTHER", other)
    }

    pub fn on_session(self) -> PinEffect {
        match self {
            Self::Refused | Self::ContextOverflow | Self::Poisoned => PinEffect::Retire,
            Self::InvalidRequest | Self::Crashed | Self::NotRecorded | Self::Unknown => {
                PinEffect::Count
            }
            Self::Transient
            | Self::Quota
            | Self::Auth
            | Self::Interrupted
            | Self::DiskFull
            | Self::TimeLimit
            | Self::IdleLimit
            | Self::CostLimit
            | Self::NotStarted
            | Self::WouldReseed
            | Self::Permissions
            | Self::InUse
            | Self::Lost => PinEffect::Keep,
        }
    }
}

impl Outcome {
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Self::Failed(failure) | Self::Lost(failure) => Some(failure),
            Self::Succeeded | Self::Cancelled => None,
        }
    }
}

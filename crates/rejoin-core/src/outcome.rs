//! How a run of an agent ended, and what that means for its session.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::reason::words;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    Succeeded,
    Failed(Failure),
    Cancelled,
    /// Its process is gone and nothing says how it ended.
    Lost(Failure),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub class: Class,
    /// One sentence for a person.
    pub message: String,
}

/// Why a run failed, by what one can do about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The CLI does not know, or will not load, the session it was asked to resume.
    Refused,
    /// Network, overload, a server's error: the same message may work later.
    Transient,
    Quota,
    Auth,
    ContextOverflow,
    /// The API refuses the session's history as such: every turn on it would fail.
    Poisoned,
    /// The API refused this request.
    InvalidRequest,
    Interrupted,
    Crashed,
    DiskFull,
    /// It said it succeeded, but its session does not hold what was said.
    NotRecorded,
    TimeLimit,
    /// Stopped, because the CLI printed nothing for too long.
    IdleLimit,
    CostLimit,
    /// The CLI could not be started.
    NotStarted,
    /// Held back by `--no-reseed`.
    WouldReseed,
    /// A permission the agent cannot express.
    Envelope,
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
    Envelope => "envelope",
    InUse => "in_use",
    Lost => "lost",
    Unknown => "unknown",
});

/// What a failed run that resumed a session says about that session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PinEffect {
    /// Nothing: network, quota and login troubles keep the pointer.
    Keep,
    /// One more failure in a row; the breaker retires it at N.
    Count,
    /// It will never work again.
    Retire,
}

impl Class {
    /// Returns the command to try next, with `CONV` for the conversation, `MESSAGE` for the failed message and
    /// `OTHER` for another agent. The message is kept, so asking to go on is enough wherever the same may work now.
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
            Self::Envelope => "rejoin send --help",
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
            | Self::Envelope
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

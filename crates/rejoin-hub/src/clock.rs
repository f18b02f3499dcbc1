//! The only source of time and randomness.

use std::time::Duration;

use rejoin_core::{
    ConversationId, MessageId, PinId, QuestionId, SessionId, SnapshotId, TurnId, WorkflowId,
};

use crate::error::{Error, Result};

/// The system's clock and random numbers.
#[derive(Debug, Clone, Copy, Default)]
pub struct Clock;

impl Clock {
    /// Microseconds since 1970, UTC.
    pub fn now(self) -> i64 {
        jiff::Timestamp::now().as_microsecond()
    }

    /// Time since the machine booted. Counts while it sleeps, and setting the clock does not change
    /// it.
    pub fn since_boot(self) -> Duration {
        let clock = nix::time::ClockId::CLOCK_BOOTTIME;
        nix::time::clock_gettime(clock).map_or(Duration::ZERO, Duration::from)
    }

    pub fn conversation_id(self) -> Result<ConversationId> {
        self.parts()
            .map(|(ms, random)| ConversationId::from_parts(ms, random))
    }

    pub fn turn_id(self) -> Result<TurnId> {
        self.parts()
            .map(|(ms, random)| TurnId::from_parts(ms, random))
    }

    pub fn message_id(self) -> Result<MessageId> {
        self.parts()
            .map(|(ms, random)| MessageId::from_parts(ms, random))
    }

    pub fn pin_id(self) -> Result<PinId> {
        self.parts()
            .map(|(ms, random)| PinId::from_parts(ms, random))
    }

    pub fn workflow_id(self) -> Result<WorkflowId> {
        self.parts()
            .map(|(ms, random)| WorkflowId::from_parts(ms, random))
    }

    pub fn snapshot_id(self) -> Result<SnapshotId> {
        self.parts()
            .map(|(ms, random)| SnapshotId::from_parts(ms, random))
    }

    pub fn question_id(self) -> Result<QuestionId> {
        self.parts()
            .map(|(ms, random)| QuestionId::from_parts(ms, random))
    }

    /// Generates 32 random bytes for a secret.
    pub fn secret(self) -> Result<[u8; 32]> {
        let mut bytes = [0; 32];
        fill(&mut bytes)?;
        Ok(bytes)
    }

    /// Generates a random UUID (version 4), as the CLIs expect their session and line ids.
    pub fn foreign_id(self) -> Result<SessionId> {
        let mut bytes = [0; 16];
        fill(&mut bytes)?;
        bytes[6] = bytes[6] & 0x0f | 0x40;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        let hex = format!("{:032x}", u128::from_be_bytes(bytes));
        let text = [
            &hex[..8],
            &hex[8..12],
            &hex[12..16],
            &hex[16..20],
            &hex[20..],
        ]
        .join("-");
        SessionId::new(text).map_err(|e| Error::Internal(e.to_string()))
    }

    fn parts(self) -> Result<(u64, [u8; 10])> {
        let mut random = [0; 10];
        fill(&mut random)?;
        Ok(((self.now() / 1000).max(0) as u64, random))
    }
}

fn fill(bytes: &mut [u8]) -> Result<()> {
    getrandom::fill(bytes).map_err(|e| Error::Internal(format!("no random numbers: {e}")))
}

/// Parses a time in RFC 3339. Returns microseconds since 1970.
pub fn micros_of(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_microsecond())
}

/// Formats microseconds since 1970 as RFC 3339.
pub fn rfc3339(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(micros)
        .map_or_else(|_| micros.to_string(), |t| format!("{t:.3}"))
}

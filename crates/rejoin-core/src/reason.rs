//! Verdicts and reasons: the words of the outer contract for how a turn was continued, and why.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// No message preceded: a new session without a transcript.
    Started,
    /// The process of the last turn is still running and received the message.
    Live,
    /// The agent's own session, in place.
    Resumed,
    /// The agent's own session, restored from a verified snapshot.
    Restored,
    /// A new session that received the transcript.
    Reseeded,
}

/// Reason for not resuming, in the order of the guards.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    FirstTurn,
    FreshRequested,
    NoCapability,
    NoSession,
    SessionRetired,
    HistoryChanged,
    OtherFolder,
    OtherRuntime,
    OtherProvider,
    ContextFull,
    SessionMissing,
    InUse,
    SessionDirty,
    SessionDamaged,
    SessionChanged,
    ModelChanged,
    Compacted,
    SnapshotDamaged,
    SnapshotExpired,
    Rejected,
}

/// Error for a text that is none of the known words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is none of {known}")]
pub struct UnknownWord {
    pub text: String,
    pub known: String,
}

macro_rules! words {
    ($type:ident { $($variant:ident => $word:literal,)+ }) => {
        impl $type {
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl FromStr for $type {
            type Err = crate::reason::UnknownWord;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Self::ALL.iter().copied().find(|w| w.as_str() == text)
                    .ok_or_else(|| {
                        let known: Vec<_> = Self::ALL.iter().map(|w| w.as_str()).collect();
                        crate::reason::UnknownWord { text: text.to_owned(), known: known.join(", ") }
                    })
            }
        }
    };
}
pub(crate) use words;

words!(Verdict {
    Started => "started",
    Live => "live",
    Resumed => "resumed",
    Restored => "restored",
    Reseeded => "reseeded",
});

words!(Reason {
    FirstTurn => "first_turn",
    FreshRequested => "fresh_requested",
    NoCapability => "no_capability",
    NoSession => "no_session",
    SessionRetired => "session_retired",
    HistoryChanged => "history_changed",
    OtherFolder => "other_folder",
    OtherRuntime => "other_runtime",
    OtherProvider => "other_provider",
    ContextFull => "context_full",
    SessionMissing => "session_missing",
    InUse => "in_use",
    SessionDirty => "session_dirty",
    SessionDamaged => "session_damaged",
    SessionChanged => "session_changed",
    ModelChanged => "model_changed",
    Compacted => "compacted",
    SnapshotDamaged => "snapshot_damaged",
    SnapshotExpired => "snapshot_expired",
    Rejected => "rejected",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_json_agree() {
        for reason in Reason::ALL {
            assert_eq!(serde_json::to_value(reason).unwrap(), reason.as_str());
            assert_eq!(reason.as_str().parse::<Reason>().unwrap(), *reason);
        }
        for verdict in Verdict::ALL {
            assert_eq!(serde_json::to_value(verdict).unwrap(), verdict.as_str());
        }
    }
}

//! Identifiers. Our own are UUIDv7 newtypes; the session id of an agent is foreign and opaque.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Error for a text that is not an id of this kind.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an id")]
pub struct BadId(pub String);

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[cfg_attr(feature = "schema", schema(value_type = String))]
        pub struct $name(Uuid);

        impl $name {
            /// Creates a version 7 id from the caller's time and random bytes: the core has
            /// neither.
            pub fn from_parts(unix_ms: u64, random: [u8; 10]) -> Self {
                Self(uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid())
            }

            /// Placeholder for a missing id.
            pub fn nil() -> Self {
                Self(Uuid::nil())
            }

            pub fn is_nil(self) -> bool {
                self.0.is_nil()
            }

            pub fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            pub fn uuid(self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.hyphenated().fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = BadId;

            fn from_str(text: &str) -> Result<Self, BadId> {
                Uuid::try_parse(text).map(Self).map_err(|_| BadId(text.to_owned()))
            }
        }
    };
}

id!(
    /// Identifies a conversation to the user; never changes, whatever happens underneath.
    ConversationId
);
id!(MessageId);
id!(TurnId);
id!(
    /// Binds a conversation and an agent to a session.
    PinId
);
id!(SnapshotId);
id!(
    /// Something an agent asked a person.
    QuestionId
);
id!(
    /// Run of a workflow.
    WorkflowId
);

/// Session id chosen by the agent. Never empty, and never a text that a CLI could take for a flag
/// or for "the latest one": an empty or malformed id makes several CLIs silently start afresh.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct SessionId(String);

impl SessionId {
    pub fn new(text: impl Into<String>) -> Result<Self, BadId> {
        let text = text.into();
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let starts_well = text
            .chars()
            .next()
            .is_some_and(|c| c.is_ascii_alphanumeric());
        if starts_well && text.len() <= 200 && text.chars().all(plain) && !text.contains("..") {
            Ok(Self(text))
        } else {
            Err(BadId(text))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for SessionId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_version_seven_and_sort_by_time() {
        let early = TurnId::from_parts(1, [255; 10]);
        let late = TurnId::from_parts(2, [0; 10]);
        assert!(early < late);
        assert_eq!(early.uuid().get_version_num(), 7);
        assert_eq!(early.to_string().parse::<TurnId>().unwrap(), early);
    }

    /// E-15, E-05: rejects empty, invented and flag-like session ids.
    #[test]
    fn session_ids_are_checked() {
        for good in ["b731fd0c-68de-4452-a02a-ef7d040b8069", "ses_4f2a", "x"] {
            assert!(SessionId::new(good).is_ok(), "{good}");
        }
        for bad in [
            "", " ", "-x", "--resume", "a b", "../x", "a/b", "a..b", "ü", "a\n",
        ] {
            assert!(SessionId::new(bad).is_err(), "{bad:?}");
        }
    }
}

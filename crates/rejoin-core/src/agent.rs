//! Names of agents, and versions of the programs behind them.

use std::cmp::Ordering;
use std::fmt;

use serde::{Deserialize, Serialize};

/// Error for a text that is not a valid agent name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the name of an agent")]
pub struct BadName(pub String);

/// Name of an agent: `claude`, `demo`, or one from the configuration. Looked up in a registry, not
/// a closed enum.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct AgentName(String);

impl AgentName {
    pub fn new(text: impl Into<String>) -> Result<Self, BadName> {
        let text = text.into();
        let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
        let starts_well = text.bytes().next().is_some_and(|b| b.is_ascii_lowercase());
        if starts_well && text.len() <= 40 && text.bytes().all(plain) {
            Ok(Self(text))
        } else {
            Err(BadName(text))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for AgentName {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Self::new(String::deserialize(d)?).map_err(serde::de::Error::custom)
    }
}

/// Returns true for one word that a CLI cannot take for a flag, such as the name of a model.
pub fn is_word(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.chars().any(|c| c.is_whitespace() || c.is_control())
}

/// Product and version of the CLI that wrote a session or would read it, as `--version` prints
/// them.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Runtime {
    pub product: String,
    pub version: Version,
}

impl fmt::Display for Runtime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.product, self.version)
    }
}

/// A version as written, ordered by its dotted numbers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub String);

impl Version {
    fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        let core = self.0.split(['-', '+']).next().unwrap_or("");
        core.split('.').map(|part| part.parse().unwrap_or(0))
    }

    /// Returns true if `self` is older than `other`. Non-numeric parts count as 0.
    pub fn older_than(&self, other: &Self) -> bool {
        let (mut a, mut b) = (self.numbers(), other.numbers());
        loop {
            match (a.next(), b.next()) {
                (None, None) => return false,
                (x, y) => match x.unwrap_or(0).cmp(&y.unwrap_or(0)) {
                    Ordering::Less => return true,
                    Ordering::Greater => return false,
                    Ordering::Equal => {}
                },
            }
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_order_by_number() {
        let older = |a: &str, b: &str| Version(a.into()).older_than(&Version(b.into()));
        assert!(older("2.1.99", "2.1.197"));
        assert!(!older("2.1.325", "2.1.197"));
        assert!(!older("2.1", "2.1.0"));
        assert!(!older("2.1.0", "2.1"));
    }

    #[test]
    fn names_are_checked() {
        assert!(AgentName::new("claude").is_ok());
        assert!(AgentName::new("my-agent_2").is_ok());
        for bad in ["", "-x", "Claude", "a b", "a/b"] {
            assert!(AgentName::new(bad).is_err(), "{bad:?}");
        }
    }
}

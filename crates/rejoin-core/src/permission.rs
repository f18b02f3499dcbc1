//! What a turn may do. Re-asserted on every run; where an agent cannot express it, the turn is
//! refused rather than run wider.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::reason::words;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PermissionMode {
    ReadOnly,
    /// May change files in the working folder.
    #[default]
    Edit,
    Full,
    /// A person decides.
    Ask,
}

words!(PermissionMode {
    ReadOnly => "read-only",
    Edit => "edit",
    Full => "full",
    Ask => "ask",
});

impl PermissionMode {
    /// The one of the two that lets less be done without a person.
    #[must_use]
    pub fn at_most(self, most: Self) -> Self {
        if self.exceeds(most) { most } else { self }
    }

    /// Compares in the order read-only < ask < edit < full. `ask` ranks below `edit`, because the agent
    /// does nothing by itself.
    #[must_use]
    pub fn exceeds(self, most: Self) -> bool {
        let rank = |mode: Self| match mode {
            Self::ReadOnly => 0,
            Self::Ask => 1,
            Self::Edit => 2,
            Self::Full => 3,
        };
        rank(self) > rank(most)
    }
}

/// Mode and tool lists of one turn. `tools` none: the agent's own set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    pub mode: PermissionMode,
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub deny_tools: Vec<String>,
}

#[cfg(test)]
mod tests {
    use super::PermissionMode::{self, Ask, Edit, Full, ReadOnly};

    #[test]
    fn at_most_is_never_more_than_either() {
        let order: [PermissionMode; 4] = [ReadOnly, Ask, Edit, Full];
        for (a, less) in order.into_iter().enumerate() {
            for more in order.into_iter().skip(a) {
                assert_eq!((less.at_most(more), more.at_most(less)), (less, less));
            }
        }
    }
}

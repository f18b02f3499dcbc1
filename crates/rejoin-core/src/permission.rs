//! Permissions of a turn, applied to every run. If an agent cannot enforce them, the turn is
//! refused rather than run with more access.

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
    /// A person decides about each action.
    Ask,
}

words!(PermissionMode {
    ReadOnly => "read-only",
    Edit => "edit",
    Full => "full",
    Ask => "ask",
});

impl PermissionMode {
    /// Returns the stricter of the two modes.
    #[must_use]
    pub fn at_most(self, most: Self) -> Self {
        if self.exceeds(most) { most } else { self }
    }

    /// Compares in the order read-only < ask < edit < full. `ask` ranks below `edit`, because the
    /// agent does nothing on its own.
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

/// Permission mode and tool lists of one turn. `tools` is `None`: the agent's own set. `commands` is
/// true if an operator's tier sets the list: a tool for commands in it is then permitted in a
/// read-only turn, where it is refused otherwise.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Permissions {
    pub mode: PermissionMode,
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub deny_tools: Vec<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub commands: bool,
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

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

/// Mode and tool lists of one turn. `tools` none: the agent's own set.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    pub mode: PermissionMode,
    pub tools: Option<Vec<String>>,
    #[serde(default)]
    pub deny_tools: Vec<String>,
}

//! A workflow step that is not for a model, as it is passed to its process.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Work of a step that is not for a model. Values never become structure: they are single arguments
/// or variables of the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum CommandStep {
    /// Runs a program with these arguments, without a shell.
    Run {
        run: Vec<String>,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Runs the text in a shell.
    Shell {
        shell: String,
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        env: BTreeMap<String, String>,
    },
    /// Prints the question for a person.
    Approve { approve: String },
}

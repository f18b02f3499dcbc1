//! Facts about one binary, as its proof measured them.

use rejoin_core::{Runtime, TotalsScope};
use serde::{Deserialize, Serialize};

/// Test results about one binary, measured once and cached with its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// Product and version.
    pub runtime: Runtime,
    /// Reason why it cannot resume. None if it can.
    pub no_resume: Option<String>,
    /// True if two turns against the built-in model showed that a resume keeps the history.
    pub proven: bool,
    /// Range that its cost total covers.
    pub totals: TotalsScope,
    /// Range that its token counts cover. None: an older build did not measure it. Measured again.
    #[serde(default)]
    pub usage: Option<TotalsScope>,
    /// Method that keeps text from being taken for commands.
    pub neutral: MentionEscape,
    /// Result of the test that flags keep the CLI from a repository's configuration. None: an older
    /// build did not run it.
    #[serde(default)]
    pub contained: Option<RepositoryIsolation>,
    /// Result of `doctor --prove`, row by row. Empty if it has not run yet.
    #[serde(default)]
    pub rows: Vec<ProofRow>,
    /// Time of that result, in microseconds since 1970.
    #[serde(default)]
    pub proven_at: Option<i64>,
}

/// Result of the test that the flags of a run keep a binary from a repository's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RepositoryIsolation {
    /// A hostile repository ran nothing, in a new session and in a resumed one.
    Proven,
    /// A hostile repository ran a program or sent a prompt.
    Broken,
    /// The test could not be run.
    Untested,
    /// The adapter relies on no flag.
    NoFlags,
}

/// Test result for one capability of a binary.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRow {
    /// Name of the capability.
    pub what: String,
    /// Result.
    pub state: ProofState,
    /// Evidence in a few words.
    pub evidence: String,
}

/// Result of the test of one capability.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofState {
    /// The binary has the capability.
    Proven,
    /// The test failed.
    Broken,
    /// The CLI has no such capability, or an earlier step that it depends on is broken.
    NotTried,
}

/// Method that keeps text from being taken for a command or a file of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MentionEscape {
    /// By its position in the prompt alone, as proven on this binary. The text is unchanged.
    ByPlace,
    /// By its position, and by an invisible word joiner at each possible mention.
    ByJoiner,
}

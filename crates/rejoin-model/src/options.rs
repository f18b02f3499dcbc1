//! What a caller may choose about a server; the default is a lenient one on any free port.

use std::{collections::BTreeMap, path::PathBuf};

use crate::script::{Script, StepUsage};

/// How the server is to behave.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// File that gets one JSON line per request; it holds prompts, so it is made readable by its
    /// owner only.
    pub log: Option<PathBuf>,
    /// Named scripts, laid over the built-in ones.
    pub scripts: BTreeMap<String, Script>,
    /// Answer where no script says anything; without it the model repeats the end of the prompt.
    pub default_reply: Option<String>,
    /// Token counts reported where a step does not give its own.
    pub usage: StepUsage,
    /// Refuse histories that the real API would refuse.
    pub strict: bool,
}

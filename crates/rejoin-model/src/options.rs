//! Options of a server. The default is lenient, on any free port.

use std::{collections::BTreeMap, path::PathBuf};

use crate::script::{Script, StepUsage};

/// Options of a server.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Port on 127.0.0.1; 0 takes any free one.
    pub port: u16,
    /// File that receives one JSON line per request. It contains prompts, so only its owner can
    /// read it.
    pub log: Option<PathBuf>,
    /// Named scripts, which override built-in ones.
    pub scripts: BTreeMap<String, Script>,
    /// Answer without a script. `None`: the model repeats the end of the prompt.
    pub default_reply: Option<String>,
    /// Token counts to report if a step gives none.
    pub usage: StepUsage,
    /// True to refuse histories that the real API would refuse.
    pub strict: bool,
}

//! What a run wrote into its folder, and who understands it.

use std::path::Path;

use rejoin_agents::{Adapter, StreamParser};

use crate::hook;
use crate::shim::Spec;
use crate::spool::SpoolReader;

/// It goes on only as it is led.
pub fn is_led(folder: &Path) -> bool {
    dialogue_of(folder).is_some()
}

fn dialogue_of(folder: &Path) -> Option<String> {
    Spec::load(folder).ok()?.dialogue
}

/// What reads the run in this folder.
pub fn reader_of(adapter: &dyn Adapter, folder: &Path) -> Box<dyn StreamParser> {
    match dialogue_of(folder) {
        Some(dialogue) => adapter.in_dialogue(&dialogue),
        None => adapter.parser(),
    }
}

/// What a run prints, and what its hook tells.
pub(super) struct Spools {
    pub(super) printed: SpoolReader,
    pub(super) stderr: SpoolReader,
    pub(super) aside: SpoolReader,
}

impl Spools {
    pub(super) fn of(folder: &Path) -> Self {
        Self {
            printed: SpoolReader::new(&folder.join("out"), 0),
            stderr: SpoolReader::new(&folder.join("err"), 0),
            aside: SpoolReader::new(&hook::aside(folder), 0),
        }
    }
}

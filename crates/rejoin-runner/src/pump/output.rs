//! Output files of a run, and the parser that reads them.

use std::path::Path;

use rejoin_agents::StreamParser;

use crate::hook;
use crate::run::Run;
use crate::shim::Spec;
use crate::spool::SpoolReader;

/// Returns true if the run is a dialogue: it continues only while a reader leads it.
pub(crate) fn is_dialogue(folder: &Path) -> bool {
    dialogue_of(folder).is_some()
}

fn dialogue_of(folder: &Path) -> Option<String> {
    Spec::load(folder).ok()?.dialogue
}

/// Returns the parser for the output of a run.
pub(super) fn parser_of(run: &Run<'_>) -> Box<dyn StreamParser> {
    match dialogue_of(&run.folder).zip(run.adapter.capabilities().dialogue) {
        Some((data, dialogue)) => dialogue.dialogue_parser(&data),
        None => run.adapter.parser(),
    }
}

/// Readers of the run's stdout, its stderr, and the messages of its hook.
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

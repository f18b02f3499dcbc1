//! Submitted lines as files below the data folder, from Enter until the message is accepted: no death of this
//! process loses one.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::portable::AtomicFile;
use rejoin_errors::{CommandError, Result};

/// Folder of the drafts, below the data folder.
const FOLDER: &str = "drafts";

/// A submitted line. Under its key the message is accepted at most once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Draft {
    /// The conversation by id or key, or the folder of a new one.
    pub(super) target: String,
    /// The idempotency key of the message.
    pub(super) key: String,
    /// The line as it was typed.
    pub(super) typed: String,
}

/// The drafts below a data folder.
pub(super) struct Drafts {
    folder: PathBuf,
}

impl Drafts {
    pub(super) fn below(home: &Path) -> Self {
        Self {
            folder: home.join(FOLDER),
        }
    }

    /// Writes a draft, before anything else is done with its line.
    pub(super) fn keep(&self, draft: &Draft) -> Result<()> {
        let written = self.write(draft);
        written.map_err(|e| CommandError::unavailable(format!("the line could not be kept: {e}")))
    }

    fn write(&self, draft: &Draft) -> std::io::Result<()> {
        fs_err::create_dir_all(&self.folder)?;
        let mut file = AtomicFile::begin(&self.file(draft))?;
        file.write_all(serde_json::to_string(draft)?.as_bytes())?;
        file.keep()
    }

    /// Removes the draft of a message that was accepted.
    pub(super) fn remove(&self, draft: &Draft) {
        let _gone = fs_err::remove_file(self.file(draft));
    }

    pub(super) fn file(&self, draft: &Draft) -> PathBuf {
        self.folder.join(format!("{}.json", draft.key))
    }

    /// Returns the drafts that earlier processes left for a target, oldest first.
    pub(super) fn left_for(&self, target: &str) -> Vec<Draft> {
        let Ok(entries) = fs_err::read_dir(&self.folder) else {
            return vec![];
        };
        let files = entries.filter_map(|entry| Some(entry.ok()?.path()));
        let mut files: Vec<PathBuf> = files
            .filter(|file| file.extension().is_some_and(|e| e == "json"))
            .collect();
        // Keys are ordered by their time.
        files.sort();
        let drafts = files.iter().filter_map(|file| {
            let draft: Draft = serde_json::from_slice(&fs_err::read(file).ok()?).ok()?;
            (draft.target == target && self.file(&draft) == *file).then_some(draft)
        });
        drafts.collect()
    }
}

//! Reads the beginning of a session file: its id, folder, start time and first prompt.

use rejoin_core::SessionId;
use serde::Deserialize;

use super::encode;
use super::session::prompt_of;
use crate::external::{HeaderReader, SessionHeader, first_words};
use crate::session::{is_uuid, moment};

/// Folder beneath the home that contains one folder per working folder.
pub(super) const PROJECTS: &str = "projects";

pub(super) struct Header {
    /// Id from the file name. The files of sub-agents have other names.
    session: Option<SessionId>,
    /// Name of the folder that contains the file.
    place: String,
    /// Folder that the caller asks about.
    wanted: Option<String>,
    folder: Option<String>,
    words: Option<String>,
    began: Option<i64>,
}

#[derive(Deserialize)]
struct Line {
    cwd: Option<String>,
    timestamp: Option<String>,
}

impl Header {
    pub(super) fn new(path: &str, wanted: Option<&str>) -> Self {
        let mut parts = path.rsplit('/');
        let name = parts.next().unwrap_or_default();
        let id = name.strip_suffix(".jsonl").filter(|id| is_uuid(id));
        Self {
            session: id.and_then(|id| SessionId::new(id).ok()),
            place: parts.next().unwrap_or_default().to_owned(),
            wanted: wanted.map(str::to_owned),
            folder: None,
            words: None,
            began: None,
        }
    }

    /// Returns the working folder of the session. The CLI searches by the name of the containing
    /// folder and ignores the `cwd` of the lines, so a session that was moved there belongs there.
    /// Different working folders may share that name; then the lines decide.
    fn folder(&self) -> Option<String> {
        let said = self.folder.clone();
        if said
            .as_ref()
            .is_some_and(|f| encode::folder(f) == self.place)
        {
            return said;
        }
        let here = self.wanted.clone();
        here.filter(|f| encode::folder(f) == self.place).or(said)
    }
}

impl HeaderReader for Header {
    fn line(&mut self, line: &[u8]) -> bool {
        if self.session.is_none() {
            return true;
        }
        let Ok(read) = serde_json::from_slice::<Line>(line) else {
            return false;
        };
        // A tool may change the folder later, so the first one counts.
        self.folder = self.folder.take().or(read.cwd);
        let at = read.timestamp.as_deref().and_then(moment);
        self.began = self.began.or(at);
        self.words = prompt_of(line);
        self.words.is_some()
    }

    fn finish(self: Box<Self>) -> Option<SessionHeader> {
        Some(SessionHeader {
            folder: self.folder(),
            words: first_words(self.words.as_deref()?),
            began: self.began,
            used: None,
            session: self.session?,
        })
    }
}

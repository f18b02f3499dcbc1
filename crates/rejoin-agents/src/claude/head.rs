//! The beginning of a session file: whose it is, where and when it began, its first words.

use rejoin_core::SessionId;
use serde::Deserialize;

use super::encode;
use super::session::prompt_of;
use crate::outside::{HeadReader, SessionHead, first_words};
use crate::session::{is_uuid, moment};

/// Beneath the home; each working folder has one in it.
pub(super) const PROJECTS: &str = "projects";

pub(super) struct Head {
    /// By the name of the file; sub-agents' files have other names.
    session: Option<SessionId>,
    /// The name of the folder the file lies in.
    place: String,
    /// The folder that is asked about.
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

impl Head {
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

    /// The CLI looks by the name of the folder, whatever the lines say: a session that was moved
    /// there belongs there. Different folders may share a name, and then the lines tell.
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

impl HeadReader for Head {
    fn line(&mut self, line: &[u8]) -> bool {
        if self.session.is_none() {
            return true;
        }
        let Ok(read) = serde_json::from_slice::<Line>(line) else {
            return false;
        };
        // A tool may change the folder later: the first counts.
        self.folder = self.folder.take().or(read.cwd);
        let at = read.timestamp.as_deref().and_then(moment);
        self.began = self.began.or(at);
        self.words = prompt_of(line);
        self.words.is_some()
    }

    fn finish(self: Box<Self>) -> Option<SessionHead> {
        Some(SessionHead {
            folder: self.folder(),
            words: first_words(self.words.as_deref()?),
            began: self.began,
            used: None,
            session: self.session?,
        })
    }
}

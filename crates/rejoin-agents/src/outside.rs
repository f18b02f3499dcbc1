//! Sessions that a CLI's user made without rejoin: where they lie, and what their first lines say.

use std::path::PathBuf;

use rejoin_core::SessionId;

/// Where a CLI keeps the sessions of its user.
#[derive(Debug, Clone)]
pub struct OwnSessions {
    /// The user's own folder of this CLI; what follows lies beneath it.
    pub home: PathBuf,
    pub kept: Kept,
    /// They must not be written to by us: a copy is made where our own lie.
    pub copied: bool,
}

/// How they are kept.
#[derive(Debug, Clone)]
pub enum Kept {
    /// A file for each, in these folders, of which parts may be `*`; by how its name begins and ends.
    Files {
        folders: Vec<String>,
        begins: &'static str,
        ends: &'static [&'static str],
    },
    /// All in one database, of which there may be several.
    Rows {
        begins: &'static str,
        ends: &'static str,
        /// One line of JSON for each session, for [`HeadReader::line`].
        heads: &'static str,
        /// Make a database of its own for one session, whose id is their parameter, out of the
        /// user's, which is attached under the name `own`. The tables are there already.
        copy: &'static [&'static str],
        /// Tables with this in their names are copied whole: they say how the others are to be read.
        whole: &'static str,
    },
}

/// What can be said of a session without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHead {
    pub session: SessionId,
    /// Where its CLI would go on with it.
    pub folder: Option<String>,
    /// How the first words of a person begin.
    pub words: String,
    /// In microseconds since 1970.
    pub began: Option<i64>,
    pub used: Option<i64>,
}

/// Reads the beginning of a session.
pub trait HeadReader: Send {
    /// One complete line, without its newline. True: enough was seen.
    fn line(&mut self, line: &[u8]) -> bool;

    /// None: not a session that somebody could go on with (a sub-agent's, an empty one, another file).
    fn finish(self: Box<Self>) -> Option<SessionHead>;
}

/// A session that begins in the middle: what came before is in another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    pub session: SessionId,
    /// So many of its lines, with those of its own ancestors.
    pub lines: u64,
}

/// Kept of the first words.
const WORDS: usize = 300;

/// As many words as one needs to know a session by.
pub(crate) fn first_words(text: &str) -> String {
    let short: String = text.chars().take(WORDS * 4).collect();
    let line = short.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(WORDS).collect()
}

/// Nothing can be found.
pub(crate) struct NoHead;

impl HeadReader for NoHead {
    fn line(&mut self, _line: &[u8]) -> bool {
        true
    }

    fn finish(self: Box<Self>) -> Option<SessionHead> {
        None
    }
}

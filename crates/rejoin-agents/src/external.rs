//! Sessions that the user of a CLI created without rejoin: where they are stored, and their first
//! lines.

use std::path::PathBuf;

use rejoin_core::SessionId;

/// Location of the sessions that the user created without rejoin.
#[derive(Debug, Clone)]
pub struct UserSessions {
    /// The user's own folder of this CLI. All other paths are relative to it.
    pub home: PathBuf,
    /// Storage format of the sessions.
    pub kept: SessionStorage,
    /// True if rejoin must not write to these sessions. It then makes copies beside its own
    /// sessions.
    pub copied: bool,
}

/// Storage format of these sessions.
#[derive(Debug, Clone)]
pub enum SessionStorage {
    /// A file for each session, in these folders, whose parts may be `*`, with this prefix and one
    /// of these suffixes.
    Files {
        /// Folders beneath the home, whose parts may be `*`.
        folders: Vec<String>,
        /// Prefix of a file name.
        begins: &'static str,
        /// Suffixes, one of which a file name has.
        ends: &'static [&'static str],
    },
    /// Rows of a database. Several databases may match the prefix and suffix.
    Rows {
        /// Prefix of the name of a database.
        begins: &'static str,
        /// Suffix of the name of a database.
        ends: &'static str,
        /// Query that returns one line of JSON for each session, for [`HeaderReader::line`].
        heads: &'static str,
        /// Statements that fill a separate database with one session, whose id is their parameter.
        /// The user's database is attached as `own`. The tables already exist.
        copy: &'static [&'static str],
        /// Tables with this text in their names are copied whole: they describe how to read the
        /// others.
        whole: &'static str,
    },
}

/// Summary of a session, known without reading all of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionHeader {
    /// Id of the session.
    pub session: SessionId,
    /// Folder in which the CLI would continue the session.
    pub folder: Option<String>,
    /// Beginning of the first prompt.
    pub words: String,
    /// In microseconds since 1970.
    pub began: Option<i64>,
    /// Time of the last change, in microseconds since 1970.
    pub used: Option<i64>,
}

/// Reads the beginning of a session.
pub trait HeaderReader: Send {
    /// Reads one complete line, without its newline. Returns true when no further lines are needed.
    fn line(&mut self, line: &[u8]) -> bool;

    /// Returns the summary. None if the session cannot be continued (a sub-agent's, an empty one,
    /// another file).
    fn finish(self: Box<Self>) -> Option<SessionHeader>;
}

/// The session that holds the first part of another session, whose own file begins in the middle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ancestor {
    /// Id of the other session.
    pub session: SessionId,
    /// Number of its lines that belong to the other session, including those of its own ancestors.
    pub lines: u64,
}

/// Number of characters of the first prompt that are kept.
const WORDS: usize = 300;

/// Shortens a prompt to one line by which a person recognises the session.
pub(crate) fn first_words(text: &str) -> String {
    let short: String = text.chars().take(WORDS * 4).collect();
    let line = short.split_whitespace().collect::<Vec<_>>().join(" ");
    line.chars().take(WORDS).collect()
}

//! A CLI's own sessions: where they are stored, in which format, and how they are read.

use rejoin_core::{Context, Micros, Role, SessionId, ToolNote, Usage};

use crate::stream::Denied;

/// Side that chooses the id of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// rejoin chooses the id and passes it to the CLI.
    Us,
    /// The CLI chooses the id and prints it in its first event.
    TheCli,
}

/// Everything that determines the path of a session.
#[derive(Debug, Clone, Copy)]
pub struct SessionAt<'a> {
    /// Canonical path of the working folder.
    pub folder: &'a str,
    /// Id of the session.
    pub session: &'a SessionId,
    /// Id of the pin, which stays the same for as long as the session exists.
    pub pin: &'a str,
}

/// Location of a session's main file beneath the CLI's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionPath {
    /// At this path.
    At(String),
    /// In one of these folders, whose parts may be `*`: the first file by name with this prefix and
    /// suffix.
    Find {
        /// Folders, in the order in which they are searched.
        folders: Vec<String>,
        /// Prefix of the file name.
        begins: String,
        /// Suffix of the file name.
        ends: String,
        /// Path for a copy of the session. None if the CLI would not find one.
        copy: Option<String>,
    },
}

impl SessionPath {
    /// Returns the path for a copy of the session. None if it is not known in advance.
    pub fn of_copy(self) -> Option<String> {
        match self {
            Self::At(path) => Some(path),
            Self::Find { copy, .. } => copy,
        }
    }

    /// Returns how a session gets here from another folder.
    pub(crate) fn moving(self) -> Moving {
        match self {
            Self::At(path) => Moving::To(path),
            Self::Find { .. } => Moving::Stays,
        }
    }
}

/// Rewrites the first line of a session for a copy under the id. None if it is not a line of a
/// session.
pub type RenameHeader = fn(&[u8], &SessionId) -> Option<Vec<u8>>;

/// Method by which another conversation continues a confirmed session. The new session always
/// starts with a copy of the confirmed bytes, because the owner may be writing to the session at
/// that moment.
#[derive(Debug, Clone, Copy)]
pub enum Forking {
    /// The CLI creates a new session from the copy. The value says which side chooses its id.
    FromFile(ChosenBy),
    /// The CLI creates a new session within a copy of the database, which is put in place before
    /// the run. Afterwards the statements delete everything except the session that is their
    /// parameter.
    Within(&'static [&'static str]),
    /// The copy is the new session, once its first line has a new id.
    ByCopy(RenameHeader),
}

impl Forking {
    /// True if rejoin passes the id of the new session to the CLI.
    pub fn passes_id(self) -> bool {
        match self {
            Self::FromFile(chosen) => chosen == ChosenBy::Us,
            Self::ByCopy(_) => true,
            Self::Within(_) => false,
        }
    }
}

/// Steps that a session needs when its working folder has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moving {
    /// No step: the CLI finds the session at its old path.
    Stays,
    /// Copy the session to this path.
    To(String),
    /// Copy the session into this folder, under the same name.
    Into(String),
    /// Run these statements on the session's database, which contains its folder. Their parameter
    /// is the new folder.
    Rewrite(&'static [&'static str]),
}

/// Storage format of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// Append-only file of lines: everything after the confirmed bytes can be cut off.
    Lines,
    /// SQLite file of its own, which is rolled back by restoring a saved copy. The query `lines`
    /// returns one line of JSON per row; its parameter is the cursor, or the empty string. The
    /// statements `ready` prepare the session for a resume; their parameter is the time in
    /// milliseconds since 1970. What `foreign` names is emptied before.
    Database {
        /// Query for the lines of a session.
        lines: &'static str,
        /// Statements that prepare a session for a resume.
        ready: &'static [&'static str],
        /// Parts of the database that are no conversation: a session from elsewhere could reach out
        /// by them.
        foreign: &'static [Emptied],
    },
}

/// Part of a session's database that is emptied before a resume, if the database has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Emptied {
    /// All rows of this table.
    Table(&'static str),
    /// Values of the second name, a column, in the table of the first.
    Column(&'static str, &'static str),
}

/// Lists the messages that a CLI would replay from a session.
pub trait SessionReader: Send {
    /// Reads one complete line, without its newline.
    fn line(&mut self, line: &[u8]);

    /// Returns the contents. Called once, after the last line.
    fn finish(self: Box<Self>) -> Reading;
}

/// Contents of a session after the cursor, as a [`SessionReader`] found them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// Entries on the branch that the CLI would replay, in order, after the cursor.
    pub entries: Vec<ReadEntry>,
    /// Prompts off that branch, each with what followed it, in the order of the file. A second
    /// process wrote them at the same time, or the user went back to an earlier message.
    pub aside: Vec<ReadEntry>,
    /// Ids of all added prompts, including those off that branch. They show whose prompts the
    /// session contains.
    pub prompts: Vec<String>,
    /// False if the branch does not lead back to the cursor.
    pub connected: bool,
    /// True if all entries were added after the cursor, connected or not.
    pub only_added: bool,
    /// True if the last answer is incomplete.
    pub unfinished: bool,
    /// Reason why the CLI may not continue the session
    /// ([`Adapter::refuses`](crate::Adapter::refuses)).
    pub refused: Option<&'static str>,
    /// Number of lines that could not be parsed.
    pub damaged_lines: u64,
    /// Number of tool calls without a result.
    pub orphaned_calls: u64,
    /// True if the CLI compacted the session.
    pub compacted: bool,
    /// Number of entries before the last compaction. A copy need not contain them.
    pub summed_up: usize,
    /// Context use at the last call, if the session records it and the stream does not.
    pub context: Option<Context>,
    /// Provider and model that the session used, if it records them.
    pub provider: Option<String>,
    /// Model that the session used, if it records it.
    pub model: Option<String>,
    /// All tokens since the beginning of the session, if it records them.
    pub usage: Option<Usage>,
    /// Input tokens of the part that was read which came from a cache, for streams that may not
    /// report them separately.
    pub cached: u64,
    /// Cost since the beginning of the session, if it records it.
    pub total: Option<Micros>,
    /// Cost of the part that was read, if the session records it.
    pub spent: Option<Micros>,
    /// Calls that were stopped and are missing in the stream. They may have done part of their
    /// work.
    pub denied: Vec<Denied>,
    /// Tool calls that began, for streams that may miss them. They may have ended since.
    pub begun: Vec<ToolNote>,
    /// Cursor for the next reading.
    pub cursor: Option<String>,
    /// Id of the session, if the file contains it.
    pub session: Option<String>,
    /// True if the CLI would replay parts of the session twice
    /// ([`Repair::repair`](crate::Repair::repair)).
    pub repeats: bool,
}

/// Entry of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEntry {
    /// A prompt, without the text that rejoin added. `id` is the id minted for the attempt.
    Prompt {
        /// Id minted for the attempt.
        id: String,
        /// Text, without the text that rejoin added.
        text: String,
        /// In microseconds since 1970.
        at: Option<i64>,
    },
    /// An answer of the model.
    Answer {
        /// Text of the answer.
        text: String,
        /// In microseconds since 1970.
        at: Option<i64>,
    },
    /// A tool call of the model.
    Did(ToolNote),
    /// Text of the CLI itself (API errors, summaries, "continue" lines). Never a message.
    Synthetic,
}

impl Reading {
    /// Keeps only the entries that were added to a copy of `origin`. Fails if the copy does not
    /// begin with all messages of `origin`; text of the CLI itself does not count.
    pub fn since(mut self, origin: &Self) -> Result<Self, String> {
        let known = begins_with(&self.entries, &origin.entries);
        // A copy need not contain the messages before a compaction; Claude Code 2.1 keeps the last
        // of them.
        let known = known.or_else(|| {
            let mut replayed = (0..=origin.summed_up).rev();
            replayed.find_map(|at| begins_with(&self.entries, origin.entries.get(at..)?))
        });
        let known = known.ok_or("it does not hold what it was forked from")?;
        self.entries.drain(..known);
        self.prompts.retain(|id| !origin.prompts.contains(id));
        self.compacted &= !origin.compacted;
        self.begun = not_in(self.begun, &origin.begun);
        self.denied = not_in(self.denied, &origin.denied);
        Ok(self)
    }

    /// Counts the messages before the last compaction: the session holds only a summary of them.
    pub fn summarised(&self) -> u64 {
        let before = Self {
            entries: self.entries.iter().take(self.summed_up).cloned().collect(),
            ..Self::default()
        };
        before.said().len() as u64
    }

    /// Checks that the session can be continued. The error says why not.
    pub fn whole(&self) -> Result<(), String> {
        if let Some(why) = self.refused {
            return Err(why.into());
        }
        if self.damaged_lines > 0 {
            return Err(format!("{} unreadable lines", self.damaged_lines));
        }
        if self.orphaned_calls > 0 {
            return Err(format!(
                "{} tool calls without a result",
                self.orphaned_calls
            ));
        }
        if !self.connected {
            return Err("what was added does not follow from what was there".into());
        }
        if self.unfinished {
            return Err("its last answer was not finished".into());
        }
        Ok(())
    }

    /// Checks that the session holds exactly the prompt that was sent and the answer that was
    /// received, and ends there. The error says how it differs.
    pub fn confirms(&self, prompt: &str, answer: &str) -> Result<(), String> {
        self.whole()?;
        let ours = |e: &ReadEntry| matches!(e, ReadEntry::Prompt { id, .. } if id == prompt);
        let Some(at) = self.entries.iter().position(ours) else {
            return Err("the prompt is not in it".into());
        };
        if self.entries[..at]
            .iter()
            .any(|e| matches!(e, ReadEntry::Prompt { .. } | ReadEntry::Answer { .. }))
        {
            return Err("something else was said before the prompt".into());
        }
        let mut said = String::new();
        for entry in &self.entries[at + 1..] {
            match entry {
                ReadEntry::Answer { text, .. } => said.push_str(text),
                ReadEntry::Did(_) | ReadEntry::Synthetic => {}
                ReadEntry::Prompt { .. } => return Err("another prompt follows".into()),
            }
        }
        if plain(&said) == plain(answer) {
            Ok(())
        } else {
            Err("the answer is not in it".into())
        }
    }
}

/// A message of a session, as it becomes part of a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionMessage {
    /// Author of the message.
    pub role: Role,
    /// Text of the message.
    pub text: String,
    /// Tool calls for an answer, or for a prompt without an answer. Only the latter include
    /// unfinished calls.
    pub trail: Vec<ToolNote>,
    /// Microseconds since 1970, if the session records the time.
    pub at: Option<i64>,
}

impl Reading {
    /// Returns the messages in order. All answers to one prompt are joined into one message. Text
    /// of the CLI itself is left out.
    pub fn said(&self) -> Vec<SessionMessage> {
        let mut said: Vec<SessionMessage> = vec![];
        let mut did: Vec<ToolNote> = vec![];
        for entry in &self.entries {
            match entry {
                ReadEntry::Prompt { text, .. } | ReadEntry::Answer { text, .. }
                    if text.trim().is_empty() => {}
                ReadEntry::Prompt { text, at, .. } => {
                    end_of_turn(&mut said, &mut did);
                    said.push(SessionMessage {
                        role: Role::User,
                        text: text.clone(),
                        trail: vec![],
                        at: *at,
                    });
                }
                ReadEntry::Answer { text, at } => {
                    // The model continued without this result, so an unfinished call is of no
                    // interest.
                    did.retain(|note| note.finished);
                    match said.last_mut() {
                        Some(last) if last.role == Role::Assistant => {
                            last.text.push_str("\n\n");
                            last.text.push_str(text);
                        }
                        Some(_) | None => said.push(SessionMessage {
                            role: Role::Assistant,
                            text: text.clone(),
                            trail: vec![],
                            at: *at,
                        }),
                    }
                }
                ReadEntry::Did(note) => did.push(note.clone()),
                ReadEntry::Synthetic => {}
            }
        }
        end_of_turn(&mut said, &mut did);
        said
    }
}

impl Reading {
    /// Returns the messages that follow prompts of other people, on the branch and off it, in the
    /// order of their prompts. `is_ours` judges a prompt by its id and time; `begins` is the
    /// verdict for entries before the first prompt. The answers to our prompts are left out even if
    /// another process wrote a prompt before them.
    pub fn said_by_others(
        &self,
        begins: bool,
        mut is_ours: impl FnMut(&str, Option<i64>) -> bool,
        our_answers: &[&str],
    ) -> Vec<SessionMessage> {
        let mut left: Vec<String> = our_answers.iter().map(|text| plain(text)).collect();
        let mut ours = begins;
        let mut theirs: Vec<(Option<i64>, Vec<ReadEntry>)> = vec![];
        for entry in self.entries.iter().chain(&self.aside) {
            let mut of_others = match entry {
                ReadEntry::Prompt { id, at, .. } => {
                    ours = is_ours(id, *at);
                    if !ours {
                        theirs.push((*at, vec![]));
                    }
                    !ours
                }
                ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => !ours,
            };
            if let ReadEntry::Answer { text, .. } = entry {
                let text = plain(text);
                let rest = left.iter_mut().find_map(|left| {
                    let rest = left.strip_prefix(text.as_str())?.to_owned();
                    (!text.is_empty()).then_some((left, rest))
                });
                of_others = match rest {
                    Some((left, rest)) => {
                        *left = rest;
                        false
                    }
                    // Ours is known, so this one answers a prompt that came before ours.
                    None => of_others || !(theirs.is_empty() || our_answers.is_empty()),
                };
            }
            if of_others {
                match theirs.last_mut() {
                    Some((_, said)) => said.push(entry.clone()),
                    None => theirs.push((None, vec![entry.clone()])),
                }
            }
        }
        if theirs.iter().all(|(at, _)| at.is_some()) {
            theirs.sort_by_key(|(at, _)| *at);
        }
        let entries = theirs.into_iter().flat_map(|(_, said)| said).collect();
        let theirs = Self {
            entries,
            ..Self::default()
        };
        theirs.said()
    }
}

/// Returns a text without its blanks, to compare it with one that was wrapped differently.
fn plain(text: &str) -> String {
    text.split_whitespace().collect()
}

/// Assigns the pending tool calls to the last message: the answer, or the prompt if there is none.
fn end_of_turn(said: &mut [SessionMessage], did: &mut Vec<ToolNote>) {
    match said.last_mut() {
        Some(last) => last.trail.append(did),
        None => did.clear(),
    }
}

/// Returns the number of leading entries that are known from `before`. None if some messages of
/// `before` are missing. Times and tool calls may differ in a copy.
fn begins_with(entries: &[ReadEntry], before: &[ReadEntry]) -> Option<usize> {
    let said =
        |entry: &&ReadEntry| matches!(entry, ReadEntry::Prompt { .. } | ReadEntry::Answer { .. });
    let mut before = before.iter().filter(said).peekable();
    let mut known = 0;
    for entry in entries {
        match before.peek() {
            Some(next) if same(next, entry) => drop(before.next()),
            Some(_) if said(&entry) => break,
            Some(_) => {}
            None => break,
        }
        known += 1;
    }
    before.peek().is_none().then_some(known)
}

fn same(one: &ReadEntry, other: &ReadEntry) -> bool {
    match (one, other) {
        (ReadEntry::Prompt { id, text, .. }, ReadEntry::Prompt { id: i, text: t, .. }) => {
            id == i && text == t
        }
        (ReadEntry::Answer { text, .. }, ReadEntry::Answer { text: t, .. }) => text == t,
        _ => false,
    }
}

/// Removes each element of `old` once: an equal call may have been made again.
fn not_in<T: PartialEq>(mut all: Vec<T>, old: &[T]) -> Vec<T> {
    for known in old {
        if let Some(at) = all.iter().position(|one| one == known) {
            all.remove(at);
        }
    }
    all
}

/// Identifies a prompt in a session that stores no id for it: a hash of its trimmed text.
pub fn text_mark(text: &str) -> String {
    blake3::hash(text.trim().as_bytes()).to_hex().to_string()
}

/// Parses a timestamp in the format of most CLIs into microseconds since 1970.
pub(crate) fn moment(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_microsecond())
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

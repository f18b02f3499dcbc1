//! A CLI's own record of what it knows: where it lies, how it is kept, how it is read.

use rejoin_core::{Context, Micros, Role, SessionId, ToolNote, Usage};

use crate::stream::Denied;

/// Who chooses the id of a new session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChosenBy {
    /// It is passed to the CLI.
    Us,
    /// It is in the CLI's first event.
    TheCli,
}

/// A session, as far as it says where it lies.
#[derive(Debug, Clone, Copy)]
pub struct SessionAt<'a> {
    /// A real path.
    pub folder: &'a str,
    pub session: &'a SessionId,
    /// Ours, and the same for as long as the session lives.
    pub pin: &'a str,
}

/// Where the main file of a session lies beneath the CLI's home.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    At(String),
    /// In one of these folders, of which a part may be `*`; the first by name that begins and ends
    /// so.
    Find {
        folders: Vec<String>,
        begins: String,
        ends: String,
    },
}

/// How another conversation goes on from where a session was confirmed. What it begins with is always
/// a copy of those bytes: whoever owns the session may be writing it at that moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Forking {
    /// It cannot: a new session is told the record.
    Never,
    /// The CLI makes a session of its own out of the copy, under an id that is chosen so.
    FromFile(ChosenBy),
    /// The CLI makes one within its database, of which the copy is put in its place. The statements
    /// then leave nothing else there than the session that is their parameter.
    Within(&'static [&'static str]),
    /// The copy is one, once it has another id ([`Adapter::renamed`](crate::Adapter::renamed)).
    ByCopy,
}

impl Forking {
    /// The CLI is told under which id.
    pub fn told(self) -> bool {
        match self {
            Self::FromFile(chosen) => chosen == ChosenBy::Us,
            Self::ByCopy => true,
            Self::Never | Self::Within(_) => false,
        }
    }
}

/// What to do with a session when its folder has moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moving {
    /// The CLI finds it where it is.
    Stays,
    /// A copy is put here.
    To(String),
    /// A copy under the same name is put into this folder.
    Into(String),
    /// It says itself where it belongs: statements for its database, with the new folder as their
    /// parameter.
    Rewrite(&'static [&'static str]),
}

/// How a CLI keeps a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Records {
    /// A file of lines, only ever appended to: what follows the confirmed bytes can be cut off.
    Lines,
    /// An SQLite file of its own: taken back by putting a saved copy in its place. The query gives
    /// one line of JSON per row; its parameter is the cursor, or the empty text. The statements make
    /// it ready to be resumed; their parameter is the time, in milliseconds since 1970.
    Database {
        lines: &'static str,
        ready: &'static [&'static str],
    },
}

/// Lists what a CLI would replay from a session.
pub trait SessionReader: Send {
    /// One complete line, without its newline.
    fn line(&mut self, line: &[u8]);

    fn finish(self: Box<Self>) -> Reading;
}

/// What was read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reading {
    /// The entries on the branch the CLI would replay, in order, after the cursor.
    pub entries: Vec<ReadEntry>,
    /// Ids of all prompts that were added, also off that branch: whose words are in here?
    pub prompts: Vec<String>,
    /// False: the branch does not lead back to the cursor it was read from.
    pub connected: bool,
    /// All entries were added after the cursor, connected or not.
    pub only_added: bool,
    /// Its last answer was still being written.
    pub unfinished: bool,
    pub damaged_lines: u64,
    pub orphaned_calls: u64,
    pub compacted: bool,
    /// How many of the entries lie before the last of those: a copy need not hold them.
    pub summed_up: usize,
    /// How full it was at its last call, where the session says so and the stream does not.
    pub context: Option<Context>,
    /// Whose model it was held with, and which, where the session says so.
    pub provider: Option<String>,
    pub model: Option<String>,
    /// All the tokens it has counted from its beginning, where the session says so.
    pub usage: Option<Usage>,
    /// Of what the part that was read took in, how many tokens came from a cache, where the stream may
    /// not tell them apart.
    pub cached: u64,
    /// What all of it cost from its beginning, where the session says so.
    pub total: Option<Micros>,
    /// What the part that was read has cost, where the session says so.
    pub spent: Option<Micros>,
    /// Calls that were stopped and that the stream says nothing of. They may have done a part.
    pub denied: Vec<Denied>,
    /// What its tools began, where the stream may not have told of it; it may have ended since.
    pub begun: Vec<ToolNote>,
    /// To read on from next time.
    pub cursor: Option<String>,
    /// Which session it is, where it says so.
    pub session: Option<String>,
    /// The CLI would replay parts of it twice ([`Adapter::mend`](crate::Adapter::mend)).
    pub repeats: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEntry {
    /// As stored; what rejoin added is stripped, `id` is the one minted for the attempt.
    Prompt {
        id: String,
        text: String,
        /// In microseconds since 1970.
        at: Option<i64>,
    },
    Answer {
        text: String,
        at: Option<i64>,
    },
    /// The model called a tool here.
    Did(ToolNote),
    /// The CLI's own words (API errors, summaries, "continue" lines): never a message.
    Synthetic,
}

impl Reading {
    /// What was added to a copy of `origin`. Fails if the copy does not begin with all that was said
    /// there; the CLI's own words do not count.
    pub fn since(mut self, origin: &Self) -> Result<Self, String> {
        let known = begins_with(&self.entries, &origin.entries);
        // A copy need not hold what was summed up; Claude Code 2.1 keeps the end of it.
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

    /// Can it be gone on with? Else why not.
    pub fn whole(&self) -> Result<(), String> {
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

    /// Does the session hold exactly the prompt we sent and the answer we got, and end there?
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
        let plain = |text: &str| text.split_whitespace().collect::<String>();
        if plain(&said) == plain(answer) {
            Ok(())
        } else {
            Err("the answer is not in it".into())
        }
    }
}

/// One message of a session, as a person would tell it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub role: Role,
    pub text: String,
    /// What tools did for an answer, or for a prompt without one; there also what only began.
    pub trail: Vec<ToolNote>,
    /// Microseconds since 1970, where the session says so.
    pub at: Option<i64>,
}

impl Reading {
    /// What was said, in order: all that the model said to a prompt is one answer, and what the CLI
    /// itself put in is nothing that was said.
    pub fn said(&self) -> Vec<Said> {
        let mut said: Vec<Said> = vec![];
        let mut did: Vec<ToolNote> = vec![];
        for entry in &self.entries {
            match entry {
                ReadEntry::Prompt { text, .. } | ReadEntry::Answer { text, .. }
                    if text.trim().is_empty() => {}
                ReadEntry::Prompt { text, at, .. } => {
                    end_of_turn(&mut said, &mut did);
                    said.push(Said {
                        role: Role::User,
                        text: text.clone(),
                        trail: vec![],
                        at: *at,
                    });
                }
                ReadEntry::Answer { text, at } => {
                    // The model went on without it: nobody needs to know more.
                    did.retain(|note| note.finished);
                    match said.last_mut() {
                        Some(last) if last.role == Role::Assistant => {
                            last.text.push_str("\n\n");
                            last.text.push_str(text);
                        }
                        Some(_) | None => said.push(Said {
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

/// What was done belongs to the answer; without one, to the prompt.
fn end_of_turn(said: &mut [Said], did: &mut Vec<ToolNote>) {
    match said.last_mut() {
        Some(last) => last.trail.append(did),
        None => did.clear(),
    }
}

/// How many of these were said before; none: not all that was. Times may differ in a copy, and how it
/// holds what tools did.
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

/// Each of the old ones is taken away once: the same may have been done again.
fn not_in<T: PartialEq>(mut all: Vec<T>, old: &[T]) -> Vec<T> {
    for known in old {
        if let Some(at) = all.iter().position(|one| one == known) {
            all.remove(at);
        }
    }
    all
}

/// The name of a prompt in a session that keeps no id for it: what it says, but for its margins.
pub fn text_mark(text: &str) -> String {
    blake3::hash(text.trim().as_bytes()).to_hex().to_string()
}

/// A time as most CLIs write it, in microseconds since 1970.
pub(crate) fn moment(text: &str) -> Option<i64> {
    let at: jiff::Timestamp = text.parse().ok()?;
    Some(at.as_microsecond())
}

pub(crate) fn is_uuid(text: &str) -> bool {
    text.len() == 36 && uuid::Uuid::try_parse(text).is_ok()
}

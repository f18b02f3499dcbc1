//! What rejoin needs to know of a CLI.

use std::path::{Path, PathBuf};

use rejoin_core::{Composed, Envelope, Micros, Runtime, SessionId, TotalsScope, TurnPlan};
use serde::{Deserialize, Serialize};

use crate::environment::EnvRules;
use crate::stream::StreamParser;

/// A coding CLI.
pub trait Adapter: Send + Sync {
    fn name(&self) -> &'static str;

    /// The program's usual name on `PATH`; none: it is part of rejoin itself.
    fn program(&self) -> Option<&'static str>;

    /// How to get it, for the error when it is missing.
    fn install(&self) -> &'static str;

    /// Where its login can be; none: it needs none.
    fn login(&self) -> Option<Login> {
        None
    }

    /// Arguments that go before all others (the built-in agent is a hidden command of rejoin).
    fn prelude(&self) -> &'static [&'static str] {
        &[]
    }

    /// Reads the output of `--version`.
    fn runtime(&self, version_output: &str) -> Option<Runtime>;

    /// Arguments of a call that costs no tokens and shows whether the flags we use are known.
    fn probe(&self) -> Option<Vec<String>>;

    /// None: the flags are known. Else why not, in a few words.
    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String>;

    /// What to set so that a run talks to the built-in model on loopback and keeps to a private
    /// home; none: this agent needs no proof (it is ours).
    fn proof(&self, at: &ProofEnv<'_>) -> Option<Vec<(String, String)>>;

    /// Can the CLI be held to these permissions? Else one sentence saying what it can.
    fn express(&self, envelope: &Envelope, as_root: bool) -> Result<(), String>;

    /// Paths in a message that the CLI would read if it were left its meaning (`--raw`).
    fn mentions(&self, _message: &str) -> Vec<String> {
        vec![]
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec;

    fn parser(&self) -> Box<dyn StreamParser>;

    fn environment(&self) -> EnvRules;

    /// The folder beneath which the CLI keeps its sessions, given its environment.
    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf>;

    /// Where in that folder the main file of a session lies. `folder` is a real path.
    fn session_file(&self, folder: &str, session: &SessionId) -> String;

    /// Reads on in a session from `cursor` (the confirmed end), or from its beginning.
    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader>;

    /// Where the CLI notes which sessions are open in a running process, if it does.
    fn live_marks(&self) -> Option<&'static str> {
        None
    }

    fn live_mark(&self, _bytes: &[u8]) -> Option<LiveMark> {
        None
    }
}

/// What shows that a CLI is logged in, without reading any of it.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// Variables that hold a key, or say that another service knows one.
    pub variables: &'static [&'static str],
    /// A file beneath [`Adapter::home`].
    pub file: &'static str,
    /// How to log in.
    pub how: &'static str,
}

/// What was found out about one binary, once; cached with its identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    pub runtime: Runtime,
    /// Why it cannot resume, if it cannot.
    pub no_resume: Option<String>,
    /// Two turns against the built-in model showed that a resume keeps the history.
    pub proven: bool,
    pub totals: TotalsScope,
    pub neutral: Neutral,
}

/// How text is kept from being taken for a command or a file of the CLI.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Neutral {
    /// By its place alone: proven on this binary, and not a byte of it is changed.
    ByPlace,
    /// Also by an invisible joiner before what could be taken for a mention.
    ByJoiner,
}

#[derive(Debug, Clone, Copy)]
pub struct ProofEnv<'a> {
    pub url: &'a str,
    pub home: &'a Path,
}

/// One run of a CLI, as it is to be.
#[derive(Debug, Clone, Copy)]
pub struct RunOrder<'a> {
    pub plan: &'a TurnPlan,
    pub composed: &'a Composed,
    /// Minted for this attempt; a resume takes its id from the plan instead.
    pub new_session: &'a SessionId,
    /// Minted for this attempt: finds the prompt in the session again.
    pub prompt_id: &'a str,
    pub folder: &'a str,
    pub model: Option<&'a str>,
    pub envelope: &'a Envelope,
    /// From the configuration.
    pub extra_args: &'a [String],
    /// The turn is to be stopped when it has cost more, where the CLI can do that.
    pub max_cost: Option<Micros>,
    /// The user's own message keeps its CLI meaning (`--raw`).
    pub raw: bool,
    /// Of its mentions, those that lead out of the folder; they stay text even so.
    pub outside: &'a [String],
    pub neutral: Neutral,
}

impl RunOrder<'_> {
    /// The session this run will write.
    pub fn session(&self) -> &SessionId {
        self.plan
            .session()
            .map_or(self.new_session, |trusted| trusted.id())
    }
}

/// A command as data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandSpec {
    pub args: Vec<String>,
    pub stdin: String,
    /// Keep stdin open for answers; it is closed when a line of one of these types appears.
    pub hold_stdin: bool,
    pub close_stdin_on: Vec<String>,
    pub env: Vec<(String, String)>,
}

/// Lists what a CLI would replay from a session.
pub trait SessionReader {
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
    pub damaged_lines: u64,
    pub orphaned_calls: u64,
    pub compacted: bool,
    /// To read on from next time.
    pub cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReadEntry {
    /// As stored; what rejoin added is stripped, `id` is the one minted for the attempt.
    Prompt {
        id: String,
        text: String,
    },
    Answer {
        text: String,
    },
    /// The CLI's own words (API errors, summaries, "continue" lines): never a message.
    Synthetic,
}

impl Reading {
    /// Does the session hold exactly the prompt we sent and the answer we got, and end there?
    pub fn confirms(&self, prompt_id: &str, answer: &str) -> Result<(), String> {
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
        let ours = |e: &ReadEntry| matches!(e, ReadEntry::Prompt { id, .. } if id == prompt_id);
        let Some(at) = self.entries.iter().position(ours) else {
            return Err("the prompt is not in it".into());
        };
        if self.entries[..at]
            .iter()
            .any(|e| !matches!(e, ReadEntry::Synthetic))
        {
            return Err("something else was said before the prompt".into());
        }
        let mut said = String::new();
        for entry in &self.entries[at + 1..] {
            match entry {
                ReadEntry::Answer { text } => said.push_str(text),
                ReadEntry::Synthetic => {}
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

/// A note by the CLI that a process has this session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveMark {
    pub pid: u32,
    pub session: SessionId,
}

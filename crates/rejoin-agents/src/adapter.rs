//! What rejoin needs to know of a CLI.

use std::path::{Path, PathBuf};

use rejoin_core::{Envelope, PermissionMode, Runtime, SessionId, TotalsScope};
use serde::{Deserialize, Serialize};

use crate::environment::EnvRules;
use crate::order::{CommandSpec, GoOnOrder, Hook, RunOrder};
use crate::outside::{Ancestor, HeadReader, NoHead, OwnSessions};
use crate::overlay::Overlay;
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{
    ChosenBy, Forking, Moving, Place, Records, SessionAt, SessionReader, is_uuid,
};
use crate::stay::StayReader;
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;

/// A coding CLI.
pub trait Adapter: Send + Sync {
    fn name(&self) -> &'static str;

    /// The program's usual name on `PATH`; none: it is part of rejoin itself.
    fn program(&self) -> Option<&'static str>;

    /// Where the program itself may be, if that is a wrapper: it is called directly, because a
    /// wrapper that is killed leaves it running.
    fn native(&self, _wrapper: &Path) -> Vec<PathBuf> {
        vec![]
    }

    /// What that wrapper would add to the environment.
    fn wrapper_env(&self, _wrapper: &Path) -> Vec<(String, String)> {
        vec![]
    }

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

    /// What a run needs to talk to the built-in model on loopback and keep to a private home; none:
    /// this agent needs no proof (it is ours).
    fn proof(&self, at: &ProofEnv<'_>) -> Option<ProofSetup>;

    /// Why this agent can never resume, if so, whatever its binary can do.
    fn cannot_resume(&self) -> Option<String> {
        None
    }

    /// What its counts cover, where that is said rather than proven.
    fn totals(&self) -> Option<TotalsScope> {
        None
    }

    /// What each mode comes to with this CLI, for people; a mode that is not here is refused.
    fn allows(&self) -> &'static [Allows] {
        &[]
    }

    /// Can the CLI be held to these permissions? Else one sentence saying what it can.
    fn express(&self, envelope: &Envelope, as_root: bool) -> Result<(), String>;

    /// True if the CLI mounts folders to build a sandbox of its own, which Landlock forbids. `read` gives
    /// files of its home.
    fn mounts(&self, _envelope: &Envelope, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        false
    }

    /// Servers of further tools that the user has configured and that its sandbox does not cover.
    /// `read` gives the bytes of a file beneath the home.
    fn tool_servers(&self, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Vec<String> {
        vec![]
    }

    /// Finds the files of one folder that would make the CLI run programs or allow more than the turn
    /// may. Called for the working folder and those above it.
    fn repository_files(&self, _folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        vec![]
    }

    /// Names the folder of definitions that the CLI looks for beneath the working folder too.
    fn nested_folder(&self) -> Option<&'static str> {
        None
    }

    /// Finds the definitions in a folder beneath the working folder that holds
    /// [`nested_folder`](Self::nested_folder).
    fn nested_files(&self, _folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile> {
        vec![]
    }

    /// Returns the files of a repository that create the file `marker` wherever [`Guard::Flags`] does not
    /// hold, for the proof of a binary. Empty: no file of a repository is guarded by flags.
    ///
    /// [`Guard::Flags`]: crate::Guard::Flags
    fn hostile_repository(&self, _marker: &str) -> Vec<(String, String)> {
        vec![]
    }

    /// Names the memory files of a folder that the CLI leaves unread where a repository's configuration
    /// is ignored: of each group the first that exists. They become [`RunOrder::memory`].
    fn unread_memory(&self, _is_workdir: bool) -> &'static [&'static [&'static str]] {
        &[]
    }

    /// Returns the user's own text that passing on a memory would displace. `read` gives the bytes of a
    /// file beneath the home.
    fn displaced_memory(&self, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
        None
    }

    /// Does the CLI leave empty files under the name of a session?
    fn leaves_stubs(&self) -> bool {
        false
    }

    /// Paths in a message that the CLI would read if it were left its meaning (`--raw`).
    fn mentions(&self, _message: &str) -> Vec<String> {
        vec![]
    }

    fn command(&self, order: &RunOrder<'_>) -> CommandSpec;

    /// In such turns its process takes one prompt after the other on stdin, and answers each for itself.
    /// `extra_args`: from the configuration.
    fn stays(&self, _envelope: &Envelope, _extra_args: &[String]) -> bool {
        false
    }

    /// Finds the end of a turn in what such a process prints.
    fn stay_reader(&self) -> Option<Box<dyn StayReader>> {
        None
    }

    /// The same, with a program that the CLI calls before it asks a person something; none: it knows
    /// no such thing.
    fn hooked(&self, _command: CommandSpec, _hook: &Hook<'_>) -> Option<CommandSpec> {
        None
    }

    /// Goes on with a call that was put off, which stands at the end of the session, without a prompt;
    /// none: the CLI cannot.
    fn go_on(&self, _order: &GoOnOrder<'_>) -> Option<CommandSpec> {
        None
    }

    /// How another conversation goes on from where a session was confirmed, with one of its own.
    fn forking(&self) -> Forking {
        Forking::Never
    }

    /// Can it do so in a run with these permissions?
    fn forks(&self, _envelope: &Envelope) -> bool {
        self.forking() != Forking::Never
    }

    /// The command that resumes a session, changed so that it goes on with a copy of it
    /// ([`RunOrder::origin`]) under a new id.
    fn fork(&self, _resume: CommandSpec, _order: &RunOrder<'_>) -> Option<CommandSpec> {
        None
    }

    /// The first line of a session, as it is in a copy under another id; none: not a line of a
    /// session. Asked where a copy is a session of its own.
    fn renamed(&self, first_line: &[u8], _to: &SessionId) -> Option<Vec<u8>> {
        Some(first_line.to_vec())
    }

    /// Where such a copy is put. Its id has the time in it.
    fn copy_place(&self, at: &SessionAt<'_>) -> Option<String> {
        match self.place(at) {
            Place::At(path) => Some(path),
            Place::Find { .. } => None,
        }
    }

    /// What makes the CLI print which flags its terminal interface knows; none: nobody has to ask.
    fn terminal_help(&self) -> Option<&'static [&'static str]> {
        None
    }

    /// The CLI's own terminal interface on a session. Else one sentence saying why it cannot be had.
    fn terminal(&self, _order: &TerminalOrder<'_>) -> Result<CommandSpec, String> {
        Err(format!(
            "{} has no terminal interface that could be opened",
            self.name()
        ))
    }

    /// Somebody could sit at it: there is a [`Self::terminal`].
    fn has_terminal(&self) -> bool {
        true
    }

    fn parser(&self) -> Box<dyn StreamParser>;

    /// For a run whose command came with a [`CommandSpec::dialogue`].
    fn in_dialogue(&self, _dialogue: &str) -> Box<dyn StreamParser> {
        self.parser()
    }

    fn environment(&self) -> EnvRules;

    /// True if the CLI logs in to its model with `AWS_*` (Bedrock), by its environment or by the
    /// user's configuration of it. `read` returns the bytes of a file.
    fn aws_login(
        &self,
        _env: &dyn Fn(&str) -> Option<String>,
        _read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) -> bool {
        false
    }

    /// The folder beneath which the CLI keeps its sessions, given its environment.
    fn home(&self, env: &dyn Fn(&str) -> Option<String>) -> Option<PathBuf>;

    /// What must be in that folder before a run, if the CLI gets one of its own there.
    fn overlay(&self, _env: &dyn Fn(&str) -> Option<String>) -> Option<Overlay> {
        None
    }

    /// Who chooses the id of a new session.
    fn chosen_by(&self) -> ChosenBy {
        ChosenBy::Us
    }

    /// Does this look like an id of this CLI? Nothing else is ever passed to it: several start
    /// afresh, silently, when they are given something else.
    fn is_session_id(&self, id: &SessionId) -> bool {
        is_uuid(id.as_str())
    }

    /// An id in the CLI's form that it cannot know, made of one that nobody else has.
    fn unknown_session(&self, minted: &SessionId) -> SessionId {
        minted.clone()
    }

    /// Where in its home a session lies.
    fn place(&self, at: &SessionAt<'_>) -> Place;

    /// After so many days the CLI itself deletes sessions that nobody used; none: never.
    fn deletes_after_days(&self) -> Option<u32> {
        None
    }

    /// Folders beneath the home with what else belongs to the session, each under a name that is the
    /// same wherever it lies.
    fn parts(&self, _at: &SessionAt<'_>) -> Vec<(&'static str, String)> {
        vec![]
    }

    /// What a session needs to serve in another folder, which `at` names. `read` gives the bytes of
    /// a file beneath the home.
    fn moving(&self, at: &SessionAt<'_>, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Moving {
        match self.place(at) {
            Place::At(path) => Moving::To(path),
            Place::Find { .. } => Moving::Stays,
        }
    }

    /// Where a session that lies at `path` beneath the home has to be moved before a run with these
    /// permissions goes on with it; none: nowhere.
    fn out_of_the_way(&self, _path: &str, _envelope: &Envelope) -> Option<String> {
        None
    }

    /// How the CLI keeps a session.
    fn records(&self) -> Records {
        Records::Lines
    }

    /// Can a session that was begun with this provider be continued here? `read` gives the bytes of
    /// a file beneath the home.
    fn provider_here(&self, _provider: &str, _read: &dyn Fn(&str) -> Option<Vec<u8>>) -> bool {
        true
    }

    /// A file beneath the home that is locked while a process has the session open.
    fn lock_file(&self, _session: &SessionId) -> Option<String> {
        None
    }

    /// The same for a session that is known by its place beneath the home.
    fn lock_at(&self, _place: &str) -> Option<String> {
        None
    }

    /// Folders that a sandbox of the CLI makes in the working folder and, when it is stopped, leaves
    /// there, empty.
    fn litter(&self) -> &'static [&'static str] {
        &[]
    }

    /// Returns whether the sandbox also makes these folders in `/tmp` and `TMPDIR`, which it may write to.
    fn litters_temporary(&self) -> bool {
        false
    }

    /// Reads on in a session from `cursor` (the confirmed end), or from its beginning.
    fn reader(&self, cursor: Option<&str>) -> Box<dyn SessionReader>;

    /// What must be added to a session so that its CLI replays each thing once; none: nothing.
    /// Asked where a [`Reading`](crate::Reading) says so, with the whole of it.
    fn mend(&self, _session: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Where sessions lie that its user makes without us; of this folder, where that can be told by
    /// the place. None: nowhere.
    fn own_sessions(
        &self,
        _env: &dyn Fn(&str) -> Option<String>,
        _folder: Option<&str>,
    ) -> Option<OwnSessions> {
        None
    }

    /// Reads the beginning of one of those, which lies at `path` beneath their home; `read` gives
    /// the bytes of a file there. `folder`: the one that is asked about.
    fn head(
        &self,
        _path: &str,
        _folder: Option<&str>,
        _read: &dyn Fn(&str) -> Option<Vec<u8>>,
    ) -> Box<dyn HeadReader> {
        Box::new(NoHead)
    }

    /// Does a resume without a model go on with the session's own? Else it must be named.
    fn keeps_model(&self) -> bool {
        true
    }

    /// The session that one with this first line goes on from, if it does not hold that itself.
    fn ancestor(&self, _first: &[u8]) -> Option<Ancestor> {
        None
    }

    /// A session that an older version kept in another form, in today's.
    fn as_lines(&self, _session: &[u8]) -> Option<Vec<u8>> {
        None
    }

    /// Where the CLI notes which sessions are open in a running process, if it does.
    fn live_marks(&self) -> Option<&'static str> {
        None
    }

    fn live_mark(&self, _bytes: &[u8]) -> Option<LiveMark> {
        None
    }
}

/// What a turn may do in one mode, and what holds it to that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Allows {
    pub mode: PermissionMode,
    pub read: &'static str,
    pub write: &'static str,
    pub run: &'static str,
    pub network: &'static str,
    pub by: &'static str,
}

/// What shows that a CLI is logged in, without reading any of it.
#[derive(Debug, Clone, Copy)]
pub struct Login {
    /// Variables that hold a key, or say that another service knows one.
    pub variables: &'static [&'static str],
    /// A file beneath [`Adapter::home`], or beneath the user's own where that is an overlay.
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
    /// What its money covers.
    pub totals: TotalsScope,
    /// What its token counts cover.
    /// None: of a build that did not ask; to be found out again.
    #[serde(default)]
    pub usage: Option<TotalsScope>,
    pub neutral: Neutral,
    /// Whether flags keep the CLI from a repository's configuration. None: an older build did not try.
    #[serde(default)]
    pub contained: Option<Contained>,
    /// What `doctor --prove` showed, row by row; empty: not asked yet.
    #[serde(default)]
    pub rows: Vec<ProofRow>,
    /// When it showed that, in microseconds since 1970.
    #[serde(default)]
    pub proven_at: Option<i64>,
}

/// Whether the flags of a run keep a binary from a repository's configuration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Contained {
    /// A hostile repository ran nothing, in a new session and in a resumed one.
    Proven,
    /// A hostile repository ran a program.
    Broken,
    /// The proof could not be made.
    Untested,
    /// The adapter relies on no flag.
    NoFlags,
}

/// One capability of a binary, as tried.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProofRow {
    pub what: String,
    pub state: ProofState,
    /// What was seen, in a few words.
    pub evidence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofState {
    Proven,
    Broken,
    /// The CLI has no such thing, or it was not tried because something before it is broken.
    NotTried,
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

/// A private home, ready for a run against the built-in model.
#[derive(Debug, Clone, Default)]
pub struct ProofSetup {
    pub env: Vec<(String, String)>,
    /// Files by their place beneath the home.
    pub files: Vec<(String, String)>,
    pub model: Option<String>,
}

/// A note by the CLI that a process has this session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveMark {
    pub pid: u32,
    pub session: SessionId,
}

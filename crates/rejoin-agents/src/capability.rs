//! Optional features of a coding CLI. An adapter lists them in [`Capabilities`]; rejoin does
//! without a feature that is missing.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use rejoin_core::{Permissions, SessionId};
use serde_json::Value;

use crate::adapter::{Env, ReadHome};
use crate::external::{Ancestor, HeaderReader, UserSessions};
use crate::order::{CommandSpec, GoOnOrder, Hook, RunOrder};
use crate::overlay::Overlay;
use crate::repository::{RepositoryFile, RepositoryFolder};
use crate::session::{Forking, SessionAt};
use crate::stream::StreamParser;
use crate::terminal::TerminalOrder;
use crate::turn_end::TurnEndReader;

macro_rules! capabilities {
    ($($(#[$doc:meta])+ $field:ident: $of:ident,)+) => {
        /// Optional features of one CLI. A field without the feature is `None`.
        #[derive(Clone, Copy)]
        pub struct Capabilities<'a> {
            $($(#[$doc])+ pub $field: Option<&'a dyn $of>,)+
        }

        impl Capabilities<'_> {
            /// No optional feature.
            pub const NONE: Self = Self { $($field: None),+ };

            /// Names of all optional features.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            /// Returns the names of the features that the CLI has.
            pub fn names(&self) -> Vec<&'static str> {
                let has = [$(self.$field.is_some()),+];
                let names = Self::NAMES.iter().zip(has);
                names.filter_map(|(name, has)| has.then_some(*name)).collect()
            }
        }
    };
}

capabilities! {
    /// Continues sessions that the user created without rejoin.
    adopt: Adopt,
    /// Logs in to its model with `AWS_*`.
    aws_login: AwsLogin,
    /// Lets a person decide during a run.
    dialogue: Dialogue,
    /// Continues a confirmed session in another conversation.
    fork: Fork,
    /// Defers a question that no person answered.
    defer: Defer,
    /// Leaves a trace of a process that has a session open.
    in_use: InUse,
    /// Lets a program deny each call of a tool before it runs.
    limits: CallLimits,
    /// Reads files that a message mentions.
    mentions: Mentions,
    /// Runs in a home that is derived from the user's own.
    overlay: OverlayHome,
    /// Runs against the built-in model, for a proof.
    proof: Proof,
    /// Binds a session to a model provider.
    providers: Providers,
    /// Needs changes to its sessions before they can be resumed.
    repair: Repair,
    /// Obeys files of a repository.
    repository: Repository,
    /// Builds a sandbox of its own.
    sandbox: Sandbox,
    /// Stores parts of a session in further folders.
    side_folders: SideFolders,
    /// Provides a terminal interface.
    terminal: Terminal,
    /// Answers several prompts in one process.
    warm: Warm,
    /// Runs under a wrapper that a kill would separate from it.
    wrapper: Wrapper,
}

/// Sessions that the user of a CLI created without rejoin.
pub trait Adopt: Send + Sync {
    /// Returns where these sessions are. With a folder, only the sessions of that folder if their
    /// path tells it. None if the environment names no home.
    fn own_sessions(&self, env: Env<'_>, folder: Option<&str>) -> Option<UserSessions>;

    /// Returns a reader for the beginning of such a session, at `path` beneath its home. `folder`
    /// is the folder that the caller asks about.
    fn header(&self, path: &str, folder: Option<&str>, read: ReadHome<'_>)
    -> Box<dyn HeaderReader>;

    /// Returns the session that precedes one with this first line, if the file does not contain
    /// those lines itself.
    fn ancestor(&self, _first: &[u8]) -> Option<Ancestor> {
        None
    }

    /// Converts a session from the file format of an older version into the current lines.
    fn as_lines(&self, _session: &[u8]) -> Option<Vec<u8>> {
        None
    }
}

/// Login with `AWS_*` (Bedrock).
pub trait AwsLogin: Send + Sync {
    /// Returns true if the environment or the user's configuration selects it. `read` returns the
    /// bytes of a file.
    fn selects_aws(&self, env: Env<'_>, read: &dyn Fn(&Path) -> Option<Vec<u8>>) -> bool;
}

/// Runs whose command has a [`CommandSpec::dialogue`].
pub trait Dialogue: Send + Sync {
    /// Returns the parser of such a run.
    fn dialogue_parser(&self, dialogue: &str) -> Box<dyn StreamParser>;
}

/// Sessions that continue a copy of another one.
pub trait Fork: Send + Sync {
    /// Returns how another conversation gets a session of its own that continues a confirmed one.
    fn forking(&self) -> Forking;

    /// Returns true if the CLI can fork in a run with these permissions.
    fn forks(&self, permissions: &Permissions) -> bool;

    /// Changes the command that resumes a session so that it continues a copy
    /// ([`RunOrder::origin`]) under a new id. None if the command cannot be changed.
    fn fork(&self, resume: CommandSpec, order: &RunOrder<'_>) -> Option<CommandSpec>;
}

/// Questions that end a run and are answered in a later one. A hook, which the CLI calls before it
/// asks, waits for the answer; if none arrives in time, it makes the CLI defer the call and exit.
pub trait Defer: Send + Sync {
    /// Adds the hook to a command. None if the command cannot have it.
    fn with_hook(&self, command: CommandSpec, hook: &Hook<'_>) -> Option<CommandSpec>;

    /// Builds the command that continues a session at its last tool call, which the hook deferred,
    /// without a prompt.
    fn resume_deferred(&self, order: &GoOnOrder<'_>) -> CommandSpec;

    /// Parses the stdin of the hook. None if it is not about a call that can be deferred.
    fn held_call(&self, stdin: &[u8]) -> Option<HeldCall>;

    /// Determines the state of a call from the output of the run so far, which may end in the middle
    /// of a line.
    fn call_state(&self, call: &str, printed: &mut dyn BufRead) -> io::Result<CallState>;

    /// Returns the output of the hook that defers the call. Without output, the CLI asks as it would
    /// without the hook.
    fn deferral(&self) -> &'static str;
}

/// A call that a hook is asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCall {
    /// Id of the call.
    pub id: String,
    /// Line for the process that follows the run ([`StreamParser::aside`]), including the newline.
    pub line: String,
}

/// Answer to the question whether a call may be deferred. Deferring ends the CLI, which keeps only
/// one of several open calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallState {
    /// No other call and no background work is in progress.
    Alone,
    /// Another call or background work is in progress.
    NotAlone,
    /// The message that contains the call is not complete yet.
    Unknown,
}

/// Calls that a program may deny before they run.
pub trait CallLimits: Send + Sync {
    /// Makes a command run `program` with the argument `limit` before each call of these tools. A
    /// failure of the program denies the call. None if the command cannot have it.
    fn with_limits(
        &self,
        command: CommandSpec,
        program: &str,
        tools: &[&str],
    ) -> Option<CommandSpec>;

    /// Parses the stdin of the program: the tool and the input of the call.
    fn limited_call(&self, stdin: &[u8]) -> Option<(String, Value)>;
}

/// Traces of processes that have a session open.
pub trait InUse: Send + Sync {
    /// Returns the trace that such a process leaves. `place` is the path of the session beneath the
    /// home. None if this session leaves no trace.
    fn trace(&self, session: &SessionId, place: Option<&str>) -> Option<Trace>;
}

/// Trace of a process that has a session open.
#[derive(Debug, Clone)]
pub enum Trace {
    /// A file for each running process in a folder beneath the home.
    Notes {
        /// The folder.
        folder: &'static str,
        /// Parses the bytes of one file. None if it names no process and session.
        parse: fn(&[u8]) -> Option<LiveMark>,
    },
    /// A file beneath the home that the process has locked.
    Lock(String),
}

/// Content of a file in which the CLI notes that a process has this session open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LiveMark {
    /// Id of the process.
    pub pid: u32,
    /// Id of the session.
    pub session: SessionId,
}

/// Mentions of files in a prompt.
pub trait Mentions: Send + Sync {
    /// Lists the paths in a message that the CLI would read if it kept its CLI meaning (`--raw`).
    fn mentions(&self, message: &str) -> Vec<String>;
}

/// Home that is derived from the user's own.
pub trait OverlayHome: Send + Sync {
    /// Describes the contents of this folder. None if the environment names no home.
    fn overlay(&self, env: Env<'_>) -> Option<Overlay>;
}

/// Proof of a binary.
pub trait Proof: Send + Sync {
    /// Returns the arguments of a call that costs no tokens and shows whether the CLI knows the
    /// flags that rejoin uses.
    fn probe(&self) -> Vec<String>;

    /// Judges the output of that call. None if the CLI knows the flags, otherwise a short reason.
    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String>;

    /// Returns the environment and files with which a run talks to the built-in model on loopback
    /// and stays in a private home.
    fn proof(&self, at: &ProofEnv<'_>) -> ProofSetup;
}

/// Surroundings of a proof.
#[derive(Debug, Clone, Copy)]
pub struct ProofEnv<'a> {
    /// Address of the built-in model.
    pub url: &'a str,
    /// Private folder that stands for the user's home.
    pub home: &'a Path,
}

/// A private home, ready for a run against the built-in model.
#[derive(Debug, Clone, Default)]
pub struct ProofSetup {
    /// Variables of the run.
    pub env: Vec<(String, String)>,
    /// Contents of files, by path beneath the home.
    pub files: Vec<(String, String)>,
    /// Model to name in the command.
    pub model: Option<String>,
}

/// Model providers of the user's configuration.
pub trait Providers: Send + Sync {
    /// Returns true if a session that was begun with this provider can be resumed here.
    fn has_provider(&self, provider: &str, read: ReadHome<'_>) -> bool;
}

/// Sessions that the CLI itself leaves in need of changes. It also leaves empty files under the
/// name of a session, which rejoin removes.
pub trait Repair: Send + Sync {
    /// Returns the lines to append to a session so that its CLI replays each message once. None if
    /// nothing is missing. Called with the whole session when
    /// [`Reading::repeats`](crate::Reading::repeats) is set.
    fn repair(&self, session: &[u8]) -> Option<Vec<u8>>;

    /// Returns the path to which a session at `path` beneath the home must be moved before a run
    /// with these permissions resumes it. None if it can stay.
    fn relocate_for(&self, path: &str, permissions: &Permissions) -> Option<String>;
}

/// Files of a repository that the CLI obeys.
pub trait Repository: Send + Sync {
    /// Finds the files of one folder that would make the CLI run programs or allow more than the
    /// turn may. Called for the working folder and those above it.
    fn repository_files(&self, folder: &RepositoryFolder<'_>) -> Vec<RepositoryFile>;

    /// Describes the definitions that the CLI looks for beneath the working folder too.
    fn nested(&self) -> Option<Nested>;

    /// Returns the files of a repository that create the file `marker` wherever [`Guard::Flags`]
    /// does not hold, for the proof of a binary. Empty: no file of a repository is guarded by flags.
    ///
    /// [`Guard::Flags`]: crate::Guard::Flags
    fn hostile_repository(&self, marker: &str) -> Vec<(String, String)>;

    /// Names the memory files of a folder that the CLI leaves unread where a repository's
    /// configuration is ignored: of each group the first that exists. They become
    /// [`RunOrder::memory`].
    fn unread_memory(&self, is_workdir: bool) -> &'static [&'static [&'static str]];

    /// Names the memory files of a folder that the CLI reads itself, links included.
    fn own_memory(&self) -> &'static [&'static str];

    /// Returns the user's own text that the CLI would lose because a memory is passed on in its
    /// place.
    fn displaced_memory(&self, read: ReadHome<'_>) -> Option<String>;
}

/// Definitions in folders beneath the working folder.
#[derive(Debug, Clone, Copy)]
pub struct Nested {
    /// Name of a folder that holds definitions.
    pub folder: &'static str,
    /// Finds the definitions in a folder that holds one of that name.
    pub files: fn(&RepositoryFolder<'_>) -> Vec<RepositoryFile>,
}

/// Sandbox that the CLI builds itself.
pub trait Sandbox: Send + Sync {
    /// Returns true if the CLI mounts folders in a run with these permissions, which Landlock
    /// forbids.
    fn mounts(&self, permissions: &Permissions, read: ReadHome<'_>) -> bool;

    /// Names the MCP servers that the user has configured and that the sandbox does not cover.
    fn mcp_servers(&self, read: ReadHome<'_>) -> Vec<String>;

    /// Returns the empty folders that the sandbox leaves behind if it is killed: in the working
    /// folder, in `/tmp` and in `TMPDIR`.
    fn sandbox_dirs(&self) -> &'static [&'static str];
}

/// Folders with further parts of a session.
pub trait SideFolders: Send + Sync {
    /// Lists these folders beneath the home. Each has a name that stays the same when its path
    /// changes.
    fn parts(&self, at: &SessionAt<'_>) -> Vec<(&'static str, String)>;
}

/// The CLI's own terminal interface.
pub trait Terminal: Send + Sync {
    /// Returns the arguments that print the flags of the terminal interface. None if not needed.
    fn terminal_help(&self) -> Option<&'static [&'static str]>;

    /// Builds the command that opens a session. The error is one sentence that says why that is not
    /// possible.
    fn terminal(&self, order: &TerminalOrder<'_>) -> Result<CommandSpec, String>;
}

/// Processes that stay up between turns.
pub trait Warm: Send + Sync {
    /// Returns true if the process of a turn with these permissions accepts further prompts on
    /// stdin and answers them one by one. `extra_args` come from the configuration.
    fn stays(&self, permissions: &Permissions, extra_args: &[String]) -> bool;

    /// Returns a reader that finds the end of a turn in the output of such a process.
    fn turn_end_reader(&self) -> Box<dyn TurnEndReader>;
}

/// Program behind a wrapper. rejoin calls the program directly, because it would survive when the
/// wrapper is killed.
pub trait Wrapper: Send + Sync {
    /// Returns the paths where the real program may be if `wrapper` only starts it.
    fn native(&self, wrapper: &Path) -> Vec<PathBuf>;

    /// Returns the variables that the wrapper would add to the environment.
    fn wrapper_env(&self, wrapper: &Path) -> Vec<(String, String)>;
}

//! Adapters for coding CLIs, one file per CLI: how to call it, how to read its output, where it
//! stores sessions and how to read them. Data in, data out: nothing here starts a process, opens a
//! file or reads the environment, so every quirk of a CLI can be tested with captured bytes.
//!
//! ```
//! use rejoin_core::{PermissionMode, Permissions};
//!
//! let claude = rejoin_agents::adapter("claude").unwrap();
//! let full = Permissions { mode: PermissionMode::Full, ..Permissions::default() };
//! // Claude Code refuses this mode for the superuser, so the turn is refused before it runs.
//! assert!(claude.check_permissions(&full, false).is_ok());
//! assert!(claude.check_permissions(&full, true).is_err());
//! ```

#![warn(missing_docs)]

mod adapter;
mod bedrock;
mod capability;
mod claude;
mod codex;
mod demo;
mod denial;
mod environment;
mod external;
mod facts;
mod failure;
mod gemini;
mod generic;
mod opencode;
mod order;
mod overlay;
mod probe;
mod reach;
mod repository;
mod rpc;
mod session;
mod stream;
mod terminal;
mod tier_permissions;
mod tool_names;
mod tool_note;
mod turn_end;
mod workflow;

pub use adapter::{Adapter, Allows, CostLimit, Env, IdForm, Login, NamedTools, Profile, ReadHome};
pub use capability::{
    Adopt, AwsLogin, CallLimits, CallState, Capabilities, Defer, Dialogue, Fork, HeldCall, InUse,
    LiveMark, Mentions, Nested, OverlayHome, Proof, ProofEnv, ProofSetup, Providers, Repair,
    Repository, Sandbox, SideFolders, Terminal, Trace, Warm, Wrapper,
};
pub use environment::{EnvRules, MARKER, compose_env, refuse_bare_repositories};
pub use external::{Ancestor, HeaderReader, SessionHeader, SessionStorage, UserSessions};
pub use facts::{Facts, MentionEscape, ProofRow, ProofState, RepositoryIsolation};
pub use generic::{Generic, GenericConfig, JsonPath};
pub use opencode::serve;
pub use order::{CommandSpec, GoOnOrder, Hook, RunOrder};
pub use overlay::{Overlay, Rewrite};
pub use reach::reach;
pub use repository::{
    Guard, Memory, MemoryFile, ReadFile, RepositoryConfig, RepositoryFile, RepositoryFolder,
};
pub use session::{
    ChosenBy, Emptied, Forking, Moving, ReadEntry, Reading, Records, RenameHeader, SessionAt,
    SessionMessage, SessionPath, SessionReader, text_mark,
};
pub use stream::{Denied, EndCause, ProcessEnd, Reply, RunReport, Say, Spent, StreamParser};
pub use terminal::{OPEN_MARKER, TerminalOrder};
pub use tier_permissions::{EnforcedPart, enforced_parts, limit_refusal, tier_permissions};
pub use turn_end::{TurnEndReader, TurnState};
pub use workflow::{WORKFLOW_AGENT, WORKFLOW_PROCESS};

/// All built-in agents. A new agent needs a file and a line here.
pub const ADAPTERS: &[&dyn Adapter] = &[
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::OpenCode,
    &demo::Demo,
];

/// Returns the built-in agent of this name, also that of command steps, which people cannot select.
/// None if there is no such agent.
pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    let workflow: &dyn Adapter = &workflow::Workflow;
    let all = ADAPTERS.iter().copied().chain([workflow]);
    all.into_iter().find(|a| a.name() == name)
}

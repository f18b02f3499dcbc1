//! One file per coding CLI: how to call it, how to read what it prints, where its sessions lie and
//! how to read them. Data in, data out: nothing here starts a process, opens a file or looks at the
//! environment, so every trap of a CLI can be tested with captured bytes.

mod adapter;
mod bedrock;
mod claude;
mod codex;
mod demo;
mod denial;
mod environment;
mod gemini;
mod generic;
mod opencode;
mod order;
mod outside;
mod overlay;
mod reach;
mod repository;
mod rpc;
mod session;
mod stay;
mod stream;
mod terminal;

pub use adapter::{
    Adapter, Allows, Contained, Facts, LiveMark, Login, Neutral, ProofEnv, ProofRow, ProofSetup,
    ProofState,
};
pub use claude::hook as claude_hook;
pub use environment::{EnvRules, MARKER, compose_env};
pub use generic::{Generic, GenericConfig, Pick};
pub use opencode::serve;
pub use order::{CommandSpec, GoOnOrder, Hook, RunOrder};
pub use outside::{Ancestor, HeadReader, Kept, OwnSessions, SessionHead};
pub use overlay::{Overlay, Rewrite};
pub use reach::reach;
pub use repository::{
    Guard, Memory, MemoryFile, ReadFile, RepositoryConfig, RepositoryFile, RepositoryFolder,
};
pub use session::{
    ChosenBy, Forking, Moving, Place, ReadEntry, Reading, Records, Said, SessionAt, SessionReader,
    text_mark,
};
pub use stay::{Standing, StayReader};
pub use stream::{Denied, End, EndCause, Ran, Reply, Say, StreamParser};
pub use terminal::{OPEN_MARKER, TerminalOrder};

/// Every agent that is built in. A new one is a file, and a line here.
pub const ADAPTERS: &[&dyn Adapter] = &[
    &claude::Claude,
    &codex::Codex,
    &gemini::Gemini,
    &opencode::OpenCode,
    &demo::Demo,
];

pub fn adapter(name: &str) -> Option<&'static dyn Adapter> {
    ADAPTERS.iter().copied().find(|a| a.name() == name)
}

//! The coding CLIs under test, as `scripts/test` installed them. A new one is a file, and a line in
//! `on_every_cli!`.

use std::path::{Path, PathBuf};

use crate::world::World;

mod claude;
mod codex;
mod gemini;
mod opencode;

pub use claude::{CLAUDE_20, CLAUDE_197, CLAUDE_325};
pub use codex::{CODEX_166, CODEX_TOOLS};
pub use gemini::GEMINI_061;
pub use opencode::OPENCODE;

pub const CLAUDE_OLD: &str = "2.1.197";
pub const CLAUDE_NEW: &str = "2.1.325";

/// What a test must know of a CLI.
pub trait Cli: Sync {
    fn agent(&self) -> &'static str;

    fn version(&self) -> &'static str;

    /// Beneath `node_modules` of its own folder.
    fn program(&self) -> String;

    /// What the tests ask for, and another of the same family.
    fn models(&self) -> [&'static str; 2];

    /// Environment and files, so that it talks to the world's model and to nobody else.
    fn set_up(&self, world: &mut World) {
        let url = world.model.url.clone();
        self.point_at(world, &url);
    }

    /// Makes it talk to another address.
    fn point_at(&self, world: &mut World, url: &str);

    /// The main files of all its sessions beneath the private home.
    fn sessions(&self, world: &World) -> Vec<PathBuf>;

    /// Is this the file of that session?
    fn is_of(&self, file: &Path, session: &str) -> bool {
        let name = file.file_stem().and_then(|stem| stem.to_str());
        name.is_some_and(|name| name.ends_with(session))
    }

    /// The session that a command resumes.
    fn resumed(&self, command: &[String]) -> Option<String> {
        after(command, "--resume")
    }

    /// The session that a command begins, if the CLI is told.
    fn begun(&self, command: &[String]) -> Option<String> {
        after(command, "--session-id")
    }

    /// Goes on with a session by hand, as its owner would; the command, ready to be run.
    fn by_hand(&self, session: &str, text: &str) -> Vec<String>;

    /// What that needs in its environment.
    fn by_hand_env(&self, _world: &World, _session: &str) -> Vec<(String, String)> {
        vec![]
    }

    /// Uses the CLI as its owner does who has never heard of rejoin: begins a session, or goes on with
    /// one of that kind.
    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String>;

    /// What that needs in its environment.
    fn alone_env(&self) -> Vec<(String, String)> {
        vec![]
    }

    /// Does it say what a turn cost?
    fn knows_money(&self) -> bool {
        false
    }

    /// What its stream holds once an answer has begun; none: it prints whole answers only.
    fn streaming(&self) -> Option<&'static str> {
        None
    }
}

fn after(command: &[String], flag: &str) -> Option<String> {
    let at = command.iter().position(|arg| arg == flag)?;
    command.get(at + 1).cloned()
}

/// Every file below a folder whose name ends so.
pub(crate) fn files_below(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = vec![];
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() && !path.is_symlink() {
            found.extend(files_below(&path, ending));
        } else if path.to_str().is_some_and(|p| p.ends_with(ending)) {
            found.push(path);
        }
    }
    found
}

/// Returns where the CLI is installed. Fails the test if it is not.
pub(crate) fn installed(cli: &dyn Cli) -> PathBuf {
    let (agent, version) = (cli.agent(), cli.version());
    tool(&format!("{agent}-{version}"), &cli.program())
}

/// Where `scripts/test` installs.
pub(crate) fn deps() -> PathBuf {
    std::env::var_os("REJOIN_TEST_CLIS").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../.deps"),
        PathBuf::from,
    )
}

/// Returns a program of a package that `scripts/test` installs.
pub(crate) fn tool(package: &str, program: &str) -> PathBuf {
    let path = deps().join(package).join("node_modules").join(program);
    needed(path, package).canonicalize().unwrap()
}

/// Returns the path of a program that a test needs. Fails the test if it is missing: a test that did not run
/// proves nothing.
#[track_caller]
pub(crate) fn needed(path: PathBuf, name: &str) -> PathBuf {
    assert!(
        path.exists(),
        "{name} is not installed; run ./scripts/test, which installs it"
    );
    path
}

/// The native binary of that version of Claude Code.
pub fn claude(version: &str) -> Option<PathBuf> {
    Some(installed(claude::of(version)))
}

pub(crate) fn claude_of(version: &str) -> &'static dyn Cli {
    claude::of(version)
}

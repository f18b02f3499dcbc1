//! The coding CLIs under test, as installed by `scripts/test`. A new one is a file, and its lines
//! here: `mod`, `pub use`, and one in each of the two lists.

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

/// Runs each function on a world with every CLI.
#[macro_export]
macro_rules! on_every_cli {
    ($($test:ident),+ $(,)?) => {
        $crate::on_cli!(claude_2_1_197, CLAUDE_197, $($test),+);
        $crate::on_cli!(claude_2_1_325, CLAUDE_325, $($test),+);
        $crate::on_cli!(codex_0_166_0, CODEX_166, $($test),+);
        $crate::on_cli!(opencode, OPENCODE, $($test),+);
        $crate::on_cli!(gemini_0_61_0, GEMINI_061, $($test),+);
    };
}

/// Runs each function on a world with every CLI; the slow CLIs only in the long run
/// (`./scripts/test --long`).
#[macro_export]
macro_rules! on_every_quick_cli {
    ($($test:ident),+ $(,)?) => {
        $crate::on_cli!(claude_2_1_197, CLAUDE_197, $($test),+);
        $crate::on_cli!(claude_2_1_325, CLAUDE_325, $($test),+);
        $crate::on_cli!(codex_0_166_0, CODEX_166, $($test),+);
        $crate::on_slow_cli!(opencode, OPENCODE, $($test),+);
        $crate::on_slow_cli!(gemini_0_61_0, GEMINI_061, $($test),+);
    };
}

#[macro_export]
macro_rules! on_slow_cli {
    ($module:ident, $cli:ident, $($test:ident),+ $(,)?) => {
        mod $module {
            $(#[test] #[ignore = "only with --long"] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::of(rejoin, &$crate::$cli).map(super::$test);
            })+
        }
    };
}

#[macro_export]
macro_rules! on_cli {
    ($module:ident, $cli:ident, $($test:ident),+ $(,)?) => {
        mod $module {
            $(#[test] fn $test() {
                let rejoin = env!("CARGO_BIN_EXE_rejoin");
                $crate::World::of(rejoin, &$crate::$cli).map(super::$test);
            })+
        }
    };
}

/// Facts about a CLI that tests need.
pub trait Cli: Sync {
    fn agent(&self) -> &'static str;

    fn version(&self) -> &'static str;

    /// Returns the program's path beneath `node_modules` of its own folder.
    fn program(&self) -> String;

    /// Returns the model that tests use, and another one of the same family.
    fn models(&self) -> [&'static str; 2];

    /// Prepares environment and files, so that the CLI talks only to the world's model.
    fn set_up(&self, world: &mut World) {
        let url = world.model.url.clone();
        self.point_at(world, &url);
    }

    /// Makes the CLI talk to another address.
    fn point_at(&self, world: &mut World, url: &str);

    /// Returns the main files of all its sessions beneath the private home.
    fn sessions(&self, world: &World) -> Vec<PathBuf>;

    /// Returns true if this is the file of that session.
    fn is_of(&self, file: &Path, session: &str) -> bool {
        let name = file.file_stem().and_then(|stem| stem.to_str());
        name.is_some_and(|name| name.ends_with(session))
    }

    /// Returns the session that a command resumes.
    fn resumed(&self, command: &[String]) -> Option<String> {
        after(command, "--resume")
    }

    /// Returns the session that a command begins, if the command names it.
    fn begun(&self, command: &[String]) -> Option<String> {
        after(command, "--session-id")
    }

    /// Returns the command with which a user continues a session with the CLI itself.
    fn by_hand(&self, session: &str, text: &str) -> Vec<String>;

    /// Returns the environment for that command.
    fn by_hand_env(&self, _world: &World, _session: &str) -> Vec<(String, String)> {
        vec![]
    }

    /// Returns the command of a user who does not know rejoin: begins a session, or continues one
    /// of that kind.
    fn alone(&self, session: Option<&str>, text: &str) -> Vec<String>;

    /// Returns the environment for that command.
    fn alone_env(&self) -> Vec<(String, String)> {
        vec![]
    }

    /// Returns true if the CLI reports the cost of a turn.
    fn knows_money(&self) -> bool {
        false
    }

    /// Returns a text that its stream contains once an answer has begun. `None` if it prints only
    /// whole answers.
    fn streaming(&self) -> Option<&'static str> {
        None
    }
}

fn after(command: &[String], flag: &str) -> Option<String> {
    let at = command.iter().position(|arg| arg == flag)?;
    command.get(at + 1).cloned()
}

/// Returns every file below a folder whose path ends with `ending`.
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

/// Returns the installed program of the CLI. Fails the test if it is missing.
pub(crate) fn installed(cli: &dyn Cli) -> PathBuf {
    let (agent, version) = (cli.agent(), cli.version());
    tool(&format!("{agent}-{version}"), &cli.program())
}

/// Returns the folder into which `scripts/test` installs.
pub fn deps() -> PathBuf {
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

/// Returns the native binary of that version of Claude Code.
pub fn claude(version: &str) -> Option<PathBuf> {
    Some(installed(claude::of(version)))
}

pub(crate) fn claude_of(version: &str) -> &'static dyn Cli {
    claude::of(version)
}

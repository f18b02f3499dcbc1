//! Runs the program of an agent outside of turns, to learn what it can do: with the wall and the
//! marker of a turn, because an agent could have replaced the file.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_hub::Clock;

use crate::process::{Captured, capture};
use crate::stray_processes::{self, MARKERS};
use crate::wall::{self, Site, Wall, WallConfig, WallMode};

/// Run of a program outside of turns.
pub(crate) struct ContainedCall {
    pub(crate) program: PathBuf,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) folder: PathBuf,
    pub(crate) stdin: Vec<u8>,
    pub(crate) may_take: Duration,
    pub(crate) wall: Option<Wall>,
}

impl ContainedCall {
    /// Runs the program to its end, off the async threads, and ends what it leaves running.
    pub(crate) async fn run(mut self) -> io::Result<Captured> {
        let marker = Clock.turn_id().map_err(io::Error::other)?.to_string();
        self.env.push((MARKERS[0].to_owned(), marker.clone()));
        let call = tokio::task::spawn_blocking(move || {
            let env = self.env.into_iter();
            let env = env.map(|(n, v)| (OsString::from(n), OsString::from(v)));
            let said = capture(
                self.program.as_os_str(),
                self.args.iter().map(OsStr::new),
                env,
                &self.folder,
                &self.stdin,
                self.may_take,
                self.wall.as_ref(),
            );
            stray_processes::end_marked(&marker)?;
            said
        });
        call.await.map_err(io::Error::other)?
    }
}

/// Returns the wall around such a run, or None where a turn would have none either. `home` is the
/// folder of the agent, `var` returns a variable of its environment.
pub(crate) fn wall_of(
    config: &WallConfig,
    program: &Path,
    home: Option<&Path>,
    folder: &Path,
    var: &dyn Fn(&str) -> Option<String>,
    mounts: bool,
) -> Option<Wall> {
    let (user, temporary) = (var("HOME"), var("TMPDIR"));
    let site = Site {
        folder,
        program,
        home: home.unwrap_or(folder),
        user: user.as_deref(),
        temporary: temporary.as_deref(),
        mounts,
    };
    wall::plan(config, &site).wall().cloned()
}

/// Returns the wall of the turns of a proof. A turn without one is no reason to refuse it: nothing
/// of the user is sent.
pub(crate) fn where_possible(config: &WallConfig) -> WallConfig {
    let mode = match config.mode {
        WallMode::Off => WallMode::Off,
        WallMode::Auto | WallMode::Required => WallMode::Auto,
    };
    WallConfig {
        mode,
        ..config.clone()
    }
}

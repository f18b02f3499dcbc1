//! The user's text editor on a file.

use std::ffi::OsStr;
use std::io;
use std::path::Path;

use nix::sys::wait::{WaitStatus, waitpid};
use tokio::signal::unix::{SignalKind, signal};

use super::{Group, c_string, environment, launch};

/// Runs the command line of an editor with `sh`, the file as its last argument, and waits for its end. Returns true
/// if it succeeded. Input and output are the terminal of this process.
pub fn run_editor(command: &str, file: &Path) -> io::Result<bool> {
    // The interrupt key is for the editor.
    let _interrupt = signal(SignalKind::interrupt())?;
    let argv = [
        c"sh".to_owned(),
        c"-c".to_owned(),
        c_string(OsStr::new(&format!("{command} \"$1\"")))?,
        c"sh".to_owned(),
        c_string(file.as_os_str())?,
    ];
    let env = environment(std::env::vars_os())?;
    let stdio = [Some(0), Some(1), Some(2)];
    let pid = launch(c"/bin/sh", &argv, &env, stdio, Group::Inherited)?;
    loop {
        match waitpid(pid, None) {
            Err(nix::errno::Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
            Ok(status) => return Ok(matches!(status, WaitStatus::Exited(_, 0))),
        }
    }
}

//! Program that shows text on our terminal page by page.

use std::ffi::OsStr;
use std::io::{self, PipeWriter, Write};
use std::os::fd::AsRawFd;

use nix::sys::wait::waitpid;
use nix::unistd::Pid;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{Group, c_string, environment, launch};

/// Running pager. Text is written to its stdin; dropping it waits until the user quits.
#[derive(Debug)]
pub struct Pager {
    pid: Pid,
    input: Option<PipeWriter>,
    /// The interrupt key is for the pager. While this exists, it does not end us.
    _interrupt: Signal,
}

impl Pager {
    /// Starts the command line with `sh`, with our environment and terminal.
    pub fn start(command: &str) -> io::Result<Self> {
        let interrupt = signal(SignalKind::interrupt())?;
        let (theirs, ours) = io::pipe()?;
        let argv = [
            c"sh".to_owned(),
            c"-c".to_owned(),
            c_string(OsStr::new(command))?,
        ];
        let stdio = [Some(theirs.as_raw_fd()), Some(1), Some(2)];
        let env = environment(std::env::vars_os())?;
        let pid = launch(c"/bin/sh", &argv, &env, stdio, Group::Inherited)?;
        Ok(Self {
            pid,
            input: Some(ours),
            _interrupt: interrupt,
        })
    }
}

impl Write for Pager {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.input.take());
        while waitpid(self.pid, None) == Err(nix::errno::Errno::EINTR) {}
    }
}

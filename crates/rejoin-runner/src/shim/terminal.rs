//! Terminal for a CLI that prints only to one. Its output is copied into `out` byte for byte: the
//! terminal is raw and adds nothing.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{SetArg, cfmakeraw, tcgetattr, tcsetattr};

/// Our end of the terminal.
#[derive(Debug)]
pub(super) struct Terminal {
    ours: File,
}

/// Size that is wide enough to keep a CLI from breaking lines of JSON.
const SIZE: Winsize = Winsize {
    ws_row: 50,
    ws_col: 4000,
    ws_xpixel: 0,
    ws_ypixel: 0,
};

impl Terminal {
    /// Opens a terminal. Also returns the end that becomes the CLI's stdout.
    pub(super) fn open() -> io::Result<(Option<Self>, Option<OwnedFd>)> {
        let pair = openpty(Some(&SIZE), None)?;
        let mut how = tcgetattr(&pair.slave)?;
        cfmakeraw(&mut how);
        tcsetattr(&pair.slave, SetArg::TCSANOW, &how)?;
        for end in [&pair.master, &pair.slave] {
            fcntl(end, FcntlArg::F_SETFD(nix::fcntl::FdFlag::FD_CLOEXEC))?;
        }
        fcntl(&pair.master, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
        let ours = File::from(pair.master);
        Ok((Some(Self { ours }), Some(pair.slave)))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.ours.as_fd()
    }

    /// Copies the available output. Returns false if the other end is closed and no more will come,
    /// or if the output cannot be written.
    pub(super) fn copy(&mut self, out: &mut impl Write) -> bool {
        let mut block = [0; 16 * 1024];
        loop {
            match self.ours.read(&mut block) {
                Ok(0) => return false,
                Ok(count) => {
                    if out.write_all(&block[..count]).is_err() {
                        return false;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return error.kind() == io::ErrorKind::WouldBlock,
            }
        }
    }
}

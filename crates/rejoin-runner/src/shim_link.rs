//! The runner's end of a shim's socket.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::Path;
use std::time::Duration;

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::time::timeout;

use crate::shim::{Grew, Hello, Order, Reply};

/// Connection to a live shim. While it exists, a held stdin is not orphaned.
#[derive(Debug)]
pub struct ShimLink {
    stream: UnixStream,
    /// Bytes that are read but not yet split into lines.
    input: Vec<u8>,
    hello: Hello,
    /// True if an order was dropped before its answer came: later answers cannot be matched any
    /// more.
    broken: bool,
}

const PATIENCE: Duration = Duration::from_secs(10);

impl ShimLink {
    /// Connects to the shim of the turn in `folder`. Returns None if no process listens there.
    pub async fn connect(folder: &Path) -> io::Result<Option<Self>> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let stream = match open(folder, flags, Mode::empty()) {
            Ok(folder) => dial(&folder).await,
            Err(error) => Err(error.into()),
        };
        let stream = match stream {
            Ok(stream) => stream,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(error),
        };
        Self::greet(stream).await
    }

    /// Uses the connection to a shim that was started early. Returns None if the shim exited
    /// without a hello.
    pub(crate) async fn adopt(stream: std::os::unix::net::UnixStream) -> io::Result<Option<Self>> {
        stream.set_nonblocking(true)?;
        Self::greet(UnixStream::from_std(stream)?).await
    }

    async fn greet(stream: UnixStream) -> io::Result<Option<Self>> {
        if stream.peer_cred()?.uid() != geteuid().as_raw() {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                "the shim belongs to another user",
            ));
        }
        let hello = Hello {
            shim: 0,
            pid: 0,
            cli: 0,
        };
        let mut link = Self {
            stream,
            input: Vec::new(),
            hello,
            broken: false,
        };
        match timeout(PATIENCE, link.read()).await? {
            Ok(hello) => link.hello = hello,
            Err(error) if is_nobody(&error) => return Ok(None),
            Err(error) => return Err(error),
        }
        Ok(Some(link))
    }

    pub fn hello(&self) -> Hello {
        self.hello
    }

    /// Sends an order and waits for the answer. An order that is dropped half-way breaks the link.
    pub async fn order(&mut self, order: Order) -> io::Result<()> {
        if std::mem::replace(&mut self.broken, true) {
            return Err(io::Error::new(
                io::ErrorKind::BrokenPipe,
                "an earlier order was dropped",
            ));
        }
        let mut line = serde_json::to_vec(&order)?;
        line.push(b'\n');
        let talk = async {
            self.stream.write_all(&line).await?;
            self.read::<Reply>().await
        };
        let reply = timeout(PATIENCE, talk).await??;
        self.broken = false;
        if reply.ok {
            return Ok(());
        }
        Err(io::Error::other(
            reply
                .error
                .unwrap_or_else(|| "refused by the shim".to_owned()),
        ))
    }

    /// Resolves when there is more to read in the spools, or when the shim has hung up, which it
    /// does after `end.json` (or when it dies).
    ///
    /// Cancel safe: can be dropped and called again.
    pub async fn news(&mut self) -> News {
        loop {
            while let Some(line) = self.line() {
                if is_news(&line) {
                    return News::Grew;
                }
            }
            if !matches!(self.stream.read_buf(&mut self.input).await, Ok(count) if count > 0) {
                return News::HungUp;
            }
        }
    }

    async fn read<T: DeserializeOwned>(&mut self) -> io::Result<T> {
        loop {
            while let Some(line) = self.line() {
                if !is_news(&line) {
                    return Ok(serde_json::from_slice(&line)?);
                }
            }
            if self.stream.read_buf(&mut self.input).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    }

    fn line(&mut self) -> Option<Vec<u8>> {
        let end = self.input.iter().position(|byte| *byte == b'\n')?;
        Some(self.input.drain(..=end).collect())
    }
}

/// Notification from a shim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    Grew,
    HungUp,
}

fn is_news(line: &[u8]) -> bool {
    serde_json::from_slice::<Grew>(line).is_ok()
}

/// Connects through the open folder: the path of the socket may be too long for an address.
async fn dial(folder: &OwnedFd) -> io::Result<UnixStream> {
    UnixStream::connect(format!("/proc/self/fd/{}/s", folder.as_raw_fd())).await
}

fn is_nobody(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::BrokenPipe
            | io::ErrorKind::UnexpectedEof
    )
}

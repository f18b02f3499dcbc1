//! Lines out of a pipe, none of them endless.

use std::os::fd::AsFd as _;

use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

/// Longer than any prompt; a shim takes less.
const LONGEST: usize = 128 << 20;
const BLOCK: usize = 64 << 10;

pub(super) struct Lines {
    pipe: Receiver,
    bytes: Vec<u8>,
    /// Bytes searched for a line end already.
    looked_at: usize,
}

impl Lines {
    pub(super) fn of_stdin() -> Result<Self, String> {
        let stdin = std::io::stdin().as_fd().try_clone_to_owned();
        let pipe = stdin.and_then(Receiver::from_owned_fd);
        let pipe = pipe.map_err(|error| format!("stdin is no pipe: {error}"))?;
        Ok(Self::of(pipe))
    }

    pub(super) fn of(pipe: Receiver) -> Self {
        Self {
            pipe,
            bytes: vec![],
            looked_at: 0,
        }
    }

    /// The next whole line; none at the end. Can be given up at any time without losing any.
    pub(super) async fn next(&mut self) -> Result<Option<Vec<u8>>, String> {
        loop {
            let rest = self.bytes.get(self.looked_at..).unwrap_or_default();
            if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
                let rest = self.bytes.split_off(self.looked_at + end + 1);
                let mut line = std::mem::replace(&mut self.bytes, rest);
                line.pop();
                self.looked_at = 0;
                return Ok(Some(line));
            }
            self.looked_at = self.bytes.len();
            if self.bytes.len() > LONGEST {
                return Err("a line is too long".into());
            }
            let mut block = vec![0; BLOCK];
            let read = self.pipe.read(&mut block).await;
            match read.map_err(|error| error.to_string())? {
                0 => return Ok(None),
                read => self.bytes.extend_from_slice(&block[..read]),
            }
        }
    }
}

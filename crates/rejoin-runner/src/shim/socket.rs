//! The socket `s` in the turn's folder: its clients, and their orders.
//!
//! No client can block the shim. Everything is non-blocking, a client that does not read its
//! answers or sends an endless line is dropped, and other users are rejected.

use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use nix::poll::{PollFd, PollFlags};
use nix::sys::socket::{getsockopt, sockopt::PeerCredentials};
use nix::unistd::{geteuid, getpid};
use serde::Serialize;

use super::order::{Grew, Hello, Order, Reply, VERSION};
use super::spec::Spec;
use crate::descent::{self, Descent};
use crate::process::tree;

/// The listening socket and its clients.
#[derive(Debug)]
pub(super) struct Socket {
    listener: UnixListener,
    clients: Vec<Client>,
}

#[derive(Debug)]
struct Client {
    stream: UnixStream,
    input: Vec<u8>,
    output: Vec<u8>,
    gone: bool,
}

pub(super) const SOCKET: &str = "s";
const CLIENTS: usize = 64;
const LONGEST_LINE: usize = 32 * 1024 * 1024;
/// Number of unread bytes at which a client is dropped. Answers are short, so it is not listening.
const UNREAD: usize = 64 * 1024;
/// Number of bytes to read from one client before the others are served.
const AT_ONCE: usize = 1024 * 1024;

impl Socket {
    /// Binds the socket by its short name in the current folder: the full path may be too long for
    /// a socket.
    pub(super) fn open() -> io::Result<Self> {
        fs_err::remove_file(SOCKET).ok();
        let listener = UnixListener::bind(Path::new(SOCKET))?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            listener,
            clients: Vec::new(),
        })
    }

    pub(super) fn is_anybody_here(&self) -> bool {
        !self.clients.is_empty()
    }

    pub(super) fn watch<'a>(&'a self, fds: &mut Vec<PollFd<'a>>) {
        fds.push(PollFd::new(self.listener.as_fd(), PollFlags::POLLIN));
        for client in &self.clients {
            let mut events = PollFlags::POLLIN;
            events.set(PollFlags::POLLOUT, !client.output.is_empty());
            fds.push(PollFd::new(client.stream.as_fd(), events));
        }
    }

    /// Tells all clients that the spools have grown. A client that has not read the last
    /// notification needs no second one.
    pub(super) fn announce(&mut self) {
        for client in &mut self.clients {
            if client.output.is_empty() {
                client.say(&Grew { grew: true });
                client.flush();
            }
        }
    }

    pub(super) fn admit(&mut self, stream: Option<UnixStream>, cli: i32) {
        if let Some(client) = stream.and_then(|it| Client::admit(it, cli))
            && self.clients.len() < CLIENTS
        {
            self.clients.push(client);
        }
    }

    /// Accepts new clients and carries out their orders.
    pub(super) fn serve(&mut self, cli: i32, mut obey: impl FnMut(Order) -> Result<(), String>) {
        while let Ok((stream, _)) = self.listener.accept() {
            if may_order(&stream) {
                self.admit(Some(stream), cli);
            }
        }
        for client in &mut self.clients {
            client.read(&mut obey);
            client.flush();
        }
        self.clients.retain(|client| !client.gone);
    }
}

/// Returns true if the peer may give orders. A process of a turn may not: it could answer its own
/// questions, or lead another turn. The exception is the process that a turn's shim runs to go
/// through this one (`rejoin stay`).
fn may_order(stream: &UnixStream) -> bool {
    let Ok(peer) = getsockopt(stream, PeerCredentials) else {
        return false;
    };
    match descent::of(peer.pid()) {
        Descent::Free => true,
        Descent::Gone => false,
        Descent::Turn(_) => goes_through_us(peer.pid()).unwrap_or(false),
    }
}

/// Returns true if the peer's parent is a shim whose run names this folder as its warm process.
fn goes_through_us(peer: i32) -> io::Result<bool> {
    let Some(shim) = descent::parent(peer) else {
        return Ok(false);
    };
    let run = Spec::load(&tree::file(shim, "cwd"))?;
    let here = fs_err::canonicalize(".")?;
    Ok(run
        .warm
        .is_some_and(|host| fs_err::canonicalize(host).is_ok_and(|host| host == here)))
}

impl Client {
    fn admit(stream: UnixStream, cli: i32) -> Option<Self> {
        let peer = getsockopt(&stream, PeerCredentials).ok()?;
        if peer.uid() != geteuid().as_raw() {
            return None;
        }
        stream.set_nonblocking(true).ok()?;
        let mut client = Self {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            gone: false,
        };
        client.say(&Hello {
            shim: VERSION,
            pid: getpid().as_raw(),
            cli,
        });
        Some(client)
    }

    fn read(&mut self, obey: &mut impl FnMut(Order) -> Result<(), String>) {
        let mut block = [0; 16 * 1024];
        for _ in 0..AT_ONCE / block.len() {
            match self.stream.read(&mut block) {
                Ok(0) => {
                    self.gone = true;
                    return;
                }
                Ok(count) => self.take(&block[..count], obey),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => self.gone = true,
            }
            if self.gone {
                return;
            }
            self.flush();
        }
    }

    fn take(&mut self, bytes: &[u8], obey: &mut impl FnMut(Order) -> Result<(), String>) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            if self.input.len() + piece.len() > LONGEST_LINE {
                self.gone = true;
                return;
            }
            self.input.extend_from_slice(piece);
            if piece.ends_with(b"\n") {
                let line = std::mem::take(&mut self.input);
                let reply = match serde_json::from_slice(&line) {
                    Ok(order) => obey(order),
                    Err(error) => Err(format!("not an order: {error}")),
                };
                self.say(&Reply::from(reply));
            }
        }
    }

    fn say(&mut self, line: &impl Serialize) {
        if let Ok(text) = serde_json::to_vec(line) {
            self.output.extend_from_slice(&text);
            self.output.push(b'\n');
        }
        self.gone |= self.output.len() > UNREAD;
    }

    fn flush(&mut self) {
        while !self.output.is_empty() {
            match self.stream.write(&self.output) {
                Ok(count) => drop(self.output.drain(..count)),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    self.gone = true;
                    return;
                }
            }
        }
    }
}

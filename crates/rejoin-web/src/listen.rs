//! Connections: from the network, and through the socket in the data folder.

use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;
use nix::unistd::geteuid;
use rejoin_runner::descent::{self, Descent};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener, UnixStream};
use tokio::sync::{Semaphore, watch};
use tower::ServiceExt as _;

use crate::guard::Peer;
use crate::state::ends;
use crate::timed::Timed;

/// Time within which the head of a request must arrive.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// Limit for simultaneous connections; further ones wait.
const CONNECTIONS: usize = 3000;
/// Size of the buffer for unread bytes of a connection; the head of a request fits into it.
const BUFFER: usize = 64 << 10;
/// Time for requests in progress when the daemon shuts down.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// Pause before the next attempt when no descriptor was free.
const FULL: Duration = Duration::from_millis(100);

/// Listening socket.
pub(crate) enum Door {
    Network(TcpListener),
    Socket(UnixListener, PathBuf),
}

/// Removes the socket file, so that no client finds a socket without a daemon.
impl Drop for Door {
    fn drop(&mut self) {
        if let Self::Socket(_, path) = self {
            drop(fs_err::remove_file(path));
        }
    }
}

impl Door {
    pub(crate) async fn network(at: SocketAddr) -> io::Result<Self> {
        Ok(Self::Network(TcpListener::bind(at).await?))
    }

    /// Opens a socket for this user alone. Replaces one that a dead daemon left.
    pub(crate) fn socket(path: &Path) -> io::Result<Self> {
        drop(fs_err::remove_file(path));
        let listener = UnixListener::bind(short(path)?.1)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs_err::set_permissions(path, mode)?;
        Ok(Self::Socket(listener, path.to_owned()))
    }

    /// Serves until the daemon shuts down, then until requests in progress are answered.
    pub(crate) async fn serve(self, router: Router, mut ending: watch::Receiver<bool>) {
        let graceful = GracefulShutdown::new();
        let places = Arc::new(Semaphore::new(CONNECTIONS));
        loop {
            let Ok(place) = Arc::clone(&places).acquire_owned().await else {
                break;
            };
            let serving = tokio::select! {
                () = ends(&mut ending) => break,
                accepted = self.accept(&router, &graceful) => accepted,
            };
            match serving {
                Ok(Some(serving)) => drop(tokio::spawn(async move {
                    serving.await;
                    drop(place);
                })),
                Ok(None) => {}
                Err(_) => tokio::time::sleep(FULL).await,
            }
        }
        drop(self);
        drop(tokio::time::timeout(ANSWERED_WITHIN, graceful.shutdown()).await);
    }

    async fn accept(
        &self,
        router: &Router,
        graceful: &GracefulShutdown,
    ) -> io::Result<Option<std::pin::Pin<Box<dyn Future<Output = ()> + Send>>>> {
        Ok(match self {
            Self::Network(listener) => {
                let (stream, from) = listener.accept().await?;
                stream.set_nodelay(true).ok();
                Some(Box::pin(connection(
                    stream,
                    Peer::Network(from),
                    router.clone(),
                    graceful,
                )))
            }
            Self::Socket(listener, _) => {
                let (stream, _) = listener.accept().await?;
                // Other users are rejected, even if the mode of the file was changed.
                let ours = stream
                    .peer_cred()
                    .is_ok_and(|peer| peer.uid() == geteuid().as_raw());
                let peer = on_socket(&stream);
                ours.then(|| {
                    let served = connection(stream, peer, router.clone(), graceful);
                    Box::pin(served) as std::pin::Pin<Box<dyn Future<Output = ()> + Send>>
                })
            }
        })
    }
}

/// Tells a process of a turn from the user. A process that has ended since it connected counts as a
/// turn's: a process could connect on behalf of another and end. A process that is hidden in
/// another container is no child of a shim of ours.
fn on_socket(stream: &UnixStream) -> Peer {
    let pid = stream.peer_cred().ok().and_then(|peer| peer.pid());
    match pid.filter(|pid| *pid > 0).map(descent::of) {
        Some(Descent::Turn(_) | Descent::Gone) => Peer::Turn,
        Some(Descent::Free) | None => Peer::Socket,
    }
}

fn connection<S: AsyncRead + AsyncWrite + Unpin + Send + 'static>(
    stream: S,
    peer: Peer,
    router: Router,
    graceful: &GracefulShutdown,
) -> impl Future<Output = ()> + Send + use<S> {
    let service = service_fn(move |request: Request<Incoming>| {
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(peer);
        router.clone().oneshot(request)
    });
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(BUFFER);
    let served = http.serve_connection(TokioIo::new(Timed::new(stream)), service);
    let served = graceful.watch(served);
    async move {
        // A client may hang up at any time.
        drop(served.await);
    }
}

/// Returns true if a daemon listens on this socket.
pub(crate) async fn answers(path: &Path) -> bool {
    let Ok((_folder, short)) = short(path) else {
        return false;
    };
    tokio::net::UnixStream::connect(short).await.is_ok()
}

/// Returns the path of the file through a descriptor of its folder, which must stay open meanwhile:
/// a socket address has room for a hundred bytes only.
pub fn short(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = open(folder, flags, Mode::empty())?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    Ok((folder, through.join(name)))
}

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

/// The head of a request must be there within this time.
const HEAD_WITHIN: Duration = Duration::from_secs(15);
/// Connections at the same time; further ones wait.
const CONNECTIONS: usize = 3000;
/// Memory for what a connection sent and nobody has read yet; the head of a request fits into it.
const BUFFER: usize = 64 << 10;
/// When it is to end, requests that are being answered have so long.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);
/// No descriptor was free: tried again after this.
const FULL: Duration = Duration::from_millis(100);

/// Where it listens.
pub(crate) enum Door {
    Network(TcpListener),
    Socket(UnixListener, PathBuf),
}

/// Nobody is to find a socket that nobody is behind.
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

    /// A socket for this user alone. One that a dead daemon left is replaced.
    pub(crate) fn socket(path: &Path) -> io::Result<Self> {
        drop(fs_err::remove_file(path));
        let listener = UnixListener::bind(short(path)?.1)?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs_err::set_permissions(path, mode)?;
        Ok(Self::Socket(listener, path.to_owned()))
    }

    /// Serves until it is to end, then until what is being answered is.
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
                // Nobody else gets in, whatever the file's mode became.
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

/// Tells a process of a turn from the user. One that has ended since it connected counts as a turn's:
/// a process could connect for another and end. A process that another container hides is no child of
/// a shim of ours.
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
        // Whoever hangs up in the middle has their reasons.
        drop(served.await);
    }
}

/// Is a daemon behind this socket?
pub(crate) async fn answers(path: &Path) -> bool {
    let Ok((_folder, short)) = short(path) else {
        return false;
    };
    tokio::net::UnixStream::connect(short).await.is_ok()
}

/// The same file through its folder, which must stay open meanwhile: an address has room for a hundred
/// bytes only.
pub fn short(path: &Path) -> io::Result<(OwnedFd, PathBuf)> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let folder = open(folder, flags, Mode::empty())?;
    let through = PathBuf::from(format!("/proc/self/fd/{}", folder.as_raw_fd()));
    Ok((folder, through.join(name)))
}

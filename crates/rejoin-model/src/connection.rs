//! Connections that can be severed from inside a request.
//!
//! Refusing a request means closing the connection without a byte, which no HTTP response can
//! express. So each connection carries a switch; once it is set, every write fails and the
//! connection is dropped.

use std::{
    io,
    net::SocketAddr,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
};

use axum::{
    extract::connect_info::Connected,
    serve::{IncomingStream, Listener},
};
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::{TcpListener, TcpStream},
};

/// Switch of one connection, passed to its requests.
#[derive(Debug, Clone, Default)]
pub(crate) struct Switch(Arc<AtomicBool>);

impl Switch {
    /// Stops all output.
    pub(crate) fn sever(&self) {
        self.0.store(true, Ordering::Release);
    }

    fn severed(&self) -> Option<io::Error> {
        let severed = self.0.load(Ordering::Acquire);
        severed.then(|| io::Error::new(io::ErrorKind::ConnectionAborted, "severed by the script"))
    }
}

impl Connected<IncomingStream<'_, Loopback>> for Switch {
    fn connect_info(stream: IncomingStream<'_, Loopback>) -> Self {
        stream.io().switch.clone()
    }
}

/// A listener whose connections have a switch.
#[derive(Debug)]
pub(crate) struct Loopback(pub(crate) TcpListener);

impl Listener for Loopback {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        // Without it each small event waits for the acknowledgement of the previous one. A failure
        // only costs time.
        drop(stream.set_nodelay(true));
        (
            Connection {
                stream,
                switch: Switch::default(),
            },
            address,
        )
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    switch: Switch,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match self.switch.severed() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write(context, bytes),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.switch.severed() {
            Some(error) => Poll::Ready(Err(error)),
            None => Pin::new(&mut self.stream).poll_write_vectored(context, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

//! What can go wrong before and while the server runs, by what the caller can do about it.

use std::{io, path::PathBuf};

/// Why the model server could not start or did not last.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The port is taken or not allowed: choose another, or 0 for any.
    #[error("cannot listen on 127.0.0.1:{port}")]
    Bind {
        port: u16,
        #[source]
        source: io::Error,
    },
    /// The request log cannot be opened for appending.
    #[error("cannot open the request log {}", path.display())]
    Log {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The server ended although nobody asked it to.
    #[error("the model server ended by itself: {0}")]
    Ended(String),
}

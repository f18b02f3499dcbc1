//! Errors before and while the server runs, grouped by the action that a caller can take.

use std::{io, path::PathBuf};

/// Reason why the model server could not start or did not last.
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
    /// The server ended without being stopped.
    #[error("the model server ended by itself: {0}")]
    Ended(String),
}

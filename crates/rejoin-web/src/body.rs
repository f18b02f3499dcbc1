//! Bodies of requests: read for handlers that take one, bounded each and all together.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, header};
use futures_util::StreamExt as _;
use rejoin_errors::{CommandError, codes};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::problem::{Refusal, Result};

/// Longest body in bytes; a message is text.
const BODY: usize = 16 << 20;
/// Time within which a body must arrive.
const BODY_WITHIN: Duration = Duration::from_mins(1);
/// Limit in bytes for the bodies of all requests that are not answered yet.
const ALL: usize = 128 << 20;
/// Unit in which memory is counted, in bytes.
const UNIT: usize = 1 << 10;

/// Memory that bodies may take, over all connections.
pub(crate) struct Bodies(Arc<Semaphore>);

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(ALL / UNIT)))
    }
}

/// Share of one request. Released when the request is answered.
#[derive(Clone)]
pub(crate) struct Share {
    all: Arc<Semaphore>,
    held: Arc<Mutex<Vec<OwnedSemaphorePermit>>>,
}

impl Bodies {
    pub(crate) fn share(&self) -> Share {
        Share {
            all: Arc::clone(&self.0),
            held: Arc::default(),
        }
    }
}

impl Share {
    /// Takes memory for that many bytes. Fails if there is not enough left.
    fn take(&self, bytes: usize) -> Result<()> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX);
        let taken = Arc::clone(&self.all).try_acquire_many_owned(units);
        let taken = taken.map_err(|_| full())?;
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        match held.first_mut() {
            Some(first) => first.merge(taken),
            None => held.push(taken),
        }
        Ok(())
    }
}

/// Reads the body. Fails if it is too long, does not arrive in time, or there is no memory for it.
pub(crate) async fn whole(request: Request) -> Result<Vec<u8>> {
    let (parts, body) = request.into_parts();
    let most = BODY >> 20;
    let too_large = || {
        Refusal(CommandError::new(
            codes::TOO_LARGE,
            format!("a request may have {most} MiB at most"),
        ))
    };
    if declared(&parts.headers).is_some_and(|length| length > BODY as u64) {
        return Err(too_large());
    }
    let share = parts.extensions.get::<Share>();
    let share = share.ok_or_else(|| Refusal::usage("no body is expected here"))?;
    let mut pieces = body.into_data_stream();
    let read = async {
        let mut whole = vec![];
        while let Some(piece) = pieces.next().await {
            let unread = |_| Refusal::usage("the body of the request cannot be read");
            let piece = piece.map_err(unread)?;
            if whole.len() + piece.len() > BODY {
                return Err(too_large());
            }
            share.take(piece.len())?;
            whole.try_reserve(piece.len()).map_err(|_| full())?;
            whole.extend_from_slice(&piece);
        }
        Ok(whole)
    };
    tokio::time::timeout(BODY_WITHIN, read)
        .await
        .unwrap_or_else(|_| Err(Refusal::usage("the request did not come in time")))
}

fn declared(headers: &HeaderMap) -> Option<u64> {
    let length = headers.get(header::CONTENT_LENGTH)?;
    length.to_str().ok()?.parse().ok()
}

fn full() -> Refusal {
    let text = "the daemon has no memory left for requests; nothing of this one was kept";
    Refusal(CommandError::unavailable(text).try_this("the same later"))
}

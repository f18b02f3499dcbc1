//! Places for agents: limits how many run at the same time, according to the configuration.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Permit that is held while an agent runs.
pub(crate) type Place = OwnedSemaphorePermit;

/// Set of places, cheap to clone.
#[derive(Clone)]
pub(crate) struct Places(Arc<Semaphore>);

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    pub(crate) fn is_free(&self) -> bool {
        self.0.available_permits() > 0
    }

    /// Returns a place if one is free now.
    pub(crate) fn take(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }

    /// Waits for a place, in the order of the calls. Returns None if no agent is started any more.
    pub(crate) async fn wait(&self) -> Option<Place> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }

    /// Stops giving out places.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

//! Places for agents: as many run at the same time as the configuration allows.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Held while an agent runs.
pub(crate) type Place = OwnedSemaphorePermit;

/// Cheap to clone.
#[derive(Clone)]
pub(crate) struct Places(Arc<Semaphore>);

impl Places {
    pub(crate) fn new(most: usize) -> Self {
        Self(Arc::new(Semaphore::new(most)))
    }

    pub(crate) fn is_free(&self) -> bool {
        self.0.available_permits() > 0
    }

    /// A place, if one is free now.
    pub(crate) fn take(&self) -> Option<Place> {
        Arc::clone(&self.0).try_acquire_owned().ok()
    }

    /// A place, when one is free, in the order of the calls. None: nothing is started any more.
    pub(crate) async fn wait(&self) -> Option<Place> {
        Arc::clone(&self.0).acquire_owned().await.ok()
    }

    /// Gives none any more.
    pub(crate) fn close(&self) {
        self.0.close();
    }
}

//! Checks that the store can be written: a readable store may be locked, read-only or on a full
//! disk.

use std::time::Duration;

use crate::connections::Store;
use crate::error::{Error, Result};

/// Changes nothing, but is written like every change.
const SAME: &str = "update stores set id = id";

impl Store {
    /// Commits a transaction that changes nothing. Fails with `Busy` if it takes longer than `within`.
    pub async fn must_be_writable(&self, within: Duration) -> Result<()> {
        let written = async {
            let mut tx = self.begin().await?;
            tx.run(SAME, vec![]).await?;
            tx.commit().await
        };
        tokio::time::timeout(within, written)
            .await
            .unwrap_or_else(|_| Err(Error::Busy("it took too long".into())))
    }
}

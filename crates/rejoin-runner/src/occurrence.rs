//! Sends the message of a schedule's occurrence.

use std::path::Path;

use rejoin_hub::{Accepted, DueOccurrence, Schedule, Target};

use crate::error::{Error, Result};
use crate::folder;
use crate::send::{Defaults, Draft};
use crate::turn::Runner;

/// Limits of the daemon that hold for its schedules too.
#[derive(Debug, Clone, Default)]
pub struct OccurrenceLimits {
    /// Real paths of the folders that a turn must stay beneath; empty: any folder.
    pub roots: Vec<String>,
    /// Messages in the queue beyond which an occurrence is refused.
    pub queue: Option<u64>,
}

impl Runner {
    /// Accepts the message of an occurrence, and records the occurrence in the same transaction.
    /// `holder` claims the turn if no other has to run first.
    pub async fn accept_occurrence(
        &self,
        schedule: &Schedule,
        due: DueOccurrence,
        defaults: &Defaults,
        limits: OccurrenceLimits,
        holder: Option<&str>,
    ) -> Result<Accepted> {
        let request = schedule.message(due.at);
        let (target, known) = match &request.key {
            Some(key) => {
                let mut read = self.hub.store.read().await?;
                let namespace = &self.hub.namespace;
                let known = read.conversations().by_key(namespace, key).await?;
                (Target::Key(key.clone()), known)
            }
            None => (Target::New, None),
        };
        let draft = Draft::new(&request, defaults, known.as_ref())?;
        let named = draft.folder();
        let found = folder::look(Path::new(&named));
        let folder = found.map_err(|source| Error::Folder {
            path: named,
            source,
        })?;
        let mut incoming = draft
            .incoming(&self.hub, &self.config, target, folder.path.clone())
            .await?;
        incoming.request.roots = limits.roots;
        if !incoming.request.may_enter(Path::new(&folder.path)) {
            return Err(Error::OutsideRoots);
        }
        incoming.queue_limit = limits.queue;
        incoming.occurrence = Some(due);
        Ok(self.hub.accept(&incoming, holder).await?)
    }
}

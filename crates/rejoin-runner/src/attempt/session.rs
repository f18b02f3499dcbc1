//! Session of an attempt: where it is, and its pin. Brings an existing session to its place.

use std::path::Path;
use std::time::Instant;

use rejoin_agents::{ChosenBy, Forking, SessionAt, SessionPath};
use rejoin_core::{Pin, SessionId, SessionSource, TrustedSession, TurnPlan};
use rejoin_hub::{Confirmed, PinStart, fault, metrics};

use super::{AttemptContext, text, turn_folder};
use crate::error::{Error, Result};
use crate::fork::{ForkCopy, forks};
use crate::relocate::{bring_here, out_of_the_way, told_where};
use crate::warm::is_live;

/// Session that an attempt uses, in its place.
pub(super) struct SessionStart<'p> {
    pub(super) pin: PinStart,
    /// Session as confirmed before the attempt; None for a new one.
    pub(super) confirmed: Option<Confirmed>,
    /// Path of its file in the agent's home; None until the CLI has chosen its id.
    pub(super) file: Option<String>,
    /// Pin of the parent, if the session is a fork.
    pub(super) forked: Option<&'p Pin>,
    /// Path of the copy that a fork starts from.
    pub(super) origin: String,
    pub(super) restored: Option<Restoration>,
}

/// Restoration of a session from a snapshot.
pub(super) struct Restoration {
    confirmed: Confirmed,
    /// Description of the snapshot, for the record.
    pub(super) because: String,
    /// New path of a session that was in the way.
    pub(super) aside: Option<String>,
}

impl AttemptContext<'_> {
    /// Finds the session of the plan and brings it to the place where this run expects it, or
    /// chooses the place of a new one.
    pub(super) async fn place_session<'p>(
        &self,
        plan: &TurnPlan,
        pinned: Option<&'p Pin>,
        new_session: &SessionId,
    ) -> Result<SessionStart<'p>> {
        let restored = self.restore(plan, pinned).await?;
        let (pin, mut confirmed) = match (plan, pinned, &restored) {
            (TurnPlan::Resume { .. }, Some(pin), Some(restored)) => {
                (PinStart::Existing(pin.id), Some(restored.confirmed.clone()))
            }
            (TurnPlan::Resume { session, .. }, Some(pin), None) if !forks(plan) => {
                let (inspection, clock) = (self.inspection, self.hub.clock);
                let brought = bring_here(inspection, pin, session.id(), clock).await?;
                (PinStart::Existing(pin.id), Some(brought))
            }
            (TurnPlan::Resume { .. }, None, _) => {
                return Err(Error::Internal("a session without a pin".into()));
            }
            // A fork gets a session of its own too.
            (TurnPlan::Resume { .. } | TurnPlan::Start { .. } | TurnPlan::Reseed { .. }, _, _) => {
                (PinStart::New(self.hub.clock.pin_id()?), None)
            }
        };
        // A live process writes this file, so it must not be moved.
        if let Some(confirmed) = confirmed.as_mut().filter(|_| !is_live(plan)) {
            let (file, permissions) = (confirmed.file.clone(), &self.claimed.request.permissions);
            confirmed.file = out_of_the_way(self.inspection, file, permissions)?;
        }
        let (pin_id, folder) = (pin.id().to_string(), turn_folder(self.config, self.claimed));
        let seed = self.seed(&folder, new_session, &pin_id);
        let forked = pinned.filter(|_| forks(plan));
        let file = match (&confirmed, forked) {
            (Some(confirmed), _) => Some(confirmed.file.path.clone()),
            (None, Some(_)) => seed.place(),
            (None, None) => self.new_place(new_session, &pin_id),
        };
        if let Some((parent, place)) = forked.zip(file.as_deref()) {
            let copied = seed
                .rewrite_id_async(place)
                .await
                .map_err(Error::io("copying the session"))?;
            confirmed = copied.map(|file| Confirmed::of(parent, file));
        }
        Ok(SessionStart {
            pin,
            confirmed,
            file,
            forked,
            origin: text(&seed.origin())?,
            restored,
        })
    }

    /// Restores the session from its snapshot if the plan says so. The pin in the store is changed
    /// first.
    async fn restore(&self, plan: &TurnPlan, pinned: Option<&Pin>) -> Result<Option<Restoration>> {
        let restores = |session: &TrustedSession| session.way() == SessionSource::Snapshot;
        let (Some(staged), Some(pin), Some(_)) = (
            &self.inspection.staged,
            pinned,
            plan.session().filter(|session| restores(session)),
        ) else {
            return Ok(None);
        };
        let inspection = self.inspection;
        let ahead = staged.pin(inspection, pin, &self.hub.machine)?;
        self.hub.restored(self.claimed, &ahead).await?;
        fault::point("after_restored");
        let moved = pin.folder.path != inspection.folder.path;
        let began = Instant::now();
        let restored = staged
            .put_in_place(inspection, ahead)
            .await
            .map_err(Error::io("restoring the session"))?;
        let now = self.hub.clock;
        let confirmed = told_where(inspection, &restored.pin, now).await?;
        let bytes = restored.pin.files.iter().map(|file| file.length).sum();
        metrics::restored(bytes, began.elapsed());
        tracing::info!(
            turn = %self.claimed.turn.id,
            session = %restored.pin.session,
            bytes,
            moved,
            "Session restored for follow-up"
        );
        Ok(Some(Restoration {
            confirmed,
            because: staged.told(moved),
            aside: restored.aside,
        }))
    }

    /// Creates a session id for this attempt. Some CLIs find a session by the time in its id.
    pub(super) fn new_session(&self, plan: &TurnPlan) -> Result<SessionId> {
        let clock = self.hub.clock;
        if forks(plan) && matches!(self.forking(), Some(Forking::ByCopy(_))) {
            let id = clock.pin_id()?.to_string();
            return SessionId::new(id).map_err(|e| Error::Internal(e.to_string()));
        }
        Ok(clock.foreign_id()?)
    }

    pub(super) fn seed<'s>(
        &'s self,
        folder: &'s Path,
        session: &'s SessionId,
        pin: &'s str,
    ) -> ForkCopy<'s> {
        ForkCopy {
            sessions: self.inspection.sessions(),
            folder,
            at: SessionAt {
                folder: &self.inspection.folder.path,
                session,
                pin,
            },
        }
    }

    /// Returns the path of a new session, or None if it is unknown until the CLI has chosen its id.
    fn new_place(&self, session: &SessionId, pin: &str) -> Option<String> {
        let at = SessionAt {
            folder: &self.inspection.folder.path,
            session,
            pin,
        };
        let adapter = self.inspection.adapter;
        let foreign_id = adapter.profile().chosen_by == ChosenBy::TheCli;
        match adapter.place(&at) {
            SessionPath::At(path) if foreign_id && path.contains(session.as_str()) => None,
            SessionPath::At(path) => Some(path),
            SessionPath::Find { .. } => None,
        }
    }
}

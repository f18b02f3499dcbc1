//! Snapshots of sessions, and the choice of those that fit today's history.

use rejoin_core::{ConversationId, Pin, PinId, ScopeValue};
use rejoin_store::{CapturedSession, NewSnapshot, Snapshot, StoredPin, Tx, Vault};

use crate::Hub;
use crate::candidates::StoreFacts;
use crate::claim::Claimed;
use crate::error::{Error, Result};

/// Values of a turn's `saved` field.
pub const STORED: &str = "stored";
pub const LOCAL_ONLY: &str = "local_only";
pub const FAILED: &str = "failed";

/// Number of snapshots to search for one whose history is a prefix of today's.
const LOOK_BACK: i64 = 32;
const SWEPT: &str = "what it was built upon was swept meanwhile";

/// Snapshots that could replace a session.
#[derive(Debug, Clone, Default)]
pub struct SnapshotOffers {
    /// Snapshots whose history is a prefix of today's, newest first. Of two with the same history,
    /// a confirmed one comes first.
    pub usable: Vec<Snapshot>,
    /// True if a fitting snapshot existed but expired.
    pub expired: bool,
}

impl Hub {
    /// Returns a pin as stored.
    pub async fn stored_pin(&self, pin: PinId) -> Result<Option<StoredPin>> {
        Ok(self.store.read().await?.pins().get(pin).await?)
    }

    /// Returns the confirmed sessions that are not saved, the latest first.
    pub async fn unsaved_pins(&self) -> Result<Vec<PinId>> {
        let unsaved = self.store.read().await?.snapshots().unsaved().await?;
        Ok(unsaved.into_iter().map(|(_, pin, _)| pin).collect())
    }

    pub async fn offers(&self, outlook: &StoreFacts, pin: &Pin) -> Result<SnapshotOffers> {
        let mut offers = SnapshotOffers::default();
        if self.vault.is_none() {
            return Ok(offers);
        }
        let (c, scope, state) = (outlook.conversation, outlook.kind, &outlook.scope);
        let mut read = self.store.read().await?;
        for snapshot in read.snapshots().of_pin(pin.id, LOOK_BACK).await? {
            let whose = (&snapshot.agent, &snapshot.session);
            let today = read
                .history()
                .value_through(c, scope, state, snapshot.last_seq)
                .await?;
            let today = today == Some(snapshot.value);
            if !today || whose != (&pin.agent, &pin.session) {
                continue;
            }
            match (&snapshot.expired, snapshot.open) {
                (None, _) => offers.usable.push(snapshot),
                (Some(_), false) => offers.expired = true,
                (Some(_), true) => {}
            }
        }
        // A snapshot of a running turn serves only if the state that it began with was not saved
        // otherwise.
        let values: Vec<ScopeValue> = offers.usable.iter().map(|s| s.value).collect();
        let newest = |s: &Snapshot| values.iter().position(|value| *value == s.value);
        offers.usable.sort_by_key(|s| (newest(s), s.open));
        Ok(offers)
    }

    /// Stores a snapshot. Returns false if a snapshot that it builds upon is gone; the pin then
    /// records that, and the capture is tried again.
    pub(crate) async fn keep_snapshot(
        &self,
        tx: &mut Tx,
        conversation: ConversationId,
        pin: &Pin,
        captured: &CapturedSession,
    ) -> Result<bool> {
        let new = NewSnapshot {
            id: self.clock.snapshot_id()?,
            conversation,
            pin,
            captured,
            open: false,
            now: self.clock.now(),
        };
        let kept = tx.snapshots().add(&new).await?;
        if kept {
            tx.snapshots().forget_open(pin.id, true).await?;
        } else {
            tx.snapshots().set_unsaved(pin.id, Some(SWEPT)).await?;
        }
        Ok(kept)
    }

    /// Adds a snapshot of a session that has not changed since it was captured. Otherwise returns
    /// the reason for not adding it.
    pub async fn add_snapshot(
        &self,
        pin: &Pin,
        captured: &CapturedSession,
    ) -> Result<std::result::Result<(), String>> {
        let mut tx = self.store.begin().await?;
        let session = pin.session.as_str();
        let now = tx.pins().of_session(pin.agent.as_str(), session).await?;
        let same = |now: &Pin| (&now.files, now.seen) == (&pin.files, pin.seen);
        let whose = now.filter(|(_, stored)| stored.pin.as_ref().is_some_and(same));
        let Some((conversation, _)) = whose else {
            return Ok(Err("it was changed meanwhile".into()));
        };
        if !self
            .keep_snapshot(&mut tx, conversation, pin, captured)
            .await?
        {
            return Ok(Err(SWEPT.into()));
        }
        tx.snapshots().set_unsaved(pin.id, None).await?;
        tx.commit().await?;
        Ok(Ok(()))
    }

    /// Returns true if snapshots are stored outside this machine and survive its loss in the middle
    /// of a turn.
    pub fn keeps_elsewhere(&self) -> bool {
        let remote = |vault: &Vault| self.store.is_shared() || vault.blobs.is_remote();
        self.vault.as_ref().is_some_and(remote)
    }

    /// Replaces the snapshot of a running turn's session. `pin` is the session as confirmed before
    /// the turn. Returns false if a snapshot that it builds upon is gone.
    pub async fn add_open_snapshot(
        &self,
        claimed: &Claimed,
        pin: &Pin,
        captured: &CapturedSession,
    ) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        tx.snapshots().forget_open(pin.id, true).await?;
        let new = NewSnapshot {
            id: self.clock.snapshot_id()?,
            conversation: claimed.conversation.id,
            pin,
            captured,
            open: true,
            now: self.clock.now(),
        };
        let kept = tx.snapshots().add(&new).await?;
        if kept {
            tx.commit().await?;
        }
        Ok(kept)
    }

    /// Records that a session could not be saved. The capture is tried again later.
    pub async fn unsaved(&self, pin: PinId, why: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.snapshots().set_unsaved(pin, Some(why)).await?;
        Ok(tx.commit().await?)
    }

    /// Records, before it happens, that the holder of an opened conversation restores its session.
    pub async fn restored_held(&self, c: ConversationId, holder: &str, pin: &Pin) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let opened = tx.conversations().get(c).await?.and_then(|c| c.opened_by);
        if opened.as_deref() != Some(holder) {
            return Err(Error::Busy);
        }
        tx.pins().restore(pin, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Records, before it happens, that a session is restored from a snapshot.
    pub async fn restored(&self, claimed: &Claimed, pin: &Pin) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.turns()
            .check_fence(claimed.turn.id, claimed.turn.fence)
            .await?;
        tx.pins().restore(pin, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

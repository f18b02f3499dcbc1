//! Sessions that are kept, and which of them could serve today.

use rejoin_core::{ConversationId, Pin, PinId, ScopeValue};
use rejoin_store::{Captured, NewSnapshot, Snapshot, Tx, Vault};

use crate::Hub;
use crate::claim::Claimed;
use crate::error::{Error, Result};
use crate::outlook::Outlook;

/// What `saved` says of a turn.
pub const STORED: &str = "stored";
pub const LOCAL_ONLY: &str = "local_only";
pub const FAILED: &str = "failed";

/// How far back to look for a snapshot whose history is today's.
const LOOK_BACK: i64 = 32;
const SWEPT: &str = "what it was built upon was swept meanwhile";

/// Snapshots that could take a session's place.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    /// Those whose history is the beginning of today's, newest first; of two that hold the same, one
    /// that was confirmed.
    pub usable: Vec<Snapshot>,
    /// There was one, and it was given up.
    pub expired: bool,
}

impl Hub {
    pub async fn offers(&self, outlook: &Outlook, pin: &Pin) -> Result<Offers> {
        let mut offers = Offers::default();
        if self.vault.is_none() {
            return Ok(offers);
        }
        let (c, scope, state) = (outlook.conversation, outlook.kind, &outlook.scope);
        let mut read = self.store.read().await?;
        for snapshot in read.snapshots_of_pin(pin.id, LOOK_BACK).await? {
            let whose = (&snapshot.agent, &snapshot.session);
            let today = read.value_through(c, scope, state, snapshot.last_seq);
            let today = today.await? == Some(snapshot.value);
            if !today || whose != (&pin.agent, &pin.session) {
                continue;
            }
            match (&snapshot.expired, snapshot.open) {
                (None, _) => offers.usable.push(snapshot),
                (Some(_), false) => offers.expired = true,
                (Some(_), true) => {}
            }
        }
        // One of a turn that ran serves where what it began with was never saved otherwise.
        let values: Vec<ScopeValue> = offers.usable.iter().map(|s| s.value).collect();
        let newest = |s: &Snapshot| values.iter().position(|value| *value == s.value);
        offers.usable.sort_by_key(|s| (newest(s), s.open));
        Ok(offers)
    }

    /// False: what it was built upon is gone; it is said, and tried again.
    pub(crate) async fn keep_snapshot(
        &self,
        tx: &mut Tx,
        conversation: ConversationId,
        pin: &Pin,
        captured: &Captured,
    ) -> Result<bool> {
        let new = NewSnapshot {
            id: self.clock.snapshot_id()?,
            conversation,
            pin,
            captured,
            open: false,
            now: self.clock.now(),
        };
        let kept = tx.add_snapshot(&new).await?;
        if kept {
            tx.forget_open_snapshots(pin.id, true).await?;
        } else {
            tx.set_unsaved(pin.id, Some(SWEPT)).await?;
        }
        Ok(kept)
    }

    /// Adds a snapshot of a session of which nothing has changed since it was captured. Else says why
    /// not.
    pub async fn add_snapshot(
        &self,
        pin: &Pin,
        captured: &Captured,
    ) -> Result<std::result::Result<(), String>> {
        let mut tx = self.store.begin().await?;
        let session = pin.session.as_str();
        let now = tx.pin_of_session(pin.agent.as_str(), session).await?;
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
        tx.set_unsaved(pin.id, None).await?;
        tx.commit().await?;
        Ok(Ok(()))
    }

    /// Whether what is kept outlives this machine, also if that goes away in the middle of a turn.
    pub fn keeps_elsewhere(&self) -> bool {
        let remote = |vault: &Vault| self.store.is_shared() || vault.blobs.is_remote();
        self.vault.as_ref().is_some_and(remote)
    }

    /// Adds a snapshot of the session of a turn that runs, in place of the one before. `pin`: as it
    /// was confirmed before the turn. False: what it was built upon is gone.
    pub async fn add_open_snapshot(
        &self,
        claimed: &Claimed,
        pin: &Pin,
        captured: &Captured,
    ) -> Result<bool> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        tx.forget_open_snapshots(pin.id, true).await?;
        let new = NewSnapshot {
            id: self.clock.snapshot_id()?,
            conversation: claimed.conversation.id,
            pin,
            captured,
            open: true,
            now: self.clock.now(),
        };
        let kept = tx.add_snapshot(&new).await?;
        if kept {
            tx.commit().await?;
        }
        Ok(kept)
    }

    /// It could not be saved; tried again later.
    pub async fn unsaved(&self, pin: PinId, why: &str) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.set_unsaved(pin, Some(why)).await?;
        Ok(tx.commit().await?)
    }

    /// Writes ahead that whoever has the conversation open puts its session back.
    pub async fn restored_held(&self, c: ConversationId, holder: &str, pin: &Pin) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let opened = tx.conversation(c).await?.and_then(|c| c.opened_by);
        if opened.as_deref() != Some(holder) {
            return Err(Error::Busy);
        }
        tx.restore_pin(pin, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }

    /// Writes ahead that a session is being put back as a snapshot has it.
    pub async fn restored(&self, claimed: &Claimed, pin: &Pin) -> Result<()> {
        let mut tx = self.store.begin().await?;
        tx.holds(claimed.turn.id, claimed.turn.fence).await?;
        tx.restore_pin(pin, self.clock.now()).await?;
        Ok(tx.commit().await?)
    }
}

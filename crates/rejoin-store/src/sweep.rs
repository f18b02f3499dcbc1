//! Removes snapshots and chunks that are no longer kept: first a plan that can be shown, then its
//! execution.
//!
//! A chunk that a manifest names is never removed. A capture marks every chunk that it relies on
//! (`at`), and builds only upon a snapshot that exists when it is added. A sweep removes chunks
//! that no manifest names and that were not marked for [`GRACE`]. Their rows are deleted in the
//! transaction that checked them, the objects afterwards. A process that dies in between leaves
//! objects without a row, which the next sweep finds by listing.

mod perform;
mod reachable;

use std::collections::{HashMap, HashSet};

use rejoin_core::{AgentName, ConversationId, PinId, SnapshotId};

use crate::blobs::{ListedObject, ObjectName};
use crate::chunk_locations::copy;
use crate::connections::Read;
use crate::db::{Row, one, rows, vals};
use crate::error::{Error, Result};
use crate::vault::Vault;

pub use perform::SweepResult;
use reachable::Reachable;

/// Longest time that a chunk may exist before a manifest names it, in microseconds.
pub const GRACE: i64 = 60 * 60 * 1_000_000;

/// Retention of snapshots, in microseconds. `None`: as long as their conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Retention of the newest snapshot of each session.
    pub latest: Option<i64>,
    pub older: Option<i64>,
}

/// Effects of a sweep.
#[derive(Debug, Default)]
pub struct SweepPlan {
    pub expiring: Vec<Expiring>,
    /// Number of snapshots that stay.
    pub staying: u64,
    /// Staying snapshots whose manifest cannot be read any more. They retain no chunks.
    pub damaged: Vec<SnapshotId>,
    /// Number of chunks that no manifest names now. `bytes`: their size.
    pub chunks: u64,
    pub bytes: u64,
    /// Number of chunks that no manifest names but that are too new to remove.
    pub waiting: u64,
    /// Objects that neither a row nor a capture in progress names.
    pub strays: Vec<ListedObject>,
    now: i64,
}

/// A snapshot whose retention is over.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Expiring {
    pub id: SnapshotId,
    pub conversation: ConversationId,
    pub agent: AgentName,
    pub taken_at: i64,
    pub length: u64,
    pub why: String,
}

/// Progress of a sweep.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepProgress {
    /// Number of manifests read.
    Reading(u64),
    /// Number of objects listed.
    Listing(u64),
    /// Number of objects removed, and their total.
    Removing(u64, u64),
    /// A step that other processes can see was done, or is about to be.
    At(SweepStep),
}

/// Steps of a sweep. The process may die between any two; the next sweep continues from there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SweepStep {
    /// Snapshots are expired but not committed.
    Expiring,
    Expired,
    /// The named chunks are known.
    Reached,
    /// Rows of chunks are deleted but not committed.
    Forgetting,
    /// The rows are committed as deleted; only a listing finds their objects.
    Forgotten,
    /// All objects are removed, except those being written.
    Removed,
}

/// Callback for the progress of a sweep.
pub type Watcher<'a> = &'a (dyn Fn(SweepProgress) + Send + Sync);

impl Vault {
    /// Plans a sweep. Changes nothing.
    pub async fn plan_sweep(
        &self,
        keep: Retention,
        now: i64,
        watch: Watcher<'_>,
    ) -> Result<SweepPlan> {
        let mut plan = SweepPlan {
            now,
            ..SweepPlan::default()
        };
        let living = {
            let mut read = self.store.read().await?;
            living(&mut read).await?
        };
        let total = living.len() as u64;
        plan.expiring = expiring(living, keep, now);
        plan.staying = total - plan.expiring.len() as u64;
        let going = plan.expiring.iter().map(|e| e.id).collect();
        let reach = Reachable::read(&self.store, &going, watch).await?;
        plan.damaged.clone_from(&reach.damaged);
        for chunk in self.unnamed(&reach).await? {
            if chunk.at < now - GRACE {
                plan.chunks += 1;
                plan.bytes += chunk.stored;
            } else {
                plan.waiting += 1;
            }
        }
        plan.strays = self.strays(now - GRACE, watch).await?;
        Ok(plan)
    }

    /// Returns the chunks that no manifest names and that can be removed from here.
    async fn unnamed(&self, reach: &Reachable) -> Result<Vec<Unnamed>> {
        let mut unnamed = vec![];
        let mark = self.blobs.mark();
        let mut after = (vec![], String::new());
        loop {
            // A row for an object that we cannot reach is the only trace of it, so it stays.
            let sql = "select name, place, stored, at, copy from chunks
                where (name, place) > ($1, $2) and place in ('db', $3, '-' || $3)
                order by name, place limit 1000";
            let page = {
                let mut read = self.store.read().await?;
                let values = vals![after.0.clone(), after.1.clone(), mark.as_str()];
                rows(&mut read, sql, values).await?
            };
            for row in &page {
                let name = row.hash("name")?;
                let place = row.text("place")?;
                after = (name.to_vec(), place.clone());
                if !reach.names.contains(&name) {
                    unnamed.push(Unnamed {
                        name,
                        place,
                        stored: row.int("stored")?.try_into().unwrap_or(0),
                        at: row.int("at")?,
                        copy: copy(row)?,
                    });
                }
            }
            if page.len() < 1000 {
                return Ok(unnamed);
            }
        }
    }

    /// Returns the objects of this store that no row names, written before that time.
    async fn strays(&self, before: i64, watch: Watcher<'_>) -> Result<Vec<ListedObject>> {
        let Some(objects) = self.objects().await? else {
            return Ok(vec![]);
        };
        let mut strays = vec![];
        let mut after: Option<ObjectName> = None;
        let mut seen = 0;
        loop {
            let page = objects.list(after.as_ref()).await?;
            let mut read = self.store.read().await?;
            for listed in &page {
                if listed.at < before && !known(&mut read, &listed.name).await? {
                    strays.push(listed.clone());
                }
            }
            drop(read);
            seen += page.len() as u64;
            watch(SweepProgress::Listing(seen));
            after = match page.last() {
                Some(last) if page.len() == crate::blobs::PAGE => Some(last.name),
                Some(_) | None => return Ok(strays),
            };
        }
    }
}

/// A chunk that no manifest names.
struct Unnamed {
    name: [u8; 32],
    place: String,
    stored: u64,
    at: i64,
    copy: Option<u32>,
}

/// Returns true if a row names the object, at any location: one location may have several names.
async fn known(read: &mut Read, name: &ObjectName) -> Result<bool> {
    let sql = "select 1 as found from chunks where name = $1 and copy = $2";
    let row = one(read, sql, vals![name.chunk, i64::from(name.copy)]).await?;
    Ok(row.is_some())
}

/// A snapshot that has not expired, without its content.
#[derive(Debug, Clone)]
struct Living {
    id: SnapshotId,
    conversation: ConversationId,
    pin: PinId,
    agent: AgentName,
    open: bool,
    kept: bool,
    length: u64,
    taken_at: i64,
}

async fn living(read: &mut Read) -> Result<Vec<Living>> {
    let sql = "select id, conversation_id, pin_id, agent, state, kept, length, taken_at
        from snapshots where manifest is not null order by id desc /* scan: a sweep looks at all of them */";
    let found = rows(read, sql, vals![]).await?;
    let one = |row: &Row| {
        Ok(Living {
            id: SnapshotId::from_uuid(row.id("id")?),
            conversation: ConversationId::from_uuid(row.id("conversation_id")?),
            pin: PinId::from_uuid(row.id("pin_id")?),
            agent: AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))?,
            open: row.text("state")? == "open",
            kept: row.int("kept")? != 0,
            length: row.int("length")?.try_into().unwrap_or(0),
            taken_at: row.int("taken_at")?,
        })
    };
    found.iter().map(one).collect()
}

/// Returns the snapshots whose retention is over. `living` is ordered newest first. The newest of a
/// session is its newest confirmed snapshot, and one of a turn that was not confirmed since.
fn expiring(living: Vec<Living>, keep: Retention, now: i64) -> Vec<Expiring> {
    let mut confirmed: HashMap<PinId, SnapshotId> = HashMap::new();
    let mut newest: HashSet<PinId> = HashSet::new();
    let mut over = vec![];
    for snapshot in living {
        let first = newest.insert(snapshot.pin);
        let latest = if snapshot.open {
            first
        } else {
            *confirmed.entry(snapshot.pin).or_insert(snapshot.id) == snapshot.id
        };
        let (allowed, which, key) = if latest {
            (keep.latest, "the newest of its session", "keep_latest")
        } else {
            (keep.older, "not the newest of its session", "keep_older")
        };
        let Some(allowed) = allowed.filter(|_| !snapshot.kept) else {
            continue;
        };
        if now - snapshot.taken_at >= allowed {
            over.push(Expiring {
                id: snapshot.id,
                conversation: snapshot.conversation,
                agent: snapshot.agent,
                taken_at: snapshot.taken_at,
                length: snapshot.length,
                why: format!("{which}, and older than {key} allows"),
            });
        }
    }
    over
}

#[cfg(test)]
mod tests;

//! Snapshots of sessions: the chunks of every file, and the known facts about the session. Added in
//! the transaction that confirms the session, when its chunks are already stored.

use rejoin_core::{
    AgentName, ConversationId, Pin, PinId, PinState, ScopeValue, SeenPrefix, SessionId, SnapshotId,
};
use serde::{Deserialize, Serialize};

use crate::blobs::IN_DATABASE;
use crate::chunks::{ChunkList, ChunkRef};
use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};
use crate::pins::Confirmed;
use crate::sweep::GRACE;

/// Current format of manifests.
pub(crate) const FORMAT: u32 = 1;
/// Maximum length of a manifest. A session of 10 GiB has one of 25 MiB.
const LONGEST: usize = 64 * 1024 * 1024;

/// All data needed to restore a session and to verify it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    pub format: u32,
    pub agent: AgentName,
    pub session: SessionId,
    /// Id of the key that sealed its chunks. `None`: not encrypted.
    #[serde(default)]
    pub key: Option<String>,
    /// Files of the session. The session file itself comes first.
    pub files: Vec<ManifestFile>,
    /// Known facts: value of the history seen, folder, version, machine.
    pub(crate) confirmed: Confirmed,
}

/// A file. Its path is only evidence: the location is derived anew on restore.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// Part of the session that the file belongs to. Empty: the session itself.
    pub part: String,
    /// Path relative to that part; for the session itself, relative to the agent's home.
    pub path: String,
    pub length: u64,
    pub mode: u32,
    /// Hash as in a [`FileMark`](rejoin_core::FileMark).
    pub hash: String,
    pub chunks: ChunkList,
}

/// A snapshot as stored.
#[derive(Debug, Clone)]
pub struct Snapshot {
    pub id: SnapshotId,
    pub conversation: ConversationId,
    pub pin: PinId,
    pub agent: AgentName,
    pub session: SessionId,
    /// True if taken in the middle of a turn. Only the part confirmed before the turn is used.
    pub open: bool,
    pub value: ScopeValue,
    pub messages: u64,
    pub last_seq: i64,
    /// Bytes of its files. `added`: bytes of the chunks that were new with it.
    pub length: u64,
    pub added: u64,
    pub machine: String,
    /// True if the user pinned it.
    pub kept: bool,
    pub taken_at: i64,
    /// Time and reason of its expiry. The manifest is then gone.
    pub expired: Option<(i64, String)>,
    /// Bytes of the manifest as written; read by [`Snapshot::manifest`].
    bytes: Option<Vec<u8>>,
    digest: [u8; 32],
}

/// A captured session whose chunks are stored and that is about to become a snapshot.
#[derive(Debug, Clone, Default)]
pub struct CapturedSession {
    pub files: Vec<ManifestFile>,
    pub key: Option<String>,
    /// Bytes of the new chunks.
    pub added: u64,
    /// Chunks that are still to be written, together with the row.
    pub pending: Vec<StoredChunk>,
    /// Snapshot whose chunks it relies on.
    pub based_on: Option<SnapshotId>,
    /// Time at which it first relied on a chunk.
    pub began: Option<i64>,
}

/// Location of a chunk's bytes.
#[derive(Debug)]
pub(crate) enum Body {
    Here(Vec<u8>),
    /// In an object store, as this copy.
    Object {
        copy: u32,
        place: String,
    },
}

/// A chunk in its stored form.
#[derive(Debug, Clone)]
pub struct StoredChunk {
    pub name: [u8; 32],
    pub length: u32,
    pub body: Vec<u8>,
}

/// Reason for rejecting a manifest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    #[error("it was swept")]
    Expired,
    #[error("its manifest is not what was written")]
    Damaged,
    #[error("it was written by a newer rejoin")]
    Newer,
}

impl Manifest {
    /// Removes everything that was added after the confirmed state. `None` if the confirmed part is
    /// incomplete.
    #[must_use]
    pub fn cut_back(mut self) -> Option<Self> {
        let mark = self.confirmed.files.first()?;
        let main = self.files.first_mut()?;
        if main.length < mark.length {
            return None;
        }
        let mut before = 0;
        main.chunks.0.retain(|at| {
            let needed = before < mark.length;
            before += u64::from(at.length);
            needed
        });
        main.length = mark.length;
        main.hash.clone_from(&mark.hash);
        Some(self)
    }
}

impl Snapshot {
    /// Reads the manifest. Fails if it expired, differs from the bytes written, or has a newer
    /// format.
    pub fn manifest(&self) -> std::result::Result<Manifest, Unusable> {
        let bytes = self.bytes.as_ref().ok_or(Unusable::Expired)?;
        if *blake3::hash(bytes).as_bytes() != self.digest {
            return Err(Unusable::Damaged);
        }
        let json = zstd::bulk::decompress(bytes, LONGEST).map_err(|_| Unusable::Damaged)?;
        let value: serde_json::Value =
            serde_json::from_slice(&json).map_err(|_| Unusable::Damaged)?;
        match value.get("format").and_then(serde_json::Value::as_u64) {
            Some(format) if format > u64::from(FORMAT) => return Err(Unusable::Newer),
            Some(_) => {}
            None => return Err(Unusable::Damaged),
        }
        let manifest: Manifest = serde_json::from_value(value).map_err(|_| Unusable::Damaged)?;
        let seen = &manifest.confirmed;
        let row = (&self.agent, &self.session, self.value.0, self.messages);
        let said = (
            &manifest.agent,
            &manifest.session,
            seen.value,
            seen.messages,
        );
        let fits = |file: &ManifestFile| file.chunks.length() == file.length;
        if row != said || !manifest.files.iter().all(fits) {
            return Err(Unusable::Damaged);
        }
        Ok(manifest)
    }

    pub fn seen(&self, manifest: &Manifest) -> SeenPrefix {
        SeenPrefix {
            value: self.value,
            messages: self.messages,
            summarised: manifest.confirmed.summarised(),
            last_seq: self.last_seq,
            last: manifest.confirmed.last,
        }
    }

    /// Returns the pin as it was then.
    pub fn pin(&self, manifest: &Manifest, state: &PinState, failures: u32) -> Pin {
        let confirmed = manifest.confirmed.clone();
        let mut pin = confirmed.of(self.pin, &self.agent, &self.session, state, failures);
        // Positions change when histories are merged, and only the row is updated.
        pin.seen = self.seen(manifest);
        pin
    }
}

/// Parameters of a new snapshot.
#[derive(Debug, Clone, Copy)]
pub struct NewSnapshot<'a> {
    pub id: SnapshotId,
    pub conversation: ConversationId,
    /// Session as confirmed.
    pub pin: &'a Pin,
    pub captured: &'a CapturedSession,
    pub open: bool,
    pub now: i64,
}

topic! {
    /// Snapshots of sessions, and the rows of their chunks.
    Snapshots, snapshots
}

impl Snapshots<'_, Tx> {
    /// Adds a snapshot. Returns false if chunks it relies on were swept or found missing meanwhile.
    pub async fn add(&mut self, new: &NewSnapshot<'_>) -> Result<bool> {
        let NewSnapshot { pin, captured, .. } = new;
        // The machine may have slept while another one swept.
        if captured
            .began
            .is_some_and(|began| new.now - began > GRACE / 2)
        {
            return Ok(false);
        }
        if let Some(base) = captured.based_on {
            // Locks the row until this is committed: a process that expires it waits, and sees the
            // new snapshot.
            let sql = "update snapshots set kept = kept where id = $1 and manifest is not null";
            if self.0.run(sql, vals![base.uuid()]).await? == 0 {
                return Ok(false);
            }
        }
        self.put_chunks(&captured.pending, new.now).await?;
        // Independent of the clocks of sweeping processes: every named chunk must exist.
        let files = captured.files.iter();
        let named: Vec<ChunkRef> = files.flat_map(|file| file.chunks.0.clone()).collect();
        if !self.0.all_there(&named).await? {
            return Ok(false);
        }
        let manifest = Manifest {
            format: FORMAT,
            agent: pin.agent.clone(),
            session: pin.session.clone(),
            key: captured.key.clone(),
            files: captured.files.clone(),
            confirmed: Confirmed::from(*pin),
        };
        let json = serde_json::to_vec(&manifest)?;
        let bytes = zstd::bulk::compress(&json, 3).map_err(|e| Error::Foreign(e.to_string()))?;
        let digest = *blake3::hash(&bytes).as_bytes();
        let length: u64 = captured.files.iter().map(|file| file.length).sum();
        let added = captured.added + bytes.len() as u64;
        let sql = "insert into snapshots (id, conversation_id, pin_id, agent, session_id, state, value, messages, last_seq,
                length, added, manifest, digest, machine, kept, taken_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 0, $15)";
        let values = vals![
            new.id.uuid(),
            new.conversation.uuid(),
            pin.id.uuid(),
            pin.agent.as_str(),
            pin.session.as_str(),
            if new.open { "open" } else { "confirmed" },
            pin.seen.value.0,
            pin.seen.messages as i64,
            pin.seen.last_seq,
            length as i64,
            added as i64,
            bytes,
            digest,
            pin.machine.as_str(),
            new.now
        ];
        self.0.run(sql, values).await?;
        Ok(true)
    }

    /// Deletes snapshots of running turns whose state a confirmed snapshot also holds. `all`:
    /// deletes them in any case.
    pub async fn forget_open(&mut self, pin: PinId, all: bool) -> Result<()> {
        let sql = "delete from snapshots where pin_id = $1 and state = 'open' and kept = 0
            and ($2 = 1 or exists (select 1 from snapshots other
                where other.pin_id = $1 and other.state = 'confirmed' and other.manifest is not null
                and other.value = snapshots.value))";
        self.0.run(sql, vals![pin.uuid(), i64::from(all)]).await?;
        Ok(())
    }

    /// Stores chunks, each once. An existing chunk is marked as used now.
    pub(crate) async fn put_chunks(&mut self, chunks: &[StoredChunk], now: i64) -> Result<()> {
        for chunk in chunks {
            let body = chunk.body.clone();
            self.put_chunk(&chunk.name, chunk.length, body.len(), Body::Here(body), now)
                .await?;
        }
        Ok(())
    }

    pub(crate) async fn put_chunk(
        &mut self,
        name: &[u8; 32],
        length: u32,
        stored: usize,
        body: Body,
        now: i64,
    ) -> Result<()> {
        let sql = "insert into chunks (name, place, length, stored, body, copy, at)
            values ($1, $2, $3, $4, $5, $6, $7)
            on conflict (name, place) do update set at = excluded.at";
        let (place, body, copy) = match body {
            Body::Here(body) => (IN_DATABASE.to_owned(), Some(body), None),
            Body::Object { copy, place } => (place, None, Some(i64::from(copy))),
        };
        let (length, stored) = (i64::from(length), stored as i64);
        let values = vals![*name, place, length, stored, body, copy, now];
        self.0.run(sql, values).await?;
        Ok(())
    }

    /// Stores the reason why the newest confirmed state is not saved. `None`: it is saved.
    pub async fn set_unsaved(&mut self, pin: PinId, why: Option<&str>) -> Result<()> {
        let sql = "update pins set unsaved = $2 where id = $1";
        self.0.run(sql, vals![pin.uuid(), why]).await?;
        Ok(())
    }

    /// Pins or unpins a snapshot. Returns false if it does not exist or has expired.
    pub async fn keep(&mut self, id: SnapshotId, kept: bool) -> Result<bool> {
        let sql = "update snapshots set kept = $2 where id = $1 and manifest is not null";
        Ok(self.0.run(sql, vals![id.uuid(), i64::from(kept)]).await? > 0)
    }

    /// Deletes the manifest of a snapshot and keeps the row. Returns false if it has expired
    /// already, does not exist, or is pinned.
    pub async fn expire(&mut self, id: SnapshotId, why: &str, now: i64) -> Result<bool> {
        let sql = "update snapshots set manifest = null, expired_at = $2, expired_why = $3
            where id = $1 and manifest is not null and kept = 0";
        Ok(self.0.run(sql, vals![id.uuid(), now, why]).await? > 0)
    }

    /// Deletes a chunk that was not used since `before`. The caller has checked that no manifest
    /// names it.
    pub(crate) async fn remove_chunk(
        &mut self,
        name: &[u8; 32],
        place: &str,
        before: i64,
    ) -> Result<bool> {
        let sql = "delete from chunks where name = $1 and place = $2 and at < $3";
        Ok(self.0.run(sql, vals![*name, place, before]).await? > 0)
    }
}

impl<C: Ask> Snapshots<'_, C> {
    pub async fn get(&mut self, id: SnapshotId) -> Result<Option<Snapshot>> {
        snapshot(self.0, id).await
    }

    /// Lists the snapshots of one session, newest first, including expired ones.
    pub async fn of_pin(&mut self, pin: PinId, most: i64) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots where pin_id = $1 order by id desc limit $2";
        let found = rows(self.0, sql, vals![pin.uuid(), most]).await?;
        found.iter().map(read).collect()
    }

    /// Lists the snapshots of one conversation, newest first, including expired ones.
    pub async fn of(&mut self, c: ConversationId) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots where conversation_id = $1 order by id desc";
        let found = rows(self.0, sql, vals![c.uuid()]).await?;
        found.iter().map(read).collect()
    }

    /// Lists all snapshots after `after`, oldest first, one page at a time.
    pub async fn after(&mut self, after: Option<SnapshotId>, most: i64) -> Result<Vec<Snapshot>> {
        let sql = "select * from snapshots where id > $1 order by id limit $2";
        let found = rows(
            self.0,
            sql,
            vals![after.map_or(uuid::Uuid::nil(), SnapshotId::uuid), most],
        )
        .await?;
        found.iter().map(read).collect()
    }

    /// Lists the confirmed sessions that are in no snapshot, with the reason.
    pub async fn unsaved(&mut self) -> Result<Vec<(ConversationId, PinId, String)>> {
        let sql = "select id, conversation_id, unsaved from pins where unsaved is not null and state = 'confirmed' order by id desc";
        let found = rows(self.0, sql, vals![]).await?;
        let one = |row: &Row| {
            let c = ConversationId::from_uuid(row.id("conversation_id")?);
            Ok((c, PinId::from_uuid(row.id("id")?), row.text("unsaved")?))
        };
        found.iter().map(one).collect()
    }
}

pub(crate) async fn read_all(
    at: &mut impl Ask,
    sql: &'static str,
    values: Vec<crate::db::SqlValue>,
) -> Result<Vec<Snapshot>> {
    rows(at, sql, values).await?.iter().map(read).collect()
}

async fn snapshot(at: &mut impl Ask, id: SnapshotId) -> Result<Option<Snapshot>> {
    let row = one(
        at,
        "select * from snapshots where id = $1",
        vals![id.uuid()],
    )
    .await?;
    row.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<Snapshot> {
    let foreign = |e: &dyn std::fmt::Display| Error::Foreign(e.to_string());
    let expired = row
        .maybe_int("expired_at")?
        .zip(row.maybe_text("expired_why")?);
    Ok(Snapshot {
        id: SnapshotId::from_uuid(row.id("id")?),
        conversation: ConversationId::from_uuid(row.id("conversation_id")?),
        pin: PinId::from_uuid(row.id("pin_id")?),
        agent: AgentName::new(row.text("agent")?).map_err(|e| foreign(&e))?,
        session: SessionId::new(row.text("session_id")?).map_err(|e| foreign(&e))?,
        open: row.text("state")? == "open",
        value: ScopeValue(row.hash("value")?),
        messages: row.int("messages")? as u64,
        last_seq: row.int("last_seq")?,
        length: row.int("length")? as u64,
        added: row.int("added")? as u64,
        machine: row.text("machine")?,
        kept: row.int("kept")? != 0,
        taken_at: row.int("taken_at")?,
        expired,
        bytes: row.maybe_bytes("manifest")?,
        digest: row.hash("digest")?,
    })
}

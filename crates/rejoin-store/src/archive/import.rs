//! Imports a checked archive into the store: chunks first, then all rows in one transaction.

mod permissions;
mod rows;

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::Read;

use rejoin_core::{
    ConversationId, EventBody, Handle, MessageId, PermissionMode, PinId, ScopeValue, TurnId,
};
use uuid::Uuid;

use super::check::{open_chunk, row};
use super::frames::{ArchiveReader, Kind};
use super::rows::ConversationRow;
use super::{ArchiveError, BadArchive, damaged};
use crate::connections::Tx;
use crate::conversations::AgentSettings;
use crate::db::{rows, topic, vals};
use crate::error::Error;
use crate::vault::Vault;

type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// Bytes of chunks that are written together.
const BATCH: usize = 4 * 1024 * 1024;

/// Parameters of an import.
#[derive(Debug, Clone)]
pub struct ImportParams {
    /// State of the existing conversation that the archive replaces, with the permissions that the caller
    /// was compared with. The import fails if they differ. `None`: it does not exist here.
    pub over: Option<(HistoryEnd, PermissionMode, BTreeMap<String, AgentSettings>)>,
    /// Set to import a copy under other ids.
    pub copy: Option<IdMapping>,
    /// Namespace of the imported conversation.
    pub namespace: String,
    /// Key of the imported conversation.
    pub key: Option<String>,
    pub workdir: String,
    pub permission: PermissionMode,
    /// End of the archive that was checked. The import fails if it differs.
    pub end: [u8; 32],
    pub now: i64,
    /// Called with the name of each step reached.
    pub reached: fn(&str),
}

/// End of a conversation's history in this store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryEnd {
    pub last_seq: i64,
    pub value: ScopeValue,
    pub last: Option<MessageId>,
}

/// Maps every id of an archive to another one: deterministic, and with the same timestamp.
#[derive(Debug, Clone, Copy)]
pub struct IdMapping {
    pub conversation: ConversationId,
    pub secret: [u8; 32],
}

/// Result of an import.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Number of sessions that already belong to another conversation here. A copy continues
    /// without them.
    pub sessions_left_out: u64,
    /// Number of agents that had a list of allowed tools in the archive and have none here.
    pub tools_dropped: u64,
}

impl IdMapping {
    fn id(&self, id: Uuid) -> Uuid {
        let hash = blake3::keyed_hash(&self.secret, id.as_bytes());
        let mut bytes = *id.as_bytes();
        // The timestamp stays, and with it the order.
        bytes[6..].copy_from_slice(&hash.as_bytes()[..10]);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid::from_bytes(bytes)
    }
}

impl Vault {
    /// Imports an archive completely. Nothing is visible before the final commit.
    pub async fn import(&self, from: impl Read, arrival: &ImportParams) -> Result<Imported> {
        let mut reader = ArchiveReader::begin(from)?;
        let mut names = HashMap::new();
        let mut batch = vec![];
        let mut bytes = 0;
        let conversation = loop {
            let frame = reader.next()?.ok_or(BadArchive::Truncated)?;
            match frame.kind {
                Kind::Chunk => {
                    let (name, plain) = open_chunk(&frame.bytes)?;
                    bytes += plain.len();
                    batch.push((name, plain));
                    if bytes >= BATCH {
                        self.take_chunks(&mut batch, &mut names, arrival.now)
                            .await?;
                        bytes = 0;
                    }
                }
                Kind::Conversation => {
                    break row::<ConversationRow>(&frame.bytes, "its conversation")?;
                }
                Kind::Header
                | Kind::Message
                | Kind::Version
                | Kind::Turn
                | Kind::Attempt
                | Kind::Pin
                | Kind::Epoch
                | Kind::Change
                | Kind::Snapshot
                | Kind::Totals
                | Kind::End => {}
            }
        };
        self.take_chunks(&mut batch, &mut names, arrival.now)
            .await?;
        (arrival.reached)("import_chunks");
        let mut putting = Putting {
            tx: self.store.begin().await?,
            arrival,
            key: self.sealer.key_id(),
            names,
            c: arrival
                .copy
                .map_or(conversation.id, |copy| copy.conversation),
            permission: arrival.permission,
            workdir: arrival.workdir.clone(),
            message: None,
            turn: None,
            left_out: HashSet::new(),
            imported: Imported::default(),
        };
        putting.conversation(&conversation).await?;
        let mut end = None;
        while let Some(frame) = reader.next()? {
            if frame.kind == Kind::End {
                end = <[u8; 32]>::try_from(frame.bytes).ok();
                break;
            }
            putting.frame(frame.kind, &frame.bytes).await?;
        }
        if end != Some(arrival.end) {
            return Err(damaged("it changed while it was read").into());
        }
        putting.finish().await
    }

    /// Stores a batch of chunks and records the names they have in this store.
    async fn take_chunks(
        &self,
        batch: &mut Vec<([u8; 32], Vec<u8>)>,
        names: &mut HashMap<[u8; 32], [u8; 32]>,
        now: i64,
    ) -> Result<()> {
        let (theirs, plain): (Vec<_>, Vec<_>) = batch.drain(..).unzip();
        let ours = self.keep_chunks(plain, now).await?;
        names.extend(theirs.into_iter().zip(ours.iter().map(|at| at.name)));
        Ok(())
    }
}

/// An import in progress.
struct Putting<'a> {
    tx: Tx,
    arrival: &'a ImportParams,
    key: Option<String>,
    names: HashMap<[u8; 32], [u8; 32]>,
    c: ConversationId,
    /// Permission mode and folder of the conversation. They also apply to a retry of its turns.
    permission: PermissionMode,
    workdir: String,
    /// Message that the next versions belong to. `turn`: the turn of the next attempts.
    message: Option<Uuid>,
    turn: Option<Uuid>,
    /// Sessions that belong to another conversation here.
    left_out: HashSet<PinId>,
    imported: Imported,
}

impl Putting<'_> {
    fn id(&self, id: Uuid) -> Uuid {
        match &self.arrival.copy {
            // The nil id stays nil.
            Some(copy) if !id.is_nil() => copy.id(id),
            Some(_) | None => id,
        }
    }

    async fn frame(&mut self, kind: Kind, bytes: &[u8]) -> Result<()> {
        match kind {
            Kind::Message => self.message(row(bytes, "a message")?).await,
            Kind::Version => self.version(row(bytes, "an earlier text")?).await,
            Kind::Turn => self.turn(row(bytes, "a turn")?).await,
            Kind::Attempt => self.attempt(row(bytes, "an attempt")?).await,
            Kind::Pin => self.pin(row(bytes, "a session")?).await,
            Kind::Epoch => self.epoch(row(bytes, "an epoch")?).await,
            // `undo` in a copy does not revert changes of the original.
            Kind::Change if self.arrival.copy.is_some() => Ok(()),
            Kind::Change => self.change(row(bytes, "a change")?).await,
            Kind::Snapshot => self.snapshot(row(bytes, "a snapshot")?).await,
            Kind::Header | Kind::Chunk | Kind::Conversation | Kind::Totals | Kind::End => Ok(()),
        }
    }

    async fn conversation(&mut self, row: &ConversationRow) -> Result<()> {
        let here = self.tx.conversations().get(self.c).await?;
        let Some((end, permission, settings)) = &self.arrival.over else {
            if here.is_some() {
                return Err(faster());
            }
            return self.new_conversation(row).await;
        };
        let mut ours = here.ok_or_else(faster)?;
        if self.tx.turns().is_busy(self.c).await? || ours.opened_by.is_some() {
            return Err(faster());
        }
        if self.tx.imports().history_end(self.c).await? != *end
            || ours.permission != *permission
            || ours.settings != *settings
        {
            return Err(faster());
        }
        // Permissions and folder are those of the existing conversation.
        self.permission = ours.permission;
        self.workdir.clone_from(&ours.workdir);
        let mut theirs = row.settings.clone();
        theirs.retain(|agent, _| !ours.settings.contains_key(agent));
        self.imported.tools_dropped = permissions::settings(&mut theirs);
        ours.settings.extend(theirs);
        ours.title.clone_from(&row.title);
        ours.agent = row.agent.clone();
        ours.scope = row.scope;
        ours.fresh = row.fresh;
        ours.archived_at = None;
        self.tx.conversations().save(&ours).await?;
        self.tx
            .conversations()
            .stamp(self.c, ours.updated_at.max(row.updated_at))
            .await?;
        let sql = "delete from changes where conversation_id = $1";
        self.tx.run(sql, vals![self.c.uuid()]).await?;
        Ok(())
    }

    async fn new_conversation(&mut self, row: &ConversationRow) -> Result<()> {
        let key = self.arrival.key.clone();
        if let Some(key) = &key
            && self
                .tx
                .conversations()
                .by_key(&self.arrival.namespace, key)
                .await?
                .is_some()
        {
            return Err(ArchiveError::KeyTaken(key.clone()));
        }
        let mut settings = row.settings.clone();
        self.imported.tools_dropped = permissions::settings(&mut settings);
        let sql = "insert into conversations (id, handle, key, title, agent, workdir, permission, scope, settings,
                created_at, updated_at, fresh, outside_cost, namespace)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
        let values = vals![
            self.c.uuid(),
            Handle::of(self.c).letters(),
            key,
            row.title.as_str(),
            row.agent.as_str(),
            self.workdir.as_str(),
            self.permission.as_str(),
            row.scope.as_str(),
            serde_json::to_string(&settings).map_err(Error::from)?,
            row.created_at,
            row.updated_at,
            i64::from(row.fresh),
            row.outside_cost,
            self.arrival.namespace.as_str(),
        ];
        self.tx.run(sql, values).await?;
        let created = EventBody::ConversationCreated { parent_id: None };
        self.tx
            .events()
            .add(self.c, TurnId::nil(), self.arrival.now, &[created])
            .await?;
        Ok(())
    }

    /// Recomputes the values from the messages instead of trusting them, checks that no row refers
    /// to another conversation, and commits.
    async fn finish(mut self) -> Result<Imported> {
        self.tx.recompute(self.c, 1).await?;
        let sql = "select 1 as found from turns t join messages m on m.id = t.message_id or m.id = t.reply_id
                where t.conversation_id = $1 and m.conversation_id <> $1
            union all select 1 from messages m join turns t on t.id = m.turn_id
                where m.conversation_id = $1 and t.conversation_id <> $1
            union all select 1 from attempts a join turns t on t.id = a.turn_id join pins p on p.id = a.pin_id
                where t.conversation_id = $1 and p.conversation_id <> $1
            limit 1";
        if !rows(&mut self.tx, sql, vals![self.c.uuid()])
            .await?
            .is_empty()
        {
            return Err(ArchiveError::Elsewhere("a turn of it"));
        }
        (self.arrival.reached)("import_rows");
        self.tx.commit().await?;
        Ok(self.imported)
    }
}

topic! {
    /// State that an import compares and writes.
    Imports, imports
}

impl Imports<'_, Tx> {
    /// Returns the end of a history.
    pub async fn history_end(&mut self, c: ConversationId) -> crate::error::Result<HistoryEnd> {
        let last_seq = self.0.history().last_seq(c).await?;
        Ok(HistoryEnd {
            last_seq,
            value: crate::history::full_value(self.0, c, last_seq).await?,
            last: self.0.messages().id_at(c, last_seq).await?,
        })
    }

    /// Returns the value of a history up to a position, and the message there.
    pub async fn position(
        &mut self,
        c: ConversationId,
        seq: i64,
    ) -> crate::error::Result<(ScopeValue, Option<MessageId>)> {
        Ok((
            crate::history::full_value(self.0, c, seq).await?,
            self.0.messages().id_at(c, seq).await?,
        ))
    }
}

fn faster() -> ArchiveError {
    Error::Conflict("the conversation changed here meanwhile").into()
}

#[cfg(test)]
mod tests {
    use rejoin_core::TurnId;

    use super::*;

    #[test]
    fn another_id_is_as_old_and_always_the_same() {
        let renaming = IdMapping {
            conversation: ConversationId::nil(),
            secret: [7; 32],
        };
        let (early, late) = (
            TurnId::from_parts(5, [255; 10]).uuid(),
            TurnId::from_parts(6, [0; 10]).uuid(),
        );
        assert_ne!(renaming.id(early), early);
        assert_eq!(renaming.id(early), renaming.id(early));
        assert!(renaming.id(early) < renaming.id(late));
        assert_eq!(renaming.id(early).get_version_num(), 7);
        let other = IdMapping {
            secret: [8; 32],
            ..renaming
        };
        assert_ne!(renaming.id(early), other.id(early));
    }
}

//! Out of an archive that was checked, into the store: chunks first, then all rows in one transaction.

mod narrowed;
mod rows;

use std::collections::{HashMap, HashSet};
use std::io::Read;

use rejoin_core::{ConversationId, Handle, MessageId, PermissionMode, PinId, ScopeValue};
use uuid::Uuid;

use super::check::{open_chunk, row};
use super::frames::{ArchiveReader, Kind};
use super::rows::ConversationRow;
use super::{ArchiveError, BadArchive, damaged};
use crate::connections::Tx;
use crate::db::{rows, vals};
use crate::error::Error;
use crate::vault::Vault;

type Result<T, E = ArchiveError> = std::result::Result<T, E>;

/// Bytes of chunks that are written together.
const BATCH: usize = 4 * 1024 * 1024;

/// How an archive arrives.
#[derive(Debug, Clone)]
pub struct Arrival {
    /// What is here already, and is to be taken over; none: nothing is.
    pub over: Option<Here>,
    /// Under other ids.
    pub copy: Option<Renaming>,
    /// Whose it will be.
    pub namespace: String,
    /// The key it gets here.
    pub key: Option<String>,
    pub workdir: String,
    pub permission: PermissionMode,
    /// It must still be the one that was checked.
    pub end: [u8; 32],
    pub now: i64,
    /// Is told how far it came.
    pub reached: fn(&str),
}

/// Where the history of a conversation ends here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Here {
    pub last_seq: i64,
    pub value: ScopeValue,
    pub last: Option<MessageId>,
}

/// Gives everything in an archive another id, always the same for the same, as old as it was.
#[derive(Debug, Clone, Copy)]
pub struct Renaming {
    pub conversation: ConversationId,
    pub secret: [u8; 32],
}

/// What an import came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Imported {
    /// Sessions that belong to another conversation here already: a copy goes on without them.
    pub sessions_left_out: u64,
    /// Agents that had a list of tools where it came from, and have none here.
    pub tools_dropped: u64,
}

impl Renaming {
    fn id(&self, id: Uuid) -> Uuid {
        let hash = blake3::keyed_hash(&self.secret, id.as_bytes());
        let mut bytes = *id.as_bytes();
        // The time stays, and with it the order.
        bytes[6..].copy_from_slice(&hash.as_bytes()[..10]);
        bytes[6] = bytes[6] & 0x0f | 0x70;
        bytes[8] = bytes[8] & 0x3f | 0x80;
        Uuid::from_bytes(bytes)
    }
}

impl Vault {
    /// Takes it in: all of it, or nothing that anybody could see.
    pub async fn import(&self, from: impl Read, arrival: &Arrival) -> Result<Imported> {
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

    /// Under the names that they have here.
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

/// One import on its way.
struct Putting<'a> {
    tx: Tx,
    arrival: &'a Arrival,
    key: Option<String>,
    names: HashMap<[u8; 32], [u8; 32]>,
    c: ConversationId,
    /// What may be done, and where: also by a turn of it that is run again.
    permission: PermissionMode,
    workdir: String,
    /// To which versions and attempts belong.
    message: Option<Uuid>,
    turn: Option<Uuid>,
    /// Sessions of another conversation here.
    left_out: HashSet<PinId>,
    imported: Imported,
}

impl Putting<'_> {
    fn id(&self, id: Uuid) -> Uuid {
        match &self.arrival.copy {
            // What stands for nothing stands for nothing.
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
            // What was changed in the other one is not taken back in a copy.
            Kind::Change if self.arrival.copy.is_some() => Ok(()),
            Kind::Change => self.change(row(bytes, "a change")?).await,
            Kind::Snapshot => self.snapshot(row(bytes, "a snapshot")?).await,
            Kind::Header | Kind::Chunk | Kind::Conversation | Kind::Totals | Kind::End => Ok(()),
        }
    }

    async fn conversation(&mut self, row: &ConversationRow) -> Result<()> {
        let here = self.tx.conversation(self.c).await?;
        let Some(over) = self.arrival.over else {
            if here.is_some() {
                return Err(faster());
            }
            return self.new_conversation(row).await;
        };
        let mut ours = here.ok_or_else(faster)?;
        if self.tx.is_busy(self.c).await? || ours.opened_by.is_some() {
            return Err(faster());
        }
        if self.tx.here(self.c).await? != over {
            return Err(faster());
        }
        // What it may do and where it works is said here.
        self.permission = ours.permission;
        self.workdir.clone_from(&ours.workdir);
        let mut theirs = row.settings.clone();
        theirs.retain(|agent, _| !ours.settings.contains_key(agent));
        self.imported.tools_dropped = narrowed::settings(&mut theirs);
        ours.settings.extend(theirs);
        ours.title.clone_from(&row.title);
        ours.agent = row.agent.clone();
        ours.scope = row.scope;
        ours.fresh = row.fresh;
        ours.archived_at = None;
        self.tx.keep_conversation(&ours).await?;
        self.tx
            .stamp_conversation(self.c, ours.updated_at.max(row.updated_at))
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
                .conversation_by_key(&self.arrival.namespace, key)
                .await?
                .is_some()
        {
            return Err(ArchiveError::KeyTaken(key.clone()));
        }
        let mut settings = row.settings.clone();
        self.imported.tools_dropped = narrowed::settings(&mut settings);
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
        Ok(())
    }

    /// The values are folded from what was said, not taken on trust; and nothing in it leads into
    /// another conversation.
    async fn finish(mut self) -> Result<Imported> {
        self.tx.refold(self.c, 1).await?;
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

impl Tx {
    /// Where a history ends.
    pub async fn here(&mut self, c: ConversationId) -> crate::error::Result<Here> {
        let last_seq = self.last_seq(c).await?;
        Ok(Here {
            last_seq,
            value: crate::history::full_value(self, c, last_seq).await?,
            last: self.id_at(c, last_seq).await?,
        })
    }

    /// The value of a history through one place, and the message there.
    pub async fn place(
        &mut self,
        c: ConversationId,
        seq: i64,
    ) -> crate::error::Result<(ScopeValue, Option<MessageId>)> {
        Ok((
            crate::history::full_value(self, c, seq).await?,
            self.id_at(c, seq).await?,
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
        let renaming = Renaming {
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
        let other = Renaming {
            secret: [8; 32],
            ..renaming
        };
        assert_ne!(renaming.id(early), other.id(early));
    }
}

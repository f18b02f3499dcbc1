//! Out of an archive that was checked, into the store: chunks first, then all rows in one transaction.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use rejoin_core::{
    ConversationId, Handle, MessageId, PermissionMode, PinId, ScopeValue, SessionId,
};
use serde_json::Value;
use uuid::Uuid;

use super::check::{open_chunk, row, said};
use super::frames::{ArchiveReader, Kind};
use super::rows::{
    AttemptRow, ChangeRow, ConversationRow, EpochRow, MessageRow, PinRow, SnapshotRow, TurnRow,
    VersionRow,
};
use super::take::renamed;
use super::{ArchiveError, BadArchive, damaged};
use crate::connections::Tx;
use crate::db::{one, rows, vals};
use crate::error::Error;
use crate::messages::{role_word, state_word};
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
        for (agent, own) in &row.settings {
            let known = ours.settings.entry(agent.clone());
            known.or_insert_with(|| own.clone());
        }
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
            && self.tx.conversation_by_key(key).await?.is_some()
        {
            return Err(ArchiveError::KeyTaken(key.clone()));
        }
        let sql = "insert into conversations (id, handle, key, title, agent, workdir, permission, scope, settings,
                created_at, updated_at, fresh, outside_cost)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)";
        let values = vals![
            self.c.uuid(),
            Handle::of(self.c).letters(),
            key,
            row.title.as_str(),
            row.agent.as_str(),
            self.arrival.workdir.as_str(),
            self.arrival.permission.as_str(),
            row.scope.as_str(),
            serde_json::to_string(&row.settings).map_err(Error::from)?,
            row.created_at,
            row.updated_at,
            i64::from(row.fresh),
            row.outside_cost,
        ];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    async fn message(&mut self, row: MessageRow) -> Result<()> {
        let id = self.id(row.id.uuid());
        let turn = row.turn.map_or(Uuid::nil(), |turn| self.id(turn.uuid()));
        // A copy has the root of what it was copied of, and so the same values.
        let root = row.root.or(self.arrival.copy.map(|_| row.id));
        let sql = "insert into messages (id, conversation_id, turn_id, seq, role, agent, text, attachments, state, origin, edited,
                trail, removed_at, created_at, root, digest)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
            on conflict (id) do update set turn_id = excluded.turn_id, seq = excluded.seq, text = excluded.text,
                state = excluded.state, edited = excluded.edited, trail = excluded.trail,
                removed_at = excluded.removed_at, root = excluded.root, digest = excluded.digest
            where messages.conversation_id = excluded.conversation_id";
        let mut values = vals![
            id,
            self.c.uuid(),
            turn,
            row.seq,
            role_word(row.role),
            row.agent.as_ref().map(rejoin_core::AgentName::as_str),
            row.text.as_str(),
            serde_json::to_string(&row.attachments).map_err(Error::from)?,
            state_word(row.state),
            row.origin.as_str(),
            i64::from(row.edited),
            serde_json::to_string(&row.trail).map_err(Error::from)?,
            row.removed_at,
            row.created_at,
            root.map(MessageId::uuid),
        ];
        values.push(said(row).digest().0.into());
        self.tx.must(sql, values, ELSEWHERE).await?;
        let sql = "delete from versions where message_id = $1";
        self.tx.run(sql, vals![id]).await?;
        self.message = Some(id);
        Ok(())
    }

    async fn version(&mut self, row: VersionRow) -> Result<()> {
        let sql = "insert into versions (message_id, n, text, replaced_at) values ($1, $2, $3, $4)";
        let values = vals![self.message, row.n, row.text, row.replaced_at];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    async fn turn(&mut self, row: TurnRow) -> Result<()> {
        let id = self.id(row.id.uuid());
        // A copy is not the turn that the key asked for.
        let key = row.client_key.filter(|_| self.arrival.copy.is_none());
        if let Some(key) = &key
            && let Some(other) = self.tx.turn_by_key(key).await?
            && other.id.uuid() != id
        {
            return Err(ArchiveError::Elsewhere("its idempotency key"));
        }
        let sql = "insert into turns (id, conversation_id, message_id, reply_id, agent, status, request, client_key, fence, cancel,
                verdict, reason, record, model, usage, cost, context, denied, error, saved, machine, summary,
                created_at, started_at, ended_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, 1, 0, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)
            on conflict (id) do update set reply_id = excluded.reply_id, status = excluded.status
            where turns.conversation_id = excluded.conversation_id";
        let text = |value: Option<String>| value;
        let json = |value: Option<serde_json::Result<String>>| value.transpose();
        let values = vals![
            id,
            self.c.uuid(),
            self.id(row.message.uuid()),
            row.reply.map(|reply| self.id(reply.uuid())),
            row.agent.as_str(),
            row.status.as_str(),
            row.request.to_string(),
            text(key),
            text(row.verdict),
            text(row.reason),
            serde_json::to_string(&row.record).map_err(Error::from)?,
            text(row.model),
            json(row.usage.as_ref().map(serde_json::to_string)).map_err(Error::from)?,
            row.cost,
            json(row.context.as_ref().map(serde_json::to_string)).map_err(Error::from)?,
            row.denied.to_string(),
            json(row.error.as_ref().map(serde_json::to_string)).map_err(Error::from)?,
            row.saved.as_str(),
            row.machine.as_str(),
            row.summary.as_str(),
            row.created_at,
            row.started_at,
            row.ended_at,
        ];
        self.tx.must(sql, values, ELSEWHERE).await?;
        let sql = "delete from attempts where turn_id = $1";
        self.tx.run(sql, vals![id]).await?;
        self.turn = Some(id);
        Ok(())
    }

    async fn attempt(&mut self, row: AttemptRow) -> Result<()> {
        let sql = "insert into attempts (turn_id, n, verdict, reason, status, session_id, pin_id, prompt_id, plan, spool)
            values ($1, $2, $3, $4, $5, $6, $7, $8, '{}', 0)";
        let values = vals![
            self.turn,
            row.n,
            row.verdict,
            row.reason,
            row.status,
            row.session,
            self.id(row.pin.uuid()),
            row.prompt,
        ];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    async fn pin(&mut self, row: PinRow) -> Result<()> {
        let id = self.id(row.id.uuid());
        if self.is_taken(&row.session, row.agent.as_str(), id).await? {
            if self.arrival.copy.is_none() {
                return Err(ArchiveError::Elsewhere("a session of it"));
            }
            // Two conversations never write to one session.
            self.left_out.insert(row.id);
            self.imported.sessions_left_out += 1;
            return Ok(());
        }
        let sql = "insert into pins (id, conversation_id, agent, session_id, state, retired_why, confirmed, failures, created_at, updated_at)
            values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
            on conflict (id) do update set state = excluded.state, open_turn = null, retired_why = excluded.retired_why,
                confirmed = excluded.confirmed, failures = excluded.failures, updated_at = excluded.updated_at
            where pins.conversation_id = excluded.conversation_id";
        let state = match row.retired_why {
            Some(_) => "retired",
            None => "confirmed",
        };
        let values = vals![
            id,
            self.c.uuid(),
            row.agent.as_str(),
            row.session.as_str(),
            state,
            row.retired_why,
            row.confirmed.map(|confirmed| confirmed.to_string()),
            i64::from(row.failures),
            row.created_at,
            row.updated_at,
        ];
        self.tx.must(sql, values, ELSEWHERE).await?;
        Ok(())
    }

    async fn is_taken(&mut self, session: &SessionId, agent: &str, id: Uuid) -> Result<bool> {
        let sql = "select id from pins where agent = $1 and session_id = $2";
        let found = one(&mut self.tx, sql, vals![agent, session.as_str()]).await?;
        Ok(match found {
            Some(row) => row.id("id")? != id,
            None => false,
        })
    }

    async fn epoch(&mut self, row: EpochRow) -> Result<()> {
        let sql = "insert into epochs (conversation_id, agent, epoch) values ($1, $2, $3)
            on conflict (conversation_id, agent) do update
                set epoch = case when epochs.epoch > excluded.epoch then epochs.epoch else excluded.epoch end";
        let values = vals![self.c.uuid(), row.agent.as_str(), row.epoch];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    /// Whoever takes it back must not reach into another conversation.
    async fn change(&mut self, row: ChangeRow) -> Result<()> {
        let mut ids = vec![];
        named_in(&row.body, &mut ids);
        for id in ids {
            let sql = "select 1 as found from messages where id = $1 and conversation_id <> $2
                union all select 1 from pins where id = $1 and conversation_id <> $2
                union all select 1 from turns where id = $1 and conversation_id <> $2
                union all select 1 from conversations where id = $1 and id <> $2";
            if one(&mut self.tx, sql, vals![id, self.c.uuid()])
                .await?
                .is_some()
            {
                return Err(ArchiveError::Elsewhere("what was changed in it"));
            }
        }
        let sql = "insert into changes (conversation_id, kind, body, undone_at, created_at)
            values ($1, $2, $3, $4, $5)";
        let (body, undone) = (row.body.to_string(), row.undone_at);
        let values = vals![self.c.uuid(), row.kind, body, undone, row.created_at];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    async fn snapshot(&mut self, row: SnapshotRow) -> Result<()> {
        if self.left_out.contains(&row.pin) {
            return Ok(());
        }
        let mut manifest = row.manifest;
        manifest.key.clone_from(&self.key);
        for file in &mut manifest.files {
            file.chunks = renamed(&file.chunks, |name| self.names.get(name).copied())?;
        }
        let json = serde_json::to_vec(&manifest).map_err(Error::from)?;
        let bytes = zstd::bulk::compress(&json, 3).map_err(|e| Error::Foreign(e.to_string()))?;
        let digest = *blake3::hash(&bytes).as_bytes();
        let length: u64 = manifest.files.iter().map(|file| file.length).sum();
        let sql = "insert into snapshots (id, conversation_id, pin_id, agent, session_id, state, value, messages, last_seq,
                length, added, manifest, digest, machine, kept, taken_at)
            values ($1, $2, $3, $4, $5, 'confirmed', $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
            on conflict (id) do update set manifest = excluded.manifest, digest = excluded.digest,
                last_seq = excluded.last_seq, expired_at = null, expired_why = null
            where snapshots.conversation_id = excluded.conversation_id";
        let values = vals![
            self.id(row.id.uuid()),
            self.c.uuid(),
            self.id(row.pin.uuid()),
            manifest.agent.as_str(),
            manifest.session.as_str(),
            manifest.confirmed.value,
            manifest.confirmed.messages as i64,
            row.last_seq,
            length as i64,
            bytes.len() as i64,
            bytes,
            digest,
            manifest.confirmed.machine.as_str(),
            i64::from(row.kept),
            row.taken_at,
        ];
        self.tx.must(sql, values, ELSEWHERE).await?;
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

const ELSEWHERE: &str = "a part of it belongs to another conversation here";

fn faster() -> ArchiveError {
    Error::Conflict("the conversation changed here meanwhile").into()
}

/// Every id that a change names.
fn named_in(value: &Value, ids: &mut Vec<Uuid>) {
    match value {
        Value::String(text) => ids.extend(Uuid::try_parse(text)),
        Value::Array(all) => all.iter().for_each(|value| named_in(value, ids)),
        Value::Object(all) => all.values().for_each(|value| named_in(value, ids)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
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

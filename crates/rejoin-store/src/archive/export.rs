//! Exports a conversation from the store into an archive.

mod selection;

use std::collections::HashMap;
use std::io::Write;

use rejoin_core::{AgentName, ConversationId, MessageId, MessageState, PinId, Scope, TurnId};
use uuid::Uuid;

use super::frames::{ArchiveWriter, Kind};
use super::rows::{
    AttemptRow, ChainRow, ChangeRow, ConversationRow, EpochRow, Header, MessageRow, PinRow,
    SnapshotRow, Totals, TurnRow, VersionRow,
};
use super::{ArchiveError, damaged};
use crate::chunks::{ChunkList, ChunkRef};
use crate::connections::Read;
use crate::db::{Row, one, rows, vals};
use crate::error::{Error, Result};
use crate::messages;
use crate::snapshots::{Manifest, Snapshot};
use crate::vault::{ChunkError, Vault};

/// Selection of snapshots for an export.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SnapshotSelection {
    All,
    /// Snapshots that the next turn could need, and those that the user pinned. This set grows
    /// neither with every turn nor with every new session.
    Newest,
}

/// Result of an export.
#[derive(Debug, Clone)]
pub struct Exported {
    pub totals: Totals,
    /// Bytes of the archive.
    pub length: u64,
    /// Hash that identifies the whole archive.
    pub end: [u8; 32],
    /// Number of queued messages. They run in this store and nowhere else.
    pub queued: u64,
    /// Reasons for snapshots that cannot be read any more.
    pub unreadable: Vec<String>,
}

impl Vault {
    /// Writes a conversation of which no turn runs. If it changes meanwhile, the archive gets no
    /// end and is invalid.
    pub async fn export<W: Write>(
        &self,
        header: &Header,
        which: SnapshotSelection,
        to: W,
        reached: fn(&str),
    ) -> Result<Exported, ArchiveError> {
        let c = header.conversation;
        let mut out = ArchiveWriter::begin(to).map_err(ArchiveError::Write)?;
        let put = ArchiveError::Write;
        out.row(Kind::Header, header).map_err(put)?;
        let stamp = self.stamp(c).await?;
        let mut totals = Totals::default();
        let mut unreadable = vec![];
        let mut names = HashMap::new();
        let mut snapshots = vec![];
        let ids = self.store.read().await?.travelling(c, which).await?;
        for id in ids {
            let found = self.store.read().await?.snapshots().get(id).await?;
            let Some(snapshot) = found.filter(|s| s.expired.is_none() && !s.open) else {
                continue;
            };
            let manifest = match snapshot.manifest() {
                Ok(manifest) => manifest,
                Err(why) => {
                    unreadable.push(why.to_string());
                    continue;
                }
            };
            let written = self.put_chunks_of(&manifest, &mut names, &mut totals, &mut out);
            match written.await {
                Ok(()) => snapshots.push(id),
                Err(Unwritten::Lost(ChunkError::Unavailable(error))) => return Err(error.into()),
                Err(Unwritten::Lost(lost)) => unreadable.push(lost.to_string()),
                Err(Unwritten::Io(error)) => return Err(put(error)),
            }
        }
        reached("export_chunks");
        let mut read = self.store.read().await?;
        let conversation = read.archived_conversation(c).await?;
        let conversation = conversation.ok_or(Error::Conflict("the conversation is gone"))?;
        out.row(Kind::Conversation, &conversation).map_err(put)?;
        for id in read.archived_messages(c).await? {
            let (message, versions) = read.archived_message(id).await?;
            match message.removed_at {
                None => totals.messages += 1,
                Some(_) => totals.removed += 1,
            }
            out.row(Kind::Message, &message).map_err(put)?;
            for version in versions {
                totals.versions += 1;
                out.row(Kind::Version, &version).map_err(put)?;
            }
        }
        let turns = read.archived_turns(c).await?;
        for &id in &turns {
            let (mut turn, attempts) = read.archived_turn(id).await?;
            // A turn whose chain is not in the archive as a whole is exported without it.
            turn.chain = turn.chain.filter(|chain| {
                let there = |turn: TurnId| turns.binary_search(&turn.uuid()).is_ok();
                let first = chain.root.uuid() == id;
                there(chain.root) && chain.parent.map_or(first, there)
            });
            totals.turns += 1;
            out.row(Kind::Turn, &turn).map_err(put)?;
            for attempt in attempts {
                totals.attempts += 1;
                out.row(Kind::Attempt, &attempt).map_err(put)?;
            }
        }
        for pin in read.archived_pins(c).await? {
            totals.sessions += 1;
            out.row(Kind::Pin, &pin).map_err(put)?;
        }
        for epoch in read.archived_epochs(c).await? {
            totals.epochs += 1;
            out.row(Kind::Epoch, &epoch).map_err(put)?;
        }
        for change in read.archived_changes(c).await? {
            totals.changes += 1;
            out.row(Kind::Change, &change).map_err(put)?;
        }
        for id in snapshots {
            let Some(snapshot) = read.snapshots().get(id).await? else {
                continue;
            };
            let row = plain(&snapshot, &names)?;
            totals.snapshots += 1;
            out.row(Kind::Snapshot, &row).map_err(put)?;
        }
        let queued = read.queued_messages(c).await?;
        drop(read);
        out.row(Kind::Totals, &totals).map_err(put)?;
        if self.stamp(c).await? != stamp {
            return Err(Error::Conflict("the conversation changed while it was exported").into());
        }
        reached("export_rows");
        let (_, end, length) = out.end().map_err(put)?;
        Ok(Exported {
            totals,
            length,
            end,
            queued,
            unreadable,
        })
    }

    /// Writes each chunk once, under the hash of its plain bytes, independent of any key.
    async fn put_chunks_of<W: Write>(
        &self,
        manifest: &Manifest,
        names: &mut HashMap<[u8; 32], [u8; 32]>,
        totals: &mut Totals,
        out: &mut ArchiveWriter<W>,
    ) -> std::result::Result<(), Unwritten> {
        for chunk in manifest.files.iter().flat_map(|file| &file.chunks.0) {
            if names.contains_key(&chunk.name) {
                continue;
            }
            let bytes = self.chunk(chunk).await.map_err(Unwritten::Lost)?;
            let name = *blake3::hash(&bytes).as_bytes();
            let mut frame = name.to_vec();
            frame.extend(chunk.length.to_le_bytes());
            frame.extend(zstd::bulk::compress(&bytes, 3).map_err(Unwritten::Io)?);
            out.frame(Kind::Chunk, &frame).map_err(Unwritten::Io)?;
            names.insert(chunk.name, name);
            totals.chunks += 1;
            totals.bytes += u64::from(chunk.length);
        }
        Ok(())
    }

    /// Returns a value that changes with the conversation.
    async fn stamp(&self, c: ConversationId) -> Result<(i64, i64, i64)> {
        let sql = "select updated_at,
                (select count(*) from turns where conversation_id = $1 and status in ('running', 'waiting')) as running,
                (select count(*) from turns where conversation_id = $1) as turns
            from conversations where id = $1";
        let mut read = self.store.read().await?;
        let row = one(&mut read, sql, vals![c.uuid()]).await?;
        let row = row.ok_or(Error::Conflict("the conversation is gone"))?;
        Ok((
            row.int("updated_at")?,
            row.int("running")?,
            row.int("turns")?,
        ))
    }
}

enum Unwritten {
    Lost(ChunkError),
    Io(std::io::Error),
}

/// Converts a snapshot for the archive: chunks that are encrypted here are plain there.
fn plain(
    snapshot: &Snapshot,
    names: &HashMap<[u8; 32], [u8; 32]>,
) -> Result<SnapshotRow, ArchiveError> {
    let manifest = snapshot.manifest();
    let mut manifest = manifest.map_err(|why| Error::Foreign(why.to_string()))?;
    manifest.key = None;
    for file in &mut manifest.files {
        file.chunks = renamed(&file.chunks, |name| names.get(name).copied())?;
    }
    Ok(SnapshotRow {
        id: snapshot.id,
        pin: snapshot.pin,
        last_seq: snapshot.last_seq,
        kept: snapshot.kept,
        taken_at: snapshot.taken_at,
        manifest,
    })
}

/// Renames the chunks of a list.
pub(super) fn renamed(
    chunks: &ChunkList,
    name: impl Fn(&[u8; 32]) -> Option<[u8; 32]>,
) -> Result<ChunkList, ArchiveError> {
    let other = |chunk: &ChunkRef| {
        name(&chunk.name).map(|name| ChunkRef {
            name,
            length: chunk.length,
        })
    };
    let all: Option<Vec<ChunkRef>> = chunks.0.iter().map(other).collect();
    let all = all.ok_or_else(|| damaged("a session names a chunk that is not in it"))?;
    Ok(ChunkList(all))
}

impl Read {
    async fn archived_conversation(
        &mut self,
        c: ConversationId,
    ) -> Result<Option<ConversationRow>> {
        let sql = "select * from conversations where id = $1";
        let Some(row) = one(self, sql, vals![c.uuid()]).await? else {
            return Ok(None);
        };
        Ok(Some(ConversationRow {
            id: c,
            key: row.maybe_text("key")?,
            title: row.text("title")?,
            agent: agent(&row)?,
            workdir: row.text("workdir")?,
            permission: row.text("permission")?,
            scope: match row.text("scope")?.as_str() {
                "agent" => Scope::Agent,
                _ => Scope::Full,
            },
            settings: row.json("settings")?,
            fresh: row.int("fresh")? != 0,
            outside_cost: row.maybe_int("outside_cost")?,
            created_at: row.int("created_at")?,
            updated_at: row.int("updated_at")?,
        }))
    }

    /// Returns the messages of the history in order, then removed ones.
    async fn archived_messages(&mut self, c: ConversationId) -> Result<Vec<Uuid>> {
        let sql = "select id from messages where conversation_id = $1 and seq is not null
            order by removed_at is not null, case when removed_at is null then seq end, id";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        found.iter().map(|row| row.id("id")).collect()
    }

    async fn archived_message(&mut self, id: Uuid) -> Result<(MessageRow, Vec<VersionRow>)> {
        let sql = "select m.*, t.id as own_turn from messages m
            left join turns t on t.id = m.turn_id and t.conversation_id = m.conversation_id
                and t.status not in ('queued', 'running', 'waiting')
            where m.id = $1";
        let row = one(self, sql, vals![id]).await?.ok_or_else(gone)?;
        let stored = messages::read(&row)?;
        let message = stored.message;
        let archived = MessageRow {
            id: message.id,
            turn: row.maybe_id("own_turn")?.map(TurnId::from_uuid),
            seq: message.seq,
            role: message.role,
            agent: message.agent,
            text: message.text,
            attachments: message.attachments,
            state: match message.state {
                // A queued message with a position waits in this store only.
                MessageState::Queued | MessageState::Unanswered => MessageState::Unanswered,
                MessageState::Ok => MessageState::Ok,
            },
            origin: stored.origin,
            edited: stored.edited,
            trail: message.trail,
            root: row.maybe_id("root")?.map(MessageId::from_uuid),
            removed_at: row.maybe_int("removed_at")?,
            created_at: stored.created_at,
        };
        let sql = "select n, text, replaced_at from versions where message_id = $1 order by n";
        let versions = rows(self, sql, vals![id]).await?;
        let version = |row: &Row| {
            Ok(VersionRow {
                n: row.int("n")?,
                text: row.text("text")?,
                replaced_at: row.int("replaced_at")?,
            })
        };
        let versions: Result<Vec<_>> = versions.iter().map(version).collect();
        Ok((archived, versions?))
    }

    async fn archived_turns(&mut self, c: ConversationId) -> Result<Vec<Uuid>> {
        let sql = "select id from turns where conversation_id = $1
            and status not in ('queued', 'running', 'waiting') order by id";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        found.iter().map(|row| row.id("id")).collect()
    }

    async fn archived_turn(&mut self, id: Uuid) -> Result<(TurnRow, Vec<AttemptRow>)> {
        let sql = "select * from turns where id = $1";
        let row = one(self, sql, vals![id]).await?.ok_or_else(gone)?;
        let turn = TurnRow {
            id: TurnId::from_uuid(id),
            message: MessageId::from_uuid(row.id("message_id")?),
            reply: row.maybe_id("reply_id")?.map(MessageId::from_uuid),
            agent: agent(&row)?,
            status: row.text("status")?,
            request: row.json("request")?,
            client_key: row.maybe_text("client_key")?,
            verdict: row.maybe_text("verdict")?,
            reason: row.maybe_text("reason")?,
            record: row.json("record")?,
            model: row.maybe_text("model")?,
            usage: row.maybe_json("usage")?,
            cost: row.maybe_int("cost")?,
            context: row.maybe_json("context")?,
            denied: row.json("denied")?,
            error: row.maybe_json("error")?,
            saved: row.text("saved")?,
            machine: row.text("machine")?,
            summary: row.text("summary")?,
            created_at: row.int("created_at")?,
            started_at: row.maybe_int("started_at")?,
            ended_at: row.maybe_int("ended_at")?,
            chain: chain(&row)?,
        };
        let sql = "select * from attempts where turn_id = $1 order by n";
        let found = rows(self, sql, vals![id]).await?;
        let attempt = |row: &Row| {
            Ok(AttemptRow {
                n: row.int("n")?,
                verdict: row.text("verdict")?,
                reason: row.maybe_text("reason")?,
                status: row.text("status")?,
                session: row.text("session_id")?,
                pin: PinId::from_uuid(row.id("pin_id")?),
                prompt: row.text("prompt_id")?,
            })
        };
        let attempts: Result<Vec<_>> = found.iter().map(attempt).collect();
        Ok((turn, attempts?))
    }

    /// Returns the pins of a conversation. A pin that was never confirmed has no content and is
    /// left out.
    async fn archived_pins(&mut self, c: ConversationId) -> Result<Vec<PinRow>> {
        let sql =
            "select * from pins where conversation_id = $1 and confirmed is not null order by id";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        let pin = |row: &Row| {
            let session = rejoin_core::SessionId::new(row.text("session_id")?);
            let retired = row.text("state")? == "retired";
            Ok(PinRow {
                id: PinId::from_uuid(row.id("id")?),
                agent: agent(row)?,
                session: session.map_err(|e| Error::Foreign(e.to_string()))?,
                retired_why: match row.maybe_text("retired_why")? {
                    why if retired => Some(why.unwrap_or_default()),
                    _ => None,
                },
                confirmed: row.maybe_json("confirmed")?,
                failures: row.int("failures")? as u32,
                created_at: row.int("created_at")?,
                updated_at: row.int("updated_at")?,
            })
        };
        found.iter().map(pin).collect()
    }

    async fn archived_epochs(&mut self, c: ConversationId) -> Result<Vec<EpochRow>> {
        let sql = "select agent, epoch from epochs where conversation_id = $1 order by agent";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        let epoch = |row: &Row| {
            Ok(EpochRow {
                agent: agent(row)?,
                epoch: row.int("epoch")?,
            })
        };
        found.iter().map(epoch).collect()
    }

    /// Returns the changes after the newest merge. The merge cannot be reverted without the other
    /// conversation, and no earlier change without reverting the merge.
    async fn archived_changes(&mut self, c: ConversationId) -> Result<Vec<ChangeRow>> {
        let sql = "select kind, body, undone_at, created_at from changes
            where conversation_id = $1 and id > coalesce((select max(id) from changes
                where conversation_id = $1 and kind = 'merge' and undone_at is null), 0)
            order by id";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        let change = |row: &Row| {
            Ok(ChangeRow {
                kind: row.text("kind")?,
                body: row.json("body")?,
                undone_at: row.maybe_int("undone_at")?,
                created_at: row.int("created_at")?,
            })
        };
        found.iter().map(change).collect()
    }

    async fn queued_messages(&mut self, c: ConversationId) -> Result<u64> {
        let sql =
            "select count(*) as n from turns where conversation_id = $1 and status = 'queued'";
        let row = one(self, sql, vals![c.uuid()]).await?;
        Ok(row.map_or(Ok(0), |row| row.int("n"))? as u64)
    }
}

/// Returns the place of a turn in its chain.
fn chain(row: &Row) -> Result<Option<ChainRow>> {
    let Some(root) = row.maybe_id("chain_id")? else {
        return Ok(None);
    };
    Ok(Some(ChainRow {
        root: TurnId::from_uuid(root),
        parent: row.maybe_id("parent_turn_id")?.map(TurnId::from_uuid),
        tier: row.maybe_text("tier")?,
        trigger: row.maybe_text("started_by")?,
        escalation: row.maybe_json("escalation")?,
    }))
}

fn agent(row: &Row) -> Result<AgentName> {
    AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))
}

fn gone() -> Error {
    Error::Conflict("the conversation changed while it was exported")
}

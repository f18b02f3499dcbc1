//! Writes the rows of an archive to their tables, one by one. Overwrites an existing row if it
//! belongs to the same conversation.

use rejoin_core::{MessageId, SessionId};
use serde_json::Value;
use uuid::Uuid;

use super::super::ArchiveError;
use super::super::check::said;
use super::super::export::renamed;
use super::super::rows::{
    AttemptRow, ChainRow, ChangeRow, EpochRow, MessageRow, PinRow, SnapshotRow, TurnRow, VersionRow,
};
use super::{Putting, Result, permissions};
use crate::db::{one, vals};
use crate::error::Error;
use crate::messages::{role_word, state_word};

const ELSEWHERE: &str = "a part of it belongs to another conversation here";

impl Putting<'_> {
    pub(super) async fn message(&mut self, row: MessageRow) -> Result<()> {
        let id = self.id(row.id.uuid());
        let turn = row.turn.map_or(Uuid::nil(), |turn| self.id(turn.uuid()));
        // A copy keeps the root of its original, and therefore the same values.
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

    pub(super) async fn version(&mut self, row: VersionRow) -> Result<()> {
        let sql = "insert into versions (message_id, n, text, replaced_at) values ($1, $2, $3, $4)";
        let values = vals![self.message, row.n, row.text, row.replaced_at];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    pub(super) async fn turn(&mut self, row: TurnRow) -> Result<()> {
        let id = self.id(row.id.uuid());
        // The key belongs to the original turn, not to a copy.
        let key = row.client_key.filter(|_| self.arrival.copy.is_none());
        if let Some(key) = &key
            && let Some(other) = self.tx.turns().by_key(&self.arrival.namespace, key).await?
            && other.id.uuid() != id
        {
            return Err(ArchiveError::Elsewhere("its idempotency key"));
        }
        let sql = "insert into turns (id, conversation_id, message_id, reply_id, agent, status, request, client_key, fence, cancel,
                verdict, reason, record, model, usage, cost, context, denied, error, saved, machine, summary,
                created_at, started_at, ended_at, tier, parent_turn_id, chain_id, started_by, escalation, namespace)
            values ($1, $2, $3, $4, $5, $6, $7, $8, 1, 0, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
                $24, $25, $26, $27, $28, (select namespace from conversations where id = $2))
            on conflict (id) do update set reply_id = excluded.reply_id, status = excluded.status
            where turns.conversation_id = excluded.conversation_id";
        let request = permissions::request(row.request, self.permission, &self.workdir);
        let chain = row.chain.as_ref();
        let escalation = chain.and_then(|chain| self.escalation(chain));
        let text = |value: Option<String>| value;
        let json = |value: Option<serde_json::Result<String>>| value.transpose();
        let values = vals![
            id,
            self.c.uuid(),
            self.id(row.message.uuid()),
            row.reply.map(|reply| self.id(reply.uuid())),
            row.agent.as_str(),
            row.status.as_str(),
            request.to_string(),
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
            chain.and_then(|chain| chain.tier.clone()),
            chain.and_then(|chain| Some(self.id(chain.parent?.uuid()))),
            chain.map(|chain| self.id(chain.root.uuid())),
            chain.and_then(|chain| chain.trigger.clone()),
            escalation.map(|it| it.to_string()),
        ];
        self.tx.must(sql, values, ELSEWHERE).await?;
        let sql = "delete from attempts where turn_id = $1";
        self.tx.run(sql, vals![id]).await?;
        self.turn = Some(id);
        Ok(())
    }

    /// Returns the stored request for a higher tier, with the id that its next turn has here.
    fn escalation(&self, chain: &ChainRow) -> Option<Value> {
        let mut escalation = chain.escalation.clone()?;
        let next = escalation.get("turn_id").and_then(Value::as_str);
        if let Some(next) = next.and_then(|text| Uuid::try_parse(text).ok()) {
            escalation["turn_id"] = self.id(next).to_string().into();
        }
        Some(escalation)
    }

    pub(super) async fn attempt(&mut self, row: AttemptRow) -> Result<()> {
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

    pub(super) async fn pin(&mut self, row: PinRow) -> Result<()> {
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

    pub(super) async fn epoch(&mut self, row: EpochRow) -> Result<()> {
        let sql = "insert into epochs (conversation_id, agent, epoch) values ($1, $2, $3)
            on conflict (conversation_id, agent) do update
                set epoch = case when epochs.epoch > excluded.epoch then epochs.epoch else excluded.epoch end";
        let values = vals![self.c.uuid(), row.agent.as_str(), row.epoch];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    /// Writes a change. Refuses one whose undo would reach into another conversation.
    pub(super) async fn change(&mut self, row: ChangeRow) -> Result<()> {
        let Some(mut body) = permissions::change(&row) else {
            return Ok(());
        };
        self.forget_foreign_turn(&mut body).await?;
        let mut ids = vec![];
        named_in(&body, &mut ids);
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
        let (body, undone) = (body.to_string(), row.undone_at);
        let values = vals![self.c.uuid(), row.kind, body, undone, row.created_at];
        self.tx.run(sql, values).await?;
        Ok(())
    }

    /// Sets the former turn of a retried message to nil, unless the archive contains that turn.
    /// Messages of a fork refer to their parent's turns, which an archive of the fork leaves out.
    async fn forget_foreign_turn(&mut self, body: &mut Value) -> Result<()> {
        let Some(old) = body.pointer_mut("/retried/old_turn") else {
            return Ok(());
        };
        let sql = "select 1 as found from turns where id = $1 and conversation_id = $2";
        let own = match old.as_str().and_then(|text| Uuid::try_parse(text).ok()) {
            Some(id) => one(&mut self.tx, sql, vals![id, self.c.uuid()]).await?,
            None => None,
        };
        if own.is_none() {
            *old = Uuid::nil().to_string().into();
        }
        Ok(())
    }

    pub(super) async fn snapshot(&mut self, row: SnapshotRow) -> Result<()> {
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
}

/// Collects every id that a change contains.
fn named_in(value: &Value, ids: &mut Vec<Uuid>) {
    match value {
        Value::String(text) => ids.extend(Uuid::try_parse(text)),
        Value::Array(all) => all.iter().for_each(|value| named_in(value, ids)),
        Value::Object(all) => all.values().for_each(|value| named_in(value, ids)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

//! Pins: recorded as `open` before a run, `confirmed` only after the session was read, otherwise
//! cut back or retired.

use rejoin_core::{
    AgentName, Context, ConversationId, FileMark, Folder, MessageId, Micros, Pin, PinId, PinState,
    Runtime, ScopeValue, SeenPrefix, SessionId, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::{Error, Result};
use crate::external::READ_ON;

/// A pin, or a session that was opened and never confirmed.
#[derive(Debug, Clone)]
pub struct StoredPin {
    pub id: PinId,
    pub agent: AgentName,
    pub session: SessionId,
    pub state: PinState,
    /// `None` until it was confirmed once.
    pub pin: Option<Pin>,
}

/// Stored form of a pin. Earlier states are read only on demand.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    now: Confirmed,
    /// Earlier states, oldest first. A session that only grows still begins with each of these.
    #[serde(default)]
    earlier: Vec<Confirmed>,
    /// Files other than the confirmed session whose messages were all taken in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<FileMark>,
}

/// The confirmed state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Confirmed {
    pub(crate) value: [u8; 32],
    pub(crate) messages: u64,
    last_seq: i64,
    pub(crate) last: Option<MessageId>,
    folder: Folder,
    runtime: Runtime,
    pub(crate) machine: String,
    #[serde(default)]
    home: String,
    pub(crate) files: Vec<FileMark>,
    cursor: Option<String>,
    total: Option<Micros>,
    #[serde(default)]
    usage: Option<Usage>,
    context: Option<Context>,
    model: Option<String>,
    provider: Option<String>,
    compacted: bool,
    /// `None`: written by a build that did not count; then all messages count as summarised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summarised: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// Returns true if the value can be read as a pin's state.
pub(crate) fn can_be_read(confirmed: &serde_json::Value) -> bool {
    Kept::deserialize(confirmed).is_ok()
}

/// Number of sessions to search for one whose history fits again (after an undone edit).
pub(crate) const CANDIDATES: i64 = 12;

/// Number of answers back to which a conversation can be forked without a transcript.
const EARLIER: usize = 16;

pub(crate) const CONFIRM: &str = "update pins set state = 'confirmed', open_turn = null, failures = 0, confirmed = $2, updated_at = $3, session_id = $4, unsaved = null
    where id = $1 and state <> 'retired' and not exists
        (select 1 from pins other where other.agent = $5 and other.session_id = $4 and other.id <> $1)";

topic! {
    /// Pins: the sessions of agents, as confirmed.
    Pins, pins
}

impl Pins<'_, Tx> {
    /// Records that a turn is about to start a new session.
    pub async fn open_new(
        &mut self,
        id: PinId,
        c: ConversationId,
        agent: &AgentName,
        session: &SessionId,
        turn: TurnId,
        now: i64,
    ) -> Result<()> {
        let sql = "insert into pins (id, conversation_id, agent, session_id, state, open_turn, failures, created_at, updated_at)
            values ($1, $2, $3, $4, 'open', $5, 0, $6, $6)";
        self.0
            .run(
                sql,
                vals![
                    id.uuid(),
                    c.uuid(),
                    agent.as_str(),
                    session.as_str(),
                    turn.uuid(),
                    now
                ],
            )
            .await?;
        Ok(())
    }

    /// Adds a session that was read and can be resumed, although no turn of ours wrote it.
    pub async fn add_confirmed(&mut self, c: ConversationId, pin: &Pin, now: i64) -> Result<()> {
        let sql = "insert into pins (id, conversation_id, agent, session_id, state, failures, created_at, updated_at)
            values ($1, $2, $3, $4, 'confirmed', 0, $5, $5)";
        let (agent, session) = (pin.agent.as_str(), pin.session.as_str());
        self.0
            .run(sql, vals![pin.id.uuid(), c.uuid(), agent, session, now])
            .await?;
        Ok(())
    }

    /// Records that a turn is about to use a confirmed session.
    pub async fn open(&mut self, id: PinId, turn: TurnId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'open', open_turn = $2, updated_at = $3 where id = $1 and (state = 'confirmed' or (state = 'open' and open_turn = $2))";
        self.0
            .must(
                sql,
                vals![id.uuid(), turn.uuid(), now],
                "another turn is using this session",
            )
            .await
    }

    /// Confirms a session. Returns false if it was retired meanwhile, or if its session id, which a
    /// CLI that chooses ids reports only now, belongs to another pin. Two conversations never write
    /// to one session.
    pub async fn confirm(&mut self, pin: &Pin, now: i64) -> Result<bool> {
        let kept = self.kept_with(pin).await?;
        let values = vals![
            pin.id.uuid(),
            serde_json::to_string(&kept)?,
            now,
            pin.session.as_str(),
            pin.agent.as_str()
        ];
        Ok(self.0.run(CONFIRM, values).await? > 0)
    }

    /// Resets a pin to the state of a snapshot, at its new location.
    pub async fn restore(&mut self, pin: &Pin, now: i64) -> Result<()> {
        let mut kept = self.kept_with(pin).await?;
        // The restored session does not begin with later states.
        kept.earlier.retain(|was| was.last_seq < pin.seen.last_seq);
        let sql =
            "update pins set state = 'confirmed', open_turn = null, confirmed = $2, updated_at = $3
            where id = $1 and state <> 'retired'";
        let values = vals![pin.id.uuid(), serde_json::to_string(&kept)?, now];
        self.0.must(sql, values, "the session was retired").await
    }

    /// Stores the position up to which a session was read, in any state.
    pub async fn save_read(&mut self, pin: &Pin, now: i64) -> Result<()> {
        let kept = self.kept_with(pin).await?;
        let sql = "update pins set confirmed = $2, updated_at = $3 where id = $1";
        let kept = serde_json::to_string(&kept)?;
        self.0.run(sql, vals![pin.id.uuid(), kept, now]).await?;
        Ok(())
    }

    async fn kept_with(&mut self, pin: &Pin) -> Result<Kept> {
        let (earlier, read) = earlier_than(kept(self.0, pin.id).await?, pin);
        Ok(Kept {
            now: Confirmed::from(pin),
            earlier,
            read,
        })
    }

    /// Records that the bytes are the confirmed ones again. The file's times may have changed.
    pub async fn put_back(
        &mut self,
        id: PinId,
        files: &[FileMark],
        failures: u32,
        now: i64,
    ) -> Result<()> {
        let Some(mut kept) = kept(self.0, id).await? else {
            return Err(Error::Conflict("this session was never confirmed"));
        };
        kept.now.files = files.to_vec();
        let sql = "update pins set state = 'confirmed', open_turn = null, failures = $2, confirmed = $3, updated_at = $4
            where id = $1 and state <> 'retired'";
        let values = vals![
            id.uuid(),
            i64::from(failures),
            serde_json::to_string(&kept)?,
            now
        ];
        self.0.must(sql, values, "the session was retired").await
    }

    pub async fn retire(&mut self, id: PinId, why: &str, now: i64) -> Result<()> {
        let sql = "update pins set state = 'retired', open_turn = null, retired_why = $2, updated_at = $3 where id = $1 and state <> 'retired'";
        self.0.run(sql, vals![id.uuid(), why, now]).await?;
        Ok(())
    }

    /// Retires all sessions of a conversation. Returns those that were not retired before.
    pub async fn retire_all(
        &mut self,
        c: ConversationId,
        why: &str,
        now: i64,
    ) -> Result<Vec<PinId>> {
        let sql = "select id from pins where conversation_id = $1 and state <> 'retired'";
        let found = rows(self.0, sql, vals![c.uuid()]).await?;
        let mut ids = vec![];
        for row in &found {
            let id = PinId::from_uuid(row.id("id")?);
            self.retire(id, why, now).await?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Reverts a retirement, unless messages were found in the session since. Its files are
    /// compared before use, as always.
    pub async fn unretire(&mut self, id: PinId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'confirmed', retired_why = null, updated_at = $2
            where id = $1 and state = 'retired' and confirmed is not null and retired_why <> $3";
        self.0.run(sql, vals![id.uuid(), now, READ_ON]).await?;
        Ok(())
    }

    /// Lists the agents that ever had a session, retired or not.
    pub async fn agents_with_sessions(&mut self, c: ConversationId) -> Result<Vec<AgentName>> {
        let sql = "select distinct agent from pins
            where conversation_id = $1 and confirmed is not null order by agent";
        rows(self.0, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(|row| {
                AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))
            })
            .collect()
    }

    /// Deletes a pin recorded for a run that never began, or closes it again if it was confirmed
    /// before.
    pub async fn forget(&mut self, id: PinId) -> Result<()> {
        self.0
            .run(
                "delete from pins where id = $1 and confirmed is null",
                vals![id.uuid()],
            )
            .await?;
        let sql = "update pins set state = 'confirmed', open_turn = null where id = $1 and state = 'open'";
        self.0.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }
}

impl<C: Ask> Pins<'_, C> {
    pub async fn get(&mut self, id: PinId) -> Result<Option<StoredPin>> {
        pin(self.0, id).await
    }

    /// Lists the sessions of an agent in a conversation, newest first.
    pub async fn of(&mut self, c: ConversationId, agent: &AgentName) -> Result<Vec<StoredPin>> {
        pins_of(self.0, c, agent).await
    }

    /// Returns the earlier confirmed states of a session, newest first.
    pub async fn earlier(&mut self, stored: &StoredPin) -> Result<Vec<Pin>> {
        let Some(now) = &stored.pin else {
            return Ok(vec![]);
        };
        let kept = kept(self.0, stored.id).await?;
        let earlier = kept.into_iter().flat_map(|kept| kept.earlier).rev();
        let was = |c: Confirmed| c.of(now.id, &now.agent, &now.session, &now.state, now.failures);
        Ok(earlier.map(was).collect())
    }

    /// Returns conversation and pin of a session, in any state.
    pub async fn of_session(
        &mut self,
        agent: &str,
        session: &str,
    ) -> Result<Option<(ConversationId, StoredPin)>> {
        pin_of_session(self.0, agent, session).await
    }

    /// Lists the newest sessions of a conversation, of all agents.
    pub async fn newest(&mut self, c: ConversationId, limit: i64) -> Result<Vec<StoredPin>> {
        let sql = "select * from pins where conversation_id = $1 order by id desc limit $2";
        let found = rows(self.0, sql, vals![c.uuid(), limit]).await?;
        found.iter().map(read).collect()
    }

    pub async fn all(&mut self, c: ConversationId) -> Result<Vec<StoredPin>> {
        let sql = "select * from pins where conversation_id = $1 order by id desc";
        rows(self.0, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(read)
            .collect()
    }
}

/// Returns conversation and pin of a session, in any state.
async fn pin_of_session(
    at: &mut impl Ask,
    agent: &str,
    session: &str,
) -> Result<Option<(ConversationId, StoredPin)>> {
    let sql = "select * from pins where agent = $1 and session_id = $2";
    let row = one(at, sql, vals![agent, session]).await?;
    row.map(|row| {
        let c = ConversationId::from_uuid(row.id("conversation_id")?);
        Ok((c, read(&row)?))
    })
    .transpose()
}

async fn pin(at: &mut impl Ask, id: PinId) -> Result<Option<StoredPin>> {
    let row = one(at, "select * from pins where id = $1", vals![id.uuid()]).await?;
    row.as_ref().map(read).transpose()
}

async fn pins_of(
    at: &mut impl Ask,
    c: ConversationId,
    agent: &AgentName,
) -> Result<Vec<StoredPin>> {
    let sql =
        "select * from pins where conversation_id = $1 and agent = $2 order by id desc limit $3";
    let found = rows(at, sql, vals![c.uuid(), agent.as_str(), CANDIDATES]).await?;
    found.iter().map(read).collect()
}

pub(crate) fn read(row: &Row) -> Result<StoredPin> {
    let foreign = |e: &dyn std::fmt::Display| Error::Foreign(e.to_string());
    let id = PinId::from_uuid(row.id("id")?);
    let agent = AgentName::new(row.text("agent")?).map_err(|e| foreign(&e))?;
    let session = SessionId::new(row.text("session_id")?).map_err(|e| foreign(&e))?;
    let state = match (row.text("state")?.as_str(), row.maybe_id("open_turn")?) {
        ("open", Some(turn)) => PinState::Open(TurnId::from_uuid(turn)),
        ("confirmed", _) => PinState::Confirmed,
        _ => PinState::Retired(row.maybe_text("retired_why")?.unwrap_or_default()),
    };
    let failures = row.int("failures")? as u32;
    let confirmed = row.maybe_json::<Confirmed>("confirmed")?;
    let pin = confirmed.map(|c| c.of(id, &agent, &session, &state, failures));
    Ok(StoredPin {
        id,
        agent,
        session,
        state,
        pin,
    })
}

impl From<&Pin> for Confirmed {
    fn from(pin: &Pin) -> Self {
        Self {
            value: pin.seen.value.0,
            messages: pin.seen.messages,
            last_seq: pin.seen.last_seq,
            last: pin.seen.last,
            folder: pin.folder.clone(),
            runtime: pin.runtime.clone(),
            machine: pin.machine.clone(),
            home: pin.home.clone(),
            files: pin.files.clone(),
            cursor: pin.cursor.clone(),
            total: pin.total,
            usage: pin.usage,
            context: pin.context,
            model: pin.model.clone(),
            provider: pin.provider.clone(),
            compacted: pin.compacted,
            summarised: pin.compacted.then_some(pin.seen.summarised),
            instructions: pin.instructions.clone(),
        }
    }
}

impl Confirmed {
    pub(crate) fn summarised(&self) -> u64 {
        match (self.compacted, self.summarised) {
            (true, known) => known.unwrap_or(self.messages),
            (false, _) => 0,
        }
    }

    pub(crate) fn of(
        self,
        id: PinId,
        agent: &AgentName,
        session: &SessionId,
        state: &PinState,
        failures: u32,
    ) -> Pin {
        let summarised = self.summarised();
        Pin {
            id,
            agent: agent.clone(),
            session: session.clone(),
            state: state.clone(),
            seen: SeenPrefix {
                value: ScopeValue(self.value),
                messages: self.messages,
                summarised,
                last_seq: self.last_seq,
                last: self.last,
            },
            folder: self.folder,
            runtime: self.runtime,
            machine: self.machine,
            home: self.home,
            files: self.files,
            cursor: self.cursor,
            total: self.total,
            usage: self.usage,
            context: self.context,
            model: self.model,
            provider: self.provider,
            failures,
            compacted: self.compacted,
            instructions: self.instructions,
        }
    }
}

pub(crate) async fn kept(at: &mut impl Ask, id: PinId) -> Result<Option<Kept>> {
    let sql = "select confirmed from pins where id = $1";
    let found = one(at, sql, vals![id.uuid()]).await?;
    Ok(found.and_then(|row| row.maybe_json("confirmed").ok().flatten()))
}

/// Returns the states before this one, without a state that has seen as much, and the files that
/// were read.
fn earlier_than(kept: Option<Kept>, pin: &Pin) -> (Vec<Confirmed>, Vec<FileMark>) {
    let Some(Kept {
        now,
        mut earlier,
        read,
    }) = kept
    else {
        return (vec![], vec![]);
    };
    if now.last_seq < pin.seen.last_seq {
        earlier.push(now);
    }
    earlier.drain(..earlier.len().saturating_sub(EARLIER));
    (earlier, read)
}

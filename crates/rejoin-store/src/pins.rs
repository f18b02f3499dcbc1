//! Pins: written ahead as `open`, `confirmed` only after the session was read, else put back or
//! retired.

use rejoin_core::{
    AgentName, Context, ConversationId, FileMark, Folder, MessageId, Micros, Pin, PinId, PinState,
    Runtime, ScopeValue, Seen, SessionId, TurnId, Usage,
};
use serde::{Deserialize, Serialize};

use crate::connections::{Read, Tx};
use crate::db::{Ask, Row, one, rows, vals};
use crate::error::{Error, Result};
use crate::external::READ_ON;

/// A pin, or a session that was opened and never confirmed.
#[derive(Debug, Clone)]
pub struct StoredPin {
    pub id: PinId,
    pub agent: AgentName,
    pub session: SessionId,
    pub state: PinState,
    /// None until it was confirmed once.
    pub pin: Option<Pin>,
}

/// As it lies in the store. Read without what it was earlier, unless somebody asks.
#[derive(Serialize, Deserialize)]
pub(crate) struct Kept {
    #[serde(flatten)]
    now: Confirmed,
    /// Oldest first: a session that is only ever added to still begins with each of these.
    #[serde(default)]
    earlier: Vec<Confirmed>,
    /// Files that are not the session as it was confirmed, and of which every word is taken in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) read: Vec<FileMark>,
}

/// The confirmed part.
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
    /// None: of a build that did not count; then all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    summarised: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    instructions: Option<String>,
}

/// Could it be read back?
pub(crate) fn can_be_read(confirmed: &serde_json::Value) -> bool {
    Kept::deserialize(confirmed).is_ok()
}

/// How far back to look for a session whose history is today's again (an undone edit).
pub(crate) const CANDIDATES: i64 = 12;

/// How many answers back a conversation can be forked without being told again.
const EARLIER: usize = 16;

pub(crate) const CONFIRM: &str = "update pins set state = 'confirmed', open_turn = null, failures = 0, confirmed = $2, updated_at = $3, session_id = $4, unsaved = null
    where id = $1 and state <> 'retired' and not exists
        (select 1 from pins other where other.agent = $5 and other.session_id = $4 and other.id <> $1)";

impl Tx {
    /// Writes ahead that a turn starts a new session.
    pub async fn open_new_pin(
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
        self.run(
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

    /// A session that was read and is good to go on with, though no turn of ours wrote it.
    pub async fn add_confirmed_pin(
        &mut self,
        c: ConversationId,
        pin: &Pin,
        now: i64,
    ) -> Result<()> {
        let sql = "insert into pins (id, conversation_id, agent, session_id, state, failures, created_at, updated_at)
            values ($1, $2, $3, $4, 'confirmed', 0, $5, $5)";
        let (agent, session) = (pin.agent.as_str(), pin.session.as_str());
        self.run(sql, vals![pin.id.uuid(), c.uuid(), agent, session, now])
            .await?;
        Ok(())
    }

    /// Writes ahead that a turn uses a confirmed session.
    pub async fn open_pin(&mut self, id: PinId, turn: TurnId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'open', open_turn = $2, updated_at = $3 where id = $1 and (state = 'confirmed' or (state = 'open' and open_turn = $2))";
        self.must(
            sql,
            vals![id.uuid(), turn.uuid(), now],
            "another turn is using this session",
        )
        .await
    }

    /// False: it was retired meanwhile, or its session, which a CLI that chooses ids itself has told
    /// us only now, belongs to another pin. Two conversations never write to one session.
    pub async fn confirm_pin(&mut self, pin: &Pin, now: i64) -> Result<bool> {
        let kept = self.kept_with(pin).await?;
        let values = vals![
            pin.id.uuid(),
            serde_json::to_string(&kept)?,
            now,
            pin.session.as_str(),
            pin.agent.as_str()
        ];
        Ok(self.run(CONFIRM, values).await? > 0)
    }

    /// It is again what it was when a snapshot of it was taken; where, is new.
    pub async fn restore_pin(&mut self, pin: &Pin, now: i64) -> Result<()> {
        let mut kept = self.kept_with(pin).await?;
        // It does not begin with what came after.
        kept.earlier.retain(|was| was.last_seq < pin.seen.last_seq);
        let sql =
            "update pins set state = 'confirmed', open_turn = null, confirmed = $2, updated_at = $3
            where id = $1 and state <> 'retired'";
        let values = vals![pin.id.uuid(), serde_json::to_string(&kept)?, now];
        self.must(sql, values, "the session was retired").await
    }

    /// How far a session was read, whatever its state.
    pub async fn keep_read(&mut self, pin: &Pin, now: i64) -> Result<()> {
        let kept = self.kept_with(pin).await?;
        let sql = "update pins set confirmed = $2, updated_at = $3 where id = $1";
        let kept = serde_json::to_string(&kept)?;
        self.run(sql, vals![pin.id.uuid(), kept, now]).await?;
        Ok(())
    }

    async fn kept_with(&mut self, pin: &Pin) -> Result<Kept> {
        let (earlier, read) = earlier_than(kept(self, pin.id).await?, pin);
        Ok(Kept {
            now: Confirmed::from(pin),
            earlier,
            read,
        })
    }

    /// Its bytes are the confirmed ones again; the file's times may be new.
    pub async fn put_back_pin(
        &mut self,
        id: PinId,
        files: &[FileMark],
        failures: u32,
        now: i64,
    ) -> Result<()> {
        let Some(mut kept) = kept(self, id).await? else {
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
        self.must(sql, values, "the session was retired").await
    }

    pub async fn retire_pin(&mut self, id: PinId, why: &str, now: i64) -> Result<()> {
        let sql = "update pins set state = 'retired', open_turn = null, retired_why = $2, updated_at = $3 where id = $1 and state <> 'retired'";
        self.run(sql, vals![id.uuid(), why, now]).await?;
        Ok(())
    }

    /// None of them is used again; says which were not retired before.
    pub async fn retire_all_pins(
        &mut self,
        c: ConversationId,
        why: &str,
        now: i64,
    ) -> Result<Vec<PinId>> {
        let sql = "select id from pins where conversation_id = $1 and state <> 'retired'";
        let found = rows(self, sql, vals![c.uuid()]).await?;
        let mut ids = vec![];
        for row in &found {
            let id = PinId::from_uuid(row.id("id")?);
            self.retire_pin(id, why, now).await?;
            ids.push(id);
        }
        Ok(ids)
    }

    /// Takes a retirement back, unless words were found in the session since. Its files are compared
    /// again before it is used, as always.
    pub async fn unretire_pin(&mut self, id: PinId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'confirmed', retired_why = null, updated_at = $2
            where id = $1 and state = 'retired' and confirmed is not null and retired_why <> $3";
        self.run(sql, vals![id.uuid(), now, READ_ON]).await?;
        Ok(())
    }

    /// Agents that ever had a session, retired or not.
    pub async fn agents_with_sessions(&mut self, c: ConversationId) -> Result<Vec<AgentName>> {
        let sql = "select distinct agent from pins
            where conversation_id = $1 and confirmed is not null order by agent";
        rows(self, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(|row| {
                AgentName::new(row.text("agent")?).map_err(|e| Error::Foreign(e.to_string()))
            })
            .collect()
    }

    /// Drops a pin written ahead for a run that never began.
    pub async fn forget_pin(&mut self, id: PinId) -> Result<()> {
        self.run(
            "delete from pins where id = $1 and confirmed is null",
            vals![id.uuid()],
        )
        .await?;
        let sql = "update pins set state = 'confirmed', open_turn = null where id = $1 and state = 'open'";
        self.run(sql, vals![id.uuid()]).await?;
        Ok(())
    }

    pub async fn pin(&mut self, id: PinId) -> Result<Option<StoredPin>> {
        pin(self, id).await
    }

    /// Whose session that is, in whatever state.
    pub async fn pin_of_session(
        &mut self,
        agent: &str,
        session: &str,
    ) -> Result<Option<(ConversationId, StoredPin)>> {
        pin_of_session(self, agent, session).await
    }

    /// Sessions of an agent in a conversation, newest first.
    pub async fn pins_of(
        &mut self,
        c: ConversationId,
        agent: &AgentName,
    ) -> Result<Vec<StoredPin>> {
        pins_of(self, c, agent).await
    }
}

impl Read {
    pub async fn pin(&mut self, id: PinId) -> Result<Option<StoredPin>> {
        pin(self, id).await
    }

    pub async fn pins_of(
        &mut self,
        c: ConversationId,
        agent: &AgentName,
    ) -> Result<Vec<StoredPin>> {
        pins_of(self, c, agent).await
    }

    /// What a session was when earlier turns were confirmed, newest first.
    pub async fn earlier_pins(&mut self, stored: &StoredPin) -> Result<Vec<Pin>> {
        let Some(now) = &stored.pin else {
            return Ok(vec![]);
        };
        let kept = kept(self, stored.id).await?;
        let earlier = kept.into_iter().flat_map(|kept| kept.earlier).rev();
        let was = |c: Confirmed| c.of(now.id, &now.agent, &now.session, &now.state, now.failures);
        Ok(earlier.map(was).collect())
    }

    /// Whose session that is, in whatever state.
    pub async fn pin_of_session(
        &mut self,
        agent: &str,
        session: &str,
    ) -> Result<Option<(ConversationId, StoredPin)>> {
        pin_of_session(self, agent, session).await
    }

    pub async fn all_pins(&mut self, c: ConversationId) -> Result<Vec<StoredPin>> {
        let sql = "select * from pins where conversation_id = $1 order by id desc";
        rows(self, sql, vals![c.uuid()])
            .await?
            .iter()
            .map(read)
            .collect()
    }
}

/// Whose session that is, in whatever state.
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
            seen: Seen {
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

/// What it was before it became this, not counting what has seen as much; and files that were read.
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

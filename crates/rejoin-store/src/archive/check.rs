//! Reads an archive to its end and trusts nothing. An archive that passes can be imported.

use std::collections::{HashMap, HashSet};
use std::io::Read;

use rejoin_core::{
    AgentName, Message, MessageId, MessageState, PermissionMode, PinId, Reason, Role, ScopeValue,
    SessionId, TurnId, TurnStatus, Verdict,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::frames::{ArchiveReader, Frame, Kind};
use super::rows::{
    AttemptRow, ChainRow, ChangeRow, ConversationRow, EpochRow, Header, MessageRow, PinRow,
    SnapshotRow, Totals, TurnRow, VersionRow,
};
use super::{BadArchive, damaged};
use crate::chunks::LARGEST;
use crate::messages::{HERE, OUTSIDE};
use crate::pins;
use crate::snapshots::{FORMAT, Manifest, ManifestFile};

type Result<T, E = BadArchive> = std::result::Result<T, E>;

/// Maximum number of chunks. The names of more would fill the memory.
const MOST_CHUNKS: u64 = 512 * 1024;
/// Maximum length of a session, however little of it the archive contains.
const LONGEST_SESSION: u64 = 4 * 1024 * 1024 * 1024;
/// Maximum number of sessions of one conversation.
const MOST_PINS: u64 = 100_000;
const LONGEST_KEY: usize = 200;
const LONGEST_PATH: usize = 4096;

/// Facts about an archive that must be known before it is imported.
#[derive(Debug, Clone)]
pub struct Contents {
    pub header: Header,
    pub totals: Totals,
    pub key: Option<String>,
    pub title: String,
    pub agent: AgentName,
    pub workdir: String,
    pub permission: PermissionMode,
    /// Length of the history. `value` is its scope value, `last` its last message.
    pub last_seq: i64,
    pub value: ScopeValue,
    pub last: Option<MessageId>,
    /// Value and message at the requested position, if the history is that long.
    pub there: Option<(ScopeValue, Option<MessageId>)>,
    /// Hash that identifies the whole archive.
    pub end: [u8; 32],
}

/// Reads the first frame only.
pub fn header_of(from: impl Read) -> Result<Header> {
    let mut reader = ArchiveReader::begin(from)?;
    let frame = reader.next()?.ok_or(BadArchive::Truncated)?;
    header(&frame.bytes)
}

fn header(bytes: &[u8]) -> Result<Header> {
    let header: Header = row(bytes, "its header")?;
    short(&header.machine, "its header")?;
    short(&header.rejoin, "its header")?;
    match &header.generation.from {
        Some(from) if blake3::Hash::from_hex(from).is_err() => Err(damaged("its lineage")),
        Some(_) | None => Ok(header),
    }
}

/// Reads and checks a whole archive. `place` is the last position of the history in this store.
pub fn check(from: impl Read, place: i64) -> Result<Contents> {
    let mut reader = ArchiveReader::begin(from)?;
    let first = reader.next()?.ok_or(BadArchive::Truncated)?;
    let mut checking = Checking {
        header: header(&first.bytes)?,
        place,
        counted: Totals::default(),
        chunks: HashMap::new(),
        messages: HashSet::new(),
        turns: HashSet::new(),
        climbed: HashSet::new(),
        pins: HashMap::new(),
        conversation: None,
        value: ScopeValue::begin(None),
        last: None,
        last_seq: 0,
        there: (place == 0).then_some((ScopeValue::begin(None), None)),
        versions: 0,
        attempts: 0,
        told: None,
        end: None,
    };
    while let Some(frame) = reader.next()? {
        checking.frame(&frame)?;
    }
    checking.contents()
}

struct Checking {
    header: Header,
    place: i64,
    counted: Totals,
    chunks: HashMap<[u8; 32], u32>,
    messages: HashSet<MessageId>,
    turns: HashSet<TurnId>,
    /// Turns from which a climb began.
    climbed: HashSet<TurnId>,
    pins: HashMap<PinId, (AgentName, SessionId)>,
    conversation: Option<(ConversationRow, PermissionMode)>,
    value: ScopeValue,
    last: Option<MessageId>,
    last_seq: i64,
    there: Option<(ScopeValue, Option<MessageId>)>,
    /// Number of versions of the current message. `attempts` counts those of the current turn.
    versions: i64,
    attempts: i64,
    told: Option<Totals>,
    end: Option<[u8; 32]>,
}

impl Checking {
    fn frame(&mut self, frame: &Frame) -> Result<()> {
        let bytes = &frame.bytes;
        match frame.kind {
            Kind::Header => Err(damaged("a second header")),
            Kind::Chunk => self.chunk(bytes),
            Kind::Conversation => self.conversation(row(bytes, "its conversation")?),
            Kind::Message => self.message(row(bytes, "a message")?),
            Kind::Version => self.version(&row(bytes, "an earlier text")?),
            Kind::Turn => self.turn(&row(bytes, "a turn")?),
            Kind::Attempt => self.attempt(&row(bytes, "an attempt")?),
            Kind::Pin => self.pin(row(bytes, "a session")?),
            Kind::Epoch => {
                let _epoch: EpochRow = row(bytes, "an epoch")?;
                self.counted.epochs += 1;
                Ok(())
            }
            Kind::Change => {
                let change: ChangeRow = row(bytes, "a change")?;
                self.counted.changes += 1;
                short(&change.kind, "a change")
            }
            Kind::Snapshot => self.snapshot(&row(bytes, "a snapshot")?),
            Kind::Totals => {
                self.told = Some(row(bytes, "its totals")?);
                Ok(())
            }
            Kind::End => {
                self.end = <[u8; 32]>::try_from(bytes.as_slice()).ok();
                Ok(())
            }
        }
    }

    fn chunk(&mut self, frame: &[u8]) -> Result<()> {
        let (name, plain) = open_chunk(frame)?;
        self.counted.chunks += 1;
        self.counted.bytes += plain.len() as u64;
        if self.counted.chunks > MOST_CHUNKS {
            return Err(damaged("it has too many chunks"));
        }
        match self.chunks.insert(name, plain.len() as u32) {
            Some(_) => Err(damaged("a chunk is in it twice")),
            None => Ok(()),
        }
    }

    fn conversation(&mut self, row: ConversationRow) -> Result<()> {
        if row.id != self.header.conversation {
            return Err(damaged("it holds another conversation than it says"));
        }
        let odd = |key: &String| {
            key.is_empty() || key.len() > LONGEST_KEY || key.chars().any(char::is_control)
        };
        if row.key.as_ref().is_some_and(odd) {
            return Err(damaged("its key"));
        }
        if row.workdir.len() > LONGEST_PATH {
            return Err(damaged("its folder"));
        }
        let permission = row.permission.parse();
        let permission = permission.map_err(|_| damaged("its permission"))?;
        if row
            .settings
            .keys()
            .any(|agent| AgentName::new(agent).is_err())
        {
            return Err(damaged("its settings"));
        }
        let mut models = row.settings.values().filter_map(|own| own.model.as_deref());
        if !models.all(is_model) {
            return Err(damaged("its settings"));
        }
        self.conversation = Some((row, permission));
        Ok(())
    }

    fn message(&mut self, row: MessageRow) -> Result<()> {
        self.versions = 0;
        let wrong = match (row.role, row.state) {
            (_, MessageState::Queued) | (Role::Assistant, MessageState::Unanswered) => true,
            (Role::User, _) => row.agent.is_some(),
            (Role::Assistant, MessageState::Ok) => row.agent.is_none(),
        };
        if !self.messages.insert(row.id) {
            return Err(damaged("a message is in it twice"));
        }
        if wrong || ![HERE, OUTSIDE].contains(&row.origin.as_str()) {
            return Err(damaged("a message is not what a message can be"));
        }
        if row.removed_at.is_some() {
            self.counted.removed += 1;
            return if row.seq > 0 { Ok(()) } else { Err(places()) };
        }
        // In order, without a gap, and before removed messages.
        if row.seq != self.last_seq + 1 || self.counted.removed > 0 {
            return Err(places());
        }
        let id = row.id;
        self.counted.messages += 1;
        self.last_seq = row.seq;
        self.value = self.value.fold(&said(row).digest());
        self.last = Some(id);
        if self.last_seq == self.place {
            self.there = Some((self.value, self.last));
        }
        Ok(())
    }

    fn version(&mut self, row: &VersionRow) -> Result<()> {
        self.counted.versions += 1;
        self.versions += 1;
        if row.n != self.versions {
            return Err(damaged("the texts that a message had are out of order"));
        }
        Ok(())
    }

    fn turn(&mut self, row: &TurnRow) -> Result<()> {
        self.counted.turns += 1;
        self.attempts = 0;
        if !self.turns.insert(row.id) {
            return Err(damaged("a turn is in it twice"));
        }
        let status: Option<TurnStatus> = row.status.parse().ok();
        let ended = match status {
            Some(
                TurnStatus::Succeeded
                | TurnStatus::Failed
                | TurnStatus::Cancelled
                | TurnStatus::Lost,
            ) => true,
            Some(TurnStatus::Queued | TurnStatus::Running | TurnStatus::Waiting) | None => false,
        };
        let key = row.client_key.as_ref();
        if !ended || key.is_some_and(|key| key.len() > 4096) || !row.request.is_object() {
            return Err(damaged("a turn is not one that has ended"));
        }
        if !row.request["model"].as_str().is_none_or(is_model) {
            return Err(damaged("a turn asked for a model that is none"));
        }
        if let Some(chain) = &row.chain {
            self.chain(row.id, chain)?;
        }
        short(&row.saved, "a turn")?;
        short(&row.machine, "a turn")?;
        decided(row.verdict.as_deref(), row.reason.as_deref())
    }

    /// Checks the place of a turn in its chain: root and parent precede it, and no turn has two climbs.
    fn chain(&mut self, turn: TurnId, chain: &ChainRow) -> Result<()> {
        let follows = match chain.parent {
            Some(parent) => {
                parent != turn && self.turns.contains(&parent) && self.climbed.insert(parent)
            }
            None => chain.root == turn,
        };
        if !follows || !self.turns.contains(&chain.root) {
            return Err(damaged("a chain of turns is out of order"));
        }
        for text in [&chain.tier, &chain.trigger].into_iter().flatten() {
            short(text, "a chain of turns")?;
        }
        Ok(())
    }

    fn attempt(&mut self, row: &AttemptRow) -> Result<()> {
        self.counted.attempts += 1;
        self.attempts += 1;
        if row.n != self.attempts {
            return Err(damaged("the attempts of a turn are out of order"));
        }
        short(&row.status, "an attempt")?;
        short(&row.session, "an attempt")?;
        decided(Some(&row.verdict), row.reason.as_deref())
    }

    fn pin(&mut self, row: PinRow) -> Result<()> {
        self.counted.sessions += 1;
        let kept = row.confirmed.as_ref().is_some_and(pins::can_be_read);
        if !kept || self.counted.sessions > MOST_PINS {
            return Err(damaged("a session is not one that was confirmed"));
        }
        match self.pins.insert(row.id, (row.agent, row.session)) {
            Some(_) => Err(damaged("a session is in it twice")),
            None => Ok(()),
        }
    }

    fn snapshot(&mut self, row: &SnapshotRow) -> Result<()> {
        self.counted.snapshots += 1;
        let manifest = &row.manifest;
        let of = self.pins.get(&row.pin);
        if of
            .is_none_or(|(agent, session)| (agent, session) != (&manifest.agent, &manifest.session))
        {
            return Err(damaged("a snapshot belongs to no session of it"));
        }
        if manifest.key.is_some() {
            return Err(damaged("a snapshot says that it is sealed"));
        }
        self.manifest(manifest)
    }

    fn manifest(&self, manifest: &Manifest) -> Result<()> {
        if manifest.format != FORMAT {
            return Err(damaged("a snapshot has a form that is not known"));
        }
        let mut whole = 0_u64;
        let mut places = HashSet::new();
        for file in &manifest.files {
            is_beneath(file)?;
            if !places.insert((&file.part, &file.path)) {
                return Err(damaged("a snapshot has two files at one place"));
            }
            let known = |chunk: &crate::chunks::ChunkRef| {
                self.chunks.get(&chunk.name) == Some(&chunk.length)
            };
            if !file.chunks.0.iter().all(known) {
                return Err(damaged("a snapshot names a chunk that is not in it"));
            }
            if file.chunks.length() != file.length {
                return Err(damaged("a file is not as long as its chunks"));
            }
            whole = whole.saturating_add(file.length);
        }
        if whole > LONGEST_SESSION {
            return Err(damaged(format!("a session of {whole} bytes is too long")));
        }
        Ok(())
    }

    fn contents(self) -> Result<Contents> {
        let (conversation, permission) = self.conversation.ok_or(BadArchive::Truncated)?;
        if self.told != Some(self.counted) {
            return Err(damaged("its totals do not fit"));
        }
        Ok(Contents {
            header: self.header,
            totals: self.counted,
            key: conversation.key,
            title: conversation.title,
            agent: conversation.agent,
            workdir: conversation.workdir,
            permission,
            last_seq: self.last_seq,
            value: self.value,
            last: self.last,
            there: self.there,
            end: self.end.ok_or(BadArchive::Truncated)?,
        })
    }
}

/// Unpacks a chunk and checks its name against its bytes. Never unpacks more than the announced
/// length, which is bounded.
pub(super) fn open_chunk(frame: &[u8]) -> Result<([u8; 32], Vec<u8>)> {
    let (name, rest) = frame
        .split_first_chunk::<32>()
        .ok_or_else(|| damaged("a chunk is too short"))?;
    let (length, packed) = rest
        .split_first_chunk::<4>()
        .ok_or_else(|| damaged("a chunk is too short"))?;
    let length = u32::from_le_bytes(*length) as usize;
    if length == 0 || length > LARGEST {
        return Err(damaged(format!("a chunk of {length} bytes")));
    }
    let plain = zstd::bulk::decompress(packed, length).ok();
    let plain = plain.filter(|plain| plain.len() == length);
    let plain = plain.ok_or_else(|| damaged("a chunk is not as long as it says"))?;
    if blake3::hash(&plain).as_bytes() != name {
        return Err(damaged("a chunk is not the one it says"));
    }
    Ok((*name, plain))
}

/// Parses a row. Refuses characters that a store cannot hold.
pub(super) fn row<T: DeserializeOwned>(bytes: &[u8], what: &str) -> Result<T> {
    let zero = |bytes: &[u8]| bytes.windows(6).any(|w| w == b"\\u0000");
    if zero(bytes) && serde_json::from_slice(bytes).is_ok_and(|value| has_zero(&value)) {
        return Err(damaged(format!("{what} holds a NUL character")));
    }
    serde_json::from_slice(bytes).map_err(|_| damaged(format!("{what} cannot be read")))
}

fn has_zero(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains('\0'),
        Value::Array(all) => all.iter().any(has_zero),
        Value::Object(all) => all.iter().any(|(k, v)| k.contains('\0') || has_zero(v)),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Refuses a path that leaves its folder. The import never uses the path to place a file, but does
/// not even store a bad one.
fn is_beneath(file: &ManifestFile) -> Result<()> {
    let plain = |path: &str| {
        path.len() <= LONGEST_PATH
            && !path.chars().any(char::is_control)
            && path.split('/').all(|part| !["", ".", ".."].contains(&part))
    };
    if !plain(&file.path) || !(file.part.is_empty() || plain(&file.part)) {
        let path: String = file.path.chars().take(80).collect();
        return Err(damaged(format!("a file of a session lies at {path:?}")));
    }
    if file.mode & !0o777 != 0 || file.hash.chars().any(|c| !c.is_ascii_graphic()) {
        return Err(damaged("a file of a session is not what a file can be"));
    }
    Ok(())
}

/// Returns true if the name is safe as an argument of a CLI, which must not take it for a flag.
fn is_model(name: &str) -> bool {
    !name.starts_with('-') && !name.chars().any(char::is_control)
}

pub(super) fn said(row: MessageRow) -> Message {
    Message {
        id: row.id,
        seq: row.seq,
        role: row.role,
        agent: row.agent,
        text: row.text,
        attachments: row.attachments,
        state: row.state,
        trail: row.trail,
    }
}

fn decided(verdict: Option<&str>, reason: Option<&str>) -> Result<()> {
    let verdict = verdict.is_none_or(|word| word.parse::<Verdict>().is_ok());
    let reason = reason.is_none_or(|word| word.parse::<Reason>().is_ok());
    if verdict && reason {
        Ok(())
    } else {
        Err(damaged("a turn was decided in a way that is not known"))
    }
}

fn short(text: &str, what: &str) -> Result<()> {
    if text.len() > 1000 {
        return Err(damaged(what));
    }
    Ok(())
}

fn places() -> BadArchive {
    damaged("its messages are out of order")
}

//! Messages that users write in sessions with the CLI itself: which sessions are watched, which
//! prompts came from rejoin, and which messages the history already holds.

use rejoin_core::{ConversationId, FileMark, Folder, MessageId, Pin, PinId, Role};
use serde::Deserialize;

use crate::connections::Tx;
use crate::db::{Ask, Row, one, rows, topic, vals};
use crate::error::Result;
use crate::messages::role_of;
use crate::pins::{CANDIDATES, kept, read};

/// Number of read files other than the session to remember.
const READ: usize = 4;

/// Reason for retiring a session with messages that no turn sent. `undo` never restores its pin.
pub const READ_ON: &str = "somebody went on with it outside, and the conversation went on as well";

/// A prompt that a turn sent to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPrompt {
    /// Generated id of the prompt. Sessions of some CLIs contain it.
    pub id: String,
    /// Mark derived from the text, for sessions that contain no id of ours.
    pub mark: Option<String>,
    /// Start of its turn. `until` is the end. In microseconds since 1970.
    pub from: Option<i64>,
    pub until: Option<i64>,
    /// Answer to it, whose text [`Read::text_of`] returns.
    pub reply: Option<MessageId>,
}

/// Tolerance for clocks read at different places: a prompt may seem this much older than its turn.
const BEFORE: i64 = 1_000_000;

impl SentPrompt {
    /// Returns true if `name` is this prompt. A text alone is not enough: it must also appear
    /// during the prompt's turn. A session without timestamps is trusted.
    pub fn is(&self, name: &str, at: Option<i64>) -> bool {
        let within = |at: i64| {
            self.from.is_none_or(|from| at >= from - BEFORE)
                && self.until.is_none_or(|until| at <= until)
        };
        self.id == name || (self.mark.as_deref() == Some(name) && at.is_none_or(within))
    }
}

/// A session that a user may continue with the CLI itself.
#[derive(Debug, Clone)]
pub struct WatchedPin {
    pub pin: Pin,
    /// Other folders in which it was confirmed earlier, newest first. They may hold old copies.
    pub folders: Vec<String>,
}

/// Folders of a pin's earlier states.
#[derive(Deserialize)]
struct Folders {
    #[serde(default)]
    earlier: Vec<InFolder>,
}

#[derive(Deserialize)]
struct InFolder {
    folder: Folder,
}

fn watched_pin(row: &Row) -> Result<Option<WatchedPin>> {
    let Some(pin) = read(row)?.pin else {
        return Ok(None);
    };
    let earlier = row.maybe_json::<Folders>("confirmed")?;
    let mut folders: Vec<String> = vec![];
    for state in earlier.into_iter().flat_map(|f| f.earlier).rev() {
        let path = state.folder.path;
        if path != pin.folder.path && !folders.contains(&path) {
            folders.push(path);
        }
    }
    Ok(Some(WatchedPin { pin, folders }))
}

/// A message that was taken in from a session, removed or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExternalWords {
    pub role: Role,
    pub text: String,
    /// Time of the message, in microseconds since 1970.
    pub at: i64,
}

topic! {
    /// Messages that a user wrote with an agent's CLI itself.
    ExternalMessages, external
}

impl ExternalMessages<'_, Tx> {
    /// Records that every message of this file was taken in. Leaves the mark of the session
    /// unchanged.
    pub async fn record_read(&mut self, id: PinId, file: &FileMark, now: i64) -> Result<()> {
        let Some(mut kept) = kept(self.0, id).await? else {
            return Ok(());
        };
        kept.read.retain(|one| one.path != file.path);
        kept.read.push(file.clone());
        kept.read.drain(..kept.read.len().saturating_sub(READ));
        let sql = "update pins set confirmed = $2, updated_at = $3 where id = $1";
        let kept = serde_json::to_string(&kept)?;
        self.0.run(sql, vals![id.uuid(), kept, now]).await?;
        Ok(())
    }

    /// Retires a session that holds more than its pin says, even if it is retired already.
    pub async fn retire_read_on(&mut self, id: PinId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'retired', open_turn = null, retired_why = $2, updated_at = $3 where id = $1";
        self.0.run(sql, vals![id.uuid(), READ_ON, now]).await?;
        Ok(())
    }
}

impl<C: Ask> ExternalMessages<'_, C> {
    /// Returns the prompts that turns sent to a session, oldest first.
    pub async fn prompts_of(&mut self, pin: PinId) -> Result<Vec<SentPrompt>> {
        let sql = "select a.prompt_id, a.plan, t.reply_id, t.started_at, t.ended_at
            from attempts a join turns t on t.id = a.turn_id where a.pin_id = $1
            order by a.turn_id, a.n";
        let mut sent = vec![];
        for row in &rows(self.0, sql, vals![pin.uuid()]).await? {
            let plan: serde_json::Value = row.json("plan")?;
            sent.push(SentPrompt {
                id: row.text("prompt_id")?,
                mark: plan["prompt"].as_str().map(str::to_owned),
                from: row.maybe_int("started_at")?,
                until: row.maybe_int("ended_at")?,
                reply: row.maybe_id("reply_id")?.map(MessageId::from_uuid),
            });
        }
        Ok(sent)
    }

    /// Returns the text of a message.
    pub async fn text_of(&mut self, id: MessageId) -> Result<Option<String>> {
        let sql = "select text from messages where id = $1";
        let row = one(self.0, sql, vals![id.uuid()]).await?;
        row.map(|row| row.text("text")).transpose()
    }

    /// Returns the files of a session that differ from the confirmed one and were taken in.
    pub async fn files_read(&mut self, id: PinId) -> Result<Vec<FileMark>> {
        Ok(kept(self.0, id)
            .await?
            .map_or_else(Vec::new, |kept| kept.read))
    }

    /// Returns the sessions that a user may continue with the CLI itself, retired or not: the
    /// newest of each agent.
    pub async fn watched_pins(&mut self, c: ConversationId) -> Result<Vec<WatchedPin>> {
        let sql = "select * from pins where conversation_id = $1 and confirmed is not null
                and state in ('confirmed', 'retired')
            order by id desc limit $2";
        let mut watched: Vec<WatchedPin> = vec![];
        for row in &rows(self.0, sql, vals![c.uuid(), CANDIDATES * 6]).await? {
            let Some(watch) = watched_pin(row)? else {
                continue;
            };
            let of_agent = watched.iter().filter(|n| n.pin.agent == watch.pin.agent);
            if of_agent.count() < CANDIDATES as usize {
                watched.push(watch);
            }
        }
        Ok(watched)
    }

    /// Returns the session with that id, if it was confirmed and no turn uses it now.
    pub async fn watched_session(
        &mut self,
        agent: &str,
        session: &str,
    ) -> Result<Option<(ConversationId, WatchedPin)>> {
        let sql = "select * from pins where agent = $1 and session_id = $2
            and confirmed is not null and state in ('confirmed', 'retired')";
        let Some(row) = one(self.0, sql, vals![agent, session]).await? else {
            return Ok(None);
        };
        let c = ConversationId::from_uuid(row.id("conversation_id")?);
        Ok(watched_pin(&row)?.map(|watch| (c, watch)))
    }

    /// Returns the messages taken in that were written at this time or later.
    pub async fn words(&mut self, c: ConversationId, since: i64) -> Result<Vec<ExternalWords>> {
        external_words(self.0, c, since).await
    }
}

async fn external_words(
    at: &mut impl Ask,
    c: ConversationId,
    since: i64,
) -> Result<Vec<ExternalWords>> {
    let sql = "select role, text, created_at from messages
        where conversation_id = $1 and origin = 'outside' and created_at >= $2 order by created_at, id";
    rows(at, sql, vals![c.uuid(), since])
        .await?
        .iter()
        .map(|row| {
            Ok(ExternalWords {
                role: role_of(row)?,
                text: row.text("text")?,
                at: row.int("created_at")?,
            })
        })
        .collect()
}

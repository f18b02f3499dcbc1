//! Words that users say in sessions by hand: which sessions are watched, which prompts are rejoin's
//! own, which words the history holds already.

use rejoin_core::{ConversationId, FileMark, Folder, Pin, PinId, Role};
use serde::Deserialize;

use crate::connections::{Read, Tx};
use crate::db::{Ask, Row, one, rows, vals};
use crate::error::Result;
use crate::messages::role_of;
use crate::pins::{CANDIDATES, kept, read};

/// How many files that were read and are not the session are remembered.
const READ: usize = 4;

/// Why a session is retired in which words were found that no turn sent. It is never revived.
pub const READ_ON: &str = "somebody went on with it outside, and the conversation went on as well";

/// A prompt that a turn sent to a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SentPrompt {
    /// Minted for it; sessions of some CLIs hold it.
    pub id: String,
    /// Stands for its text, in sessions that hold no id of ours.
    pub mark: Option<String>,
    /// When its turn began and ended, in microseconds since 1970.
    pub from: Option<i64>,
    pub until: Option<i64>,
}

/// Clocks are read at several places: a prompt may seem this much older than its turn.
const BEFORE: i64 = 1_000_000;

impl SentPrompt {
    /// Is that prompt this one? A text alone names none: it must stand there within its turn. A
    /// session that keeps no times is believed.
    pub fn is(&self, name: &str, at: Option<i64>) -> bool {
        let within = |at: i64| {
            self.from.is_none_or(|from| at >= from - BEFORE)
                && self.until.is_none_or(|until| at <= until)
        };
        self.id == name || (self.mark.as_deref() == Some(name) && at.is_none_or(within))
    }
}

/// A session in which a user may go on by hand.
#[derive(Debug, Clone)]
pub struct WatchedPin {
    pub pin: Pin,
    /// Other folders in which it was confirmed earlier, newest first: old copies may lie there.
    pub folders: Vec<String>,
}

/// The folders of a pin's earlier states.
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
    /// When it was said, in microseconds since 1970.
    pub at: i64,
}

impl Tx {
    /// Stores that every word of this file is taken in, and leaves the mark of the session as it is.
    pub async fn note_read(&mut self, id: PinId, file: &FileMark, now: i64) -> Result<()> {
        let Some(mut kept) = kept(self, id).await? else {
            return Ok(());
        };
        kept.read.retain(|one| one.path != file.path);
        kept.read.push(file.clone());
        kept.read.drain(..kept.read.len().saturating_sub(READ));
        let sql = "update pins set confirmed = $2, updated_at = $3 where id = $1";
        let kept = serde_json::to_string(&kept)?;
        self.run(sql, vals![id.uuid(), kept, now]).await?;
        Ok(())
    }

    /// Retires a session that holds more than its pin says, also if it is retired already.
    pub async fn retire_read_on(&mut self, id: PinId, now: i64) -> Result<()> {
        let sql = "update pins set state = 'retired', open_turn = null, retired_why = $2, updated_at = $3 where id = $1";
        self.run(sql, vals![id.uuid(), READ_ON, now]).await?;
        Ok(())
    }

    /// Returns the messages that were taken in and said at this time or later.
    pub async fn external_words(
        &mut self,
        c: ConversationId,
        since: i64,
    ) -> Result<Vec<ExternalWords>> {
        external_words(self, c, since).await
    }
}

impl Read {
    /// Returns the prompts that turns sent to a session, oldest first.
    pub async fn prompts_of(&mut self, pin: PinId) -> Result<Vec<SentPrompt>> {
        let sql = "select a.prompt_id, a.plan, t.started_at, t.ended_at
            from attempts a join turns t on t.id = a.turn_id where a.pin_id = $1
            order by a.turn_id, a.n";
        let mut sent = vec![];
        for row in &rows(self, sql, vals![pin.uuid()]).await? {
            let plan: serde_json::Value = row.json("plan")?;
            sent.push(SentPrompt {
                id: row.text("prompt_id")?,
                mark: plan["prompt"].as_str().map(str::to_owned),
                from: row.maybe_int("started_at")?,
                until: row.maybe_int("ended_at")?,
            });
        }
        Ok(sent)
    }

    /// Files of a session that are not the session as it was confirmed, and are taken in.
    pub async fn files_read(&mut self, id: PinId) -> Result<Vec<FileMark>> {
        Ok(kept(self, id)
            .await?
            .map_or_else(Vec::new, |kept| kept.read))
    }

    /// Returns the sessions in which a user may go on by hand, retired or not: the newest of each
    /// agent.
    pub async fn watched_pins(&mut self, c: ConversationId) -> Result<Vec<WatchedPin>> {
        let sql = "select * from pins where conversation_id = $1 and confirmed is not null
                and state in ('confirmed', 'retired')
            order by id desc limit $2";
        let mut watched: Vec<WatchedPin> = vec![];
        for row in &rows(self, sql, vals![c.uuid(), CANDIDATES * 6]).await? {
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
        let Some(row) = one(self, sql, vals![agent, session]).await? else {
            return Ok(None);
        };
        let c = ConversationId::from_uuid(row.id("conversation_id")?);
        Ok(watched_pin(&row)?.map(|watch| (c, watch)))
    }

    /// Returns the messages that were taken in and said at this time or later.
    pub async fn external_words(
        &mut self,
        c: ConversationId,
        since: i64,
    ) -> Result<Vec<ExternalWords>> {
        external_words(self, c, since).await
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

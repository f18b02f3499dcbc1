//! Conversations that travel: out as one archive, in again wherever they are wanted.

use std::io::{Read, Seek, SeekFrom, Write};

use rejoin_core::{ConversationId, PermissionMode};
use rejoin_store::{
    Arrival, Blobs, Contents, Conversation, Exported, Generation, Header, Here, Imported, Renaming,
    Sealer, Vault, Which, check, header_of,
};
use serde::Serialize;

use crate::Hub;
use crate::error::{Error, Result};
use crate::fault;

/// What an archive is to become here.
#[derive(Debug, Clone)]
pub struct ImportWish {
    /// A conversation of its own, whatever is here.
    pub as_copy: bool,
    pub key: Option<String>,
    /// Where it works here, whatever the archive says.
    pub workdir: String,
    pub permission: Option<PermissionMode>,
}

impl ImportWish {
    /// As it is, to work in that folder.
    pub fn into_folder(workdir: String) -> Self {
        Self {
            as_copy: false,
            key: None,
            workdir,
            permission: None,
        }
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Came {
    /// It was not here.
    Imported,
    /// It was, and went on there.
    TakenOver,
    /// It was, just like that.
    Same,
    /// It was, and went on here.
    Behind,
    Copied,
}

#[derive(Debug, Clone, Serialize)]
pub struct ImportView {
    pub conversation_id: ConversationId,
    pub handle: String,
    pub outcome: Came,
    /// In its history now, and those of them that are new here.
    pub messages: u64,
    pub new_messages: u64,
    pub snapshots: u64,
    /// Sessions that a copy goes on without.
    pub sessions_left_out: u64,
    /// It might do everything where it came from, and may not here.
    pub permission_lowered: bool,
    /// It was held to a list of tools, which did not come along.
    pub tools_dropped: bool,
    pub agent: String,
    pub workdir: String,
    /// Which of its line it is, if it is a bundle.
    #[serde(skip)]
    pub generation: Generation,
    #[serde(skip)]
    pub end: [u8; 32],
}

impl Hub {
    /// Writes a conversation of which nothing runs.
    pub async fn export(
        &self,
        c: ConversationId,
        generation: Generation,
        which: Which,
        to: impl Write,
    ) -> Result<Exported> {
        self.must_rest(c).await?;
        let header = Header {
            conversation: c,
            rejoin: env!("CARGO_PKG_VERSION").to_owned(),
            machine: self.machine.clone(),
            made_at: self.clock.now(),
            generation,
        };
        let reached = fault::point;
        Ok(self.keeper().export(&header, which, to, reached).await?)
    }

    /// Takes an archive in: all of it, or nothing. It is read twice, once to believe it.
    pub async fn import(
        &self,
        from: &mut (impl Read + Seek),
        wish: &ImportWish,
    ) -> Result<ImportView> {
        let header = header_of(&mut *from)?;
        let here = if wish.as_copy {
            None
        } else {
            self.here(header.conversation).await?
        };
        let place = here.as_ref().map_or(0, |(_, here)| here.last_seq);
        rewind(from)?;
        let contents = check(std::io::BufReader::new(&mut *from), place)?;
        rewind(from)?;
        fault::point("import_checked");
        let came = match &here {
            None if wish.as_copy => Came::Copied,
            None => Came::Imported,
            Some((ours, here)) => self.compare(ours, here, &contents).await?,
        };
        let copy = match came {
            Came::Copied => Some(Renaming {
                conversation: self.clock.conversation_id()?,
                secret: self.clock.secret()?,
            }),
            Came::Imported | Came::TakenOver | Came::Same | Came::Behind => None,
        };
        // Whoever made it does not say what may be done here.
        let wide = contents.permission == PermissionMode::Full;
        let permission = match wish.permission {
            Some(permission) => permission,
            None if wide => PermissionMode::Edit,
            None => contents.permission,
        };
        let own_key = contents.key.clone().filter(|_| copy.is_none());
        let arrival = Arrival {
            namespace: self.namespace.to_string(),
            over: here.as_ref().map(|(_, here)| *here),
            copy,
            key: wish.key.clone().or(own_key),
            workdir: wish.workdir.clone(),
            permission,
            end: contents.end,
            now: self.clock.now(),
            reached: fault::point,
        };
        let imported = match came {
            Came::Same | Came::Behind => Imported::default(),
            Came::Imported | Came::TakenOver | Came::Copied => {
                let from = std::io::BufReader::new(&mut *from);
                self.keeper().import(from, &arrival).await?
            }
        };
        fault::point("import_done");
        let c = copy.map_or(contents.header.conversation, |copy| copy.conversation);
        self.view_of_import(c, came, place, imported, wide, contents)
            .await
    }

    async fn view_of_import(
        &self,
        c: ConversationId,
        came: Came,
        was: i64,
        imported: Imported,
        wide: bool,
        contents: Contents,
    ) -> Result<ImportView> {
        let mut read = self.store.read().await?;
        let now = read.conversation(c).await?.ok_or_else(gone)?;
        let last = read.last_seq(c).await?;
        Ok(ImportView {
            conversation_id: c,
            handle: read.short_handle(&now.handle).await?,
            outcome: came,
            messages: last as u64,
            new_messages: (last - was).max(0) as u64,
            snapshots: contents.totals.snapshots,
            sessions_left_out: imported.sessions_left_out,
            permission_lowered: wide && now.permission != PermissionMode::Full,
            tools_dropped: imported.tools_dropped > 0,
            agent: now.agent.to_string(),
            workdir: now.workdir,
            generation: contents.header.generation,
            end: contents.end,
        })
    }

    /// Which of the two goes on with the other?
    async fn compare(&self, ours: &Conversation, here: &Here, theirs: &Contents) -> Result<Came> {
        let handle = self.store.read().await?.short_handle(&ours.handle).await?;
        if theirs.last_seq < here.last_seq {
            let mut tx = self.store.begin().await?;
            let there = tx.place(ours.id, theirs.last_seq).await?;
            return if there == (theirs.value, theirs.last) {
                Ok(Came::Behind)
            } else {
                Err(Error::Diverged(handle))
            };
        }
        if theirs.there != Some((here.value, here.last)) {
            return Err(Error::Diverged(handle));
        }
        if theirs.last_seq == here.last_seq {
            return Ok(Came::Same);
        }
        self.must_rest(ours.id).await?;
        // What waits here would be answered to another history than it was said in.
        if self.store.begin().await?.is_busy(ours.id).await? {
            return Err(Error::Running(handle));
        }
        Ok(Came::TakenOver)
    }

    async fn here(&self, c: ConversationId) -> Result<Option<(Conversation, Here)>> {
        let mut tx = self.store.begin().await?;
        let Some(ours) = tx.conversation(c).await? else {
            return Ok(None);
        };
        if let Some(other) = ours.redirect_to {
            let into = match tx.conversation(other).await? {
                Some(into) => tx.short_handle(&into.handle).await?,
                None => "another".into(),
            };
            let text = format!("this conversation was merged into {into} here");
            return Err(Error::Conflict(text));
        }
        let here = tx.here(c).await?;
        Ok(Some((ours, here)))
    }

    /// A turn that runs would be in two places, or in none.
    async fn must_rest(&self, c: ConversationId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let conversation = tx.conversation(c).await?.ok_or_else(gone)?;
        let handle = tx.short_handle(&conversation.handle).await?;
        if tx.unfinished_turn(c).await?.is_some() || tx.queued_in_place(c).await? {
            return Err(Error::Running(handle));
        }
        match conversation.opened_by {
            Some(_) => Err(Error::Opened(handle)),
            None => Ok(()),
        }
    }

    /// Also where no snapshots are taken there may be some.
    pub fn keeper(&self) -> Vault {
        let plain = || Vault::new(self.store.clone(), Blobs::Database, Sealer::plain());
        self.vault.clone().unwrap_or_else(plain)
    }
}

fn rewind(from: &mut impl Seek) -> Result<()> {
    let rewound = from.seek(SeekFrom::Start(0)).map(drop);
    rewound.map_err(|e| rejoin_store::BadArchive::Io(e).into())
}

fn gone() -> Error {
    Error::NotFound("the conversation is gone".into())
}

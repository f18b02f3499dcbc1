//! Exports a conversation as one archive, and imports archives.

use std::io::{Read, Seek, SeekFrom, Write};

use rejoin_core::{ConversationId, PermissionMode};
use rejoin_store::{
    Blobs, Contents, Conversation, Exported, Generation, Header, HistoryEnd, IdMapping,
    ImportParams, Imported, Sealer, SnapshotSelection, Vault, check, header_of,
};
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::error::{Error, Result};
use crate::fault;

/// Options of an import.
#[derive(Debug, Clone)]
pub struct ImportOptions {
    /// True: always create a separate conversation.
    pub as_copy: bool,
    pub key: Option<String>,
    /// Working directory of the imported conversation, regardless of the archive.
    pub workdir: String,
    /// Permission of the conversation. None: that of the archive, but at most `most`.
    pub permission: Option<PermissionMode>,
    /// Highest permission that an archive brings along.
    pub most: PermissionMode,
}

impl ImportOptions {
    /// Options for an unchanged import with this working directory.
    pub fn into_folder(workdir: String) -> Self {
        Self {
            as_copy: false,
            key: None,
            workdir,
            permission: None,
            most: PermissionMode::Edit,
        }
    }
}

/// Result of an import.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum ImportResult {
    /// The conversation was not in this store.
    Imported,
    /// The conversation was here, and the archive continues it.
    TakenOver,
    /// The conversation was here and equals the archive.
    Same,
    /// The conversation was here and continues the archive; the archive is older.
    Behind,
    Copied,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct ImportView {
    pub conversation_id: ConversationId,
    pub handle: String,
    pub outcome: ImportResult,
    /// Messages in the history now. `new_messages` counts those that are new here.
    pub messages: u64,
    pub new_messages: u64,
    pub snapshots: u64,
    /// Number of sessions that a copy leaves out.
    pub sessions_left_out: u64,
    /// True if the conversation had the mode `full` where it came from and does not have it here.
    pub permission_lowered: bool,
    /// Permission of the conversation after the import.
    #[cfg_attr(feature = "schema", schema(value_type = String))]
    pub permission: PermissionMode,
    /// True if the conversation was restricted to a list of tools that was not imported.
    pub tools_dropped: bool,
    pub agent: String,
    pub workdir: String,
    /// Generation of the bundle, if the archive is one.
    #[serde(skip)]
    pub generation: Generation,
    #[serde(skip)]
    pub end: [u8; 32],
}

impl Hub {
    /// Writes an archive of a conversation. Fails while a turn of it runs.
    pub async fn export(
        &self,
        c: ConversationId,
        generation: Generation,
        which: SnapshotSelection,
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

    /// Imports an archive completely or not at all. Reads it twice: the first pass checks it.
    pub async fn import(
        &self,
        from: &mut (impl Read + Seek),
        options: &ImportOptions,
    ) -> Result<ImportView> {
        let header = header_of(&mut *from)?;
        let here = if options.as_copy {
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
            None if options.as_copy => ImportResult::Copied,
            None => ImportResult::Imported,
            Some((ours, here)) => self.compare(ours, here, &contents).await?,
        };
        // New messages reach the agent with the permissions of the existing conversation.
        let continued = here.as_ref().filter(|_| came == ImportResult::TakenOver);
        if let Some((ours, _)) = continued {
            self.may_have(ours)?;
        }
        let copy = match came {
            ImportResult::Copied => Some(IdMapping {
                conversation: self.clock.conversation_id()?,
                secret: self.clock.secret()?,
            }),
            ImportResult::Imported
            | ImportResult::TakenOver
            | ImportResult::Same
            | ImportResult::Behind => None,
        };
        // The archive does not decide which permissions apply here.
        let wide = contents.permission.exceeds(options.most);
        let permission = options.permission;
        let permission = permission.unwrap_or_else(|| contents.permission.at_most(options.most));
        let own_key = contents.key.clone().filter(|_| copy.is_none());
        let arrival = ImportParams {
            namespace: self.namespace.to_string(),
            over: here.map(|(ours, here)| (here, ours.permission, ours.settings)),
            copy,
            key: options.key.clone().or(own_key),
            workdir: options.workdir.clone(),
            permission,
            end: contents.end,
            now: self.clock.now(),
            reached: fault::point,
        };
        let imported = match came {
            ImportResult::Same | ImportResult::Behind => Imported::default(),
            ImportResult::Imported | ImportResult::TakenOver | ImportResult::Copied => {
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
        came: ImportResult,
        was: i64,
        imported: Imported,
        wide: bool,
        contents: Contents,
    ) -> Result<ImportView> {
        let mut read = self.store.read().await?;
        let now = read.conversations().get(c).await?.ok_or_else(gone)?;
        let last = read.history().last_seq(c).await?;
        Ok(ImportView {
            conversation_id: c,
            handle: read.conversations().short_handle(&now.handle).await?,
            outcome: came,
            messages: last as u64,
            new_messages: (last - was).max(0) as u64,
            snapshots: contents.totals.snapshots,
            sessions_left_out: imported.sessions_left_out,
            permission_lowered: wide && contents.permission.exceeds(now.permission),
            permission: now.permission,
            tools_dropped: imported.tools_dropped > 0,
            agent: now.agent.to_string(),
            workdir: now.workdir,
            generation: contents.header.generation,
            end: contents.end,
        })
    }

    /// Compares both histories. Fails if neither continues the other.
    async fn compare(
        &self,
        ours: &Conversation,
        here: &HistoryEnd,
        theirs: &Contents,
    ) -> Result<ImportResult> {
        let handle = self
            .store
            .read()
            .await?
            .conversations()
            .short_handle(&ours.handle)
            .await?;
        if theirs.last_seq < here.last_seq {
            let mut tx = self.store.begin().await?;
            let there = tx.imports().position(ours.id, theirs.last_seq).await?;
            return if there == (theirs.value, theirs.last) {
                Ok(ImportResult::Behind)
            } else {
                Err(Error::Diverged(handle))
            };
        }
        if theirs.there != Some((here.value, here.last)) {
            return Err(Error::Diverged(handle));
        }
        if theirs.last_seq == here.last_seq {
            return Ok(ImportResult::Same);
        }
        self.must_rest(ours.id).await?;
        // Queued messages would be answered on another history than they were written for.
        if self.store.begin().await?.turns().is_busy(ours.id).await? {
            return Err(Error::Running(handle));
        }
        Ok(ImportResult::TakenOver)
    }

    async fn here(&self, c: ConversationId) -> Result<Option<(Conversation, HistoryEnd)>> {
        let mut tx = self.store.begin().await?;
        let Some(ours) = tx.conversations().get(c).await? else {
            return Ok(None);
        };
        if *ours.namespace != *self.namespace {
            let text = "this conversation cannot be imported under its own id";
            return Err(Error::Conflict(text.into()));
        }
        if let Some(other) = ours.redirect_to {
            let into = match tx.conversations().get(other).await? {
                Some(into) => tx.conversations().short_handle(&into.handle).await?,
                None => "another".into(),
            };
            let text = format!("this conversation was merged into {into} here");
            return Err(Error::Conflict(text));
        }
        let here = tx.imports().history_end(c).await?;
        Ok(Some((ours, here)))
    }

    /// Fails while a turn of the conversation runs, or while it is open in an agent's terminal
    /// interface: a running turn would end up in two stores, or in none.
    async fn must_rest(&self, c: ConversationId) -> Result<()> {
        let mut tx = self.store.begin().await?;
        let conversation = tx.conversations().get(c).await?.ok_or_else(gone)?;
        let handle = tx
            .conversations()
            .short_handle(&conversation.handle)
            .await?;
        if tx.turns().unfinished(c).await?.is_some() || tx.changes().queued_in_place(c).await? {
            return Err(Error::Running(handle));
        }
        match conversation.opened_by {
            Some(_) => Err(Error::Opened(handle)),
            None => Ok(()),
        }
    }

    /// Returns the vault, or a plain one: a store may hold snapshots even if none are taken now.
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

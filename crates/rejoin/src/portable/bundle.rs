//! A conversation that lives in one file: read, one turn, written back. Between the two it is in a
//! store of its own beside the file, so that nothing is lost whenever this is killed; whoever comes
//! next goes on with that store.

mod ownership;
mod place;

use std::path::{Path, PathBuf};

use rejoin_core::{ConversationId, PermissionMode, TurnId, hex};
use rejoin_hub::{IfBusy, ImportOptions, ImportResult, fault};
use rejoin_store::{Exported, Generation, ListFilter, SnapshotSelection};

use super::atomic_file::AtomicFile;
use crate::app::{App, Invocation};
use crate::cli::folder_text;
use place::{BASE, Base, NEXT, Place, WRITTEN, bad, unreadable};
use rejoin_errors::{CommandError, Result, codes};

/// A bundle in our hands.
pub(crate) struct Bundle {
    pub(crate) app: App,
    /// The one in it; none: it is new.
    pub(crate) conversation: Option<ConversationId>,
    place: Place,
    /// Digest of the file as it was read.
    base: Base,
    /// As the store was when it was opened; none: it holds more than the file.
    was: Option<Stamp>,
    /// A message waits in it for its turn.
    waits: bool,
}

#[derive(PartialEq, Eq)]
struct Stamp {
    turns: usize,
    last_seq: i64,
    updated_at: i64,
}

impl Bundle {
    /// Opens a bundle. `permission`: that of the command, which also limits the messages of an earlier run;
    /// none: as configured.
    pub(crate) async fn open(
        invocation: &Invocation,
        file: &Path,
        if_busy: IfBusy,
        permission: Option<PermissionMode>,
    ) -> Result<Self> {
        let place = Place::take(file, if_busy).await?;
        if let Some(why) = &place.unrecorded {
            invocation.out.note(&format!(
                "{} could not be recorded as yours ({why}); if this run is killed, the next one refuses it",
                place.folder.display()
            ));
        }
        let now = place.now()?;
        let known = place.known();
        let written = place
            .said(WRITTEN)
            .is_some_and(|w| Some(&w) == now.0.as_ref());
        let goes_on = match &known {
            // Nothing was begun, or all of it was done.
            None => false,
            Some(_) if written => false,
            Some(_) => true,
        };
        if !goes_on {
            place.clear();
            place.say(BASE, now.0.as_deref().unwrap_or_default())?;
        }
        fault::point("bundle_begun");
        let app = App::open_private(invocation, place.folder.clone()).await?;
        let most = permission.unwrap_or_else(|| app.config.import_permission());
        let mut bundle = Self {
            app,
            conversation: None,
            place,
            base: known.filter(|_| goes_on).unwrap_or(now.clone()),
            was: None,
            waits: false,
        };
        if bundle.base != now {
            // Whatever was said here is kept; the file is somebody else's.
            let failure = bundle.diverged().await;
            bundle.go(failure.code == codes::DIVERGED.word).await;
            return Err(failure);
        }
        let ready = match bundle.restrict(most).await {
            Ok(()) => bundle.read(now).await,
            Err(failure) => Err(failure),
        };
        if let Err(failure) = ready {
            let nothing_in_it = matches!(bundle.only().await, Ok(None));
            bundle.go(nothing_in_it).await;
            return Err(failure);
        }
        Ok(bundle)
    }

    /// Restricts what an earlier run left: it never does more than this command may.
    async fn restrict(&self, most: PermissionMode) -> Result<()> {
        let Some(c) = self.only().await? else {
            return Ok(());
        };
        let here = folder_text(&self.app.here)?;
        if self.app.hub().restrict(c, most, &here).await? {
            self.app.out.note(&format!(
                "a message of an earlier run waits with more permissions than this command; it runs with {most}"
            ));
        }
        Ok(())
    }

    /// Takes in what the file holds. After a kill that is here already, and perhaps more.
    async fn read(&mut self, now: Base) -> Result<()> {
        let came = match now.0 {
            None => None,
            Some(_) => {
                let file = fs_err::File::open(&self.place.file);
                let (mut file, path) = file.map_err(|e| unreadable(&e))?.into_parts();
                let options = ImportOptions {
                    most: self.app.config.import_permission(),
                    ..ImportOptions::into_folder(folder_text(&self.app.here)?)
                };
                let imported = self.app.hub().import(&mut file, &options).await;
                let view = imported.map_err(|error| bad(error, &path))?;
                self.note(&view);
                Some(view.outcome)
            }
        };
        fault::point("bundle_read");
        self.conversation = self.only().await?;
        let more = match came {
            Some(ImportResult::Behind) => true,
            None => self.conversation.is_some(),
            Some(
                ImportResult::Imported
                | ImportResult::Same
                | ImportResult::TakenOver
                | ImportResult::Copied,
            ) => false,
        };
        if !more {
            self.was = self.stamp().await?;
        }
        Ok(())
    }

    fn note(&self, view: &rejoin_hub::ImportView) {
        if view.permission_lowered && view.outcome == ImportResult::Imported {
            let mode = view.permission;
            self.app.out.note(&format!(
                "the permission of the bundle is higher; without --permission it is {mode}"
            ));
        }
        if view.tools_dropped {
            let text = "the bundle says which tools its agent has; without --tools it has its own";
            self.app.out.note(text);
        }
    }

    /// Writes it back, if there is anything to write. The turn is settled, whatever comes of this.
    pub(crate) async fn put_back(mut self) -> Result<()> {
        let written = self.write().await;
        self.go(is_done(&written)).await;
        written
    }

    /// Puts the file back and keeps its store until the turn is reported. A failed write is part of the result.
    pub(crate) async fn put_back_and_tell(mut self, turn: TurnId) -> (Told, Option<CommandError>) {
        let written = self.write().await;
        if written.is_err() {
            let _said = self.unsaved(turn).await;
        }
        let done = is_done(&written);
        (Told { bundle: self, done }, written.err())
    }

    async fn unsaved(&self, turn: TurnId) -> Result<()> {
        let mut tx = self.app.hub().store.begin().await?;
        tx.turns().set_saved(turn, rejoin_hub::FAILED).await?;
        Ok(tx.commit().await?)
    }

    async fn go(self, done: bool) {
        self.app.runner.hub.store.close().await;
        if done && !self.waits {
            self.place.remove();
            fault::point("bundle_removed");
        }
    }

    async fn write(&mut self) -> Result<()> {
        self.conversation = self.only().await?;
        let Some(c) = self.conversation else {
            return Ok(());
        };
        if self.was.is_some() && self.was == self.stamp().await? {
            return Ok(());
        }
        if self.place.now()? != self.base {
            return Err(self.diverged().await);
        }
        let next = self.place.folder.join(NEXT);
        let whole = AtomicFile::by_way_of(&next, &self.place.file);
        let mut whole = whole.map_err(|e| self.kept(&e))?;
        let generation = self.generation();
        let exported = self
            .app
            .hub()
            .export(c, generation, SnapshotSelection::Newest, &mut whole);
        let exported = match exported.await {
            Ok(exported) => exported,
            Err(error) => return Err(self.kept(&CommandError::from(error).message)),
        };
        self.move_there(whole, &exported)
            .map_err(|e| self.kept(&e))?;
        if exported.queued > 0 {
            // What still waits for its turn waits here.
            self.waits = true;
            self.place.say(BASE, &hex(&exported.end))?;
        }
        Ok(())
    }

    fn move_there(&self, mut whole: AtomicFile, exported: &Exported) -> std::io::Result<()> {
        whole.synced()?;
        fault::point("bundle_next");
        self.place.note(WRITTEN, &hex(&exported.end))?;
        fault::point("bundle_noted");
        whole.keep()?;
        fault::point("bundle_written");
        Ok(())
    }

    /// The file is not what ours came from: ours goes beside it.
    async fn diverged(&mut self) -> CommandError {
        let file = self.place.file.display().to_string();
        let changed = format!("{file} was changed by somebody else meanwhile");
        match self.beside().await {
            Err(failure) => failure,
            Ok(None) => CommandError::new(codes::DIVERGED, changed).try_this("the same again"),
            Ok(Some(ours)) => {
                let ours = ours.display();
                let text =
                    format!("{changed}; it was not touched, and what was said here is in {ours}");
                let next = format!("rejoin import {ours} --as-copy");
                CommandError::new(codes::DIVERGED, text).try_this(next)
            }
        }
    }

    /// Puts all there is into a file of its own; then its store is not needed any more.
    async fn beside(&mut self) -> Result<Option<PathBuf>> {
        let ours = match self.only().await? {
            None => None,
            Some(c) => {
                let ours = self.place.free_name();
                let mut whole = AtomicFile::begin(&ours).map_err(|e| self.kept(&e))?;
                let (hub, generation) = (self.app.hub(), self.generation());
                hub.export(c, generation, SnapshotSelection::Newest, &mut whole)
                    .await?;
                whole.keep().map_err(|e| self.kept(&e))?;
                Some(ours)
            }
        };
        // Whoever comes next begins with the file.
        self.place.forget()?;
        Ok(ours)
    }

    fn kept(&self, why: &dyn std::fmt::Display) -> CommandError {
        let (file, folder) = (self.place.file.display(), self.place.folder.display());
        let text = format!(
            "{file} could not be written: {why}; what was said is kept in {folder}, and taken in next time"
        );
        CommandError::unavailable(text).try_this("df -h, then the next message")
    }

    async fn only(&self) -> Result<Option<ConversationId>> {
        let mut read = self.app.hub().store.read().await?;
        let filter = ListFilter {
            limit: 1,
            ..ListFilter::default()
        };
        let mut found = read.listing(&filter).await?;
        Ok(found.pop().map(|conversation| conversation.id))
    }

    async fn stamp(&self) -> Result<Option<Stamp>> {
        let Some(c) = self.only().await? else {
            return Ok(None);
        };
        let mut read = self.app.hub().store.read().await?;
        let conversation = read.conversations().get(c).await?;
        Ok(Some(Stamp {
            turns: read.turns().of(c).await?.len(),
            last_seq: read.history().last_seq(c).await?,
            updated_at: conversation.map_or(0, |c| c.updated_at),
        }))
    }

    /// The one after that in the file.
    fn generation(&self) -> Generation {
        let file = fs_err::File::open(&self.place.file).ok();
        let header = file.and_then(|file| rejoin_store::header_of(file).ok());
        Generation {
            number: header
                .map_or(0, |header| header.generation.number)
                .saturating_add(1),
            from: self.base.0.clone(),
        }
    }
}

/// A bundle that was written, and whose turn can still be told.
pub(crate) struct Told {
    bundle: Bundle,
    done: bool,
}

impl Told {
    pub(crate) fn app(&self) -> &App {
        &self.bundle.app
    }

    pub(crate) async fn go(self) {
        self.bundle.go(self.done).await;
    }
}

/// In the file, or beside it: its store is not needed any more.
fn is_done(written: &Result<()>) -> bool {
    let beside = |failure: &CommandError| failure.code == codes::DIVERGED.word;
    written.as_ref().err().is_none_or(beside)
}

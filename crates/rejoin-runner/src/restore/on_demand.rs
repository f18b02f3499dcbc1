//! Restores a session without running a turn: for `rejoin snapshot restore`, and before the agent's
//! own terminal interface is opened on it.

use std::path::{Path, PathBuf};

use rejoin_core::{AgentName, Blocker, Reason, SessionSource, TurnPlan};
use rejoin_hub::TurnRequest;
use rejoin_store::{Conversation, Snapshot, Vault};

use super::{Bad, fetch, is_plain, manifest_of};
use crate::atomic_file::put;
use crate::error::{Error, Result};
use crate::inspect::inspect;
use crate::relocate::told_where;
use crate::turn::Runner;

/// Result of a restore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// Nothing to do: the session here could be resumed as it is.
    Here { file: PathBuf },
    /// Restored; `aside` is the new name of a file that was in the way.
    Restored {
        file: PathBuf,
        from: String,
        aside: Option<String>,
    },
    /// Not restored: a turn would not resume the session.
    Cannot { why: Reason, evidence: String },
    /// There is no session to resume.
    Nothing,
}

impl Runner {
    /// Restores the session of a conversation. No turn of it may be running.
    pub async fn restore_now(
        &self,
        conversation: &Conversation,
        agent: &AgentName,
        request: &TurnRequest,
    ) -> Result<Now> {
        let holder = self.holder()?;
        self.hub.hold_open(conversation.id, &holder).await?;
        if let Err(error) = self.take_in(conversation.id, None).await {
            self.hub.release_open(conversation.id, &holder).await?;
            return Err(error);
        }
        let done = self
            .restore_held(conversation, agent, request, &holder)
            .await;
        self.hub.release_open(conversation.id, &holder).await?;
        done
    }

    /// Restores the session for a caller that holds the conversation open.
    pub(crate) async fn restore_held(
        &self,
        conversation: &Conversation,
        agent: &AgentName,
        request: &TurnRequest,
        holder: &str,
    ) -> Result<Now> {
        let c = conversation;
        let outlook = self.hub.outlook(c.id, c.scope, agent, None).await?;
        let mut inspection =
            inspect(&self.hub, &self.config, agent.as_str(), request, outlook).await?;
        // Removed on drop.
        let folder = tempfile::tempdir_in(&self.config.home)
            .map_err(Error::io("making a folder for the session"))?;
        let vault = self.hub.vault.as_ref();
        let decided = inspection.decide(agent, request);
        let decided = inspection
            .obtain_snapshot(decided, agent, request, vault, Some(folder.path()))
            .await?;
        let way = match &decided.plan {
            Ok(TurnPlan::Resume { session, .. }) => session.way(),
            Ok(TurnPlan::Start { .. }) => return Ok(Now::Nothing),
            Ok(TurnPlan::Reseed { why, .. }) | Err(Blocker::WouldReseed { why }) => {
                return Ok(Now::Cannot {
                    why: *why,
                    evidence: decided.failed.unwrap_or_default(),
                });
            }
            Err(blocker) => return Err(crate::turn::not_runnable(blocker, &inspection)),
        };
        let pinned = inspection
            .outlook
            .best()
            .and_then(|c| c.stored.pin.as_ref());
        match (way, &inspection.staged, pinned) {
            (SessionSource::Snapshot, Some(staged), Some(pin)) => {
                let moved = pin.folder.path != inspection.folder.path;
                let ahead = staged.pin(&inspection, pin, &self.hub.machine)?;
                self.hub.restored_held(c.id, holder, &ahead).await?;
                let put_back = staged
                    .put_in_place(&inspection, ahead)
                    .await
                    .map_err(Error::io("restoring the session"))?;
                let confirmed = told_where(&inspection, &put_back.pin, self.hub.clock).await?;
                let mut pin = put_back.pin;
                let file = inspection.home.join(&confirmed.file.path);
                pin.files = vec![confirmed.file];
                self.hub.restored_held(c.id, holder, &pin).await?;
                Ok(Now::Restored {
                    file,
                    from: staged.told(moved),
                    aside: put_back.aside,
                })
            }
            (
                SessionSource::InPlace
                | SessionSource::Live
                | SessionSource::Snapshot
                | SessionSource::Fork,
                _,
                _,
            ) => {
                let mark = inspection.session.as_ref().and_then(|s| s.mark.as_ref());
                let file = mark.map(|mark| inspection.home.join(&mark.path));
                Ok(file.map_or(Now::Nothing, |file| Now::Here { file }))
            }
        }
    }
}

/// Reason why the files of a snapshot were not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritten {
    /// The snapshot cannot be used, for this reason.
    Unusable(String),
    /// A file with this path exists.
    InTheWay(PathBuf),
}

/// Checks the files of a snapshot and writes them into a folder, for inspection. Returns their
/// paths.
pub async fn written_to(
    vault: &Vault,
    snapshot: &Snapshot,
    folder: &Path,
) -> Result<std::result::Result<Vec<PathBuf>, Unwritten>> {
    let io = |error| Error::io("writing the files of a snapshot")(error);
    let unusable = |why: &str| Err(Unwritten::Unusable(why.to_owned()));
    let staging = tempfile::tempdir_in(folder).map_err(io)?;
    // For inspection, a snapshot of an unfinished turn is shown in full.
    let fetched = async {
        let manifest = manifest_of(snapshot)?;
        fetch(vault, None, &manifest, Some(staging.path())).await?;
        Ok(manifest)
    };
    let manifest = match fetched.await {
        Ok(manifest) => manifest,
        Err(Bad::Here(error)) => return Err(io(error)),
        Err(Bad::Damaged) => return Ok(unusable("it is damaged")),
        Err(Bad::Unreachable(why)) => return Ok(unusable(why)),
    };
    let mut written = vec![];
    for (n, file) in manifest.files.iter().enumerate() {
        let name = file.path.rsplit('/').next().unwrap_or(&file.path);
        let place = match file.part.as_str() {
            "" => name.to_owned(),
            part => format!("{part}/{}", file.path),
        };
        if !is_plain(&place) {
            return Ok(unusable("it names a file outside its folder"));
        }
        let target = folder.join(&place);
        if fs_err::symlink_metadata(&target).is_ok() {
            return Ok(Err(Unwritten::InTheWay(target)));
        }
        put(
            &staging.path().join(n.to_string()),
            &target,
            file.mode,
            false,
        )
        .map_err(io)?;
        written.push(target);
    }
    Ok(Ok(written))
}

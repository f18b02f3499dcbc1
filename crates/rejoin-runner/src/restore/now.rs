//! Puts a session back without running a turn: for `rejoin snapshot restore`, and before the agent's
//! own terminal interface is opened on it.

use std::path::{Path, PathBuf};

use rejoin_core::{AgentName, Hold, Reason, TurnPlan, Way, decide};
use rejoin_hub::{HubLink as _, TurnRequest};
use rejoin_store::{Conversation, Snapshot, Vault};

use super::{Bad, fetch, is_plain, manifest_of};
use crate::error::{Error, Result};
use crate::look::look;
use crate::relocate::told_where;
use crate::turn::Runner;
use crate::whole::put;

/// What came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Now {
    /// The session here could be resumed as it is.
    Here { file: PathBuf },
    /// It was put back; `aside`: where what lay there was kept.
    Restored {
        file: PathBuf,
        from: String,
        aside: Option<String>,
    },
    /// A turn would not go on with it.
    Cannot { why: Reason, evidence: String },
    /// There is none to go on with.
    Nothing,
}

impl Runner {
    /// Of a conversation for which nothing is running.
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

    /// The same for whoever has the conversation open.
    pub(crate) async fn restore_held(
        &self,
        conversation: &Conversation,
        agent: &AgentName,
        request: &TurnRequest,
        holder: &str,
    ) -> Result<Now> {
        let c = conversation;
        let outlook = self.hub.outlook(c.id, c.scope, agent, None).await?;
        let mut looked = look(&self.hub, &self.config, agent.as_str(), request, outlook).await?;
        // Gone when it is dropped.
        let folder = tempfile::tempdir_in(&self.config.home)
            .map_err(Error::io("making a folder for the session"))?;
        let vault = self.hub.vault.as_ref();
        looked
            .check_snapshot(agent, request, vault, Some(folder.path()))
            .await?;
        let decision = decide(&looked.situation(agent, request));
        let way = match &decision.plan {
            Ok(TurnPlan::Resume { session, .. }) => session.way(),
            Ok(TurnPlan::Start { .. }) => return Ok(Now::Nothing),
            Ok(TurnPlan::Reseed { why, .. }) | Err(Hold::WouldReseed { why }) => {
                let failed = decision.checks.iter().find(|c| c.ok == Some(false));
                let evidence = failed.map(|c| c.evidence.to_string()).unwrap_or_default();
                return Ok(Now::Cannot {
                    why: *why,
                    evidence,
                });
            }
            Err(hold) => return Err(crate::turn::held(hold, &looked)),
        };
        let pinned = looked.outlook.best().and_then(|c| c.stored.pin.as_ref());
        match (way, &looked.staged, pinned) {
            (Way::Snapshot, Some(staged), Some(pin)) => {
                let moved = pin.folder.path != looked.folder.path;
                let ahead = staged.pin(&looked, pin, &self.hub.machine)?;
                self.hub.restored_held(c.id, holder, &ahead).await?;
                let put_back = staged
                    .put_in_place(&looked, ahead)
                    .await
                    .map_err(Error::io("restoring the session"))?;
                let confirmed = told_where(&looked, &put_back.pin, self.hub.clock()).await?;
                let mut pin = put_back.pin;
                let file = looked.home.join(&confirmed.file.path);
                pin.files = vec![confirmed.file];
                self.hub.restored_held(c.id, holder, &pin).await?;
                Ok(Now::Restored {
                    file,
                    from: staged.told(moved),
                    aside: put_back.aside,
                })
            }
            (Way::InPlace | Way::Live | Way::Snapshot | Way::Fork, _, _) => {
                let mark = looked.session.as_ref().and_then(|s| s.mark.as_ref());
                let file = mark.map(|mark| looked.home.join(&mark.path));
                Ok(file.map_or(Now::Nothing, |file| Now::Here { file }))
            }
        }
    }
}

/// Why the files of a snapshot were not written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unwritten {
    /// What is wrong with the snapshot.
    Unusable(String),
    /// What lies there is somebody's.
    InTheWay(PathBuf),
}

/// Writes the files of a snapshot into a folder, for whoever wants to look at them: checked first.
/// Gives their places there.
pub async fn written_to(
    vault: &Vault,
    snapshot: &Snapshot,
    folder: &Path,
) -> Result<std::result::Result<Vec<PathBuf>, Unwritten>> {
    let io = |error| Error::io("writing the files of a snapshot")(error);
    let unusable = |why: &str| Err(Unwritten::Unusable(why.to_owned()));
    let staging = tempfile::tempdir_in(folder).map_err(io)?;
    // Whoever looks at one of a turn that ran is shown all of it.
    let fetched = async {
        let manifest = manifest_of(snapshot)?;
        fetch(vault, &manifest, Some(staging.path())).await?;
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

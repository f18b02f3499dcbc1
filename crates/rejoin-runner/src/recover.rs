//! Recovers turns that earlier processes left. The next command settles the turns of a killed
//! `rejoin send`, answer, events and cost included; nothing runs twice.

use std::path::Path;
use std::time::Duration;

use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{AttemptPlan, Claimed, is_deferred};
use rejoin_store::{Attempt, Conversation};
use tokio::sync::watch;

use crate::abandoned::{Abandoned, classify, from_another_boot};
use crate::attempt::run_folder;
use crate::error::Result;
use crate::lease::{Ownership, is_open, ownership};
use crate::pump::is_dialogue;
use crate::run::{Repeat, Run};
use crate::turn::Runner;

/// Age after which the folder of an unknown turn is removed.
const FORGOTTEN: Duration = Duration::from_hours(30 * 24);

impl Runner {
    /// Settles every turn that ended while no process followed it. Leaves turns that still run alone.
    ///
    /// Returns messages about turns that could not be settled: one turn must not keep every command from
    /// working.
    pub async fn recover(&self) -> Result<Vec<String>> {
        let mut troubles = vec![];
        for turn in self.hub.running_turns().await? {
            let Ownership::Free(taking) = ownership(&self.hub, self.here()?, &turn).await? else {
                continue;
            };
            if !turn.cancel && self.hub.is_deferred(turn.id).await? {
                continue;
            }
            let taken = self.hub.take_over(&turn, &self.holder()?, taking).await;
            match taken {
                Ok(claimed) => {
                    if let Err(error) = self.pick_up(&claimed, WaitMode::Leave).await {
                        troubles.push(format!("turn {} could not be settled: {error}", turn.id));
                        self.hub.let_go(&claimed).await?;
                    }
                }
                // Another command is settling it.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.tidy().await?;
        Ok(troubles)
    }

    /// Releases conversations whose opener is dead, and removes folders of turns that have ended.
    pub async fn tidy(&self) -> Result<()> {
        self.release_dead().await?;
        self.tidy_warm().await;
        self.sweep().await
    }

    /// Returns conversations with a turn that is queued or that no process follows any more.
    pub async fn unattended(&self) -> Result<Vec<ConversationId>> {
        let (running, mut found) = self.hub.unfinished().await?;
        for turn in running {
            if let Ownership::Free(_) = ownership(&self.hub, self.here()?, &turn).await?
                && (turn.machine == self.hub.machine || !self.hub.is_deferred(turn.id).await?)
            {
                found.push(turn.conversation);
            }
        }
        Ok(found)
    }

    /// Returns turns of this machine that can continue, because their question is answered, and
    /// that no process follows.
    pub async fn answered(&self) -> Result<Vec<(ConversationId, TurnId)>> {
        let mut found = vec![];
        for turn in self.hub.running_turns().await? {
            if turn.machine == self.hub.machine
                && let Ownership::Free(_) = ownership(&self.hub, self.here()?, &turn).await?
                && self.hub.is_deferred(turn.id).await?
            {
                found.push((turn.conversation, turn.id));
            }
        }
        Ok(found)
    }

    /// Releases conversations that a process had open when it died.
    async fn release_dead(&self) -> Result<()> {
        for conversation in self.hub.opened().await? {
            self.release_if_dead(&conversation).await?;
        }
        Ok(())
    }

    /// Releases a conversation if the process that has it open is dead. Returns true if that
    /// process is alive.
    pub(crate) async fn release_if_dead(&self, c: &Conversation) -> Result<bool> {
        let Some(holder) = &c.opened_by else {
            return Ok(false);
        };
        if is_open(&self.hub, self.here()?, c).await? {
            return Ok(true);
        }
        match self.hub.release_open(c.id, holder).await {
            Err(error) if !error.is_conflict() => Err(error.into()),
            Ok(()) | Err(_) => Ok(false),
        }
    }

    /// Continues a turn whose previous holder is gone, from wherever that holder left it.
    pub(crate) async fn pick_up(&self, claimed: &Claimed, wait: WaitMode) -> Result<()> {
        let Some(attempt) = claimed
            .attempts
            .iter()
            .rev()
            .find(|a| a.status == "running")
        else {
            if claimed.attempts.last().is_some_and(is_deferred) {
                return self.resume_or_leave(claimed, wait).await;
            }
            // After a power cut, a database file may have lost the commit that started an attempt.
            // A server loses no commit, and the previous holder can start nothing any more.
            if !self.hub.is_shared() && from_another_boot(claimed)? {
                return self.lose(claimed).await;
            }
            return Ok(self.hub.requeue(claimed).await?);
        };
        let folder = run_folder(&self.config, claimed, &attempt.prompt_id);
        match (classify(&folder, claimed, attempt, self.here()?)?, &wait) {
            (Abandoned::Elsewhere, _) => self.lose_elsewhere(claimed, attempt).await,
            // Earlier runs of the turn must not be repeated, so it continues from the deferred one.
            (Abandoned::NotBegun, _) if claimed.attempts.iter().any(is_deferred) => {
                self.hub.take_back_attempt(claimed, attempt.n).await?;
                let mut claimed = claimed.clone();
                claimed.attempts.retain(|known| known.n != attempt.n);
                self.resume_or_leave(&claimed, wait).await
            }
            (Abandoned::NotBegun, _) => Ok(self.hub.requeue(claimed).await?),
            (Abandoned::Running, WaitMode::Leave) => {
                self.poll_once(claimed, attempt, &folder).await?;
                Ok(self.hub.let_go(claimed).await?)
            }
            (Abandoned::Running, WaitMode::Wait(cancel)) => {
                let settling = self.settle_abandoned(claimed, attempt, &folder, cancel.clone());
                self.holding(claimed, Box::pin(settling)).await
            }
            (Abandoned::Ended, _) => {
                let settling =
                    self.settle_abandoned(claimed, attempt, &folder, watch::channel(false).1);
                self.holding(claimed, Box::pin(settling)).await
            }
        }
    }

    /// Continues a deferred turn. A command that only looks leaves it alone, because it must not
    /// start a new process; it only ends a cancelled one.
    async fn resume_or_leave(&self, claimed: &Claimed, wait: WaitMode) -> Result<()> {
        let cancel = match wait {
            WaitMode::Wait(cancel) => cancel,
            WaitMode::Leave if claimed.turn.cancel => watch::channel(true).1,
            WaitMode::Leave => return Ok(self.hub.let_go(claimed).await?),
        };
        let resuming = self.resume_deferred(claimed, cancel);
        self.holding(claimed, Box::pin(resuming)).await?;
        Ok(())
    }

    /// Publishes the questions of a run and passes answers on to it before it is left alone.
    /// Applies only to a run that may ask people, and to a dialogue, which would otherwise wait for
    /// ever.
    async fn poll_once(&self, claimed: &Claimed, attempt: &Attempt, folder: &Path) -> Result<()> {
        if !folder.exists() {
            return Ok(());
        }
        let run = self.started_run(claimed, attempt, folder)?;
        if !(run.plan.asks || is_dialogue(folder)) {
            return Ok(());
        }
        let never = watch::channel(false).1;
        self.pump(&run, None, never).poll_once().await
    }

    /// Follows and settles a run that another process started.
    async fn settle_abandoned(
        &self,
        claimed: &Claimed,
        attempt: &Attempt,
        folder: &Path,
        cancel: watch::Receiver<bool>,
    ) -> Result<()> {
        let run = self.started_run(claimed, attempt, folder)?;
        let end = self.follow(&run, None, cancel).await?;
        match run.repeat(&end).await {
            Some(Repeat::NotDelivered) => Ok(self.hub.requeue(claimed).await?),
            Some(Repeat::Refused) => {
                self.retire_refused(&run).await?;
                Ok(self.hub.requeue(claimed).await?)
            }
            None => {
                self.conclude(run, end).await?;
                Ok(())
            }
        }
    }

    /// Loads a run that another process started.
    fn started_run<'c>(
        &self,
        claimed: &'c Claimed,
        attempt: &Attempt,
        folder: &Path,
    ) -> Result<Run<'c>> {
        Ok(Run {
            claimed,
            adapter: self.config.adapter_of(claimed)?,
            plan: AttemptPlan::read(attempt)?,
            attempt: attempt.clone(),
            record: claimed.turn.record.clone(),
            folder: folder.to_owned(),
            program: None,
        })
    }

    /// Removes folders of turns that have ended.
    async fn sweep(&self) -> Result<()> {
        let Ok(folders) = fs_err::read_dir(self.config.home.join("turns")) else {
            return Ok(());
        };
        for entry in folders.flatten() {
            let Some(turn) = entry
                .file_name()
                .to_str()
                .and_then(|name| name.parse::<TurnId>().ok())
            else {
                continue;
            };
            let over = match self.hub.stored_turn(turn).await? {
                Some(turn) => turn.status.ended(),
                // The folder may belong to another store that is used with this home.
                None => is_old(&entry.path()),
            };
            if over {
                drop(fs_err::remove_dir_all(entry.path()));
            }
        }
        Ok(())
    }
}

/// Returns true if the folder is so old that it belongs to no turn of any store.
fn is_old(folder: &Path) -> bool {
    let changed = fs_err::metadata(folder).and_then(|meta| meta.modified());
    let age = changed.ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > FORGOTTEN)
}

/// Behaviour for a turn whose CLI still runs or whose question is open.
pub(crate) enum WaitMode {
    /// Leaves the turn alone.
    Leave,
    /// Follows it to its end, or until cancelled.
    Wait(watch::Receiver<bool>),
}

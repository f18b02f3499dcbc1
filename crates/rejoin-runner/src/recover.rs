//! Picks up what earlier processes left: the turns of a `rejoin send` that was killed are settled by
//! the next command, answer, events and cost included; nothing is run twice.

use std::path::Path;
use std::time::Duration;

use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, AttemptPlan, Claimed, Next, Taking};
use rejoin_store::{Attempt, Conversation, StoredTurn};
use tokio::sync::watch;

use crate::attempt::run_folder;
use crate::error::{Error, Result};
use crate::lease::{Hands, hands, is_open};
use crate::left::{Left, from_another_boot, left};
use crate::pump::Pump;
use crate::settle::{Written, clear_away, refused_cleanly, settle};
use crate::turn::{IfBusy, Runner};

/// How often a turn in other hands is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// After this a folder belongs to no turn that anybody still asks for.
const FORGOTTEN: Duration = Duration::from_hours(30 * 24);

impl Runner {
    /// Settles every turn that ended while nobody was there. Leaves those that still run alone.
    ///
    /// Gives back what could not be settled: one turn must not keep every command from working.
    pub async fn recover(&self) -> Result<Vec<String>> {
        let mut troubles = vec![];
        let running = self.hub.store.read().await?.running_turns().await;
        for turn in running? {
            let Hands::Free(taking) = hands(&self.hub, self.here()?, &turn).await? else {
                continue;
            };
            let taken = self.hub.take_over(&turn, &self.holder()?, taking).await;
            match taken {
                Ok(claimed) => {
                    if let Err(error) = self.pick_up(&claimed, Patience::Leave).await {
                        troubles.push(format!("turn {} could not be settled: {error}", turn.id));
                        self.hub.let_go(&claimed).await?;
                    }
                }
                // Another command is at it.
                Err(error) if error.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
        self.release_dead().await?;
        self.sweep().await?;
        Ok(troubles)
    }

    /// Whoever had a conversation open and died has it open no longer.
    async fn release_dead(&self) -> Result<()> {
        let opened = {
            let mut read = self.hub.store.read().await?;
            read.opened().await?
        };
        for conversation in opened {
            self.release_if_dead(&conversation).await?;
        }
        Ok(())
    }

    /// True: whoever has it open lives.
    async fn release_if_dead(&self, c: &Conversation) -> Result<bool> {
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

    /// Runs a turn that was just accepted: at once if it is in hand, else when its time has come.
    pub async fn run_accepted(
        &self,
        accepted: &Accepted,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        match &accepted.claimed {
            Some(claimed) => {
                rejoin_hub::fault::point("after_claim");
                self.run(claimed, if_busy, cancel.clone()).await
            }
            None => {
                let (c, turn) = (accepted.conversation, accepted.turn);
                self.run_until(c, turn, if_busy, cancel).await
            }
        }
    }

    /// Runs what is queued in a conversation, in order, until `turn` has ended.
    pub async fn run_until(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        loop {
            if *cancel.borrow() && self.hub.withdraw_queued(turn).await? {
                return Err(Error::Cancelled);
            }
            let stored = self.hub.store.read().await?.turn(turn).await;
            match stored? {
                None => {
                    return Err(rejoin_hub::Error::NotFound("the turn was withdrawn".into()).into());
                }
                Some(turn) if turn.status.ended() => return Ok(()),
                Some(_) => {}
            }
            match self.hub.next(c).await? {
                Next::Idle => {}
                Next::Queued(next) => match self.hub.claim(next, &self.holder()?).await {
                    Ok(claimed) => {
                        rejoin_hub::fault::point("after_claim");
                        if next == turn {
                            return self.run(&claimed, if_busy, cancel.clone()).await;
                        }
                        self.run_before(&claimed, cancel.clone()).await?;
                    }
                    Err(error) if error.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                },
                Next::Held(held) => match hands(&self.hub, self.here()?, &held).await? {
                    Hands::Held => tokio::time::sleep(LOOK_AGAIN).await,
                    Hands::Free(taking) => self.take_up(&held, taking, turn, cancel).await?,
                },
                Next::Opened(opened) => {
                    if self.release_if_dead(&opened).await? {
                        tokio::time::sleep(LOOK_AGAIN).await;
                    }
                }
            }
        }
    }

    /// Takes over a turn that nobody holds: `ours`, or one that comes before it.
    async fn take_up(
        &self,
        held: &StoredTurn,
        taking: Taking,
        ours: TurnId,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        match self.hub.take_over(held, &self.holder()?, taking).await {
            Ok(claimed) if held.id == ours => {
                self.pick_up(&claimed, Patience::Wait(cancel.clone())).await
            }
            Ok(claimed) => self.let_finish(&claimed, cancel.clone()).await,
            Err(error) if error.is_conflict() => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Runs somebody else's turn that comes before ours. To stop waiting for it is not to cancel it.
    async fn run_before(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            ran = self.run(claimed, IfBusy::Wait, never) => match ran {
                Err(error @ Error::Hub(_)) => Err(error),
                // How it went is said in the turn, or to whoever sent it.
                Ok(()) | Err(_) => Ok(()),
            },
            Ok(_) = cancel.wait_for(|asked| *asked) => Ok(self.hub.let_go(claimed).await?),
        }
    }

    /// Sees a turn before ours to its end. To stop waiting for it is not to cancel it.
    async fn let_finish(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            done = self.pick_up(claimed, Patience::Wait(never)) => done,
            Ok(_) = cancel.wait_for(|asked| *asked) => Ok(self.hub.let_go(claimed).await?),
        }
    }

    async fn pick_up(&self, claimed: &Claimed, patience: Patience) -> Result<()> {
        let Some(attempt) = claimed
            .attempts
            .iter()
            .rev()
            .find(|a| a.status == "running")
        else {
            // After a power cut a file may have forgotten that it was started; a server does not, and
            // whoever held it can begin nothing any more.
            if !self.hub.store.is_shared() && from_another_boot(claimed)? {
                return self.lose(claimed).await;
            }
            return Ok(self.hub.requeue(claimed).await?);
        };
        let folder = run_folder(&self.config, claimed, &attempt.prompt_id);
        match (left(&folder, claimed, attempt, self.here()?)?, &patience) {
            (Left::Elsewhere, _) => self.lose_elsewhere(claimed, attempt).await,
            (Left::NotBegun, _) => Ok(self.hub.requeue(claimed).await?),
            (Left::Running, Patience::Leave) => Ok(self.hub.let_go(claimed).await?),
            (Left::Running, Patience::Wait(cancel)) => {
                let settling = self.settle_left(claimed, attempt, &folder, cancel.clone());
                self.holding(claimed, settling).await
            }
            (Left::Ended, _) => {
                let settling = self.settle_left(claimed, attempt, &folder, watch::channel(false).1);
                self.holding(claimed, settling).await
            }
        }
    }

    async fn settle_left(
        &self,
        claimed: &Claimed,
        attempt: &Attempt,
        folder: &Path,
        cancel: watch::Receiver<bool>,
    ) -> Result<()> {
        let name = claimed.turn.agent.as_str();
        let adapter = self
            .config
            .adapter(name)
            .ok_or_else(|| Error::UnknownAgent(name.to_owned()))?;
        let plan = AttemptPlan::read(attempt)?;
        let pump = Pump {
            link: &self.hub,
            claimed,
            n: attempt.n,
            folder,
            committed: attempt.spool as u64,
            asked: plan.asked_session(),
            resumed: plan.continues(),
            child: None,
            cancel,
            wake: &self.wake,
        };
        let mut pumped = pump.follow(adapter.parser()).await?;
        clear_away(claimed, &mut pumped)?;
        let clean = refused_cleanly(adapter, attempt, &plan, folder, &pumped.ran).await;
        if plan.continues() && clean {
            // Its session is unknown to the CLI and nothing was done: it is tried anew, told.
            self.hub
                .retire(claimed, attempt.pin, "refused by the CLI")
                .await?;
            return Ok(self.hub.requeue(claimed).await?);
        }
        let record = claimed.turn.record.clone();
        let written = Written {
            adapter,
            attempt,
            plan: &plan,
            record,
            folder,
            models: &self.config.models,
        };
        let mut settled = settle(claimed, written, pumped, &self.hub.machine).await;
        let before = plan.confirmed.as_ref().map(|c| &c.file);
        self.capture(adapter, before, &mut settled).await;
        self.finish(claimed, &settled).await
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
            let stored = self.hub.store.read().await?.turn(turn).await;
            let over = match stored? {
                Some(turn) => turn.status.ended(),
                // Of another store that this home is used with, perhaps: not ours to end.
                None => is_old(&entry.path()),
            };
            if over {
                drop(fs_err::remove_dir_all(entry.path()));
            }
        }
        Ok(())
    }
}

/// So old that no turn of any store is in it any more.
fn is_old(folder: &Path) -> bool {
    let changed = fs_err::metadata(folder).and_then(|meta| meta.modified());
    let age = changed.ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age > FORGOTTEN)
}

enum Patience {
    Leave,
    Wait(watch::Receiver<bool>),
}

//! Picks up what earlier processes left: the turns of a `rejoin send` that was killed are settled by
//! the next command, answer, events and cost included; nothing is run twice.

use std::path::Path;
use std::time::Duration;

use rejoin_agents::Adapter;
use rejoin_core::{ConversationId, TurnId};
use rejoin_hub::{Accepted, AttemptPlan, Claimed, Hub, Next, Taking, is_deferred};
use rejoin_store::{Attempt, Conversation, StoredTurn};
use tokio::sync::watch;

use crate::attempt::run_folder;
use crate::deferred::Stands;
use crate::error::{Error, Result};
use crate::lease::{Hands, hands, is_open};
use crate::left::{Left, from_another_boot, left};
use crate::meanwhile::Running;
use crate::pump::{Pump, idle_limit, is_led, reader_of};
use crate::settle::{Written, clear_away, refused_cleanly};
use crate::turn::{IfBusy, Runner};
use crate::warm::{see_off, unheard, was_silent};

/// How often a turn in other hands is looked at.
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// How often one that waits for an answer is.
const LOOK_FOR_ANSWERS: Duration = Duration::from_millis(200);

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
            if !turn.cancel && self.hub.is_deferred(turn.id).await? {
                continue;
            }
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
        self.tidy().await?;
        Ok(troubles)
    }

    /// Conversations that are open nowhere any more, and folders of turns that have ended.
    pub async fn tidy(&self) -> Result<()> {
        self.release_dead().await?;
        self.tidy_warm().await;
        self.sweep().await
    }

    /// Conversations with a turn that waits in the queue or that nobody follows any more.
    pub async fn unattended(&self) -> Result<Vec<ConversationId>> {
        let (running, mut found) = {
            let mut read = self.hub.store.read().await?;
            let queued = read.queued_conversations(&self.hub.machine).await?;
            (read.running_turns().await?, queued)
        };
        for turn in running {
            if let Hands::Free(_) = hands(&self.hub, self.here()?, &turn).await?
                && (turn.machine == self.hub.machine || !self.hub.is_deferred(turn.id).await?)
            {
                found.push(turn.conversation);
            }
        }
        Ok(found)
    }

    /// Turns of this machine that could go on, since what they asked is answered, and that nobody sees
    /// to.
    pub async fn answered(&self) -> Result<Vec<(ConversationId, TurnId)>> {
        let running = self.hub.store.read().await?.running_turns().await?;
        let mut found = vec![];
        for turn in running {
            if turn.machine == self.hub.machine
                && let Hands::Free(_) = hands(&self.hub, self.here()?, &turn).await?
                && self.hub.is_deferred(turn.id).await?
            {
                found.push((turn.conversation, turn.id));
            }
        }
        Ok(found)
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

    /// Runs a turn that was just accepted: at once if it is in hand, else when its time has come.
    pub async fn run_accepted(
        &self,
        accepted: &Accepted,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        if let Some(claimed) = &accepted.claimed {
            rejoin_hub::fault::point("after_claim");
            if self.run(claimed, if_busy, cancel.clone()).await? == Stands::Over {
                return Ok(());
            }
        }
        let (c, turn) = (accepted.conversation, accepted.turn);
        self.run_until(c, turn, if_busy, cancel).await
    }

    /// Runs what is queued in a conversation, in order, until `turn` has ended.
    pub async fn run_until(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        self.run_on(c, turn, if_busy, cancel, Resting::Wait).await
    }

    /// The same, or until it waits for a person without a process.
    pub async fn run_to_rest(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
    ) -> Result<()> {
        self.run_on(c, turn, if_busy, cancel, Resting::Leave).await
    }

    async fn run_on(
        &self,
        c: ConversationId,
        turn: TurnId,
        if_busy: IfBusy,
        cancel: &watch::Receiver<bool>,
        resting: Resting,
    ) -> Result<()> {
        let mut wake = self.wake.subscribe();
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
                            match self.run(&claimed, if_busy, cancel.clone()).await? {
                                Stands::Over => return Ok(()),
                                Stands::Rests => continue,
                            }
                        }
                        self.run_before(&claimed, cancel.clone()).await?;
                    }
                    Err(error) if error.is_conflict() => {}
                    Err(error) => return Err(error.into()),
                },
                Next::Held(held) => match hands(&self.hub, self.here()?, &held).await? {
                    Hands::Held => tokio::time::sleep(LOOK_AGAIN).await,
                    Hands::Free(taking) => self.take_up(&held, taking, turn, cancel).await?,
                    Hands::Resting if held.id == turn && *cancel.borrow() => {
                        self.hub.ask_cancel(turn).await?;
                    }
                    Hands::Resting if held.id == turn && resting == Resting::Leave => return Ok(()),
                    Hands::Resting => {
                        // Whoever answers in this process says so.
                        let _waked = tokio::time::timeout(LOOK_FOR_ANSWERS, wake.changed()).await;
                    }
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
        let claimed = match self.hub.take_over(held, &self.holder()?, taking).await {
            Ok(claimed) => claimed,
            Err(error) if error.is_conflict() => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        let done = if held.id == ours {
            self.pick_up(&claimed, Patience::Wait(cancel.clone())).await
        } else {
            self.let_finish(&claimed, cancel.clone()).await
        };
        // Else nobody could try again while this process lives.
        if done.is_err() {
            drop(self.hub.let_go(&claimed).await);
        }
        done
    }

    /// Runs somebody else's turn that comes before ours. To stop waiting for it is not to cancel it.
    async fn run_before(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            ran = self.run(claimed, IfBusy::Wait, never) => match ran {
                Err(error @ Error::Hub(_)) => Err(error),
                // How it went is said in the turn, or to whoever sent it.
                Ok(_) | Err(_) => Ok(()),
            },
            () = told_to_stop(&mut cancel) => Ok(self.hub.let_go(claimed).await?),
        }
    }

    /// Sees a turn before ours to its end. To stop waiting for it is not to cancel it.
    async fn let_finish(&self, claimed: &Claimed, mut cancel: watch::Receiver<bool>) -> Result<()> {
        let (_open, never) = watch::channel(false);
        tokio::select! {
            done = self.pick_up(claimed, Patience::Wait(never)) => done,
            () = told_to_stop(&mut cancel) => Ok(self.hub.let_go(claimed).await?),
        }
    }

    async fn pick_up(&self, claimed: &Claimed, patience: Patience) -> Result<()> {
        let Some(attempt) = claimed
            .attempts
            .iter()
            .rev()
            .find(|a| a.status == "running")
        else {
            if claimed.attempts.last().is_some_and(is_deferred) {
                return self.go_on_or_leave(claimed, patience).await;
            }
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
            // What the runs before it did is not done again.
            (Left::NotBegun, _) if claimed.attempts.iter().any(is_deferred) => {
                self.hub.take_back_attempt(claimed, attempt.n).await?;
                let mut claimed = claimed.clone();
                claimed.attempts.retain(|known| known.n != attempt.n);
                self.go_on_or_leave(&claimed, patience).await
            }
            (Left::NotBegun, _) => Ok(self.hub.requeue(claimed).await?),
            (Left::Running, Patience::Leave) => {
                self.attend(claimed, attempt, &folder).await?;
                Ok(self.hub.let_go(claimed).await?)
            }
            (Left::Running, Patience::Wait(cancel)) => {
                let settling = self.settle_left(claimed, attempt, &folder, cancel.clone());
                self.holding(claimed, Box::pin(settling)).await
            }
            (Left::Ended, _) => {
                let settling = self.settle_left(claimed, attempt, &folder, watch::channel(false).1);
                self.holding(claimed, Box::pin(settling)).await
            }
        }
    }

    /// A new process is nothing that a command which only looks would start.
    async fn go_on_or_leave(&self, claimed: &Claimed, patience: Patience) -> Result<()> {
        let cancel = match patience {
            Patience::Wait(cancel) => cancel,
            Patience::Leave if claimed.turn.cancel => watch::channel(true).1,
            Patience::Leave => return Ok(self.hub.let_go(claimed).await?),
        };
        let going_on = self.go_on(claimed, cancel);
        self.holding(claimed, Box::pin(going_on)).await?;
        Ok(())
    }

    /// A run that may ask people is not left without a look: what it asks is shown, and what was said to
    /// it is passed on. Nor is one that is led: it would wait for ever.
    async fn attend(&self, claimed: &Claimed, attempt: &Attempt, folder: &Path) -> Result<()> {
        let plan = AttemptPlan::read(attempt)?;
        if !folder.exists() || !(plan.asks || is_led(folder)) {
            return Ok(());
        }
        let adapter = self.adapter_of(claimed)?;
        let never = watch::channel(false).1;
        let pump = self.pump(claimed, attempt, &plan, folder, never);
        pump.attend(reader_of(adapter, folder)).await
    }

    fn adapter_of(&self, claimed: &Claimed) -> Result<&'static dyn Adapter> {
        let name = claimed.turn.agent.as_str();
        let adapter = self.config.adapter(name);
        adapter.ok_or_else(|| Error::UnknownAgent(name.to_owned()))
    }

    /// On a run that another process began.
    fn pump<'p>(
        &'p self,
        claimed: &'p Claimed,
        attempt: &Attempt,
        plan: &AttemptPlan,
        folder: &'p Path,
        cancel: watch::Receiver<bool>,
    ) -> Pump<'p, Hub> {
        Pump {
            link: &self.hub,
            claimed,
            n: attempt.n,
            folder,
            committed: attempt.spool as u64,
            asks: plan.asks,
            asked: plan.asked_session(),
            resumed: plan.continues(),
            child: None,
            cancel,
            idle: idle_limit(&self.config, claimed),
            wake: &self.wake,
        }
    }

    async fn settle_left(
        &self,
        claimed: &Claimed,
        attempt: &Attempt,
        folder: &Path,
        cancel: watch::Receiver<bool>,
    ) -> Result<()> {
        let adapter = self.adapter_of(claimed)?;
        let plan = AttemptPlan::read(attempt)?;
        let pump = self.pump(claimed, attempt, &plan, folder, cancel);
        let running = Running {
            adapter,
            claimed,
            plan: &plan,
            pin: attempt.pin,
            folder,
        };
        let follow = pump.follow(reader_of(adapter, folder));
        let mut pumped = self.keeping(&running, follow).await?;
        clear_away(claimed, &mut pumped)?;
        let silent = was_silent(folder);
        see_off(folder, &pumped).await;
        if unheard(adapter, &plan, folder, silent, &pumped).await {
            return Ok(self.hub.requeue(claimed).await?);
        }
        let clean = refused_cleanly(adapter, attempt, &plan, folder, &pumped.ran).await;
        if plan.continues() && plan.so_far.is_none() && clean {
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
        self.conclude(claimed, written, pumped).await?;
        Ok(())
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

/// Until somebody says so; for ever, if nobody is left who could.
pub(crate) async fn told_to_stop(cancel: &mut watch::Receiver<bool>) {
    if cancel.wait_for(|asked| *asked).await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// What to do about a turn that waits without a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resting {
    Wait,
    Leave,
}

enum Patience {
    Leave,
    Wait(watch::Receiver<bool>),
}

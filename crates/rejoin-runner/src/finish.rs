//! Ends turns: commits the settlement of a run, or ends a turn for which nothing ran.

use rejoin_core::{Class, Cost, Failure, Micros, TurnStatus};
use rejoin_hub::{Claimed, LOCAL_ONLY, PinEnd, Settled, fault};
use rejoin_store::TurnRecord;

use crate::attempt::{run_folder, turn_folder};
use crate::config::Unrun;
use crate::error::{Error, Result};
use crate::shim::void;
use crate::turn::{Runner, TurnState};

impl Runner {
    /// Commits the end of a turn, removes its folder, and saves sessions that are still unsaved.
    pub(crate) async fn finish(&self, claimed: &Claimed, settled: &Settled) -> Result<()> {
        fault::point("before_finish");
        if let Err(error) = self.hub.finish(claimed, settled).await {
            // The turn must end even if its session cannot be saved.
            let without = settled.snapshot.is_some() && !error.is_conflict();
            let without = without.then(|| settled.without_snapshot(&error.to_string()));
            match without {
                Some(settled) => self.hub.finish(claimed, &settled).await?,
                None => return Err(error.into()),
            }
        }
        fault::point("after_finish");
        self.wake.send_modify(|n| *n += 1);
        self.clean_up(claimed);
        fault::point("after_cleanup");
        match (&settled.pin, &settled.snapshot) {
            (PinEnd::Confirm(pin), Some(_)) => self.save_the_others(pin.id).await,
            (PinEnd::PutBack { id, .. }, _) => self.save_again(*id).await,
            (
                PinEnd::None
                | PinEnd::Untouched(_)
                | PinEnd::Confirm(_)
                | PinEnd::Retire { .. }
                | PinEnd::Lost { .. },
                _,
            ) => {}
        }
        Ok(())
    }

    /// Removes the folder of a turn. If that fails, the next command removes it.
    pub(crate) fn clean_up(&self, claimed: &Claimed) {
        drop(fs_err::remove_dir_all(turn_folder(&self.config, claimed)));
    }

    /// Ends or withdraws a turn for which nothing ran.
    pub(crate) async fn not_run(&self, claimed: &Claimed, error: &Error) -> Result<()> {
        if self.config.unrun == Unrun::TakenBack && !claimed.is_named_elsewhere() {
            return Ok(self.hub.withdraw(claimed).await?);
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "only a cancellation is left"
        )]
        let class = match error {
            Error::WouldReseed { .. } => Class::WouldReseed,
            Error::Permissions(_) => Class::Permissions,
            Error::InUse { .. } => Class::InUse,
            _ => return Ok(self.hub.cancel_unrun(claimed).await?),
        };
        let why = error.to_string();
        Ok(self.hub.fail_unrun(claimed, class, why).await?)
    }

    /// Ends the turn `failed` because its run could not be started; the message is kept. If a CLI
    /// was started all the same, gives the turn up so that it is recovered like an abandoned one.
    pub(crate) async fn not_started(&self, claimed: &Claimed, error: &Error) -> Result<TurnState> {
        let written_ahead = self.hub.running_attempt(claimed.turn.id).await?;
        let mut pin = PinEnd::None;
        if let Some(attempt) = &written_ahead {
            let folder = run_folder(&self.config, claimed, &attempt.prompt_id);
            if folder.exists() && !void(&folder).map_err(Error::io("calling off a run"))? {
                let turn = claimed.turn.id;
                tracing::warn!(%turn, %error, "A turn went wrong and is taken up again");
                self.hub.let_go(claimed).await?;
                return Ok(TurnState::Released);
            }
            pin = PinEnd::Untouched(attempt.pin);
        }
        let full = |source: &std::io::Error| source.kind() == std::io::ErrorKind::StorageFull;
        let failure = Failure {
            class: if matches!(error, Error::Io { source, .. } if full(source)) {
                Class::DiskFull
            } else {
                Class::NotStarted
            },
            message: error.to_string(),
        };
        let attempt = written_ahead.map(|a| a.n);
        let settled = without_run(TurnStatus::Failed, failure, attempt, pin);
        self.finish(claimed, &settled).await?;
        Ok(TurnState::Ended)
    }
}

/// Builds the settlement of a turn without a finished run.
pub(crate) fn without_run(
    status: TurnStatus,
    failure: Failure,
    attempt: Option<i64>,
    pin: PinEnd,
) -> Settled {
    Settled {
        status,
        answer: None,
        error: Some(failure),
        trail: vec![],
        record: TurnRecord::default(),
        model: None,
        usage: None,
        cost: Cost::Known(Micros(0)),
        context: None,
        denied: serde_json::json!([]),
        saved: LOCAL_ONLY.into(),
        snapshot: None,
        unsaved: None,
        attempt,
        ended_at: None,
        ran_ms: None,
        pin,
        outside: vec![],
    }
}

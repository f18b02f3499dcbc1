//! Runs workflows: continues every run that nobody holds, until it ends.

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use rejoin_core::{TurnId, WorkflowId};
use rejoin_hub::{Accepted, IfBusy};
use rejoin_runner::Result;
use rejoin_runner::workflow::Turns;
use tokio::sync::watch;
use tokio::task::spawn_local;

use crate::state::App;

/// Interval in which runs are looked for that no process holds.
const LOOK: Duration = Duration::from_secs(1);
/// Interval between two looks at a turn that the queue runs.
const POLL: Duration = Duration::from_millis(50);

/// Continues runs for ever. Runs on the thread of the turns.
pub(crate) async fn go_on(app: App) {
    let at_work: Rc<RefCell<BTreeSet<WorkflowId>>> = Rc::default();
    loop {
        if let Err(error) = look(&app, &at_work).await {
            tracing::warn!(%error, "Runs of workflows could not be looked for");
        }
        let _waked = tokio::time::timeout(LOOK, app.workflows.notified()).await;
    }
}

/// Starts a task for each run that no process holds.
async fn look(app: &App, at_work: &Rc<RefCell<BTreeSet<WorkflowId>>>) -> Result<()> {
    let runner = &app.runner;
    for run in runner.hub.running_workflows().await? {
        if at_work.borrow().contains(&run.id) {
            continue;
        }
        let holder = runner.holder()?;
        if run.holder.as_deref() == Some(&holder) {
            // An earlier task of this process could not let go of it.
            runner.hub.let_go_workflow(run.id, &holder).await?;
        } else if runner.is_workflow_held(&run).await? {
            continue;
        }
        at_work.borrow_mut().insert(run.id);
        let (app, at_work) = (Arc::clone(app), Rc::clone(at_work));
        spawn_local(async move {
            let (turns, stop) = (Queued(Arc::clone(&app)), app.ending.clone());
            let ran = app
                .runner
                .run_workflow(run.id, &app.defaults, &turns, stop)
                .await;
            if let Err(error) = ran {
                tracing::warn!(workflow = %run.id, %error, "A run of a workflow is continued later");
                tokio::time::sleep(LOOK).await;
            }
            at_work.borrow_mut().remove(&run.id);
        });
    }
    Ok(())
}

/// Turns that the daemon's queue runs, within its limits.
struct Queued(App);

impl Turns for Queued {
    fn holder(&self) -> Option<String> {
        None
    }

    fn cancel(&self, turn: TurnId) {
        self.0.queue.cancel(turn);
    }

    async fn run(&self, accepted: Accepted) -> Result<()> {
        let turn = accepted.turn;
        self.0.queue.take_accepted(accepted, IfBusy::Wait);
        let mut wake: watch::Receiver<u64> = self.0.runner.wake.subscribe();
        loop {
            let Some(stored) = self.0.runner.hub.stored_turn(turn).await? else {
                return Ok(());
            };
            if stored.status.ended() || self.0.runner.hub.is_deferred(turn).await? {
                return Ok(());
            }
            let _waked = tokio::time::timeout(POLL * 4, wake.changed()).await;
            tokio::time::sleep(POLL / 10).await;
        }
    }
}

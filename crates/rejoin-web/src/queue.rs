//! Runs accepted turns: one task per conversation that has work to do.
//!
//! All tasks live on one thread, beside the one that serves requests. Orders arrive over a channel, and
//! the sender does not wait for them. A turn that needs a process of its agent waits for a place; a turn
//! that has begun, or waits for a person without a process, needs none.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rejoin_core::{AgentName, ConversationId, TurnId};
use rejoin_hub::Keep;
use rejoin_hub::{Accepted, IfBusy, TurnRequest};
use rejoin_runner::{Pending, Prediction, Runner};
use rejoin_store::Conversation;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;

use crate::places::{Place, Places};

/// Time within which turns that other processes left are found.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// Pause before a conversation is tried again after an error of the store.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// Interval between two checks of a conversation that waits for another process.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);
/// Interval at which folders of turns, and conversations that were left open, are cleaned up.
const TIDY_EVERY: Duration = Duration::from_mins(10);

/// Handle for sending orders, cheap to clone.
#[derive(Clone)]
pub(crate) struct Queue {
    orders: mpsc::UnboundedSender<Order>,
    working: Arc<AtomicUsize>,
    places: Places,
    /// Counter that increases when a conversation has nothing more to do.
    rested: watch::Sender<u64>,
}

enum Order {
    Take(ConversationId, Option<Box<InHand>>),
    Cancel(TurnId),
    CancelAll,
    Foresee(Box<Question>),
}

/// Turn that was claimed when it was accepted.
struct InHand {
    accepted: Accepted,
    if_busy: IfBusy,
}

/// Request for a prediction of the next turn.
struct Question {
    conversation: Conversation,
    agent: AgentName,
    request: TurnRequest,
    answer: oneshot::Sender<rejoin_runner::Result<Prediction>>,
}

/// Receiving end: runs on a thread on which tasks need not be `Send`.
pub(crate) struct Workshop {
    orders: mpsc::UnboundedReceiver<Order>,
    benches: Benches,
}

/// State of all conversations with work, cheap to clone.
#[derive(Clone)]
struct Benches {
    runner: Arc<Runner>,
    queue: Queue,
    /// Time for which snapshots are kept.
    keep: Keep,
    at_work: Rc<RefCell<HashMap<ConversationId, Work>>>,
    /// True while turns without a task are being searched for.
    looking: Rc<Cell<bool>>,
}

/// Conversation with a task.
#[derive(Default)]
struct Work {
    /// True if an order came since its task last checked.
    more: bool,
    /// Turns that run now, with their cancel signals.
    turns: Vec<(TurnId, watch::Sender<bool>)>,
}

impl Queue {
    pub(crate) fn new(
        runner: Arc<Runner>,
        keep: Keep,
        max_running: usize,
    ) -> (Self, impl FnOnce() -> Workshop + Send) {
        let (orders, taken) = mpsc::unbounded_channel();
        let queue = Self {
            orders,
            working: Arc::default(),
            places: Places::new(max_running),
            rested: watch::Sender::new(0),
        };
        let own = queue.clone();
        let workshop = move || Workshop {
            orders: taken,
            benches: Benches {
                runner,
                queue: own,
                keep,
                at_work: Rc::default(),
                looking: Rc::default(),
            },
        };
        (queue, workshop)
    }

    /// Orders that the turns of this conversation be run.
    pub(crate) fn take(&self, c: ConversationId) {
        self.say(Order::Take(c, None));
    }

    /// Orders that an accepted turn be run, which may be claimed already.
    pub(crate) fn take_accepted(&self, accepted: Accepted, if_busy: IfBusy) {
        let c = accepted.conversation;
        let in_hand = accepted.claimed.is_some();
        let in_hand = in_hand.then(|| Box::new(InHand { accepted, if_busy }));
        self.say(Order::Take(c, in_hand));
    }

    /// Cancels the turn if it runs in this daemon.
    pub(crate) fn cancel(&self, turn: TurnId) {
        self.say(Order::Cancel(turn));
    }

    /// Returns true if an agent could be started now.
    pub(crate) fn has_place(&self) -> bool {
        self.places.is_free()
    }

    /// Cancels all running turns. Turns that wait for a place stay in the store.
    pub(crate) fn cancel_all(&self) {
        self.places.close();
        self.say(Order::CancelAll);
    }

    /// Predicts the next turn. Returns None if the daemon is about to end.
    pub(crate) async fn foresee(
        &self,
        conversation: Conversation,
        agent: AgentName,
        request: TurnRequest,
    ) -> Option<rejoin_runner::Result<Prediction>> {
        let (answer, answered) = oneshot::channel();
        self.say(Order::Foresee(Box::new(Question {
            conversation,
            agent,
            request,
            answer,
        })));
        answered.await.ok()
    }

    /// Returns the number of conversations with running work.
    pub(crate) fn working(&self) -> usize {
        self.working.load(Ordering::Relaxed)
    }

    /// Waits until nothing runs here.
    pub(crate) async fn rest(&self) {
        let mut rested = self.rested.subscribe();
        while self.working() > 0 {
            if rested.changed().await.is_err() {
                return;
            }
        }
    }

    /// Sends an order. There is no receiver only when the daemon ends; then the store has the turn.
    fn say(&self, order: Order) {
        drop(self.orders.send(order));
    }
}

impl Workshop {
    /// Carries out orders, and finds turns without a task, for ever.
    pub(crate) async fn go_on(mut self) {
        spawn_local(tidy(Arc::clone(&self.benches.runner), self.benches.keep));
        let mut look = tokio::time::interval(LOOK_AGAIN);
        look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                order = self.orders.recv() => match order {
                    Some(order) => self.benches.carry_out(order),
                    None => return,
                },
                _ = look.tick() => self.benches.look_around(),
            }
        }
    }
}

async fn tidy(runner: Arc<Runner>, keep: Keep) {
    loop {
        // Work that fails now is done the next time.
        drop(runner.tidy().await);
        drop(runner.hub.sweep_daily(keep).await);
        tokio::time::sleep(TIDY_EVERY).await;
    }
}

impl Benches {
    fn carry_out(&self, order: Order) {
        match order {
            Order::Take(c, in_hand) => self.take(c, in_hand),
            Order::Cancel(turn) => self.cancel(|running| running == turn),
            Order::CancelAll => self.cancel(|_| true),
            Order::Foresee(question) => {
                let runner = Arc::clone(&self.runner);
                spawn_local(async move {
                    let Question {
                        conversation,
                        agent,
                        request,
                        answer,
                    } = *question;
                    let seen = runner.predict(&conversation, &agent, &request).await;
                    drop(answer.send(seen));
                });
            }
        }
    }

    fn take(&self, c: ConversationId, in_hand: Option<Box<InHand>>) {
        let known = self.at_work.borrow().contains_key(&c);
        if !known {
            self.at_work.borrow_mut().insert(c, Work::default());
            self.queue.working.fetch_add(1, Ordering::Relaxed);
            let benches = self.clone();
            spawn_local(async move { benches.work(c, in_hand).await });
            return;
        }
        // The turn is claimed although the conversation has a task: the task is between two checks.
        if let Some(in_hand) = in_hand {
            let benches = self.clone();
            spawn_local(async move { benches.run(c, &in_hand).await });
        } else if let Some(work) = self.at_work.borrow_mut().get_mut(&c) {
            work.more = true;
        }
    }

    fn cancel(&self, which: impl Fn(TurnId) -> bool) {
        for work in self.at_work.borrow().values() {
            for (turn, cancel) in &work.turns {
                if which(*turn) {
                    cancel.send_replace(true);
                }
            }
        }
    }

    /// Takes up the turns that no task works on: left by a process that died, queued by one that
    /// has ended, left by this daemon's predecessor, or by a task that could not reach the store.
    /// Runs in a task of its own: orders do not wait for a store that does not answer.
    fn look_around(&self) {
        if self.looking.replace(true) {
            return;
        }
        let benches = self.clone();
        spawn_local(async move {
            let found = benches.runner.unattended().await;
            benches.looking.set(false);
            for c in found.unwrap_or_default() {
                if !benches.at_work.borrow().contains_key(&c) {
                    benches.take(c, None);
                }
            }
        });
    }

    async fn work(&self, c: ConversationId, first: Option<Box<InHand>>) {
        if let Some(in_hand) = first {
            self.run(c, &in_hand).await;
        }
        loop {
            match self.run_next(c).await {
                Done::More => {}
                Done::Trouble => tokio::time::sleep(AGAIN_AFTER).await,
                Done::Nothing => {
                    let mut at_work = self.at_work.borrow_mut();
                    let more = at_work
                        .get_mut(&c)
                        .is_some_and(|w| std::mem::take(&mut w.more));
                    if !more {
                        at_work.remove(&c);
                        break;
                    }
                }
                Done::Closed => {
                    self.at_work.borrow_mut().remove(&c);
                    break;
                }
            }
        }
        self.rests();
    }

    async fn run_next(&self, c: ConversationId) -> Done {
        // Subscribed before the check, so that a later change is not missed.
        let mut wake = self.runner.wake.subscribe();
        let pending = match self.runner.pending(c).await {
            Ok(pending) => pending,
            Err(error) => return trouble(c, &error),
        };
        let changed = tokio::time::timeout(LOOK_FOR_OTHERS, wake.changed());
        let (turn, place) = match pending {
            Pending::Idle => return Done::Nothing,
            Pending::Elsewhere => {
                let _waked = self.resting(changed).await;
                return Done::More;
            }
            Pending::Resting(turn) => {
                let mut cancel = self.begins(c, turn);
                tokio::select! {
                    _ = changed => {}
                    _ = cancel.changed() => {}
                }
                self.ended(c, turn);
                if *cancel.borrow()
                    && let Err(error) = self.runner.hub.ask_cancel(turn).await
                {
                    return trouble(c, &error.into());
                }
                return Done::More;
            }
            // Its agent may be running already, so it is followed at once.
            Pending::Begun(turn) => (turn, self.queue.places.take()),
            Pending::Startable(turn) => match self.place_for(c, turn).await {
                Ok(place) => (turn, Some(place)),
                Err(done) => return done,
            },
        };
        let cancel = self.begins(c, turn);
        let ran = self
            .runner
            .run_to_rest(c, turn, IfBusy::Wait, &cancel)
            .await;
        drop(place);
        self.ended(c, turn);
        Done::of(c, &ran)
    }

    /// Waits for a place. Returns an error if the turn was cancelled or begun meanwhile and does
    /// not need it any more.
    async fn place_for(&self, c: ConversationId, turn: TurnId) -> Result<Place, Done> {
        if let Some(place) = self.queue.places.take() {
            return Ok(place);
        }
        let waited = self.resting(self.queue.places.wait()).await;
        let place = waited.ok_or(Done::Closed)?;
        match self.runner.pending(c).await {
            Ok(Pending::Startable(again)) if again == turn => Ok(place),
            Ok(_) => Err(Done::More),
            Err(error) => Err(trouble(c, &error)),
        }
    }

    /// Waits without counting as work: a daemon that is about to end does not wait for it.
    async fn resting<T>(&self, wait: impl Future<Output = T>) -> T {
        self.rests();
        let done = wait.await;
        self.queue.working.fetch_add(1, Ordering::Relaxed);
        done
    }

    fn rests(&self) {
        self.queue.working.fetch_sub(1, Ordering::Relaxed);
        self.queue.rested.send_modify(|n| *n += 1);
    }

    /// Runs a turn that was claimed when it was accepted. If every place was taken meanwhile, it
    /// goes back into the queue.
    async fn run(&self, c: ConversationId, in_hand: &InHand) {
        let accepted = &in_hand.accepted;
        let place = self.queue.places.take();
        if let Some(claimed) = &accepted.claimed
            && place.is_none()
            && in_hand.if_busy == IfBusy::Wait
        {
            let requeued = self.runner.hub.requeue(claimed).await;
            claimed.active.release();
            Done::of(c, &requeued.map_err(Into::into));
            return;
        }
        let cancel = self.begins(c, accepted.turn);
        let ran = self
            .runner
            .run_in_hand(accepted, in_hand.if_busy, &cancel)
            .await;
        drop(place);
        self.ended(c, accepted.turn);
        // The task of the conversation finds the turn again and retries it.
        Done::of(c, &ran);
    }

    fn begins(&self, c: ConversationId, turn: TurnId) -> watch::Receiver<bool> {
        let (cancel, cancelled) = watch::channel(false);
        let mut at_work = self.at_work.borrow_mut();
        at_work.entry(c).or_default().turns.push((turn, cancel));
        cancelled
    }

    fn ended(&self, c: ConversationId, turn: TurnId) {
        if let Some(work) = self.at_work.borrow_mut().get_mut(&c) {
            work.turns.retain(|(running, _)| *running != turn);
        }
    }
}

enum Done {
    /// There may be more to do.
    More,
    Nothing,
    /// The store is unreachable, or another error occurred: the conversation is tried again.
    Trouble,
    /// No agent is started any more: the next daemon finds the turn in the store.
    Closed,
}

/// Logs an error after which a conversation is tried again.
fn trouble(c: ConversationId, error: &rejoin_runner::Error) -> Done {
    tracing::warn!(conversation = %c, %error, "A turn could not be run or followed and is tried again");
    Done::Trouble
}

impl Done {
    fn of(c: ConversationId, ran: &rejoin_runner::Result<()>) -> Self {
        use rejoin_runner::Error;
        match ran {
            // The result is recorded in the turn.
            Ok(()) | Err(Error::WouldReseed { .. } | Error::Permissions(_) | Error::Cancelled) => {
                Self::More
            }
            Err(Error::Hub(error)) if error.is_conflict() => Self::More,
            Err(error) => trouble(c, error),
        }
    }
}

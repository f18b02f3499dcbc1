//! Runs what is accepted: one task per conversation that has something to do.
//!
//! All of them live on one thread, beside the one that serves. Whoever wants something run says so over a channel, and
//! need not wait for it. A turn that needs a process of its agent waits for a place; a turn that was begun, or waits
//! for a person without a process, needs none.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use rejoin_core::{AgentName, ConversationId, TurnId};
use rejoin_hub::{Accepted, TurnRequest};
use rejoin_runner::{Foreseen, IfBusy, Pending, Runner};
use rejoin_store::{Conversation, Retention};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::spawn_local;

use crate::places::{Place, Places};

/// Turns that other processes leave behind are seen within this time.
const LOOK_AGAIN: Duration = Duration::from_secs(1);
/// After a trouble with the store a conversation is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(2);
/// How often a conversation that waits for somebody else is looked at.
const LOOK_FOR_OTHERS: Duration = Duration::from_millis(200);
/// Folders of turns and conversations that were left open are looked after this often.
const TIDY_EVERY: Duration = Duration::from_mins(10);

/// Where one says what is to be done. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Queue {
    orders: mpsc::UnboundedSender<Order>,
    working: Arc<AtomicUsize>,
    places: Places,
    /// Goes up when a conversation has nothing more to do.
    rested: watch::Sender<u64>,
}

enum Order {
    Take(ConversationId, Option<Box<InHand>>),
    Cancel(TurnId),
    CancelAll,
    Foresee(Box<Question>),
}

/// A turn that was claimed when it was accepted.
struct InHand {
    accepted: Accepted,
    if_busy: IfBusy,
}

/// What would happen if one sent now?
struct Question {
    conversation: Conversation,
    agent: AgentName,
    request: TurnRequest,
    answer: oneshot::Sender<rejoin_runner::Result<Foreseen>>,
}

/// The other end: it is to be run where tasks need not move between threads.
pub(crate) struct Workshop {
    orders: mpsc::UnboundedReceiver<Order>,
    benches: Benches,
}

/// All that is worked on. Cheap to clone.
#[derive(Clone)]
struct Benches {
    runner: Arc<Runner>,
    queue: Queue,
    /// How long snapshots are kept.
    keep: Retention,
    at_work: Rc<RefCell<HashMap<ConversationId, Work>>>,
    /// A look for turns without a task is under way.
    looking: Rc<Cell<bool>>,
}

/// A conversation that is worked on.
#[derive(Default)]
struct Work {
    /// Something came since it last looked.
    more: bool,
    /// What is run now, and how to stop it.
    turns: Vec<(TurnId, watch::Sender<bool>)>,
}

impl Queue {
    pub(crate) fn new(
        runner: Arc<Runner>,
        keep: Retention,
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

    /// Something of this conversation is to be run.
    pub(crate) fn take(&self, c: ConversationId) {
        self.say(Order::Take(c, None));
    }

    /// This was accepted, and may be in hand already.
    pub(crate) fn take_accepted(&self, accepted: Accepted, if_busy: IfBusy) {
        let c = accepted.conversation;
        let in_hand = accepted.claimed.is_some();
        let in_hand = in_hand.then(|| Box::new(InHand { accepted, if_busy }));
        self.say(Order::Take(c, in_hand));
    }

    /// Whoever runs it here stops it.
    pub(crate) fn cancel(&self, turn: TurnId) {
        self.say(Order::Cancel(turn));
    }

    /// Could an agent be started now?
    pub(crate) fn has_place(&self) -> bool {
        self.places.is_free()
    }

    /// Stops what runs; what waits for a place stays in the store.
    pub(crate) fn cancel_all(&self) {
        self.places.close();
        self.say(Order::CancelAll);
    }

    /// None: the daemon is about to end.
    pub(crate) async fn foresee(
        &self,
        conversation: Conversation,
        agent: AgentName,
        request: TurnRequest,
    ) -> Option<rejoin_runner::Result<Foreseen>> {
        let (answer, answered) = oneshot::channel();
        self.say(Order::Foresee(Box::new(Question {
            conversation,
            agent,
            request,
            answer,
        })));
        answered.await.ok()
    }

    /// How many conversations are worked on.
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

    /// Nobody listens any more only when the daemon ends: then the store knows of it.
    fn say(&self, order: Order) {
        drop(self.orders.send(order));
    }
}

impl Workshop {
    /// Carries out what it is told, and finds what nobody works on, for ever.
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

async fn tidy(runner: Arc<Runner>, keep: Retention) {
    loop {
        // What is left now is left for the next time.
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
                    let seen = runner.foresee(&conversation, &agent, &request).await;
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
        // In hand, although somebody is at it: between two looks of theirs.
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

    /// Takes up the turns that no task works on: left by a process that died, queued by one that has
    /// ended, left by this daemon's predecessor, or by a task that could not reach the store. Runs in a
    /// task of its own: orders do not wait for a store that does not answer.
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
        // Before the look: a change since then is not missed.
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
            // Its agent may run already: it is followed at once.
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

    /// Waits for a place. A turn that was cancelled or begun meanwhile does not need it any more.
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

    /// Runs a turn that was claimed when it was accepted. If every place was taken meanwhile it goes
    /// back into the queue.
    async fn run(&self, c: ConversationId, in_hand: &InHand) {
        let accepted = &in_hand.accepted;
        let place = self.queue.places.take();
        if let Some(claimed) = &accepted.claimed
            && place.is_none()
            && in_hand.if_busy == IfBusy::Wait
        {
            let requeued = self.runner.hub.requeue(claimed).await;
            claimed.hold.release();
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
        // The loop of the conversation finds the turn again, and tries it again.
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
    /// It may have more to do.
    More,
    Nothing,
    /// The store is away, or something is wrong: it is tried again.
    Trouble,
    /// Nothing is started any more: whoever comes next finds it in the store.
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
            // How it went is said in the turn.
            Ok(()) | Err(Error::WouldReseed { .. } | Error::Envelope(_) | Error::Cancelled) => {
                Self::More
            }
            Err(Error::Hub(error)) if error.is_conflict() => Self::More,
            Err(error) => trouble(c, error),
        }
    }
}

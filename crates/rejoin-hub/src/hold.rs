//! Turns that a task of this process works on.
//!
//! The store names the process that holds a turn. A process that lives may have no task for it any
//! more: the store was away when the task ended, or a commit succeeded whose reply got lost. Such a
//! turn is free for the next task of the same process.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoin_core::TurnId;

/// Number of holds per turn. A process has one identity as a holder, so the list is the process's too.
static HELD: Mutex<BTreeMap<TurnId, usize>> = Mutex::new(BTreeMap::new());

/// Registers a turn as worked on, until it is released or its last clone is dropped.
#[derive(Debug, Clone)]
pub struct Hold(Arc<Registered>);

#[derive(Debug)]
struct Registered {
    turn: TurnId,
    released: AtomicBool,
}

impl Hold {
    /// Registers the turn. To be called before the transaction that names this process as its holder
    /// is committed: no other task may find the turn in between.
    pub(crate) fn new(turn: TurnId) -> Self {
        *held().entry(turn).or_default() += 1;
        let released = AtomicBool::new(false);
        Self(Arc::new(Registered { turn, released }))
    }

    /// Ends the hold, for all clones of it.
    pub fn release(&self) {
        self.0.release();
    }
}

impl Registered {
    fn release(&self) {
        if self.released.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut held = held();
        if let Some(count) = held.get_mut(&self.turn) {
            *count -= 1;
            if *count == 0 {
                held.remove(&self.turn);
            }
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.release();
    }
}

/// True if a task of this process works on the turn.
pub fn is_worked_on(turn: TurnId) -> bool {
    held().contains_key(&turn)
}

fn held() -> MutexGuard<'static, BTreeMap<TurnId, usize>> {
    HELD.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Clock;

    #[test]
    fn a_turn_is_worked_on_until_its_last_hold_ends() {
        let turn = Clock.turn_id().unwrap();
        assert!(!is_worked_on(turn));
        let first = Hold::new(turn);
        let second = Hold::new(turn);
        let clone = first.clone();
        drop(first);
        drop(second);
        assert!(is_worked_on(turn));
        clone.release();
        clone.release();
        assert!(!is_worked_on(turn));
        let third = Hold::new(turn);
        drop(clone);
        assert!(is_worked_on(turn));
        drop(third);
        assert!(!is_worked_on(turn));
    }
}

//! Turns that a task of this process works on.
//!
//! The store names the process that holds a turn. A live process may have lost its task for the
//! turn: the store was unreachable when the task ended, or a commit succeeded but its reply got
//! lost. The next task of the same process may take that turn.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rejoin_core::TurnId;

/// Number of tasks per turn. A process has one identity as a holder, so this map is global.
static HELD: Mutex<BTreeMap<TurnId, usize>> = Mutex::new(BTreeMap::new());

/// Registers a turn as worked on, until it is released or its last clone is dropped.
#[derive(Debug, Clone)]
pub struct ActiveTurn(Arc<Registered>);

#[derive(Debug)]
struct Registered {
    turn: TurnId,
    released: AtomicBool,
}

impl ActiveTurn {
    /// Registers the turn. Call it before committing the transaction that names this process as the
    /// holder: no other task may find the turn in between.
    pub(crate) fn new(turn: TurnId) -> Self {
        *held().entry(turn).or_default() += 1;
        let released = AtomicBool::new(false);
        Self(Arc::new(Registered { turn, released }))
    }

    /// Releases the turn, for all clones of it.
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
    fn a_turn_is_worked_on_until_its_last_task_releases_it() {
        let turn = Clock.turn_id().unwrap();
        assert!(!is_worked_on(turn));
        let first = ActiveTurn::new(turn);
        let second = ActiveTurn::new(turn);
        let clone = first.clone();
        drop(first);
        drop(second);
        assert!(is_worked_on(turn));
        clone.release();
        clone.release();
        assert!(!is_worked_on(turn));
        let third = ActiveTurn::new(turn);
        drop(clone);
        assert!(is_worked_on(turn));
        drop(third);
        assert!(!is_worked_on(turn));
    }
}

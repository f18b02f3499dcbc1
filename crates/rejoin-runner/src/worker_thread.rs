//! Runs long work on files on a thread of its own, while the waiting thread runs other turns.

use std::sync::mpsc::{Receiver, channel};

/// Runs the work on another thread. Dropping the future blocks until the work is done: it may
/// write, and no other code may use the file before.
pub(crate) async fn on_worker<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, ends) = channel::<()>();
    let _until_done = UntilDone(ends);
    let working = tokio::task::spawn_blocking(move || {
        let _dropped_when_done = done;
        work()
    });
    match working.await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}

/// Blocks on drop until the other end is dropped.
struct UntilDone(Receiver<()>);

impl Drop for UntilDone {
    fn drop(&mut self) {
        let _gone = self.0.recv();
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::time::Duration;

    use super::on_worker;

    #[tokio::test]
    async fn other_work_of_the_thread_goes_on() {
        let (tell, told) = std::sync::mpsc::channel();
        let work = on_worker(move || told.recv().unwrap());
        // On the same thread: this would wait for ever if the thread were blocked.
        let other = async { tell.send(7).unwrap() };
        assert_eq!(tokio::join!(work, other).0, 7);
    }

    #[tokio::test]
    async fn whoever_stops_waiting_waits_until_it_is_done() {
        let done = Arc::new(AtomicBool::new(false));
        let (tell, told) = tokio::sync::oneshot::channel();
        let sets = Arc::clone(&done);
        let work = on_worker(move || {
            tell.send(()).unwrap();
            std::thread::sleep(Duration::from_millis(20));
            sets.store(true, Ordering::SeqCst);
        });
        tokio::select! {
            () = work => {}
            begun = told => begun.unwrap(),
        }
        assert!(done.load(Ordering::SeqCst));
    }

    #[tokio::test]
    #[should_panic(expected = "as it would here")]
    async fn a_panic_is_passed_on() {
        on_worker(|| panic!("as it would here")).await;
    }
}

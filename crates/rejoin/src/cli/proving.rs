//! Words on a terminal while a program that was not seen before is proven.

use std::time::{Duration, Instant};

use rejoin_runner::binary;

use super::progress_view::{spin, stop_spin};
use crate::output::Output;

/// How often the spinner turns.
const TICK: Duration = Duration::from_millis(100);

/// Runs work that may prove a program, with a spinner that names it.
pub(super) async fn with_words<T>(out: Output, work: impl Future<Output = T>) -> T {
    if !out.live() {
        return work.await;
    }
    tokio::pin!(work);
    let (mut turned, mut since) = (0, None);
    loop {
        tokio::select! {
            biased;
            done = &mut work => {
                if since.is_some() {
                    stop_spin();
                }
                return done;
            }
            () = tokio::time::sleep(TICK) => {}
        }
        if let Some(program) = binary::proving() {
            let since = since.get_or_insert_with(Instant::now);
            turned += 1;
            let words = format!("first time with {program}: checking that it resumes…");
            spin(turned, &words, since.elapsed());
        }
    }
}

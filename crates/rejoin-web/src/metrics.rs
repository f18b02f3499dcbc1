//! What this daemon did, in figures; what is true of the store is asked of it when somebody looks.

use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use rejoin_hub::figures;
use rejoin_store::Tally;

const REQUESTS: &str = "rejoin_http_requests_total";
const REFUSED: &str = "rejoin_http_refused_total";
const TURNS_NOW: &str = "rejoin_turns_now";
const OLDEST: &str = "rejoin_queue_oldest_seconds";
const LEASES: &str = "rejoin_leases";
const CONVERSATIONS: &str = "rejoin_conversations";
const LAST_EVENT: &str = "rejoin_events_last";
const SNAPSHOTS: &str = "rejoin_snapshots";
const WATCHERS: &str = "rejoin_watchers";
const WORKING: &str = "rejoin_conversations_working";
const UPTIME: &str = "rejoin_uptime_seconds";

/// A turn of an agent takes from a second to an hour.
const TURNS: &[f64] = &[
    0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];
const FILES: &[f64] = &[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0];

/// What was measured is folded together this often, if nobody looks.
pub(crate) const FOLD: Duration = Duration::from_mins(1);

pub(crate) struct Metrics {
    handle: PrometheusHandle,
    since: Instant,
}

impl Metrics {
    /// Listens from now on. A program that this is part of may have chosen somebody else to listen.
    pub(crate) fn listening() -> Result<Self, BuildError> {
        let full = |name: &str| Matcher::Full(name.to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(full(figures::TURN_SECONDS), TURNS)?
            .set_buckets_for_metric(full(figures::CAPTURE_SECONDS), FILES)?
            .set_buckets_for_metric(full(figures::RESTORE_SECONDS), FILES)?
            .build_recorder();
        let handle = recorder.handle();
        drop(metrics::set_global_recorder(recorder));
        figures::describe();
        describe();
        let since = Instant::now();
        Ok(Self { handle, since })
    }

    /// `route`: as it stands in the list, so that ids make no new rows.
    pub(crate) fn answered(route: &str, status: u16) {
        counter!(REQUESTS, "route" => route.to_owned(), "status" => status.to_string())
            .increment(1);
    }

    pub(crate) fn refused(code: &'static str) {
        counter!(REFUSED, "code" => code).increment(1);
    }

    pub(crate) fn fold(&self) {
        self.handle.run_upkeep();
    }

    /// The page, with what the store and the daemon are like just now.
    pub(crate) fn page(&self, tally: &Tally, watching: usize, working: usize) -> String {
        for (status, count) in &tally.now {
            gauge!(TURNS_NOW, "status" => status.clone()).set(*count as f64);
        }
        let oldest = Duration::from_micros(tally.waits.unsigned_abs());
        gauge!(OLDEST).set(oldest.as_secs_f64());
        gauge!(LEASES, "state" => "held").set(tally.leases as f64);
        gauge!(LEASES, "state" => "expired").set(tally.expired as f64);
        gauge!(CONVERSATIONS).set(tally.conversations as f64);
        gauge!(LAST_EVENT).set(tally.last_event as f64);
        gauge!(SNAPSHOTS).set(tally.snapshots as f64);
        gauge!(WATCHERS).set(watching as f64);
        gauge!(WORKING).set(working as f64);
        gauge!(UPTIME).set(self.since.elapsed().as_secs_f64());
        self.handle.render()
    }
}

fn describe() {
    describe_counter!(REQUESTS, "Requests, by route and status");
    describe_counter!(REFUSED, "Requests that were not let in, by code");
    describe_gauge!(TURNS_NOW, "Turns that are not over, by status");
    describe_gauge!(OLDEST, "How long the oldest queued turn has waited");
    describe_gauge!(LEASES, "Turns in somebody's hands on a shared store");
    describe_gauge!(CONVERSATIONS, "Conversations");
    describe_gauge!(LAST_EVENT, "Number of the newest event");
    describe_gauge!(SNAPSHOTS, "Snapshots that are kept");
    describe_gauge!(WATCHERS, "Connections that watch");
    describe_gauge!(WORKING, "Conversations with a turn in hand here");
    describe_gauge!(UPTIME, "Since it was started");
}

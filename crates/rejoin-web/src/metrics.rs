//! Metrics of this daemon's work. Figures about the store are queried when the page is requested.

mod described;

use std::time::{Duration, Instant};

use metrics::{counter, describe_counter, describe_gauge, gauge};
use metrics_exporter_prometheus::{BuildError, Matcher, PrometheusBuilder, PrometheusHandle};
use rejoin_hub::metrics as turn_metrics;
use rejoin_store::Stats;

pub use described::{DescribedMetric, described_metrics};

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

/// Buckets for turns, which take from a second to an hour.
const TURNS: &[f64] = &[
    0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0,
];
const FILES: &[f64] = &[0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 20.0];

/// Interval at which measurements are aggregated if the page is not requested.
pub(crate) const FOLD: Duration = Duration::from_mins(1);

pub(crate) struct Metrics {
    handle: PrometheusHandle,
    since: Instant,
}

impl Metrics {
    /// Installs the recorder. Keeps an existing one, which a program that embeds this may have
    /// installed.
    pub(crate) fn listening() -> Result<Self, BuildError> {
        let full = |name: &str| Matcher::Full(name.to_owned());
        let recorder = PrometheusBuilder::new()
            .set_buckets_for_metric(full(turn_metrics::TURN_SECONDS), TURNS)?
            .set_buckets_for_metric(full(turn_metrics::CAPTURE_SECONDS), FILES)?
            .set_buckets_for_metric(full(turn_metrics::RESTORE_SECONDS), FILES)?
            .build_recorder();
        let handle = recorder.handle();
        drop(metrics::set_global_recorder(recorder));
        turn_metrics::describe();
        describe();
        let since = Instant::now();
        Ok(Self { handle, since })
    }

    /// Counts an answer. `route` is the pattern in the list of routes, so that ids create no new
    /// rows.
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

    /// Returns the page, with the present state of the store and the daemon.
    pub(crate) fn page(&self, stats: &Stats, watching: usize, working: usize) -> String {
        for (status, count) in &stats.now {
            gauge!(TURNS_NOW, "status" => status.clone()).set(*count as f64);
        }
        let oldest = Duration::from_micros(stats.waits.unsigned_abs());
        gauge!(OLDEST).set(oldest.as_secs_f64());
        gauge!(LEASES, "state" => "held").set(stats.leases as f64);
        gauge!(LEASES, "state" => "expired").set(stats.expired as f64);
        gauge!(CONVERSATIONS).set(stats.conversations as f64);
        gauge!(LAST_EVENT).set(stats.last_event as f64);
        gauge!(SNAPSHOTS).set(stats.snapshots as f64);
        gauge!(WATCHERS).set(watching as f64);
        gauge!(WORKING).set(working as f64);
        gauge!(UPTIME).set(self.since.elapsed().as_secs_f64());
        self.handle.render()
    }
}

fn describe() {
    describe_counter!(REQUESTS, "HTTP requests, by route and status");
    describe_counter!(REFUSED, "Refused HTTP requests, by error code");
    describe_gauge!(TURNS_NOW, "Turns that have not ended, by status");
    describe_gauge!(OLDEST, "Age of the oldest queued turn");
    describe_gauge!(
        LEASES,
        "Leases of turns on a shared store, held and expired"
    );
    describe_gauge!(CONVERSATIONS, "Stored conversations");
    describe_gauge!(LAST_EVENT, "Sequence number of the newest event");
    describe_gauge!(SNAPSHOTS, "Stored snapshots");
    describe_gauge!(WATCHERS, "Open event streams");
    describe_gauge!(WORKING, "Conversations with a turn that this daemon runs");
    describe_gauge!(UPTIME, "Time since the daemon started");
}

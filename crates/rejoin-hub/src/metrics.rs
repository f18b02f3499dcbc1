//! Metrics, recorded where the events happen. Only a daemon exports them, and they count that
//! daemon's own work, so the metrics of several daemons can be added up.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use metrics::{counter, describe_counter, describe_gauge, describe_histogram, gauge, histogram};
use rejoin_core::{AgentName, Cost, Micros, Reason, TurnStatus, Usage, Verdict};

pub const TURN_SECONDS: &str = "rejoin_turn_duration_seconds";
pub const CAPTURE_SECONDS: &str = "rejoin_capture_duration_seconds";
pub const RESTORE_SECONDS: &str = "rejoin_restore_duration_seconds";

const TURNS: &str = "rejoin_turns_total";
const CLIMBS: &str = "rejoin_climbs_total";
const OCCURRENCES: &str = "rejoin_schedule_occurrences_total";
const TOKENS: &str = "rejoin_tokens_total";
const COST: &str = "rejoin_cost_microdollars_total";
const UNKNOWN_COST: &str = "rejoin_cost_unknown_total";
const SHARE: &str = "rejoin_cache_hit_share";
const SAVED_TOKENS: &str = "rejoin_saved_tokens_total";
const SAVED_MONEY: &str = "rejoin_saved_microdollars_total";
const CAPTURED: &str = "rejoin_captured_bytes_total";
const CAPTURES: &str = "rejoin_captures_total";
const RESTORED: &str = "rejoin_restored_bytes_total";
const LEASES_LOST: &str = "rejoin_leases_lost_total";
const LEASES_TAKEN: &str = "rejoin_leases_taken_over_total";

/// Registers a description of every metric.
pub fn describe() {
    describe_counter!(TURNS, "Ended turns, by agent, status, verdict and reason");
    describe_counter!(CLIMBS, "Decisions about climbs, by tiers and decision");
    describe_counter!(
        OCCURRENCES,
        "Occurrences of schedules that this daemon recorded, by schedule and status"
    );
    describe_histogram!(TURN_SECONDS, "Duration of turns");
    describe_counter!(TOKENS, "Tokens used by turns, by kind");
    describe_counter!(COST, "Known cost of turns, in millionths of a dollar");
    describe_counter!(UNKNOWN_COST, "Turns with unknown cost");
    describe_gauge!(SHARE, "Share of input tokens read from a prompt cache");
    describe_counter!(
        SAVED_TOKENS,
        "Tokens of resumed sessions that were read from a prompt cache"
    );
    describe_counter!(
        SAVED_MONEY,
        "Estimated extra cost of the same turns in new sessions, in millionths of a dollar"
    );
    describe_counter!(CAPTURES, "Snapshots of sessions after a turn, by outcome");
    describe_histogram!(CAPTURE_SECONDS, "Duration of snapshots");
    describe_counter!(CAPTURED, "Bytes added by snapshots");
    describe_histogram!(RESTORE_SECONDS, "Duration of restores from a snapshot");
    describe_counter!(RESTORED, "Bytes of restored sessions");
    describe_counter!(
        LEASES_LOST,
        "Leases lost: turns that another machine took over from this daemon"
    );
    describe_counter!(LEASES_TAKEN, "Turns taken over from a machine that is gone");
}

/// Counts a decision about a climb.
pub(crate) fn climb(from: &str, to: &str, decision: &str) {
    counter!(CLIMBS, "from" => from.to_owned(), "to" => to.to_owned(),
        "decision" => decision.to_owned())
    .increment(1);
}

/// Counts an occurrence of a schedule.
pub(crate) fn occurrence(schedule: &str, status: &str) {
    counter!(OCCURRENCES, "schedule" => schedule.to_owned(), "status" => status.to_owned())
        .increment(1);
}

/// Facts of an ended turn that are counted.
pub(crate) struct TurnMetrics<'a> {
    pub(crate) agent: &'a AgentName,
    pub(crate) status: TurnStatus,
    pub(crate) verdict: Option<Verdict>,
    pub(crate) reason: Option<Reason>,
    pub(crate) took_ms: u64,
    pub(crate) usage: Option<Usage>,
    pub(crate) cost: Cost,
    /// Number of tokens in the turn's session.
    pub(crate) held: Option<u64>,
    /// Estimated cost of the turn in a new session.
    pub(crate) fresh: Option<Micros>,
}

impl TurnMetrics<'_> {
    pub(crate) fn count(&self) {
        let agent = self.agent.to_string();
        let word = |word: Option<String>| word.unwrap_or_default();
        counter!(TURNS, "agent" => agent.clone(), "status" => self.status.to_string(),
            "verdict" => word(self.verdict.map(|v| v.to_string())),
            "reason" => word(self.reason.map(|r| r.to_string())))
        .increment(1);
        histogram!(TURN_SECONDS, "agent" => agent.clone(), "status" => self.status.to_string())
            .record(Duration::from_millis(self.took_ms));
        match self.cost {
            Cost::Known(cost) => add(COST, &agent, cost.0),
            Cost::Unknown => counter!(UNKNOWN_COST, "agent" => agent.clone()).increment(1),
        }
        if let Some(usage) = self.usage {
            tokens(&agent, usage);
        }
        self.savings(&agent);
    }

    fn savings(&self, agent: &str) {
        let continued = matches!(
            self.verdict,
            Some(Verdict::Resumed | Verdict::Restored | Verdict::Live)
        );
        if !continued {
            return;
        }
        if let (Some(usage), Some(held)) = (self.usage, self.held) {
            // A turn reads its session once per model call. Only the first of these would have been
            // sent anew.
            let saved = usage.cache_read.min(held);
            counter!(SAVED_TOKENS, "agent" => agent.to_owned()).increment(saved);
        }
        if let (Some(fresh), Cost::Known(cost)) = (self.fresh, self.cost) {
            add(SAVED_MONEY, agent, fresh.0 - cost.0);
        }
    }
}

/// Input tokens from a cache and all input tokens, by agent.
static READ: Mutex<BTreeMap<String, (u64, u64)>> = Mutex::new(BTreeMap::new());

fn tokens(agent: &str, usage: Usage) {
    let kinds = [
        ("input", usage.input),
        ("cache_read", usage.cache_read),
        ("cache_write", usage.cache_write),
        ("output", usage.output),
    ];
    for (kind, tokens) in kinds {
        counter!(TOKENS, "agent" => agent.to_owned(), "kind" => kind).increment(tokens);
    }
    let mut all = READ.lock().unwrap_or_else(PoisonError::into_inner);
    let (read, input) = all.entry(agent.to_owned()).or_default();
    *read += usage.cache_read;
    *input += usage.cache_read + usage.cache_write + usage.input;
    if *input > 0 {
        gauge!(SHARE, "agent" => agent.to_owned()).set(*read as f64 / *input as f64);
    }
}

fn add(name: &'static str, agent: &str, micros: i64) {
    let micros = u64::try_from(micros).unwrap_or(0);
    counter!(name, "agent" => agent.to_owned()).increment(micros);
}

/// Counts an attempt to save a session. `added` is the number of bytes that are new in the store.
pub fn captured(saved: &str, added: u64, took: Duration) {
    counter!(CAPTURES, "result" => saved.to_owned()).increment(1);
    counter!(CAPTURED).increment(added);
    histogram!(CAPTURE_SECONDS).record(took);
}

pub fn restored(bytes: u64, took: Duration) {
    counter!(RESTORED).increment(bytes);
    histogram!(RESTORE_SECONDS).record(took);
}

pub fn lease_lost() {
    counter!(LEASES_LOST).increment(1);
}

pub fn taken_over() {
    counter!(LEASES_TAKEN).increment(1);
}

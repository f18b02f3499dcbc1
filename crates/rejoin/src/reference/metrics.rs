//! `docs/metrics.md`: the metrics that a daemon exports.

use std::fmt::Write as _;

const INTRO: &str = "\
A daemon exports these metrics in Prometheus' text format at `GET /metrics` (a token with scope `read`). Counters and
histograms count the work of that daemon since it started; add them up over several daemons. Gauges describe the store and
the daemon at the moment of the request.

| metric | kind | |
|---|---|---|
";

/// Returns the text of the page.
pub(super) fn page() -> String {
    let mut text = super::head("Metrics") + INTRO;
    for metric in rejoin_web::described_metrics() {
        let _infallible = writeln!(
            text,
            "| `{}` | {} | {} |",
            metric.name, metric.kind, metric.about
        );
    }
    text
}

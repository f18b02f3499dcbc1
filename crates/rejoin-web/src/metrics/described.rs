//! The list of metrics, for the reference page.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use metrics::{
    Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit,
    with_local_recorder,
};

/// A metric that a daemon exports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedMetric {
    pub name: String,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    pub about: String,
}

/// Returns every metric, ordered by name.
pub fn described_metrics() -> Vec<DescribedMetric> {
    let list = List::default();
    with_local_recorder(&list, || {
        rejoin_hub::metrics::describe();
        super::describe();
    });
    let found = list.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    found.into_values().collect()
}

/// A recorder that keeps descriptions and drops values.
#[derive(Default)]
struct List(Mutex<BTreeMap<String, DescribedMetric>>);

impl List {
    fn add(&self, name: &KeyName, kind: &'static str, about: &SharedString) {
        let metric = DescribedMetric {
            name: name.as_str().to_owned(),
            kind,
            about: about.to_string(),
        };
        let mut list = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        list.insert(metric.name.clone(), metric);
    }
}

impl Recorder for List {
    fn describe_counter(&self, name: KeyName, _: Option<Unit>, about: SharedString) {
        self.add(&name, "counter", &about);
    }

    fn describe_gauge(&self, name: KeyName, _: Option<Unit>, about: SharedString) {
        self.add(&name, "gauge", &about);
    }

    fn describe_histogram(&self, name: KeyName, _: Option<Unit>, about: SharedString) {
        self.add(&name, "histogram", &about);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> Counter {
        Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}

//! Tokens, money and how full the session is.
//!
//! `result.usage` is the turn's main thread, on both versions; `modelUsage` covers sub-agents too,
//! but per process (2.1.197) or over the whole session (2.1.325), so it cannot be charged to a turn.
//! Tokens of sub-agents are those of their printed messages, each message once. These carry the
//! usage known when the message began: input is exact, output a lower bound. A sub-agent in the
//! foreground does not print its last message, but its result holds the usage of that call.

use std::collections::HashMap;

use rejoin_core::{Context, Micros, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::super::wire::{Finished, Tokens};

#[derive(Default)]
pub(super) struct Money {
    /// What results said.
    told: Usage,
    /// Main-thread calls since the last result: all there is when a run is killed.
    open: Calls,
    subs: HashMap<String, Calls>,
    last_used: Option<u64>,
    last_model: Option<String>,
}

#[derive(Default)]
struct Calls {
    seen: Vec<(String, Usage)>,
}

impl Calls {
    fn add(&mut self, id: &str, usage: Usage) {
        if !self.seen.iter().rev().any(|(known, _)| known == id) {
            self.seen.push((id.to_owned(), usage));
        }
    }

    fn sum(&self) -> Usage {
        let mut sum = Usage::default();
        for (_, usage) in &self.seen {
            sum.add(*usage);
        }
        sum
    }
}

impl Money {
    pub(super) fn call(
        &mut self,
        parent: Option<&str>,
        id: &str,
        model: Option<&str>,
        usage: Usage,
    ) {
        if let Some(parent) = parent {
            self.subs
                .entry(parent.to_owned())
                .or_default()
                .add(id, usage);
            return;
        }
        self.open.add(id, usage);
        self.last_used = Some(usage.all_input());
        self.last_model = model.map(str::to_owned);
    }

    /// The true number of output tokens of the call that just ended.
    pub(super) fn output(&mut self, usage: Usage) {
        if let Some((_, last)) = self.open.seen.last_mut() {
            last.output = last.output.max(usage.output);
        }
    }

    /// `structured` is the sub-agent's result; of other tools it has no usage.
    pub(super) fn sub_agent_ended(&mut self, call: &str, structured: &Value) {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Ended {
            agent_id: String,
            usage: Tokens,
        }
        let Ok(ended) = Ended::deserialize(structured) else {
            return;
        };
        let usage = Usage::from(ended.usage);
        let calls = self.subs.entry(call.to_owned()).or_default();
        let same = |known: &Usage| {
            (known.input, known.cache_read, known.cache_write)
                == (usage.input, usage.cache_read, usage.cache_write)
        };
        match calls.seen.last_mut() {
            Some((_, last)) if same(last) => last.output = last.output.max(usage.output),
            Some(_) | None => calls.add(&ended.agent_id, usage),
        }
    }

    /// An interrupted turn reports zeros; what was seen is nearer to the truth.
    pub(super) fn result(&mut self, result: &Finished) {
        let told = result.usage.map(Usage::from).unwrap_or_default();
        let seen = std::mem::take(&mut self.open).sum();
        self.told
            .add(if told == Usage::default() { seen } else { told });
    }

    pub(super) fn usage(&self) -> Usage {
        let mut usage = self.told;
        usage.add(self.open.sum());
        for calls in self.subs.values() {
            usage.add(calls.sum());
        }
        usage
    }

    /// Unknown without a result, and when a call was begun after the last one.
    pub(super) fn total(&self, results: &[Finished]) -> Option<Micros> {
        let last = results.last().filter(|_| self.open.seen.is_empty())?;
        last.total_cost_usd.and_then(Micros::from_dollars)
    }

    /// The window of the main model as the last result names it, else the largest.
    pub(super) fn context(&self, model: Option<&str>, results: &[Finished]) -> Option<Context> {
        let models = results.last()?.models.as_ref()?;
        let mut named = [model, self.last_model.as_deref()].into_iter().flatten();
        let window = named
            .find_map(|name| models.get(name)?.window)
            .or_else(|| models.values().filter_map(|m| m.window).max())?;
        Some(Context {
            used: self.last_used?,
            window,
        })
    }
}

//! Tokens, money and how full the session is.
//!
//! `result.usage` covers the turn's main thread, on both versions. `modelUsage` covers sub-agents
//! too, but per process (2.1.197) or over the whole session (2.1.325), so it cannot be charged to a
//! turn. The tokens of sub-agents are taken from their printed messages, each message once. These
//! carry the usage known when the message began: input is exact, output a lower bound. A foreground
//! sub-agent does not print its last message, but its result contains the usage of that call.

use std::collections::HashMap;

use rejoin_core::{Context, Micros, Usage};
use serde::Deserialize;
use serde_json::Value;

use super::super::wire::{Finished, Tokens};

#[derive(Default)]
pub(super) struct Money {
    /// Sum of the usage in results.
    told: Usage,
    /// Main-thread calls since the last result. For a killed run they are the only numbers.
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

    /// Sets the true number of output tokens of the call that just ended.
    pub(super) fn output(&mut self, usage: Usage) {
        if let Some((_, last)) = self.open.seen.last_mut() {
            last.output = last.output.max(usage.output);
        }
    }

    /// Adds the last call of a sub-agent. `structured` is the sub-agent's result; the results of
    /// other tools contain no usage.
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

    /// Adds the usage of a result. An interrupted turn reports zeros; the sum of its calls is
    /// closer to the truth.
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

    /// Returns the total cost. None without a result, and if a call began after the last result.
    pub(super) fn total(&self, results: &[Finished]) -> Option<Micros> {
        let last = results.last().filter(|_| self.open.seen.is_empty())?;
        last.total_cost_usd.and_then(Micros::from_dollars)
    }

    /// Returns the context use, with the window of the main model from the last result, or else the
    /// largest.
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

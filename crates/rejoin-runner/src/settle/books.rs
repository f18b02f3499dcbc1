//! What a turn cost: its own share of what its CLI counted.

use rejoin_agents::EndCause;
use rejoin_core::{Class, Context, Cost, Micros, Outcome, TotalsScope, Usage};

use super::run::Run;
use crate::config::{ModelConfig, model_config};

/// What came from a cache, if the stream counted it with the rest.
fn told_apart(usage: Usage, cached: u64) -> Usage {
    let cached = if usage.cache_read == 0 {
        cached.min(usage.input)
    } else {
        0
    };
    Usage {
        input: usage.input - cached,
        cache_read: usage.cache_read + cached,
        ..usage
    }
}

impl Run<'_> {
    /// What its totals cover was proven for one version, and holds for no other.
    fn proven(&self, scope: TotalsScope) -> TotalsScope {
        let version = &self.plan.runtime.version.0;
        let same = self.ran.version.as_ref().is_none_or(|ran| ran == version);
        if same { scope } else { TotalsScope::Unproven }
    }

    fn totals(&self) -> TotalsScope {
        self.proven(self.plan.totals)
    }

    /// The turn's own tokens.
    pub(super) fn usage(&self) -> Option<Usage> {
        let before = self.plan.usage_before();
        // A run that reported nothing is not one that used nothing; its session may know.
        if self.ran.usage == Usage::default() {
            let total = self.reading().and_then(|reading| reading.usage)?;
            return Usage::of_turn(TotalsScope::Cumulative, total, before);
        }
        let usage = Usage::of_turn(self.proven(self.plan.usage), self.ran.usage, before)?;
        let cached = self.reading().map_or(0, |reading| reading.cached);
        Some(told_apart(usage, cached))
    }

    pub(super) fn usage_kept(&self) -> Option<Usage> {
        match self.proven(self.plan.usage) {
            TotalsScope::Cumulative => Some(self.ran.usage),
            TotalsScope::PerRun | TotalsScope::Unproven => None,
        }
    }

    /// The session's total when its next turn begins. A CLI that counts per run leaves it as it is:
    /// one that adds up, after an upgrade, goes on from there (2.1.325 on a session of 2.1.197).
    pub(super) fn total_kept(&self) -> Option<Micros> {
        match self.totals() {
            // A process writes it down when it ends.
            TotalsScope::Cumulative if self.rests => {
                let written = self.reading().and_then(|reading| reading.total);
                written.or_else(|| self.plan.total_before())
            }
            TotalsScope::Cumulative => self.ran.total,
            TotalsScope::PerRun => self.plan.total_before(),
            TotalsScope::Unproven => None,
        }
    }

    /// Of a run that was cut off nobody knows it: the call that was being answered is in no total
    /// (2.1.325 then reports what the session had cost before, as if this turn were free).
    pub(super) fn cost(&self, cause: EndCause) -> Cost {
        let cut_off = match &self.ran.outcome {
            Outcome::Succeeded => false,
            Outcome::Failed(failure) => {
                matches!(failure.class, Class::Interrupted | Class::Crashed)
                    || !matches!(cause, EndCause::ByItself | EndCause::Unseen)
            }
            Outcome::Cancelled | Outcome::Lost(_) => true,
        };
        if cut_off {
            return Cost::Unknown;
        }
        let (scope, before) = match (&self.plan.live, self.totals()) {
            // However it counts over processes: within one it adds up.
            (Some(live), TotalsScope::Cumulative | TotalsScope::PerRun) => {
                (TotalsScope::Cumulative, live.total)
            }
            (_, scope) => (scope, self.plan.total_before()),
        };
        let told = Cost::of_turn(scope, self.ran.total, before);
        // A CLI that speaks of tokens only: what the user says they cost.
        match (self.ran.total, self.model_config(), self.usage()) {
            (None, Some(model), Some(usage)) => model.price.of(usage).map_or(told, Cost::Known),
            _ => told,
        }
    }

    /// How full the session is. What the user says of the model's window counts.
    pub(super) fn context(&self) -> Option<Context> {
        let read = || self.reading().and_then(|reading| reading.context);
        let told = self.ran.context.or_else(read);
        let used = told.map(|context| context.used).or(self.ran.used);
        let window = self.model_config().and_then(|model| model.window);
        let window = window.or(told.map(|context| context.window));
        used.zip(window)
            .map(|(used, window)| Context { used, window })
    }

    fn model_config(&self) -> Option<&ModelConfig> {
        let asked = self.plan.model.clone().or_else(|| self.model())?;
        model_config(self.models, &asked)
    }
}

//! Cost of a turn: its own share of the totals that its CLI counted.

use rejoin_agents::EndCause;
use rejoin_core::{Class, Context, Cost, Micros, Outcome, TotalsScope, Usage};

use super::session::FinishedRun;
use crate::config::{ModelConfig, model_config};

/// Moves cached tokens out of `input` if the stream counted them there.
fn without_cached(usage: Usage, cached: u64) -> Usage {
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

impl FinishedRun<'_> {
    /// Returns the scope of the totals. It was proven for one version and is unproven for any
    /// other.
    fn proven(&self, scope: TotalsScope) -> TotalsScope {
        let version = &self.run.plan.runtime.version.0;
        let same = self.ran.version.as_ref().is_none_or(|ran| ran == version);
        if same { scope } else { TotalsScope::Unproven }
    }

    fn totals(&self) -> TotalsScope {
        self.proven(self.run.plan.totals)
    }

    /// Returns the tokens of this turn alone.
    pub(super) fn usage(&self) -> Option<Usage> {
        let before = self.run.plan.usage_before();
        // A run that reported no tokens may still have used some; the session may hold the count.
        if self.ran.usage == Usage::default() {
            let total = self.reading().and_then(|reading| reading.usage)?;
            return Usage::of_turn(TotalsScope::Cumulative, total, before);
        }
        let usage = Usage::of_turn(self.proven(self.run.plan.usage), self.ran.usage, before)?;
        let cached = self.reading().map_or(0, |reading| reading.cached);
        Some(without_cached(usage, cached))
    }

    pub(super) fn usage_kept(&self) -> Option<Usage> {
        match self.proven(self.run.plan.usage) {
            TotalsScope::Cumulative => Some(self.ran.usage),
            TotalsScope::PerRun | TotalsScope::Unproven => None,
        }
    }

    /// Returns the session's total at the start of its next turn. A CLI that counts per run leaves
    /// the total unchanged; after an upgrade, a version that adds up continues from there (2.1.325
    /// on a session of 2.1.197).
    pub(super) fn total_kept(&self) -> Option<Micros> {
        match self.totals() {
            // A live process writes its total only when it ends.
            TotalsScope::Cumulative if self.idle => {
                let written = self.reading().and_then(|reading| reading.total);
                written.or_else(|| self.run.plan.total_before())
            }
            TotalsScope::Cumulative => self.ran.total,
            TotalsScope::PerRun => self.run.plan.total_before(),
            TotalsScope::Unproven => None,
        }
    }

    /// Returns the cost of the turn. The cost of a run that was cut off is unknown: the call that
    /// was in progress is in no total (2.1.325 then reports the cost of the session before this
    /// turn, as if this turn were free).
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
        let (scope, before) = match (&self.run.plan.live, self.totals()) {
            // However the CLI counts across processes, within one process it adds up.
            (Some(live), TotalsScope::Cumulative | TotalsScope::PerRun) => {
                (TotalsScope::Cumulative, live.total)
            }
            (_, scope) => (scope, self.run.plan.total_before()),
        };
        let told = Cost::of_turn(scope, self.ran.total, before);
        // If the CLI reports only tokens, the user's configured price applies.
        match (self.ran.total, self.model_config(), self.usage()) {
            (None, Some(model), Some(usage)) => model.price.of(usage).map_or(told, Cost::Known),
            _ => told,
        }
    }

    /// Returns how full the session is. A context window that the user configured takes precedence.
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
        let asked = self.run.plan.model.clone().or_else(|| self.model())?;
        model_config(self.models, &asked)
    }
}

//! Cost limit of a turn (`--max-cost`), for agents without a limit of their own: the run is stopped
//! between two model calls. A turn whose cost would not be known in time is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, CostLimit, EndCause, Spent};
use rejoin_core::{Cost, EventBody, Micros, Price, Usage};
use rejoin_hub::{AttemptPlan, TurnRequest};

use crate::config::{ModelConfig, model_config};
use crate::shim::{ShimEnd, StopReason};

/// File in the folder of a run that was stopped by this limit.
const MARK: &str = "cost";

/// Returns the reason why a turn cannot be stopped at its cost limit. None if it can, or has none.
pub(crate) fn refusal(
    adapter: &dyn Adapter,
    request: &TurnRequest,
    models: &BTreeMap<String, ModelConfig>,
) -> Option<String> {
    request.max_cost?;
    let name = adapter.name();
    let why = match adapter.cost_limit(&request.permissions) {
        CostLimit::OfTheCli | CostLimit::Free | CostLimit::Dollars => return None,
        CostLimit::None(why) => why,
        CostLimit::Tokens => match &request.model {
            None => format!("{name} reports tokens: name a model (-m) that has a price"),
            Some(model) => {
                let price = model_config(models, model).map(|it| it.price);
                if price.is_some_and(|it| it.input.is_some() && it.output.is_some()) {
                    return None;
                }
                format!(
                    "{name} reports tokens, and `models.\"{model}\".price` has no input and output"
                )
            }
        },
    };
    Some(format!(
        "{name} cannot be stopped at a cost: {why}; --timeout works with every agent"
    ))
}

/// Watch over the cost of one run.
pub(crate) struct CostWatch<'a> {
    limit: Option<Micros>,
    plan: &'a AttemptPlan,
    models: &'a BTreeMap<String, ModelConfig>,
    model: Option<String>,
    folder: PathBuf,
}

impl<'a> CostWatch<'a> {
    /// Creates the watch. `limit` is the limit of the turn.
    pub(crate) fn new(
        limit: Option<Micros>,
        plan: &'a AttemptPlan,
        models: &'a BTreeMap<String, ModelConfig>,
        folder: &Path,
    ) -> Self {
        Self {
            limit,
            plan,
            models,
            model: plan.model.clone(),
            folder: folder.to_owned(),
        }
    }

    /// Notes the model that the CLI reports.
    pub(crate) fn see(&mut self, events: &[EventBody]) {
        for event in events {
            if let EventBody::TurnStarted {
                model: Some(model), ..
            } = event
                && self.plan.model.is_none()
            {
                self.model = Some(model.clone());
            }
        }
    }

    /// Returns true if the run has reached the limit and goes on, and marks it as stopped by it. A
    /// cost that cannot be determined counts as one that has reached the limit.
    pub(crate) fn is_exceeded(&self, spent: Option<Spent>) -> bool {
        let (Some(limit), Some(spent)) = (self.limit, spent) else {
            return false;
        };
        let nothing = spent.usage == Usage::default() && spent.total.is_none();
        if nothing || !spent.goes_on || self.cost(&spent).is_some_and(|cost| cost < limit) {
            return false;
        }
        // The mark is a file because another process may have to settle the run.
        drop(fs_err::write(self.folder.join(MARK), ""));
        true
    }

    /// Returns the cost of the turn so far: by the configured price, or as the CLI reports it,
    /// whichever is higher.
    fn cost(&self, spent: &Spent) -> Option<Micros> {
        let plan = self.plan;
        let told = Cost::of_turn(plan.totals, spent.total, plan.total_before()).known();
        let price = self.model.as_deref();
        let price = price.and_then(|model| model_config(self.models, model));
        let priced = price.and_then(|model| {
            let usage = Usage::of_turn(plan.usage, spent.usage, plan.usage_before())?;
            complete(model.price).of(usage)
        });
        told.max(priced)
    }
}

/// Fills in the missing prices of the cache with the price of new input, which is higher.
fn complete(price: Price) -> Price {
    Price {
        cache_read: price.cache_read.or(price.input),
        cache_write: price.cache_write.or(price.input),
        ..price
    }
}

/// Returns the cause of an end that the limit brought about. A run that it stopped was not
/// cancelled.
pub(crate) fn cause(folder: &Path, end: &ShimEnd, cancelled: bool) -> Option<EndCause> {
    let stopped = matches!(end.why, StopReason::Interrupted | StopReason::Stopped);
    (stopped && !cancelled && folder.join(MARK).exists()).then_some(EndCause::CostLimit)
}

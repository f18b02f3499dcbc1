//! Prices that are missing in the configuration, so that the cost of a turn is unknown.

use rejoin_core::{Price, Usage};
use rejoin_hub::TurnView;
use rejoin_runner::model_config;

use crate::app::App;
use crate::config::quoted_name;

/// Returns the keys whose prices the cost of the turn lacks, if its model has a price at all.
pub(super) fn missing(app: &App, view: &TurnView) -> Vec<String> {
    let (Some(model), Some(usage)) = (view.model.as_deref(), view.usage.known()) else {
        return vec![];
    };
    let Some(config) = model_config(&app.runner.config.models, model) else {
        return vec![];
    };
    if view.cost_usd.is_some() || config.price == Price::default() {
        return vec![];
    }
    let keys = lacking(&config.price, usage).into_iter();
    keys.map(|kind| format!("models.{}.price.{kind}", quoted_name(model)))
        .collect()
}

fn lacking(price: &Price, usage: Usage) -> Vec<&'static str> {
    [
        ("input", usage.input, price.input),
        ("output", usage.output, price.output),
        ("cache_read", usage.cache_read, price.cache_read),
        ("cache_write", usage.cache_write, price.cache_write),
    ]
    .into_iter()
    .filter(|(_, tokens, price)| *tokens > 0 && price.is_none())
    .map(|(kind, ..)| kind)
    .collect()
}

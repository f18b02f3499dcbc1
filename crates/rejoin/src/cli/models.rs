//! `rejoin models`

use std::collections::BTreeMap;

use clap::Args;
use rejoin_store::Read;
use serde::Serialize;

use crate::app::App;
use crate::cli::command::{Help, Run, Task};
use crate::config::Config;
use crate::output::format::{count, money};
use crate::output::{Line, Tone, table};
use rejoin_errors::Result;

/// Time back in which turns are counted, in microseconds.
const RECENT: i64 = 30 * 86_400_000_000;

/// List the models of recent turns and of the configuration
///
/// rejoin has no list of all models: an agent accepts any name that its CLI accepts.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin models -a codex\n  rejoin send -m <TAB>      completes them"
)]
pub(crate) struct ModelsArgs {
    /// Only models of this agent
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
}

impl Run for ModelsArgs {
    const NAME: &'static str = "models";
    const HELP: Help = Help::SetUp("models in use");

    fn task(self) -> Task {
        Task::store(self, run)
    }
}

/// A model with the turns of the last 30 days.
#[derive(Debug, Serialize)]
pub(super) struct KnownModel {
    pub(super) name: String,
    /// The agent; None if the configuration names the model for no agent.
    pub(super) agent: Option<String>,
    turns: i64,
    cost_usd: Option<f64>,
    /// The default of its agent.
    default: bool,
}

/// Returns the models of the configuration and of the turns of the last 30 days, by agent and name.
pub(super) async fn known(read: &mut Read, config: &Config) -> Result<Vec<KnownModel>> {
    let now = rejoin_hub::Clock.now();
    let model = |agent: Option<&str>, name: &str| KnownModel {
        name: name.to_owned(),
        agent: agent.map(str::to_owned),
        turns: 0,
        cost_usd: None,
        default: false,
    };
    let mut known: BTreeMap<(Option<String>, String), KnownModel> = BTreeMap::new();
    for row in read.period_costs("", now - RECENT, now + 1).await? {
        let Some(name) = row.model else { continue };
        let key = (Some(row.agent.clone()), name.clone());
        let entry = known
            .entry(key)
            .or_insert_with(|| model(Some(&row.agent), &name));
        entry.turns += row.turns;
        if let Some(cost) = row.cost {
            let dollars = rejoin_core::Micros(cost).dollars();
            entry.cost_usd = Some(entry.cost_usd.unwrap_or(0.0) + dollars);
        }
    }
    for (agent, name) in &config.models {
        let key = (Some(agent.clone()), name.clone());
        let entry = known.entry(key).or_insert_with(|| model(Some(agent), name));
        entry.default = true;
    }
    for name in config.prices.keys() {
        if !known.values().any(|model| model.name == *name) {
            known.insert((None, name.clone()), model(None, name));
        }
    }
    Ok(known.into_values().collect())
}

async fn run(app: &App, args: &ModelsArgs) -> Result<u8> {
    let out = app.out;
    let mut known = known(&mut app.hub().store.read().await?, &app.config).await?;
    if let Some(agent) = &args.agent {
        known.retain(|model| model.agent.as_ref() == Some(agent));
    }
    if out.json {
        out.json(&serde_json::json!({ "models": known }));
        return Ok(0);
    }
    if known.is_empty() {
        out.note("no turn of the last 30 days names a model; try: rejoin send -m MODEL \"…\"");
        return Ok(0);
    }
    let rows: Vec<Vec<Line>> = known.iter().map(row).collect();
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    Ok(0)
}

fn row(model: &KnownModel) -> Vec<Line> {
    let origin = match (model.turns, model.default) {
        (_, true) => "the default of the configuration",
        (0, false) => "in the configuration",
        (_, false) => "",
    };
    let turns = match model.turns {
        0 => String::new(),
        turns => format!("{} in 30 days", count(turns as u64, "turn")),
    };
    vec![
        Line::plain(model.agent.as_deref().unwrap_or("-")),
        Line::new().with(Tone::Name, &model.name),
        Line::faint(&turns),
        Line::plain(&money(model.cost_usd)),
        Line::faint(origin),
    ]
}

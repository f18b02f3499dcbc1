//! `rejoin costs`

use clap::Args;
use rejoin_hub::{CostView, CostsBy, CostsQuery};

use crate::cli::command::{Help, Run, Task};
use crate::duration;
use crate::hub_client::HubClient;
use crate::output::format::{count, folder, money};
use crate::output::{Line, Tone, table};
use rejoin_errors::Result;

/// Columns of the longest bar.
const BAR: usize = 24;
/// Longest name of a row.
const NAME: usize = 40;

/// Show what turns cost, with a bar for each row
///
/// A turn counts on the day on which its message was accepted. "at least": the cost of some turns is
/// unknown, because their agent reports none and no price is configured.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin costs                          the last seven days, by day\n  rejoin costs --since 30d --by agent\n  rejoin costs --by folder --json"
)]
pub(crate) struct CostsArgs {
    /// Begin of the period: a time back, e.g. 7d, 24h
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_back)]
    since: i64,
    /// Sum by day, agent, folder or model
    #[arg(long, value_name = "BY", value_parser = parse_by, default_value = "day")]
    by: CostsBy,
}

impl Run for CostsArgs {
    const NAME: &'static str = "costs";
    const HELP: Help = Help::Look("costs");

    fn task(self) -> Task {
        Task::hub(self, run)
    }
}

/// Parses a time back from now, in microseconds.
pub(super) fn parse_back(text: &str) -> Result<i64, String> {
    duration::micros(text).ok_or_else(|| duration::EXPECTED.to_owned())
}

fn parse_by(text: &str) -> Result<CostsBy, String> {
    let all = [
        CostsBy::Day,
        CostsBy::Agent,
        CostsBy::Folder,
        CostsBy::Model,
    ];
    let found = all.into_iter().find(|by| by.to_string() == text);
    found.ok_or_else(|| "costs are summed by day, agent, folder or model".to_owned())
}

async fn run(hub: HubClient<'_>, args: &CostsArgs) -> Result<u8> {
    let now = rejoin_hub::Clock.now();
    let zone = jiff::tz::TimeZone::system();
    let query = CostsQuery {
        by: args.by,
        since: Some(now.saturating_sub(args.since).max(0)),
        zone: zone.iana_name().map(str::to_owned),
    };
    let (out, costs) = (hub.out(), hub.costs(&query).await?);
    if out.json {
        out.json(&costs);
        return Ok(0);
    }
    if costs.total.turns == 0 {
        out.note("no turn ran in this period; try: rejoin costs --since 30d");
        return Ok(0);
    }
    let most = costs.rows.iter().filter_map(|row| row.cost_usd);
    let most = most.fold(0.0, f64::max);
    let mut rows: Vec<Vec<Line>> = costs.rows.iter().map(|it| row(it, args.by, most)).collect();
    let mut total = row(&costs.total, CostsBy::Agent, 0.0);
    total[0] = Line::new().with(Tone::Strong, "total");
    rows.push(total);
    let fit = out.screen().then(|| out.width());
    out.lines(&table(&rows, fit));
    Ok(0)
}

/// A row as cells: name, turns, cost, bar.
fn row(view: &CostView, by: CostsBy, most: f64) -> Vec<Line> {
    let name = match by {
        CostsBy::Folder => folder(&view.name),
        CostsBy::Agent | CostsBy::Day | CostsBy::Model => view.name.clone(),
    };
    vec![
        Line::plain(&crate::output::one_line(&name, NAME)),
        Line::faint(&count(view.turns as u64, "turn")),
        cost(view),
        Line::new().with(Tone::Busy, &bar(view.cost_usd.unwrap_or(0.0), most)),
    ]
}

fn cost(view: &CostView) -> Line {
    match (view.cost_usd, view.unknown) {
        (None, _) => Line::faint("unknown"),
        (Some(_), 0) => Line::plain(&money(view.cost_usd)),
        (Some(_), _) => Line::faint("at least ").with(Tone::Plain, &money(view.cost_usd)),
    }
}

/// Returns a bar in eighths of a column. Any cost above zero has one.
fn bar(cost: f64, most: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    if cost <= 0.0 || most <= 0.0 {
        return String::new();
    }
    let eighths = ((cost / most) * (BAR * 8) as f64).round().max(1.0) as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_part() {
        assert_eq!(bar(2.0, 2.0), "█".repeat(BAR));
        assert_eq!(bar(1.0, 2.0), "█".repeat(BAR / 2));
        assert_eq!(bar(0.000_1, 2.0), "▏");
        assert_eq!(bar(0.0, 2.0), "");
        assert_eq!(bar(0.0, 0.0), "");
    }
}

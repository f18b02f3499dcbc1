//! `rejoin costs`

use clap::Args;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use rejoin_hub::{CostView, CostsBy, CostsQuery};

use crate::cli::command::{Help, Run, Task};
use crate::duration;
use crate::hub_client::HubClient;
use crate::output::format::{count, folder, money};
use crate::output::{Line, Tone, table};
use rejoin_errors::{CommandError, Result};

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
    after_help = "Examples:\n  rejoin costs                          the last seven days, by day\n  rejoin costs --since 30d --by agent\n  rejoin costs --since 2026-11-01 --until 2026-11-30\n  rejoin costs --by folder --json"
)]
pub(crate) struct CostsArgs {
    /// Begin of the period: a time back, e.g. 7d, 24h, or a date
    #[arg(long, value_name = "TIME", default_value = "7d", value_parser = parse_moment)]
    since: Moment,
    /// Last day of the period; default: today
    #[arg(long, value_name = "DATE", value_parser = parse_day)]
    until: Option<Date>,
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

/// Begin of a period.
#[derive(Debug, Clone, Copy)]
enum Moment {
    /// A time back from now, in microseconds.
    Back(i64),
    /// The first moment of a day.
    Day(Date),
}

fn parse_moment(text: &str) -> Result<Moment, String> {
    match text.parse() {
        Ok(day) => Ok(Moment::Day(day)),
        Err(_) => parse_back(text)
            .map(Moment::Back)
            .map_err(|why| format!("{why}, or a date, e.g. 2026-11-12")),
    }
}

fn parse_day(text: &str) -> Result<Date, String> {
    let unread = |_| "a day is a date, e.g. 2026-11-12".to_owned();
    text.parse().map_err(unread)
}

/// Returns the first moment of a day, in microseconds.
fn begin_of(day: Date, zone: &TimeZone) -> Result<i64> {
    let begin = day.to_zoned(zone.clone());
    let begin = begin.map_err(|_| CommandError::usage(format!("{day} is too far away")))?;
    Ok(begin.timestamp().as_microsecond())
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
    let zone = TimeZone::system();
    let since = match args.since {
        Moment::Back(time) => now.saturating_sub(time).max(0),
        Moment::Day(day) => begin_of(day, &zone)?.max(0),
    };
    let until = match args.until {
        Some(day) => {
            let next = day
                .tomorrow()
                .map_err(|e| CommandError::usage(e.to_string()))?;
            Some(begin_of(next, &zone)?.min(now + 1))
        }
        None => None,
    };
    if until.is_some_and(|until| until <= since) {
        let text = "the period ends before it begins";
        return Err(CommandError::usage(text).try_this("rejoin costs --since 30d"));
    }
    let query = CostsQuery {
        by: args.by,
        since: Some(since),
        until,
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
    let day = |micros: i64| {
        let at = Timestamp::from_microsecond(micros).unwrap_or_default();
        at.to_zoned(zone.clone()).date().to_string()
    };
    let last = until.map_or(now, |until| until - 1);
    let period = format!("{} to {}, by {}", day(since), day(last), args.by);
    out.lines(&[Line::faint(&period)]);
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

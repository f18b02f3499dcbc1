//! Costs of a period by agent, folder, model or day.

use std::collections::BTreeMap;
use std::fmt;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use rejoin_core::Micros;
use rejoin_store::PeriodCost;
use serde::{Deserialize, Serialize};

use crate::Hub;
use crate::clock::rfc3339;
use crate::error::{Error, Result};

/// Name of the row of turns whose model was never reported.
const UNKNOWN_MODEL: &str = "unknown";

/// A property of a turn by which costs are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum CostsBy {
    Agent,
    Folder,
    #[default]
    Day,
    Model,
}

impl fmt::Display for CostsBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agent => "agent",
            Self::Folder => "folder",
            Self::Day => "day",
            Self::Model => "model",
        })
    }
}

/// Parameters of a sum of costs.
#[derive(Debug, Clone, Default)]
pub struct CostsQuery {
    pub by: CostsBy,
    /// Begin of the period, in microseconds since 1970. None: a week ago.
    pub since: Option<i64>,
    /// End of the period, in microseconds since 1970; turns at that time do not count. None: now.
    pub until: Option<i64>,
    /// The time zone of days, such as `Europe/Berlin`. None: UTC.
    pub zone: Option<String>,
}

/// Costs of the turns of a period.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CostsView {
    pub by: CostsBy,
    pub since: String,
    pub until: String,
    pub total: CostView,
    /// Days in their order, other rows by cost, the highest first.
    pub rows: Vec<CostView>,
}

/// The sum of some turns.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct CostView {
    /// Agent, folder, model, or day (`2026-11-15`); `total` for the whole.
    pub name: String,
    pub turns: i64,
    /// Turns of which the cost is unknown: the whole cost is at least `cost_usd`.
    pub unknown: i64,
    /// Null if no cost is known.
    pub cost_usd: Option<f64>,
}

/// Period of which costs are summed if none is named: a week.
const WEEK: i64 = 7 * 86_400_000_000;

#[derive(Default)]
struct Sum {
    turns: i64,
    unknown: i64,
    cost: Option<i64>,
}

impl Sum {
    fn add(&mut self, row: &PeriodCost) {
        self.turns += row.turns;
        self.unknown += row.unknown;
        if let Some(cost) = row.cost {
            self.cost = Some(self.cost.unwrap_or(0) + cost);
        }
    }

    fn view(&self, name: &str) -> CostView {
        CostView {
            name: name.to_owned(),
            turns: self.turns,
            unknown: self.unknown,
            cost_usd: self.cost.map(|cost| Micros(cost).dollars()),
        }
    }
}

impl Hub {
    /// Sums the costs of a period.
    pub async fn costs(&self, query: &CostsQuery) -> Result<CostsView> {
        let now = self.clock.now();
        let since = query.since.unwrap_or(now - WEEK);
        // A turn that is accepted while this runs has a later time.
        let until = query.until.unwrap_or(now + 1);
        let zone = zone(query.zone.as_deref())?;
        let mut read = self.store.read().await?;
        let found = read.period_costs(&self.namespace, since, until).await?;
        let (mut total, mut sums) = (Sum::default(), BTreeMap::<String, Sum>::new());
        for row in &found {
            total.add(row);
            let name = match query.by {
                CostsBy::Agent => row.agent.clone(),
                CostsBy::Folder => row.folder.clone(),
                CostsBy::Model => row.model.clone().unwrap_or(UNKNOWN_MODEL.into()),
                CostsBy::Day => day(row.at.max(since), &zone)?,
            };
            sums.entry(name).or_default().add(row);
        }
        let mut rows: Vec<CostView> = sums.iter().map(|(name, sum)| sum.view(name)).collect();
        if query.by != CostsBy::Day {
            let cost = |row: &CostView| row.cost_usd.unwrap_or(0.0);
            rows.sort_by(|a, b| cost(b).total_cmp(&cost(a)).then(b.turns.cmp(&a.turns)));
        }
        Ok(CostsView {
            by: query.by,
            since: rfc3339(since),
            until: rfc3339(query.until.unwrap_or(now)),
            total: total.view("total"),
            rows,
        })
    }
}

fn zone(name: Option<&str>) -> Result<TimeZone> {
    match name {
        None => Ok(TimeZone::UTC),
        Some(name) => TimeZone::get(name)
            .map_err(|_| Error::Usage(format!("the time zone `{name}` is not known"))),
    }
}

fn day(micros: i64, zone: &TimeZone) -> Result<String> {
    let at = Timestamp::from_microsecond(micros).map_err(|e| Error::Internal(e.to_string()))?;
    Ok(at.to_zoned(zone.clone()).date().to_string())
}

//! The times of a schedule.

use cronexpr::{Crontab, FallbackTimezoneOption, ParseOptions, parse_crontab_with};
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Occurrences of an interval that are looked back for, at most.
const INTERVALS: i64 = 1_000;
/// Time for which occurrences of a cron expression are looked back for, in microseconds.
const LOOK_BACK: i64 = 31 * 86_400 * 1_000_000;
/// Shortest interval, in microseconds.
const SHORTEST: i64 = 1_000_000;

/// Times at which a schedule is due.
#[derive(Debug, Clone)]
pub enum Rhythm {
    /// Multiples of this time since 1970, in microseconds: the same on every machine.
    Every(i64),
    Cron {
        /// The expression with its time zone, as it was written.
        text: String,
        times: Box<Crontab>,
    },
}

impl Rhythm {
    /// Builds an interval. Returns an error if it is shorter than a second.
    pub fn every(micros: i64) -> Result<Self, String> {
        if micros < SHORTEST {
            return Err("a schedule is due once a second at most".into());
        }
        Ok(Self::Every(micros))
    }

    /// Parses a cron expression of five fields, in a time zone.
    pub fn cron(expression: &str, zone: &str) -> Result<Self, String> {
        if expression.split_whitespace().count() != 5 {
            let text =
                "a cron expression has five fields: minute, hour, day, month and day of week";
            return Err(text.into());
        }
        let mut options = ParseOptions::default();
        options.fallback_timezone_option = FallbackTimezoneOption::None;
        let text = format!("{expression} {zone}");
        let times = parse_crontab_with(&text, options).map_err(|error| {
            let text = error.to_string();
            text.lines().next_back().unwrap_or(&text).trim().to_owned()
        })?;
        let times = Box::new(times);
        let rhythm = Self::Cron { text, times };
        if rhythm.next(0).is_none() {
            return Err("this expression has no time".into());
        }
        Ok(rhythm)
    }

    /// Returns the rule as text. A schedule whose rule changes begins anew.
    pub fn rule(&self) -> String {
        match self {
            Self::Every(micros) => format!("every {} ms", micros / 1000),
            Self::Cron { text, .. } => format!("cron {text}"),
        }
    }

    /// Returns the first time after `after`, in microseconds since 1970.
    pub fn next(&self, after: i64) -> Option<i64> {
        match self {
            Self::Every(every) => (after.div_euclid(*every) + 1).checked_mul(*every),
            Self::Cron { times, .. } => {
                let after = Timestamp::from_microsecond(after).ok()?;
                let next = times.find_next(after).ok()?;
                Some(next.timestamp().as_microsecond())
            }
        }
    }

    /// Lists the times after `after` up to `now`, oldest first. Does not look back for ever.
    pub fn due(&self, after: i64, now: i64) -> Vec<i64> {
        let oldest = match self {
            Self::Every(every) => now.saturating_sub(every.saturating_mul(INTERVALS)),
            Self::Cron { .. } => now.saturating_sub(LOOK_BACK),
        };
        let mut times = vec![];
        let mut at = after.max(oldest);
        while let Some(next) = self.next(at).filter(|next| *next <= now) {
            times.push(next);
            at = next;
        }
        times
    }
}

/// Returns true if this machine knows the time zone.
pub(super) fn is_zone(name: &str) -> bool {
    TimeZone::get(name).is_ok()
}

/// Returns the date of a time in a time zone.
pub(super) fn date(at: i64, zone: &str) -> String {
    let zone = TimeZone::get(zone).unwrap_or(TimeZone::UTC);
    let at = Timestamp::from_microsecond(at).unwrap_or(Timestamp::UNIX_EPOCH);
    at.to_zoned(zone).date().to_string()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const SECOND: i64 = 1_000_000;

    fn at(text: &str) -> i64 {
        text.parse::<Timestamp>().unwrap().as_microsecond()
    }

    #[test]
    fn an_interval_is_due_at_its_multiples() {
        let every = Rhythm::every(900 * SECOND).unwrap();
        let now = at("2026-01-02T03:31:00Z");
        let times = [at("2026-01-02T03:15:00Z"), at("2026-01-02T03:30:00Z")];
        assert_eq!(every.due(at("2026-01-02T03:00:00Z"), now), times);
        assert_eq!(every.due(times[1], now), [0; 0]);
        assert_eq!(every.next(now), Some(at("2026-01-02T03:45:00Z")));
        assert_eq!(every.due(0, now).len(), 1_000, "the newest ones");
        assert_eq!(every.due(0, now).last(), Some(&times[1]));
        assert!(Rhythm::every(SECOND / 2).is_err());
    }

    /// The clocks go forward at 02:00 on 29 March 2026 in Berlin, and back at 03:00 on 25 October.
    #[test]
    fn cron_follows_its_time_zone_through_a_change_of_the_clocks() {
        let noon = Rhythm::cron("0 12 * * *", "Europe/Berlin").unwrap();
        let times = noon.due(at("2026-03-27T23:00:00Z"), at("2026-03-30T23:00:00Z"));
        let due = ["03-28T11", "03-29T10", "03-30T10"];
        assert_eq!(times, due.map(|time| at(&format!("2026-{time}:00:00Z"))));
        let quarter = Rhythm::cron("*/15 * * * *", "Europe/Berlin").unwrap();
        for day in ["2026-03-29", "2026-10-25"] {
            let times = quarter.due(
                at(&format!("{day}T00:00:00Z")),
                at(&format!("{day}T04:00:00Z")),
            );
            let apart = times
                .windows(2)
                .all(|pair| pair[1] - pair[0] == 900 * SECOND);
            assert!(apart && times.len() == 16, "{day}: {times:?}");
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (expression, zone) in [
            ("* * * *", "UTC"),
            ("61 * * * *", "UTC"),
            ("0 0 30 2 *", "UTC"),
            ("* * * * *", "Mars/Base"),
            ("", "UTC"),
        ] {
            let error = Rhythm::cron(expression, zone).unwrap_err();
            assert!(!error.is_empty() && !error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn a_date_is_that_of_the_time_zone() {
        let time = at("2026-01-02T23:30:00Z");
        assert_eq!(date(time, "Europe/Berlin"), "2026-01-03");
        assert_eq!(date(time, "UTC"), "2026-01-02");
    }
}

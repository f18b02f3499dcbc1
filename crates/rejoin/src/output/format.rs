//! Times, money and sizes as people read them.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

/// The time and the time zone: passed on, so that nothing else asks for the time.
#[derive(Debug, Clone)]
pub(crate) struct Now(Zoned);

impl Now {
    pub(crate) fn at(micros: i64) -> Self {
        let now = Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH);
        Self(now.to_zoned(TimeZone::system()))
    }

    /// How long ago, as short as it can be said: `now`, `3m`, `5h`, then the day.
    pub(crate) fn ago(&self, rfc3339: &str) -> String {
        let Some(then) = self.local(rfc3339) else {
            return "-".into();
        };
        let seconds = self.0.timestamp().as_second() - then.timestamp().as_second();
        match seconds {
            ..60 => "now".into(),
            60..3_600 => format!("{}m", seconds / 60),
            3_600..43_200 if self.days_since(&then) == 0 => format!("{}h", seconds / 3_600),
            _ => self.day(&then),
        }
    }

    /// The moment: `today 14:31`.
    pub(crate) fn moment(&self, rfc3339: &str) -> String {
        match self.local(rfc3339) {
            Some(then) if self.days_since(&then) == 0 => then.strftime("today %H:%M").to_string(),
            Some(then) => self.day(&then),
            None => "-".into(),
        }
    }

    fn day(&self, then: &Zoned) -> String {
        let form = match self.days_since(then) {
            ..=-2 => "%-d %b %H:%M",
            -1 => "tomorrow %H:%M",
            0 => "%H:%M",
            1 => "yesterday %H:%M",
            2..7 => "%a %H:%M",
            7..300 => "%-d %b",
            _ => "%Y-%m-%d",
        };
        then.strftime(form).to_string()
    }

    fn local(&self, rfc3339: &str) -> Option<Zoned> {
        let then: Timestamp = rfc3339.parse().ok()?;
        Some(then.to_zoned(self.0.time_zone().clone()))
    }

    fn days_since(&self, then: &Zoned) -> i32 {
        (self.0.date() - then.date()).get_days()
    }
}

/// Dollars with as many digits as matter; unknown is not nothing.
pub(crate) fn money(dollars: Option<f64>) -> String {
    match dollars {
        None => "-".into(),
        Some(d) if d >= 0.1 || d == 0.0 => format!("${d:.2}"),
        Some(d) if d >= 0.001 => format!("${d:.3}"),
        Some(d) => format!("${d:.6}"),
    }
}

pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => count(bytes, "byte"),
        1_000..1_000_000 => format!("{:.1} KB", bytes as f64 / 1e3),
        _ => format!("{:.1} MB", bytes as f64 / 1e6),
    }
}

pub(crate) fn count(n: u64, what: &str) -> String {
    if n == 1 {
        format!("1 {what}")
    } else {
        format!("{n} {what}s")
    }
}

pub(crate) fn duration(ms: u64) -> String {
    match ms {
        0..10_000 => format!("{:.1}s", ms as f64 / 1e3),
        10_000..120_000 => format!("{}s", ms / 1_000),
        _ => format!("{}m{:02}s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// A path as the user writes it: `~` for the home folder.
pub(crate) fn folder(path: &str) -> String {
    let home = std::env::var("HOME").unwrap_or_default();
    match path.strip_prefix(&home) {
        Some(rest) if !home.is_empty() && (rest.is_empty() || rest.starts_with('/')) => {
            format!("~{rest}")
        }
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times() {
        let now: Timestamp = "2026-11-15T14:31:00Z".parse().unwrap();
        let now = Now(now.to_zoned(TimeZone::UTC));
        let cases = [
            ("2026-11-15T14:30:30Z", "now", "today 14:30"),
            ("2026-11-15T14:28:00Z", "3m", "today 14:28"),
            ("2026-11-15T09:00:00Z", "5h", "today 09:00"),
            ("2026-11-15T01:00:00Z", "01:00", "today 01:00"),
            ("2026-11-14T14:02:00Z", "yesterday 14:02", "yesterday 14:02"),
            ("2026-11-10T08:00:00Z", "Tue 08:00", "Tue 08:00"),
            ("2026-03-02T08:00:00Z", "2 Mar", "2 Mar"),
            ("2025-03-02T08:00:00Z", "2025-03-02", "2025-03-02"),
            ("2026-11-15T15:00:00Z", "now", "today 15:00"),
            ("2026-11-16T08:00:00Z", "now", "tomorrow 08:00"),
            ("2026-11-20T08:00:00Z", "now", "20 Nov 08:00"),
            ("nonsense", "-", "-"),
        ];
        for (at, ago, moment) in cases {
            assert_eq!(
                (now.ago(at).as_str(), now.moment(at).as_str()),
                (ago, moment)
            );
        }
    }

    #[test]
    fn amounts() {
        let shown = [0.0, 0.000_012, 0.0214, 0.5, 12.0].map(|d| money(Some(d)));
        assert_eq!(shown, ["$0.00", "$0.000012", "$0.021", "$0.50", "$12.00"]);
        assert_eq!(
            (money(None), size(1), size(21_400)),
            ("-".into(), "1 byte".into(), "21.4 KB".into())
        );
    }
}

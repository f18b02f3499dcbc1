//! Durations as people type them, on the command line and in the configuration: `90s`, `1.5h`, `30d`.

use std::time::Duration;

pub(crate) const EXPECTED: &str = "a time is a number with ms, s, m, h, d or w, e.g. 90s";

/// Parses a duration; a number without a unit counts seconds.
pub(crate) fn parse(text: &str) -> Option<Duration> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let unit = text.trim_start_matches(digits);
    let number: f64 = text.strip_suffix(unit)?.parse().ok()?;
    let seconds = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3_600.0,
        "d" => 86_400.0,
        "w" => 604_800.0,
        _ => return None,
    };
    Duration::try_from_secs_f64(number * seconds).ok()
}

/// Parses a duration that names its unit: in a file, `keep = "30"` could mean seconds as well as days.
pub(crate) fn parse_with_unit(text: &str) -> Option<Duration> {
    parse(text).filter(|_| text.ends_with(char::is_alphabetic))
}

/// Parses a duration in microseconds; none: the word that stands for no time.
pub(crate) fn micros(text: &str) -> Option<i64> {
    let micros = parse(text)?.as_micros();
    Some(i64::try_from(micros).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_names_the_unit() {
        assert_eq!(parse_with_unit("30d"), parse("30d"));
        assert_eq!((parse_with_unit("30"), parse("30").is_some()), (None, true));
    }

    #[test]
    fn every_unit() {
        for (text, expected) in [
            ("0s", Some(0)),
            ("250ms", Some(250_000)),
            ("90", Some(90_000_000)),
            ("1.5m", Some(90_000_000)),
            ("5min", Some(300_000_000)),
            ("12h", Some(43_200_000_000)),
            ("30d", Some(2_592_000_000_000)),
            ("2w", Some(1_209_600_000_000)),
            ("4294967295w", Some(i64::MAX)),
            ("forever", None),
            ("soon", None),
            ("-5m", None),
            ("5 minutes", None),
            ("s", None),
            ("", None),
        ] {
            assert_eq!(micros(text), expected, "{text}");
        }
    }
}

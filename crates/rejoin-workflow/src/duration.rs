//! Durations as a file writes them: `500ms`, `30s`, `20m`, `2h`, `1d`.

pub(crate) const EXPECTED: &str = "write a number with ms, s, m, h or d, such as 30s";

const LONGEST_MS: f64 = 366.0 * 86_400_000.0;

/// Returns the milliseconds of a duration that names its unit.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let digits = text.len()
        - text
            .trim_start_matches(|c: char| c.is_ascii_digit() || c == '.')
            .len();
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().ok()?;
    let milliseconds = match unit {
        "ms" => 1.0,
        "s" => 1_000.0,
        "m" | "min" => 60_000.0,
        "h" => 3_600_000.0,
        "d" => 86_400_000.0,
        _ => return None,
    };
    let total = (number * milliseconds).round();
    (total <= LONGEST_MS).then_some(total as u64)
}

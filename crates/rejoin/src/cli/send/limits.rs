//! Limits of a turn, as they are written on the command line.

use std::time::Duration;

use rejoin_core::Micros;

/// Reads the idle limit: a time, or `never`, which is zero.
pub(crate) fn parse_idle(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Ok(Duration::ZERO),
        _ => parse_duration(text),
    }
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let scale = match unit.trim() {
        "ms" => 0.001,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => return Err("a time is a number with ms, s, m or h, e.g. 90s".into()),
    };
    match number.parse::<f64>() {
        Ok(n) if n > 0.0 && n * scale < 1e7 => Ok(Duration::from_secs_f64(n * scale)),
        _ => Err("a time is a number with ms, s, m or h, e.g. 90s".into()),
    }
}

pub(crate) fn parse_dollars(text: &str) -> Result<Micros, String> {
    let dollars = text
        .trim_start_matches('$')
        .parse()
        .ok()
        .and_then(Micros::from_dollars);
    dollars
        .filter(|m| m.0 > 0)
        .ok_or_else(|| "an amount in dollars, e.g. 0.50".into())
}

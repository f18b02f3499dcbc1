//! Limits of a turn, as they are written on the command line.

use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use rejoin_core::Micros;
use rejoin_hub::IfBusy;

use crate::duration;

/// Seconds that no limit of a turn reaches.
const LONGEST: u64 = 10_000_000;

/// Returns the parser of `--if-busy`.
pub(super) fn if_busy() -> impl TypedValueParser<Value = IfBusy> {
    PossibleValuesParser::new(["wait", "fail"]).map(|word| match word.as_str() {
        "fail" => IfBusy::Fail,
        _ => IfBusy::Wait,
    })
}

/// Returns a time in milliseconds.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    time.as_millis() as u64
}

/// Reads the idle limit: a time, or `never`, which is zero.
pub(crate) fn parse_idle(text: &str) -> Result<Duration, String> {
    match text {
        "never" => Ok(Duration::ZERO),
        _ => parse_duration(text),
    }
}

pub(crate) fn parse_duration(text: &str) -> Result<Duration, String> {
    duration::parse(text)
        .filter(|time| !time.is_zero() && time.as_secs() < LONGEST)
        .ok_or_else(|| duration::EXPECTED.to_owned())
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

//! A message that begins with `wait 5s` is thought about for so long: to try out what can be done with a
//! turn while it runs.

use std::time::Duration;

/// Longer than anybody looks on.
const MOST: f64 = 3600.0;

/// How long it takes over this message.
pub(super) fn thinks(message: &str) -> Duration {
    let words = message.trim_start().strip_prefix("wait ");
    let number =
        words.and_then(|rest| rest.split(|c: char| c != '.' && !c.is_ascii_digit()).next());
    let unit = words
        .zip(number)
        .map(|(words, number)| &words[number.len()..]);
    let seconds = number
        .filter(|_| unit.is_some_and(|unit| unit.starts_with('s')))
        .and_then(|number| number.parse::<f64>().ok());
    let seconds = seconds.filter(|s| s.is_finite()).unwrap_or(0.0);
    Duration::from_secs_f64(seconds.clamp(0.0, MOST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_it_is_told() {
        let cases = [
            ("wait 5s", 5.0),
            ("wait 0.5s, then answer", 0.5),
            ("wait 5", 0.0),
            ("wait for me", 0.0),
            ("do not wait 5s", 0.0),
            ("wait 1e9s", 0.0),
            ("wait 99999s", 3600.0),
            ("wait ..s", 0.0),
        ];
        for (text, seconds) in cases {
            assert_eq!(thinks(text), Duration::from_secs_f64(seconds), "{text}");
        }
    }
}

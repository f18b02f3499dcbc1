//! Times, money and counts as pages show them.

use jiff::Timestamp;

use super::html::{Html, escape};

/// Returns the time as an element that script keeps up to date.
pub(super) fn when(at: &str, now: i64) -> Html {
    let (at_text, shown) = (escape(at), escape(&ago(at, now)));
    Html(format!(
        "<time datetime=\"{at_text}\" title=\"{at_text}\">{shown}</time>"
    ))
}

fn seconds_since(at: &str, now: i64) -> Option<i64> {
    let at: Timestamp = at.parse().ok()?;
    Some((now - at.as_microsecond()).max(0) / 1_000_000)
}

/// Returns the age of a time in short: `now`, `5m`, `3h`, `2d`, or a date.
pub(super) fn ago(at: &str, now: i64) -> String {
    match seconds_since(at, now) {
        None => String::new(),
        Some(0..60) => "now".into(),
        Some(s @ 60..3_600) => format!("{}m", s / 60),
        Some(s @ 3_600..86_400) => format!("{}h", s / 3_600),
        Some(s @ 86_400..604_800) => format!("{}d", s / 86_400),
        Some(_) => at.get(..10).unwrap_or_default().to_owned(),
    }
}

/// Returns the group of a time in the list of conversations.
pub(super) fn day(at: &str, now: i64) -> &'static str {
    match seconds_since(at, now) {
        Some(0..86_400) => "Last 24 hours",
        Some(86_400..604_800) => "Last 7 days",
        Some(_) | None => "Earlier",
    }
}

/// Returns an amount in dollars; an unknown one is named so.
pub(super) fn money(dollars: Option<f64>) -> String {
    match dollars {
        None => "cost unknown".into(),
        Some(d) if d >= 0.1 || d == 0.0 => format!("${d:.2}"),
        Some(d) if d >= 0.001 => format!("${d:.3}"),
        Some(d) => format!("${d:.6}"),
    }
}

/// Returns a count in short.
pub(super) fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// Returns a duration in short.
pub(super) fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..10_000 => format!("{:.1} s", ms as f64 / 1e3),
        10_000..120_000 => format!("{} s", ms / 1000),
        _ => format!("{} min {:02} s", ms / 60_000, ms / 1000 % 60),
    }
}

/// Returns a number with its noun.
pub(super) fn of(n: usize, one: &str, many: &str) -> String {
    if n == 1 {
        format!("1 {one}")
    } else {
        format!("{n} {many}")
    }
}

/// Returns the last part of a path.
pub(super) fn folder(path: &str) -> &str {
    let name = path
        .trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or_default();
    if name.is_empty() { "/" } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_never_guessed() {
        assert_eq!(money(None), "cost unknown");
        assert_eq!(money(Some(0.0213)), "$0.021");
        assert_eq!(count(38_200), "38.2k");
        assert_eq!(took(126_000), "2 min 06 s");
        assert_eq!(folder("/a/b/"), "b");
        assert_eq!(folder("/"), "/");
        let now = 1_700_000_000_000_000;
        assert_eq!(ago("2023-11-14T22:10:20Z", now), "3m");
        assert_eq!(ago("2023-01-01T00:00:00Z", now), "2023-01-01");
        assert_eq!(ago("no time", now), "");
    }
}

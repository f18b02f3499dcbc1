//! What differs from run to run, and says nothing.

use serde_json::Value;

/// Figures of time and of this machine.
const FIGURES: [&str; 7] = [
    "duration_ms",
    "machine",
    "next_cursor",
    "started_at",
    "token",
    "used_at",
    "as_of",
];

/// The same text, without ids, handles, times and folders.
pub(super) fn masked(text: &str, root: &str) -> String {
    let text = text.replace(root, "ROOT");
    let lines = text.lines().map(|line| match serde_json::from_str(line) {
        Ok(json @ Value::Object(_)) => words(&without_figures(json).to_string()),
        Ok(_) | Err(_) => words(line),
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn without_figures(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            let masked = map.into_iter().map(|(key, value)| {
                let hide = FIGURES.contains(&key.as_str());
                let value = if hide {
                    Value::Null
                } else {
                    without_figures(value)
                };
                (key, value)
            });
            Value::Object(masked.collect())
        }
        Value::Array(items) => items.into_iter().map(without_figures).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => other,
    }
}

fn words(line: &str) -> String {
    let of_word = |c: char| c.is_ascii_alphanumeric() || "-:.".contains(c);
    let (mut out, mut word) = (String::new(), String::new());
    for c in line.chars().chain([' ']) {
        if of_word(c) {
            word.push(c);
            continue;
        }
        out.push_str(&one(&word));
        word.clear();
        out.push(c);
    }
    // Columns are as wide as their widest cell.
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn one(word: &str) -> String {
    // What ends a sentence is no part of a time.
    let bare = word.trim_end_matches([':', '.']);
    let figure = |c: char| c.is_ascii_digit() || c == '.' || c == ':';
    let digits =
        |text: &str| text.contains(|c: char| c.is_ascii_digit()) && text.chars().all(figure);
    // An id, or what begins with one.
    let id = word
        .get(..36)
        .is_some_and(|id| id.matches('-').count() == 4);
    let stamp = word.len() > 18 && word.starts_with("20") && word.ends_with('Z');
    let time = bare.contains(':') && bare.split(':').all(digits);
    let span = ["ms", "s", "m"]
        .iter()
        .any(|unit| bare.strip_suffix(unit).is_some_and(digits));
    if id || stamp || time || span {
        return "MASKED".to_owned();
    }
    // `tmqx`, `tmqx:4`, `tmqx:N`
    let (name, rest) = word.split_once(':').unwrap_or((word, ""));
    let handle = name.len() >= 4 && name.bytes().all(|b| (b'k'..=b'z').contains(&b));
    match (handle, rest) {
        (true, "") => "HANDLE".to_owned(),
        (true, rest) => format!("HANDLE:{rest}"),
        (false, _) => word.to_owned(),
    }
}

#[test]
fn only_what_says_nothing_is_masked() {
    assert_eq!(
        masked("zyxw:4  said 3 things in /r/w, 0.1s · 14:02", "/r"),
        "HANDLE:4 said 3 things in ROOT/w, MASKED · MASKED"
    );
    assert_eq!(
        masked(r#"{"token": 9, "a": [1]}"#, "/r"),
        r#"{"a":[1],"token":null}"#
    );
}

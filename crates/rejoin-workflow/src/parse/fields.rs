//! Readers of single values.

use super::shown;
use crate::duration;
use crate::mistake::{Mistakes, instead, nearest};
use crate::yaml::{Data, Entry, Node};

pub(super) fn find<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key == key)
}

/// Returns the entries of a mapping. An absent value counts as an empty mapping.
pub(super) fn mapping<'n>(entry: &'n Entry, mistakes: &mut Mistakes) -> Option<&'n [Entry]> {
    match &entry.value.data {
        Data::Map(entries) => Some(entries),
        Data::Null => Some(&[]),
        Data::Bool(_) | Data::Number(_) | Data::Text | Data::List(_) => {
            wrong(entry, "a mapping", None, mistakes);
            None
        }
    }
}

pub(super) fn unknown_keys(
    entries: &[Entry],
    known: &[&str],
    owner: &str,
    mistakes: &mut Mistakes,
) {
    for entry in entries
        .iter()
        .filter(|entry| !known.contains(&entry.key.as_str()))
    {
        let key = shown(&entry.key);
        mistakes.suggest(
            entry.place,
            format!("{owner} has no key `{key}`"),
            instead(&entry.key, known),
        );
    }
}

/// Adds a mistake for a value of the wrong type.
pub(super) fn wrong(
    entry: &Entry,
    expected: &str,
    suggestion: Option<String>,
    mistakes: &mut Mistakes,
) {
    let text = format!(
        "`{}` must be {expected}, not {}",
        shown(&entry.key),
        entry.value.kind()
    );
    mistakes.push(entry.value.place, text, suggestion);
}

/// Returns a text.
pub(super) fn text(entry: &Entry, mistakes: &mut Mistakes) -> Option<String> {
    if let Some(text) = entry.value.text() {
        return Some(text.to_owned());
    }
    wrong(entry, "a text", quoted(&entry.value), mistakes);
    None
}

/// Returns the advice to quote a number or boolean.
pub(super) fn quoted(value: &Node) -> Option<String> {
    matches!(value.data, Data::Number(_) | Data::Bool(_))
        .then(|| format!("write it in quotes: \"{}\"", shown(&value.raw)))
}

/// Returns a text that is one line and not empty.
pub(super) fn line(entry: &Entry, mistakes: &mut Mistakes) -> Option<String> {
    let line = text(entry, mistakes)?;
    if line.trim().is_empty() {
        mistakes.add(entry.value.place, format!("`{}` is empty", entry.key));
        return None;
    }
    if line.chars().any(char::is_control) || line.chars().count() > 200 {
        let text = format!("`{}` must be one line of at most 200 characters", entry.key);
        mistakes.add(entry.value.place, text);
        return None;
    }
    Some(line)
}

/// Returns one word that a CLI cannot take for a flag.
pub(super) fn word(entry: &Entry, mistakes: &mut Mistakes) -> Option<String> {
    let word = text(entry, mistakes)?;
    if rejoin_core::is_word(&word) {
        return Some(word);
    }
    let text = format!(
        "`{}` must be one word that does not begin with `-`",
        entry.key
    );
    mistakes.add(entry.value.place, text);
    None
}

/// Returns one of the given words.
pub(super) fn choice<'k>(
    entry: &Entry,
    known: &[&'k str],
    mistakes: &mut Mistakes,
) -> Option<&'k str> {
    let word = text(entry, mistakes)?;
    let found = known.iter().copied().find(|known| *known == word);
    if found.is_none() {
        let text = format!("`{}` cannot be `{}`", entry.key, shown(&word));
        let suggestion = match nearest(&word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("write one of: {}", known.join(", ")),
        };
        mistakes.suggest(entry.value.place, text, suggestion);
    }
    found
}

/// Returns a whole number within bounds.
pub(super) fn whole(entry: &Entry, least: u64, most: u64, mistakes: &mut Mistakes) -> Option<u64> {
    let number = entry.value.number().and_then(serde_json::Number::as_u64);
    let number = number.filter(|number| (least..=most).contains(number));
    if number.is_none() {
        let text = format!(
            "`{}` must be a whole number from {least} to {most}",
            entry.key
        );
        mistakes.add(entry.value.place, text);
    }
    number
}

/// Returns an amount of money above zero.
pub(super) fn cost(entry: &Entry, mistakes: &mut Mistakes) -> Option<f64> {
    let amount = entry
        .value
        .number()
        .and_then(serde_json::Number::as_f64)
        .filter(|amount| *amount > 0.0);
    if amount.is_none() {
        let text = format!("`{}` must be an amount in USD above 0", entry.key);
        mistakes.suggest(entry.value.place, text, "write a number such as 0.50");
    }
    amount
}

/// Returns a time in milliseconds.
pub(super) fn time(entry: &Entry, mistakes: &mut Mistakes) -> Option<u64> {
    let time = duration::parse(&entry.value.raw);
    if time.is_none() {
        let suggestion = entry.value.number().map_or_else(
            || duration::EXPECTED.to_owned(),
            |number| format!("write the unit, such as {number}s or {number}m"),
        );
        mistakes.suggest(
            entry.value.place,
            format!("`{}` must be a time", entry.key),
            suggestion,
        );
    }
    time
}

/// Returns a time above zero in milliseconds.
pub(super) fn timeout(entry: &Entry, mistakes: &mut Mistakes) -> Option<u64> {
    let time = time(entry, mistakes)?;
    if time == 0 {
        let text = format!("`{}` must be longer than 0", entry.key);
        mistakes.suggest(entry.value.place, text, "remove the key for no limit");
    }
    (time > 0).then_some(time)
}

/// Returns a list of texts. A single text is a mistake that suggests the list.
pub(super) fn texts<'n>(entry: &'n Entry, mistakes: &mut Mistakes) -> Option<Vec<&'n Node>> {
    let Data::List(items) = &entry.value.data else {
        let single = entry
            .value
            .text()
            .map(|text| format!("write [{}]", shown(text)));
        wrong(entry, "a list of texts", single, mistakes);
        return None;
    };
    let mut texts = Vec::new();
    for item in items {
        match item.text() {
            Some(_) => texts.push(item),
            None => {
                let text = format!("`{}` must hold texts, not {}", entry.key, item.kind());
                mistakes.push(item.place, text, quoted(item));
            }
        }
    }
    Some(texts)
}

/// Returns the rules of `tools` or `deny_tools`.
pub(super) fn rules(entry: &Entry, mistakes: &mut Mistakes) -> Option<Vec<String>> {
    let items = texts(entry, mistakes)?;
    for item in items.iter().filter(|item| item.raw.trim().is_empty()) {
        mistakes.add(item.place, format!("`{}` holds an empty name", entry.key));
    }
    Some(items.into_iter().map(|item| item.raw.clone()).collect())
}

//! The tables of a list, such as `[[tier]]`.

use std::collections::BTreeMap;

use super::file::at_line;
use super::load::Loaded;
use super::setting::{Origin, Setting};
use super::typed;
use rejoin_errors::{CommandError, Result};

/// Settings of one table, by the names of its keys.
pub(super) type Section<'a> = BTreeMap<&'a str, &'a Setting>;

/// Returns the tables of a list, in their order.
pub(super) fn sections<'a>(loaded: &'a Loaded, list: &str) -> BTreeMap<usize, Section<'a>> {
    let mut sections: BTreeMap<usize, Section<'a>> = BTreeMap::new();
    for setting in loaded.settings.values() {
        let key = setting.key.name.strip_prefix(list);
        if let Some(key) = key.and_then(|key| key.strip_prefix("[]."))
            && let Some(n) = setting.names.first().and_then(|n| n.parse().ok())
        {
            sections.entry(n).or_default().insert(key, setting);
        }
    }
    sections
}

/// Returns the value of a key, if it is set.
pub(super) fn value<T: serde::de::DeserializeOwned>(
    section: &Section<'_>,
    key: &str,
) -> Result<Option<T>> {
    section.get(key).map(|setting| typed(setting)).transpose()
}

/// Builds the error about a key, with its line. A key that is not set is reported at the name.
pub(super) fn wrong(section: &Section<'_>, key: &str, what: &str) -> CommandError {
    let setting = section.get(key).or_else(|| section.get("name"));
    match setting {
        Some(setting) => wrong_setting(setting, what),
        None => CommandError::config(what.to_owned()),
    }
}

/// Builds the error about a setting, with its line.
pub(super) fn wrong_setting(setting: &Setting, what: &str) -> CommandError {
    let what = format!("`{}`: {what}", setting.path);
    match &setting.origin {
        Origin::File { path, line } => at_line(path, *line, &what),
        Origin::Default | Origin::Environment(_) => CommandError::config(what),
    }
}

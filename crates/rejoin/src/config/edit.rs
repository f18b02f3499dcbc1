//! Changes of a configuration file that keep its comments and its order.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use toml_edit::{Array, DocumentMut, InlineTable, Item, Table, Value};

use super::file::ConfigFile;
use super::keys::{Key, Place, place};
use super::suggest::hint;
use crate::portable::AtomicFile;
use rejoin_errors::{CommandError, Result};

/// A key as it is typed: `agents.claude.model`, or `models."gpt-5.5".window`.
#[derive(Debug)]
pub(crate) struct KeyPath {
    pub(crate) key: &'static Key,
    segments: Vec<String>,
}

impl KeyPath {
    /// Parses a key. Refuses an unknown one with the nearest known name.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let wrong = |why: String| CommandError::usage(why).try_this("rejoin config show");
        let parsed = toml_edit::Key::parse(text);
        let parsed =
            parsed.map_err(|_| wrong(format!("`{text}` is no key of the configuration")))?;
        let segments: Vec<String> = parsed.iter().map(|key| key.get().to_owned()).collect();
        let (mut pattern, mut path) = (String::new(), String::new());
        for (n, name) in segments.iter().enumerate() {
            let last = n + 1 == segments.len();
            match place(&pattern, name) {
                Place::Leaf(key) if last => return Ok(Self { key, segments }),
                Place::Leaf(_) => {
                    return Err(wrong(format!("`{path}.{name}` has no keys below it")));
                }
                Place::Section(next) | Place::Named(next) => pattern = next,
                Place::List(_) => {
                    let why = format!("`{text}` is in a list of sections, [[{name}]]");
                    return Err(CommandError::usage(why).try_this("rejoin config edit"));
                }
                Place::Unknown if let Some(quoted) = with_quotes(&segments) => {
                    let why = format!("a name with a dot is quoted: '{quoted}'");
                    let next = format!("rejoin config set '{quoted}' VALUE");
                    return Err(CommandError::usage(why).try_this(next));
                }
                Place::Unknown => {
                    let hint = hint(&pattern, &path, name);
                    return Err(wrong(format!("unknown key `{text}`{hint}")));
                }
            }
            path = super::keys::join(&path, name);
        }
        Err(wrong(format!(
            "`{text}` is a section, and has no value of its own"
        )))
    }
}

/// Returns a name as it is written in a key: `"gpt-5.5"`.
pub(crate) fn quoted_name(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("\"{name}\"")
    }
}

/// Returns the key with quotes around its second name, if that makes it one that exists:
/// `models."gpt-5.5".window`.
fn with_quotes(segments: &[String]) -> Option<String> {
    let (section, rest) = segments.split_first()?;
    let Place::Section(pattern) = place("", section) else {
        return None;
    };
    (2..rest.len()).find_map(|end| {
        let (name, keys) = rest.split_at(end);
        let Place::Named(mut pattern) = place(&pattern, name.first()?) else {
            return None;
        };
        let (last, sections) = keys.split_last()?;
        for key in sections {
            let Place::Section(next) = place(&pattern, key) else {
                return None;
            };
            pattern = next;
        }
        let name = quoted_name(&name.join("."));
        matches!(place(&pattern, last), Place::Leaf(_))
            .then(|| format!("{section}.{name}.{}", keys.join(".")))
    })
}

/// A configuration file that is changed as a whole: checked first, then moved into its place.
pub(crate) struct Edit {
    path: PathBuf,
    document: DocumentMut,
}

impl Edit {
    /// Reads the file. A missing one is empty. Fails if the file is wrong already.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        let mut text = String::new();
        if path.exists() {
            let file = ConfigFile::read(path)?;
            file.settings()?;
            file.text().clone_into(&mut text);
        }
        let document = text.parse::<DocumentMut>();
        let document = document.map_err(|e| CommandError::config(e.to_string()))?;
        Ok(Self {
            path: path.to_owned(),
            document,
        })
    }

    /// Sets a value; a new section is added at the end.
    pub(crate) fn set(&mut self, path: &KeyPath, value: &Json) {
        let Some((last, sections)) = path.segments.split_last() else {
            return;
        };
        let mut table = self.document.as_table_mut();
        for (n, name) in sections.iter().enumerate() {
            let deepest = n + 1 == sections.len();
            let item = table.entry(name).or_insert_with(|| {
                let mut section = Table::new();
                section.set_implicit(!deepest);
                Item::Table(section)
            });
            // `models = { gpt = { … } }` becomes sections.
            if let Item::Value(Value::InlineTable(inline)) = item {
                *item = Item::Table(std::mem::take(inline).into_table());
            }
            let Item::Table(next) = item else { return };
            table = next;
        }
        let mut value = toml_value(value);
        if let Some(Item::Value(old)) = table.get(last) {
            *value.decor_mut() = old.decor().clone();
        }
        match table.get_mut(last) {
            Some(item) => *item = Item::Value(value),
            None => {
                table.insert(last, Item::Value(value));
            }
        }
    }

    /// Removes a value. Returns false if the file has none.
    pub(crate) fn unset(&mut self, path: &KeyPath) -> bool {
        let Some((last, sections)) = path.segments.split_last() else {
            return false;
        };
        let mut table: &mut dyn toml_edit::TableLike = self.document.as_table_mut();
        for name in sections {
            let Some(next) = table.get_mut(name).and_then(Item::as_table_like_mut) else {
                return false;
            };
            table = next;
        }
        table.remove(last).is_some()
    }

    /// Checks the changed file, then writes it: whole, or not at all.
    pub(crate) fn save(&self) -> Result<()> {
        save(&self.path, &self.document.to_string())
    }
}

/// Checks a text as configuration, then puts it into the place of the file.
pub(crate) fn save(path: &Path, text: &str) -> Result<()> {
    // Through a link: the file that it names is replaced, and the link stays.
    let path = fs_err::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    ConfigFile::of(&path, text).settings()?;
    let written = (|| {
        if let Some(folder) = path.parent() {
            fs_err::create_dir_all(folder)?;
        }
        let mut file = AtomicFile::begin(&path)?;
        file.write_all(text.as_bytes())?;
        file.keep()
    })();
    written.map_err(|e: std::io::Error| {
        CommandError::unavailable(format!("{} cannot be written: {e}", path.display()))
            .try_this("rejoin config path")
    })
}

fn toml_value(value: &Json) -> Value {
    match value {
        Json::Bool(flag) => (*flag).into(),
        Json::Number(number) => match number.as_i64() {
            Some(whole) => whole.into(),
            None => number.as_f64().unwrap_or_default().into(),
        },
        Json::Array(items) => Value::Array(items.iter().map(toml_value).collect::<Array>()),
        Json::Object(map) => {
            let pairs = map
                .iter()
                .map(|(name, value)| (name.as_str(), toml_value(value)));
            Value::InlineTable(pairs.collect::<InlineTable>())
        }
        Json::String(text) => text.as_str().into(),
        Json::Null => "".into(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn changed(before: &str, change: impl FnOnce(&mut Edit)) -> String {
        let mut edit = Edit {
            path: PathBuf::new(),
            document: before.parse().unwrap(),
        };
        change(&mut edit);
        edit.document.to_string()
    }

    fn set(before: &str, key: &str, value: &Json) -> String {
        changed(before, |edit| {
            edit.set(&KeyPath::parse(key).unwrap(), value);
        })
    }

    #[test]
    fn comments_and_order_stay() {
        let before =
            "# mine\ndefault_agent = \"claude\" # for now\n\n[resume]\n# few\nbreaker = 2\n";
        let after = set(before, "default_agent", &"codex".into());
        assert_eq!(after, before.replace("\"claude\"", "\"codex\""));
        let after = set(&after, "resume.breaker", &3.into());
        assert_eq!(
            after,
            before.replace("\"claude\"", "\"codex\"").replace('2', "3")
        );
        let after = set("", "agents.claude.model", &"sonnet".into());
        assert_eq!(after, "[agents.claude]\nmodel = \"sonnet\"\n");
        let after = set("", "models.\"gpt-5.5\".window", &200_000.into());
        assert_eq!(after, "[models.\"gpt-5.5\"]\nwindow = 200000\n");
        let path = KeyPath::parse("resume.breaker").unwrap();
        let after = changed(before, |edit| assert!(edit.unset(&path)));
        assert!(
            !after.contains("breaker") && after.contains("# mine"),
            "{after}"
        );
        changed("", |edit| assert!(!edit.unset(&path)));
    }

    #[test]
    fn unknown_keys_are_refused_with_the_near_one() {
        for (key, near) in [
            ("default_agnt", "did you mean `default_agent`?"),
            ("resume.breker", "did you mean `resume.breaker`?"),
            ("breaker", "did you mean `resume.breaker`?"),
            ("resume", "is a section"),
            ("default_agent.x", "has no keys below it"),
            ("a b", "is no key"),
        ] {
            let failure = KeyPath::parse(key).unwrap_err();
            assert!(failure.message.contains(near), "{key}: {}", failure.message);
        }
    }
}

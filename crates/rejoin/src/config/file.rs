//! A configuration file: read once, so that the checked text is the text that was read.

use std::io::Read;
use std::path::{Path, PathBuf};

use rejoin_runner::foreign_file::read_regular;
use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::keys::{Place, place};
use super::kind::written;
use super::setting::{Origin, Setting, segment};
use super::suggest::hint;
use rejoin_errors::{CommandError, Result};

/// No sensible file is longer; a device that never ends is.
const LONGEST: u64 = 1 << 20;

/// The bytes of a file, and the hash of these very bytes and of the files with prompts that it names.
#[derive(Debug, Clone)]
pub(crate) struct ConfigFile {
    pub(crate) path: PathBuf,
    pub(crate) hash: String,
    text: String,
}

impl ConfigFile {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let wrong = |why: String| CommandError::config(why).try_this("rejoin config path");
        let mut bytes = vec![];
        fs_err::File::open(path)
            .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
            .map_err(|e| wrong(e.to_string()))?;
        if bytes.len() as u64 > LONGEST {
            return Err(wrong(format!(
                "{} is no configuration: it is longer than 1 MiB",
                path.display()
            )));
        }
        let text = String::from_utf8(bytes).map_err(|e| {
            let valid = e.utf8_error().valid_up_to();
            let text = String::from_utf8_lossy(&e.as_bytes()[..valid]).into_owned();
            at_line(path, line_of(&text, valid), "this is not UTF-8")
        })?;
        Ok(Self::of(path, &text))
    }

    /// A text that may become the file.
    pub(crate) fn of(path: &Path, text: &str) -> Self {
        Self {
            path: path.to_path_buf(),
            hash: hash_of(path, text),
            text: text.to_owned(),
        }
    }

    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Every value in it, or the first thing that is wrong with it.
    pub(crate) fn settings(&self) -> Result<Vec<Setting>> {
        let document = DeTable::parse(&self.text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let what = error.message().lines().next().unwrap_or("not valid TOML");
            at_line(&self.path, line_of(&self.text, start), what)
        })?;
        let mut walk = Walk {
            file: self,
            found: vec![],
            wrong: vec![],
        };
        walk.section("", "", &[], document.get_ref());
        let Walk {
            mut found,
            mut wrong,
            ..
        } = walk;
        // The parser's tables are sorted by name; people read from the top.
        wrong.sort_by_key(|(at, _)| *at);
        if let Some((at, what)) = wrong.first() {
            return Err(at_line(&self.path, line_of(&self.text, *at), what));
        }
        found.sort_by_key(Setting::line);
        Ok(found)
    }
}

impl Setting {
    fn line(&self) -> usize {
        match self.origin {
            Origin::File { line, .. } => line,
            Origin::Default | Origin::Environment(_) => 0,
        }
    }
}

/// Returns the hash of the text, and of the files with prompts that it names: whoever changes one
/// changes prompts of agents.
fn hash_of(path: &Path, text: &str) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(text.as_bytes());
    let folder = path.parent().unwrap_or_else(|| Path::new(""));
    for name in templates(text) {
        let template = read_regular(folder.join(name), LONGEST).unwrap_or_default();
        hash.update(blake3::hash(&template).as_bytes());
    }
    hash.finalize().to_hex().to_string()
}

/// Returns the files with prompts that the tiers and schedules of a file name.
fn templates(text: &str) -> Vec<String> {
    let Ok(document) = DeTable::parse(text) else {
        return vec![];
    };
    let document = plain_value(&DeValue::Table(document.into_inner()));
    let named = |list: &str, key: &str| -> Vec<String> {
        let tables = document[list].as_array().into_iter().flatten();
        let names = tables.filter_map(|table| table[key].as_str());
        names.map(str::to_owned).collect()
    };
    [named("tier", "prompt"), named("schedule", "prompt_file")].concat()
}

/// The one form of an error in a file.
pub(crate) fn at_line(path: &Path, line: usize, what: &str) -> CommandError {
    let path = path.display();
    CommandError::config(format!("{path}, line {line}: {what}"))
        .try_this(format!("${{EDITOR:-vi}} +{line} {path}"))
}

fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

struct Walk<'a> {
    file: &'a ConfigFile,
    found: Vec<Setting>,
    /// With where in the text it stands.
    wrong: Vec<(usize, String)>,
}

impl Walk<'_> {
    fn section(&mut self, pattern: &str, path: &str, names: &[String], table: &DeTable<'_>) {
        for (key, value) in table {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let here = if path.is_empty() {
                segment(name)
            } else {
                format!("{path}.{}", segment(name))
            };
            let more = |name: String| [names, &[name]].concat();
            match place(pattern, name) {
                Place::Leaf(key) => {
                    let plain = plain_value(value.get_ref());
                    if key.kind.fits(&plain) {
                        self.found.push(Setting {
                            key,
                            names: names.to_vec(),
                            path: here,
                            value: plain,
                            origin: Origin::File {
                                path: self.file.path.clone(),
                                line: line_of(&self.file.text, at),
                            },
                        });
                    } else {
                        let at = misfit(key.kind, value).unwrap_or(at);
                        let (is, must) = if key.all_secret() {
                            ("…".to_owned(), key.kind.words())
                        } else {
                            (written(&plain), key.kind.words())
                        };
                        self.wrong
                            .push((at, format!("`{here}` is {is}; it must be {must}")));
                    }
                }
                Place::Section(pattern) => self.sub(&pattern, &here, names, at, value),
                Place::Named(pattern) => {
                    self.sub(&pattern, &here, &more(name.to_owned()), at, value);
                }
                Place::List(pattern) => self.list(&pattern, &here, at, value),
                Place::Unknown => {
                    let hint = hint(pattern, path, name);
                    self.wrong.push((at, format!("unknown key `{here}`{hint}")));
                }
            }
        }
    }

    /// Reads the tables of a list. Each has a name.
    fn list(&mut self, pattern: &str, path: &str, at: usize, value: &Spanned<DeValue<'_>>) {
        let tables: Option<Vec<_>> = value.get_ref().as_array().and_then(|items| {
            let table = |item: &Spanned<DeValue<'_>>| item.get_ref().as_table().is_some();
            items.iter().all(table).then(|| items.iter().collect())
        });
        let Some(tables) = tables else {
            let is = written(&plain_value(value.get_ref()));
            let text = format!("`{path}` is {is}; it must be a list of sections, [[{path}]]");
            self.wrong.push((at, text));
            return;
        };
        for (n, item) in tables.into_iter().enumerate() {
            let Some(table) = item.get_ref().as_table() else {
                continue;
            };
            let here = format!("{path}[{n}]");
            if !table.iter().any(|(key, _)| key.get_ref() == "name") {
                let text = format!("a section [[{path}]] needs a `name`");
                self.wrong.push((item.span().start, text));
            }
            self.section(pattern, &here, &[n.to_string()], table);
        }
    }

    fn sub(
        &mut self,
        pattern: &str,
        path: &str,
        names: &[String],
        at: usize,
        value: &Spanned<DeValue<'_>>,
    ) {
        match value.get_ref().as_table() {
            Some(table) => self.section(pattern, path, names, table),
            None => {
                let is = written(&plain_value(value.get_ref()));
                self.wrong.push((
                    at,
                    format!("`{path}` is {is}; it must be a section, [{path}]"),
                ));
            }
        }
    }
}

/// Offset of the first entry of a list or table that does not fit.
fn misfit(kind: super::kind::Kind, value: &Spanned<DeValue<'_>>) -> Option<usize> {
    let bad = |item: &&Spanned<DeValue<'_>>| !kind.fits_item(&plain_value(item.get_ref()));
    if let Some(list) = value.get_ref().as_array() {
        return list.iter().find(bad).map(|item| item.span().start);
    }
    let table = value.get_ref().as_table()?;
    let entry = table.iter().find(|(_, item)| bad(item))?;
    Some(entry.0.span().start)
}

fn plain_value(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Integer(number) => i64::from_str_radix(number.as_str(), number.radix())
            .map_or_else(|_| Value::String(number.as_str().to_owned()), Value::from),
        // What is no number in JSON (`inf`, `nan`) fits no key.
        DeValue::Float(number) => number
            .as_str()
            .parse::<f64>()
            .map_or(Value::Null, Value::from),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Datetime(time) => Value::String(time.to_string()),
        DeValue::Array(items) => items.iter().map(|i| plain_value(i.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(n, v)| (n.get_ref().to_string(), plain_value(v.get_ref())))
            .collect(),
    }
}

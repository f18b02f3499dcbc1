//! A value and its source.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::keys::{Key, Trust};
use super::kind::written;

#[derive(Debug, Clone)]
pub(crate) struct Setting {
    pub(crate) key: &'static Key,
    /// Names in the places of the key's stars, in order.
    pub(crate) names: Vec<String>,
    /// As one writes it: `agents.claude.bin`.
    pub(crate) path: String,
    pub(crate) value: Value,
    pub(crate) origin: Origin,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Origin {
    Default,
    File { path: PathBuf, line: usize },
    Environment(String),
}

impl Origin {
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Default => "default".into(),
            Self::File { path, line } => format!("{}:{line}", path.display()),
            Self::Environment(name) => name.clone(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        match self {
            Self::Default => json!({"from": "default"}),
            Self::File { path, line } => json!({"from": "file", "file": path, "line": line}),
            Self::Environment(name) => json!({"from": "environment", "variable": name}),
        }
    }
}

impl Setting {
    /// Would it, coming from a repository's file, need trust? `without` is what applies if it does
    /// not count.
    pub(crate) fn needs_trust(&self, without: Option<&Value>) -> bool {
        let listed = |values: &[&str]| {
            let text = self.value.as_str().map(str::to_owned);
            values.contains(&text.unwrap_or_else(|| self.value.to_string()).as_str())
        };
        match self.key.trust {
            Trust::Free => false,
            Trust::Needed => true,
            Trust::NeededFor(values) => listed(values),
            Trust::NeededBeyond(values) => !listed(values) && without != Some(&self.value),
        }
    }

    /// The value for the screen: what could be a secret stays in its file.
    pub(crate) fn shown(&self) -> Value {
        if !self.key.secret() {
            return self.value.clone();
        }
        if self.key.all_secret() {
            return json!("…");
        }
        if let Some(map) = self.value.as_object() {
            return map.keys().map(|n| (n.clone(), json!("…"))).collect();
        }
        json!(self.value.as_str().map(without_password))
    }

    pub(crate) fn shown_words(&self) -> String {
        written(&self.shown())
    }

    /// A program named by a path is looked for beside the file that names it.
    pub(crate) fn beside_its_file(&self) -> Option<String> {
        let text = self.value.as_str()?;
        let Origin::File { path, .. } = &self.origin else {
            return Some(text.to_owned());
        };
        let relative = text.contains('/') && !text.starts_with('/') && !text.starts_with("~/");
        let beside = path
            .parent()
            .filter(|_| relative)
            .map(|f| f.join(text.trim_start_matches("./")));
        Some(beside.map_or_else(|| text.to_owned(), |p| p.to_string_lossy().into_owned()))
    }
}

/// `https://user:…@host/…`: a password and what follows a `?` are left out.
fn without_password(url: &str) -> String {
    let (address, query) = url.split_once('?').map_or((url, ""), |(a, _)| (a, "?…"));
    let shown = address.split_once("://").and_then(|(scheme, rest)| {
        // A sign that should have been written as %40 belongs to the password.
        let (user, host) = rest.rsplit_once('@')?;
        let (name, _) = user.split_once(':')?;
        Some(format!("{scheme}://{name}:…@{host}"))
    });
    shown.unwrap_or_else(|| address.to_owned()) + query
}

/// A name as it is written in a dotted key.
pub(crate) fn segment(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("{name:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_shown() {
        for (url, shown) in [
            ("sqlite:/a/b.db", "sqlite:/a/b.db"),
            ("postgres://me:secret@host/db", "postgres://me:…@host/db"),
            ("https://h/hook?token=secret", "https://h/hook?…"),
        ] {
            assert_eq!(without_password(url), shown);
        }
    }
}

//! A tool call, converted back into the form in which a model calls it, as far as the CLI shows it.

use serde_json::{Map, Value, json};

use super::super::tool_note;
use super::wire::{Call, Shown};

impl Call {
    /// Returns the name of the tool, which the CLI puts before the id of the call (0.61.0).
    pub(super) fn tool(&self) -> String {
        match self.id.split_once("__") {
            Some((name, _)) if !name.is_empty() => name.to_owned(),
            Some(_) | None => self.kind.clone().unwrap_or_else(|| "tool".to_owned()),
        }
    }

    /// Returns the input of the call. `folder` is the working folder of the run.
    pub(super) fn input(&self, folder: &str) -> Value {
        let mut input = Map::new();
        let mut add = |name: &str, text: &str| input.insert(name.to_owned(), json!(text));
        let title = self.title.as_deref().unwrap_or_default();
        let mut files = self.content.iter().filter_map(changed);
        if let Some((path, old, new)) = files.next() {
            add("file_path", path);
            match old.filter(|old| !old.is_empty()) {
                Some(old) => {
                    let (old, new) = apart(old, new);
                    add("old_string", old);
                    add("new_string", new);
                }
                None => drop(add("content", new)),
            }
        } else if self.kind.as_deref() == Some("execute") {
            add("command", title);
        } else {
            if let [only] = self.locations.as_slice() {
                add("file_path", &only.path);
            }
            if !title.is_empty() {
                add("title", title);
            }
        }
        let told = self.text();
        let usual = format!("[current working directory {folder}]");
        let told = told.strip_prefix(&usual).unwrap_or(&told).trim();
        if self.is_pending() && !told.is_empty() {
            add("details", told);
        }
        Value::Object(input)
    }

    /// Returns the text: details of a pending call, or the output of one that ended.
    pub(super) fn text(&self) -> String {
        let texts: Vec<&str> = self.content.iter().filter_map(text).collect();
        texts.join("\n")
    }

    pub(super) fn is_pending(&self) -> bool {
        matches!(self.status.as_deref(), Some("pending" | "in_progress"))
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(self.status.as_deref(), Some("completed" | "failed"))
    }

    /// True if the CLI itself did not let the call run.
    pub(super) fn is_denied(&self) -> bool {
        self.status.as_deref() == Some("failed") && self.text().ends_with(tool_note::DENIED)
    }
}

fn text(content: &Shown) -> Option<&str> {
    match content {
        Shown::Text { content } => Some(content.text.as_str()).filter(|text| !text.is_empty()),
        Shown::Diff { .. } | Shown::Other => None,
    }
}

fn changed(content: &Shown) -> Option<(&str, Option<&str>, &str)> {
    match content {
        Shown::Diff { path, old, new } => Some((path, old.as_deref(), new)),
        Shown::Text { .. } | Shown::Other => None,
    }
}

/// Reduces two whole files to the lines in which they differ.
fn apart<'a>(old: &'a str, new: &'a str) -> (&'a str, &'a str) {
    let pairs = || old.split_inclusive('\n').zip(new.split_inclusive('\n'));
    let same = pairs().take_while(|(a, b)| a == b).map(|(a, _)| a.len());
    let from = same.sum::<usize>();
    let (old, new) = (&old[from..], &new[from..]);
    let olds = old.split_inclusive('\n').rev();
    let ends = olds.zip(new.split_inclusive('\n').rev());
    let same = ends.take_while(|(a, b)| a == b).map(|(a, _)| a.len());
    let behind = same.sum::<usize>();
    (&old[..old.len() - behind], &new[..new.len() - behind])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_differs() {
        for (old, new, expected) in [
            ("a\nb\nc\n", "a\nX\nc\n", ("b\n", "X\n")),
            ("a\nb", "a\nb\nc", ("b", "b\nc")),
            ("a\n", "a\na\n", ("", "a\n")),
            ("", "x", ("", "x")),
            ("same\n", "same\n", ("", "")),
            ("é\nä", "é\nö", ("ä", "ö")),
        ] {
            assert_eq!(apart(old, new), expected, "{old:?} {new:?}");
        }
    }

    fn call(value: Value) -> Call {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_a_call_is_about() {
        let shell = |told: &str| {
            call(json!({
                "toolCallId": "run_shell_command__run_shell_command_1_0", "status": "pending",
                "title": "touch x", "kind": "execute", "locations": [],
                "content": [{"type": "content", "content": {"type": "text", "text": told}}],
            }))
        };
        let here = shell("[current working directory /w]");
        assert_eq!(here.tool(), "run_shell_command");
        assert_eq!(here.input("/w"), json!({"command": "touch x"}));
        let there = here.input("/v");
        assert_eq!(there["details"], "[current working directory /w]");
        let edit = |old: Value| {
            call(json!({
                "toolCallId": "replace__7", "status": "pending", "title": "w: a => b",
                "content": [{"type": "diff", "path": "/w/f", "oldText": old, "newText": "a\nc\n"}],
                "kind": "edit",
            }))
        };
        let changed = json!({"file_path": "/w/f", "old_string": "b\n", "new_string": "c\n"});
        assert_eq!(edit(json!("a\nb\n")).input("/w"), changed);
        let made = json!({"file_path": "/w/f", "content": "a\nc\n"});
        assert_eq!(edit(Value::Null).input("/w"), made);
        let fetch = call(json!({"toolCallId": "odd", "title": "Look", "kind": "fetch"}));
        assert_eq!(
            (fetch.tool(), fetch.input("/w")),
            ("fetch".into(), json!({"title": "Look"}))
        );
    }
}

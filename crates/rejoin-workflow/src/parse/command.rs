//! Arguments, script and environment of `run` and `shell` steps.

use super::fields::{self, wrong};
use super::shown;
use super::step::StepReader;
use crate::keys::is_variable;
use crate::template::Template;
use crate::yaml::{Data, Entry};

impl<'n> StepReader<'_, 'n> {
    pub(super) fn argv(&mut self, entry: &'n Entry) -> Vec<Template> {
        if let Some(text) = entry.value.text() {
            let words: Vec<String> = text
                .split_whitespace()
                .map(|word| format!("{word:?}"))
                .collect();
            let list = format!(
                "write `run: [{}]`, or use `shell`",
                shown(&words.join(", "))
            );
            wrong(entry, "a list of texts", Some(list), self.mistakes);
            return Vec::new();
        }
        let items = fields::texts(entry, self.mistakes).unwrap_or_default();
        let empty = matches!(&entry.value.data, Data::List(list) if list.is_empty());
        if empty || items.first().is_some_and(|program| program.raw.is_empty()) {
            let text = "`run` names no program";
            self.mistakes
                .suggest(entry.value.place, text, "write [\"program\", \"argument\"]");
        }
        items
            .into_iter()
            .map(|item| self.template_of(item, "run"))
            .collect()
    }

    pub(super) fn script(&mut self, entry: &'n Entry) -> String {
        let Some(script) = fields::text(entry, self.mistakes) else {
            return String::new();
        };
        if script.trim().is_empty() {
            self.mistakes.add(entry.value.place, "`shell` is empty");
        }
        if let Some(offset) = ["{{", "{%"]
            .iter()
            .filter_map(|mark| script.find(mark))
            .min()
        {
            let text = "`shell` is not a template: a value in a script could become a command";
            let suggestion = "pass the value with `env: { NAME: \"{{ … }}\" }` and use \"$NAME\"";
            self.mistakes
                .suggest(entry.value.place_at(offset), text, suggestion);
        }
        script
    }

    pub(super) fn env(&mut self) -> Vec<(String, Template)> {
        let Some(entry) = self.get("env") else {
            return Vec::new();
        };
        let Some(entries) = fields::mapping(entry, self.mistakes) else {
            return Vec::new();
        };
        let mut variables = Vec::new();
        for entry in entries {
            if !is_variable(&entry.key) {
                let text = format!("`{}` cannot be the name of a variable", shown(&entry.key));
                self.mistakes
                    .suggest(entry.place, text, "use A-Z, a-z, 0-9 and `_`");
            }
            let value = match entry.value.data {
                Data::Number(_) | Data::Bool(_) => self.template_of(&entry.value, "env"),
                Data::Null | Data::Text | Data::List(_) | Data::Map(_) => {
                    self.template(entry, "env")
                }
            };
            variables.push((entry.key.clone(), value));
        }
        variables
    }
}

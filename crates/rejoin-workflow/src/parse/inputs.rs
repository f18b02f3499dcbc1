//! `inputs` of a file.

use super::bad_id;
use super::fields::{choice, find, mapping, text, unknown_keys, wrong};
use crate::bind::article;
use crate::keys::{self, is_id};
use crate::mistake::Mistakes;
use crate::workflow::{Input, InputKind};
use crate::yaml::{Data, Entry};

pub(super) fn read(entry: &Entry, mistakes: &mut Mistakes) -> Vec<Input> {
    let entries = mapping(entry, mistakes).unwrap_or_default();
    entries.iter().map(|entry| input(entry, mistakes)).collect()
}

fn input(entry: &Entry, mistakes: &mut Mistakes) -> Input {
    if !is_id(&entry.key) {
        bad_id(entry, "the name of an input", mistakes);
    }
    let mut input = Input {
        name: entry.key.clone(),
        kind: InputKind::String,
        required: false,
        default: None,
        description: None,
    };
    if let Some(word) = entry.value.text() {
        let example = format!("write {{ type: {} }}", super::shown(word));
        wrong(entry, "a mapping", Some(example), mistakes);
        return input;
    }
    let Some(fields) = mapping(entry, mistakes) else {
        return input;
    };
    unknown_keys(fields, keys::INPUT, "an input", mistakes);
    if let Some(entry) = find(fields, "type") {
        let names: Vec<&str> = InputKind::NAMES.iter().map(|(name, _)| *name).collect();
        let word = choice(entry, &names, mistakes);
        let Some((_, kind)) = InputKind::NAMES
            .iter()
            .find(|(name, _)| Some(*name) == word)
        else {
            return input;
        };
        input.kind = *kind;
    }
    if let Some(entry) = find(fields, "required") {
        if let Data::Bool(required) = entry.value.data {
            input.required = required;
        } else {
            wrong(entry, "true or false", None, mistakes);
        }
    }
    if let Some(entry) = find(fields, "default") {
        let value = entry.value.json();
        if input.kind.accepts(&value) {
            input.default = Some(value);
        } else {
            wrong(
                entry,
                article(input.kind),
                super::fields::quoted(&entry.value),
                mistakes,
            );
        }
    }
    input.description = find(fields, "description").and_then(|entry| text(entry, mistakes));
    input
}

//! The table of keys as a JSON Schema, for editors.

use serde_json::{Map, Value, json};

use super::keys::{KEYS, Key};

pub(crate) fn schema() -> Value {
    let mut root = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "rejoin.toml, and rejoin/config.toml",
    });
    merge(&mut root, section(""));
    root
}

/// The schema of the section of that pattern.
fn section(pattern: &str) -> Value {
    let mut properties = Map::new();
    let mut named = Value::Bool(false);
    for name in super::keys::names_in(pattern) {
        let full = super::keys::join(pattern, name);
        match KEYS.iter().find(|k| k.name == full) {
            Some(key) => {
                properties.insert(name.to_owned(), leaf(key));
            }
            None if name == "*" => named = section(&full),
            None if KEYS
                .iter()
                .any(|k| k.name.starts_with(&format!("{full}[]."))) =>
            {
                let mut items = section(&format!("{full}[]"));
                merge(&mut items, json!({"required": ["name"]}));
                properties.insert(name.to_owned(), json!({"type": "array", "items": items}));
            }
            None => {
                properties.insert(name.to_owned(), section(&full));
            }
        }
    }
    json!({"type": "object", "properties": properties, "additionalProperties": named})
}

fn leaf(key: &Key) -> Value {
    let mut schema = key.kind.schema();
    merge(&mut schema, json!({"description": key.about}));
    if let Some(default) = key.default() {
        merge(&mut schema, json!({"default": default}));
    }
    schema
}

fn merge(into: &mut Value, more: Value) {
    if let (Some(into), Value::Object(more)) = (into.as_object_mut(), more) {
        into.extend(more);
    }
}

//! Values that templates and expressions see.

use std::collections::BTreeMap;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value as Item};
use minijinja::{Error, ErrorKind};
use serde_json::{Map, Value};

use super::Names;

/// Values of a run: everything that its templates and expressions see.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    pub inputs: Map<String, Value>,
    pub steps: BTreeMap<String, StepValues>,
    /// Item of a `for_each` step.
    pub item: Option<Value>,
    /// Position of the item, from 0.
    pub index: Option<usize>,
    pub run_id: String,
}

/// Values of a step: `steps.ID.text` and its siblings.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct StepValues {
    pub status: String,
    pub text: String,
    pub output: Value,
    pub verdict: Option<String>,
    pub cost_usd: Option<f64>,
    pub exit_code: Option<i64>,
    /// Results of a `for_each` step, in order: `steps.ID.items[0].text`.
    pub items: Option<Vec<StepValues>>,
}

impl Scope {
    /// Returns the values for a text that refers to these steps.
    pub(super) fn context(&self, names: &Names) -> Item {
        let strict = !names.tolerant;
        let mut root: BTreeMap<String, Item> = BTreeMap::new();
        for id in &names.failed {
            root.insert(id.clone(), Item::from(id.as_str()));
        }
        let known = names
            .steps
            .iter()
            .filter_map(|id| Some((id.clone(), self.steps.get(id)?)));
        let steps = known.map(|(id, step)| (id, step.value(strict))).collect();
        root.insert("steps".into(), Mapping::value(steps, strict));
        let inputs = self
            .inputs
            .iter()
            .map(|(name, value)| (name.clone(), item(value, strict)));
        root.insert("inputs".into(), Mapping::value(inputs.collect(), strict));
        let run = BTreeMap::from([("id".to_owned(), Item::from(self.run_id.as_str()))]);
        root.insert("run".into(), Mapping::value(run, strict));
        if let Some(value) = &self.item {
            root.insert("item".into(), item(value, strict));
        } else {
            root.remove("item");
        }
        if let Some(index) = self.index {
            root.insert("index".into(), Item::from(index));
        } else {
            root.remove("index");
        }
        let failed: Vec<String> = (names.failed.iter())
            .filter(|id| {
                self.steps
                    .get(*id)
                    .is_some_and(|step| step.status == "failed")
            })
            .cloned()
            .collect();
        root.insert(
            "failed".into(),
            Item::from_function(move |id: String| failed.contains(&id)),
        );
        root.insert("always".into(), Item::from_function(|| true));
        Mapping::value(root, false)
    }
}

impl StepValues {
    fn value(&self, strict: bool) -> Item {
        let mut values = BTreeMap::from([
            ("status".to_owned(), Item::from(self.status.as_str())),
            ("text".to_owned(), Item::from(self.text.as_str())),
            ("output".to_owned(), item(&self.output, strict)),
            (
                "verdict".to_owned(),
                self.verdict.as_deref().map_or(Item::from(()), Item::from),
            ),
            (
                "cost_usd".to_owned(),
                self.cost_usd.map_or(Item::from(()), Item::from),
            ),
            (
                "exit_code".to_owned(),
                self.exit_code.map_or(Item::from(()), Item::from),
            ),
        ]);
        if let Some(items) = &self.items {
            let items: Vec<Item> = items.iter().map(|step| step.value(strict)).collect();
            values.insert("items".to_owned(), Item::from(items));
        }
        Mapping::value(values, strict)
    }
}

/// Returns a JSON value for the engine.
fn item(value: &Value, strict: bool) -> Item {
    match value {
        Value::Null => Item::from(()),
        Value::Bool(value) => Item::from(*value),
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                Item::from(number)
            } else if let Some(number) = number.as_u64() {
                Item::from(number)
            } else {
                Item::from(number.as_f64().unwrap_or(f64::NAN))
            }
        }
        Value::String(text) => Item::from(text.as_str()),
        Value::Array(items) => Item::from(
            items
                .iter()
                .map(|value| item(value, strict))
                .collect::<Vec<_>>(),
        ),
        Value::Object(entries) => {
            let entries = entries
                .iter()
                .map(|(key, value)| (key.clone(), item(value, strict)));
            Mapping::value(entries.collect(), strict)
        }
    }
}

/// Mapping that fails on an absent key at once if strict: a comparison with an absent value would
/// be false in silence.
#[derive(Debug)]
struct Mapping {
    entries: BTreeMap<String, Item>,
    strict: bool,
}

impl Mapping {
    fn value(entries: BTreeMap<String, Item>, strict: bool) -> Item {
        Item::from_object(Self { entries, strict })
    }
}

impl Object for Mapping {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        ObjectRepr::Map
    }

    fn get_value(self: &Arc<Self>, key: &Item) -> Option<Item> {
        let name = key.as_str();
        if let Some(value) = name.and_then(|name| self.entries.get(name)) {
            return Some(value.clone());
        }
        let missing = || {
            let known: Vec<&str> = self.entries.keys().map(String::as_str).take(20).collect();
            let text = format!("there is no value `{key}`; there are: {}", known.join(", "));
            Item::from(Error::new(ErrorKind::UndefinedError, text))
        };
        self.strict.then(missing)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(
            self.entries
                .keys()
                .map(|key| Item::from(key.as_str()))
                .collect(),
        )
    }
}

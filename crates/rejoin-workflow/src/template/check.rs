//! Check of names against the workflow.

use std::collections::{BTreeMap, BTreeSet};

use super::reference::{ROOTS, Reference, STEP_ATTRIBUTES};
use crate::mistake::{Mistakes, Place, instead};

/// Name in a text of a step, with its position in the file.
#[derive(Debug)]
pub(crate) struct Use {
    pub(crate) reference: Reference,
    pub(crate) place: Place,
    /// The text is the key of a mistake: `prompt`, `when` and so on.
    pub(crate) key: &'static str,
}

/// Facts about a step that its texts are checked against.
pub(crate) struct Facts<'a> {
    pub(crate) inputs: &'a [&'a str],
    /// All step ids, and whether the step has `for_each`.
    pub(crate) steps: &'a BTreeMap<&'a str, bool>,
    pub(crate) step: &'a str,
    /// Ids of steps whose results the step can see.
    pub(crate) visible: &'a BTreeSet<&'a str>,
    /// The step has `for_each`.
    pub(crate) each: bool,
}

/// Adds a mistake if the name is unknown or cannot be seen from the step.
pub(crate) fn check(found: &Use, facts: &Facts<'_>, mistakes: &mut Mistakes) {
    let place = found.place;
    match &found.reference {
        Reference::Input(name) => {
            if !facts.inputs.contains(&name.as_str()) {
                mistakes.suggest(
                    place,
                    format!("unknown input `{name}`"),
                    known(name, facts.inputs),
                );
            }
        }
        Reference::Step { id, attribute } => {
            if !seen(id, found, facts, mistakes) {
                return;
            }
            let each = facts.steps.get(id.as_str()).copied().unwrap_or_default();
            match attribute.as_deref() {
                Some("items") if !each => mistakes.suggest(
                    place,
                    format!("step `{id}` has no `items`"),
                    "only a step with `for_each` has items",
                ),
                Some(name) if !STEP_ATTRIBUTES.contains(&name) => mistakes.suggest(
                    place,
                    format!("a step has no value `{name}`"),
                    instead(name, STEP_ATTRIBUTES),
                ),
                _ => {}
            }
        }
        Reference::Failed(id) => {
            seen(id, found, facts, mistakes);
        }
        Reference::Item(name) => {
            if !facts.each {
                mistakes.suggest(
                    place,
                    format!("`{name}` exists only in a step with `for_each`"),
                    "add `for_each` to the step",
                );
            } else if found.key == "for_each" {
                mistakes.add(place, format!("`for_each` cannot use `{name}`"));
            }
        }
        Reference::Unknown(name) => mistakes.suggest(
            place,
            format!("unknown name `{name}`"),
            if facts.steps.contains_key(name.as_str()) {
                format!("write `steps.{name}.text`")
            } else if facts.inputs.contains(&name.as_str()) {
                format!("write `inputs.{name}`")
            } else {
                instead(name, ROOTS)
            },
        ),
    }
}

/// Returns true if the step exists and its result can be seen.
fn seen(id: &str, found: &Use, facts: &Facts<'_>, mistakes: &mut Mistakes) -> bool {
    if !facts.steps.contains_key(id) {
        let ids: Vec<&str> = facts.steps.keys().copied().collect();
        let hyphened = ids
            .iter()
            .find(|known| known.contains('-') && known.split('-').next() == Some(id));
        let suggestion = match hyphened {
            Some(known) => format!("write an id with `-` in quotes: `steps[\"{known}\"]`"),
            None => known(id, &ids),
        };
        mistakes.suggest(found.place, format!("unknown step `{id}`"), suggestion);
        return false;
    }
    if facts.visible.contains(id) {
        return true;
    }
    let (text, suggestion) = if id == facts.step {
        (
            format!("step `{id}` cannot use its own result in `{}`", found.key),
            None,
        )
    } else {
        let text = format!("step `{}` does not wait for `{id}`", facts.step);
        (text, Some(format!("add `needs: [{id}]`")))
    };
    mistakes.push(found.place, text, suggestion);
    false
}

fn known(name: &str, known: &[&str]) -> String {
    if known.is_empty() {
        "the file declares none".to_owned()
    } else {
        instead(name, known)
    }
}

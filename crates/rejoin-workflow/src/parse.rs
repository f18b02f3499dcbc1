//! Workflow from a file, or all its mistakes.

mod agent;
mod command;
mod defaults;
mod fields;
mod inputs;
mod link;
mod names;
mod rounds;
mod session;
mod step;
mod texts;

use crate::keys::{DEFAULT_PARALLEL, MAX_PARALLEL, MAX_STEPS, TOP, is_id};
use crate::mistake::{Mistake, Mistakes, Place};
use crate::workflow::Workflow;
use crate::yaml::{self, Data, Entry, Node};

use defaults::Defaults;
use fields::{find, mapping, unknown_keys};
use step::{Draft, StepReader};

/// Reads a file that a step names, relative to the workflow. The caller bounds place and size.
pub(crate) type PromptFile<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// Returns the workflow, or all mistakes by position. `prompt_file` reads a file that a step names.
pub fn parse(
    text: &str,
    prompt_file: &dyn Fn(&str) -> Result<String, String>,
) -> Result<Workflow, Vec<Mistake>> {
    let mut mistakes = Mistakes::default();
    let workflow =
        yaml::read(text, &mut mistakes).and_then(|root| file(&root, prompt_file, &mut mistakes));
    match workflow {
        Some(workflow) if mistakes.is_empty() => Ok(workflow),
        _ => {
            if mistakes.is_empty() {
                mistakes.add(Place::START, "the file is not a workflow");
            }
            Err(mistakes.sorted())
        }
    }
}

fn file(root: &Node, prompt_file: PromptFile<'_>, mistakes: &mut Mistakes) -> Option<Workflow> {
    let Data::Map(entries) = &root.data else {
        let text = format!("the file must be a mapping, not {}", root.kind());
        mistakes.suggest(root.place, text, "`rejoin workflow new` prints an example");
        return None;
    };
    unknown_keys(entries, TOP, "the file", mistakes);
    let name = match find(entries, "name") {
        Some(entry) => fields::line(entry, mistakes),
        None => {
            mistakes.suggest(
                root.place,
                "`name` is missing",
                "begin the file with `name: my-workflow`",
            );
            None
        }
    };
    let description = find(entries, "description").and_then(|entry| fields::text(entry, mistakes));
    let inputs = find(entries, "inputs").map(|entry| inputs::read(entry, mistakes));
    let inputs = inputs.unwrap_or_default();
    let defaults = find(entries, "defaults").map(|entry| Defaults::read(entry, mistakes));
    let defaults = defaults.unwrap_or_default();
    let max_parallel = find(entries, "max_parallel")
        .and_then(|entry| fields::whole(entry, 1, MAX_PARALLEL, mistakes))
        .map_or(DEFAULT_PARALLEL, |number| number as usize);
    let timeout_ms = find(entries, "timeout").and_then(|entry| fields::timeout(entry, mistakes));
    let max_cost_usd =
        find(entries, "max_cost_usd").and_then(|entry| fields::cost(entry, mistakes));
    let drafts = match find(entries, "steps") {
        Some(entry) => steps(entry, &defaults, prompt_file, mistakes),
        None => {
            let example = "add `steps:` with `my-step: { prompt: … }`";
            mistakes.suggest(root.place, "`steps` is missing", example);
            None
        }
    }?;
    let steps = link::link(drafts, &inputs, mistakes);
    Some(Workflow {
        name: name?,
        description,
        inputs,
        max_parallel,
        timeout_ms,
        max_cost_usd,
        steps: steps?,
    })
}

fn steps(
    entry: &Entry,
    defaults: &Defaults<'_>,
    prompt_file: PromptFile<'_>,
    mistakes: &mut Mistakes,
) -> Option<Vec<Draft>> {
    if matches!(entry.value.data, Data::List(_)) {
        let example = "write `my-step: { prompt: … }` without `-`";
        mistakes.suggest(
            entry.value.place,
            "`steps` must be a mapping of ids, not a list",
            example,
        );
        return None;
    }
    let entries = mapping(entry, mistakes)?;
    if entries.is_empty() {
        mistakes.suggest(
            entry.place,
            "`steps` is empty",
            "add a step: `my-step: { prompt: … }`",
        );
        return None;
    }
    if let Some(entry) = entries.get(MAX_STEPS) {
        mistakes.add(
            entry.place,
            format!("the file has more than {MAX_STEPS} steps"),
        );
        return None;
    }
    let mut drafts: Vec<Draft> = Vec::new();
    for entry in entries {
        if !is_id(&entry.key) {
            bad_id(entry, "the id of a step", mistakes);
        }
        drafts.push(StepReader::new(entry, defaults, prompt_file, mistakes).read());
    }
    Some(drafts)
}

/// Adds a mistake for an id that the format does not allow, with the nearest allowed one.
pub(crate) fn bad_id(entry: &Entry, what: &str, mistakes: &mut Mistakes) {
    let allowed = "an id begins with a-z and holds a-z, 0-9, `_` and `-`, at most 64 characters";
    let lower = entry.key.to_lowercase();
    let near: String = (lower
        .chars()
        .map(|c| if c == ' ' || c == '.' { '-' } else { c }))
    .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    .collect();
    let suggestion = if is_id(&near) {
        format!("write `{near}`; {allowed}")
    } else {
        allowed.to_owned()
    };
    mistakes.suggest(
        entry.place,
        format!("`{}` cannot be {what}", shown(&entry.key)),
        suggestion,
    );
}

/// Returns a text of the file for a mistake, at most 60 characters of it.
pub(crate) fn shown(text: &str) -> String {
    let one = text.replace(char::is_control, " ");
    match one.char_indices().nth(60) {
        Some((end, _)) => format!("{}…", one.get(..end).unwrap_or_default()),
        None => one,
    }
}

#[cfg(test)]
mod bad_tests;
#[cfg(test)]
mod mutation_tests;
#[cfg(test)]
mod tests;

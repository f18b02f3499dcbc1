//! Work of an agent step.

use super::fields::{choice, find, rules, text, word, wrong};
use super::session::{agent_name, permission};
use super::shown;
use super::step::{Origin, StepReader, empty_template};
use crate::answer::AnswerSchema;
use crate::template::Template;
use crate::workflow::{AgentWork, Continuity, Session, Work};
use crate::yaml::{Data, Entry, MAX_FILE};

/// Returns the work of an agent step. Its session is resolved later.
pub(super) fn read(step: &mut StepReader<'_, '_>) -> Work {
    step.origin = origin(step);
    let fresh = step.origin.is_none();
    let own_agent = step
        .get("agent")
        .and_then(|entry| agent_name(entry, step.mistakes));
    let own_model = step
        .get("model")
        .and_then(|entry| word(entry, step.mistakes));
    let own_tier = step
        .get("tier")
        .and_then(|entry| word(entry, step.mistakes));
    let defaults = step.defaults;
    // A continued conversation keeps its agent and model, and a model is of one agent.
    let default_agent = own_agent.is_none() || own_agent == defaults.agent;
    let default_model = defaults.model.clone().filter(|_| fresh && default_agent);
    let own = |key: &str| find(step.entries, key);
    let tools = own("tools").map(|entry| rules(entry, step.mistakes));
    let deny_tools = own("deny_tools").map(|entry| rules(entry, step.mistakes));
    let own_permission = own("permission").and_then(|entry| permission(entry, step.mistakes));
    Work::Agent(Box::new(AgentWork {
        agent: own_agent.or_else(|| defaults.agent.clone().filter(|_| fresh)),
        model: own_model.or(default_model),
        tier: own_tier.or_else(|| defaults.tier.clone().filter(|_| fresh)),
        prompt: prompt(step),
        session: Session::New,
        continuity: continuity(step),
        permission: own_permission.or_else(|| defaults.permission.clone()),
        tools: tools.unwrap_or_else(|| defaults.tools.clone()),
        deny_tools: deny_tools.unwrap_or_else(|| defaults.deny_tools.clone()),
        output: output(step),
        workdir: step.workdir(),
    }))
}

fn origin(step: &mut StepReader<'_, '_>) -> Option<Origin> {
    let continued = step.get("continue_from");
    let forked = step.get("fork_from");
    if let (Some(first), Some(second)) = (continued, forked) {
        let later = first.place.max(second.place);
        let suggestion = "`continue_from` takes the session, `fork_from` copies the conversation";
        let text = "a step cannot have both `continue_from` and `fork_from`";
        step.mistakes.suggest(later, text, suggestion);
    }
    let entry = continued.or(forked)?;
    let id = text(entry, step.mistakes)?;
    Some(Origin {
        id,
        place: entry.value.place,
        fork: continued.is_none(),
    })
}

fn continuity(step: &mut StepReader<'_, '_>) -> Continuity {
    let Some(entry) = step.get("continuity") else {
        return Continuity::default();
    };
    if step.get("continue_from").is_none() && step.get("fork_from").is_none() {
        let text = "`continuity` needs `continue_from` or `fork_from`";
        step.mistakes.suggest(entry.place, text, "remove the key");
    }
    match choice(entry, &["required", "best"], step.mistakes) {
        Some("best") => Continuity::Best,
        _ => Continuity::Required,
    }
}

fn prompt(step: &mut StepReader<'_, '_>) -> Template {
    let Some(entry) = step.get("prompt") else {
        return step
            .get("prompt_file")
            .map_or_else(empty_template, |entry| from_file(step, entry));
    };
    if entry
        .value
        .text()
        .is_some_and(|text| text.trim().is_empty())
    {
        step.mistakes.add(entry.value.place, "`prompt` is empty");
    }
    step.template(entry, "prompt")
}

fn from_file<'n>(step: &mut StepReader<'_, 'n>, entry: &'n Entry) -> Template {
    let Some(name) = text(entry, step.mistakes) else {
        return empty_template();
    };
    let at = entry.value.place;
    let source = match (step.prompt_file)(&name) {
        Ok(source) if source.len() <= MAX_FILE => source,
        Ok(_) => {
            let text = format!(
                "the file `{}` is larger than {MAX_FILE} bytes",
                shown(&name)
            );
            step.mistakes.add(at, text);
            return empty_template();
        }
        Err(error) => {
            let text = format!("the file `{}` cannot be read: {error}", shown(&name));
            step.mistakes
                .suggest(at, text, "the path is relative to the workflow");
            return empty_template();
        }
    };
    if source.trim().is_empty() {
        step.mistakes
            .add(at, format!("the file `{}` is empty", shown(&name)));
    }
    match Template::new(&source) {
        Ok((template, scan)) => {
            step.uses(scan, |_| at, "prompt_file");
            template
        }
        Err(faults) => {
            for fault in faults {
                let before = source.get(..fault.offset).unwrap_or_default();
                let line = before.matches('\n').count() + 1;
                let origin = format!("in `{}`, line {line}: ", shown(&name));
                step.faults(vec![fault], |_| at, &origin);
            }
            empty_template()
        }
    }
}

fn output(step: &mut StepReader<'_, '_>) -> Option<serde_json::Value> {
    let entry = step.get("output")?;
    let Data::Map(entries) = &entry.value.data else {
        let example = Some("write `output: { type: object, … }`".to_owned());
        wrong(entry, "a JSON Schema", example, step.mistakes);
        return None;
    };
    if find(entries, "type").is_none() {
        let example = "add `type: object`";
        step.mistakes
            .suggest(entry.value.place, "`output` needs `type`", example);
        return None;
    }
    let schema = entry.value.json();
    if let Err(error) = AnswerSchema::new(&schema) {
        step.mistakes.add(
            entry.value.place,
            format!("`output` is not a JSON Schema: {error}"),
        );
        return None;
    }
    Some(schema)
}

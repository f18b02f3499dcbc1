//! Step of a file, its names not yet resolved.

use super::defaults::Defaults;
use super::fields::{self, find, unknown_keys};
use super::{PromptFile, agent};
use crate::keys::{DECIDING, Owner, STEP};
use crate::mistake::{Mistakes, Place};
use crate::template::{Template, Use};
use crate::workflow::{CommandWork, ShellWork, Step, Work};
use crate::yaml::Entry;

/// Step whose names are not yet resolved.
pub(super) struct Draft {
    pub(super) step: Step,
    pub(super) place: Place,
    pub(super) needs: Vec<(String, Place)>,
    pub(super) origin: Option<Origin>,
    pub(super) back_to: Option<(String, Place)>,
    /// Position of the loop, if the step has one.
    pub(super) loop_place: Option<Place>,
    pub(super) uses: Vec<Use>,
    /// The kind of the step is known.
    pub(super) decided: bool,
}

/// Step whose conversation is continued or copied.
pub(super) struct Origin {
    pub(super) id: String,
    pub(super) place: Place,
    pub(super) fork: bool,
}

/// Reader of one step.
pub(super) struct StepReader<'a, 'n> {
    entry: &'n Entry,
    pub(super) entries: &'n [Entry],
    pub(super) defaults: &'a Defaults<'n>,
    pub(super) prompt_file: PromptFile<'a>,
    pub(super) mistakes: &'a mut Mistakes,
    pub(super) uses: Vec<Use>,
    pub(super) origin: Option<Origin>,
}

impl<'a, 'n> StepReader<'a, 'n> {
    pub(super) fn new(
        entry: &'n Entry,
        defaults: &'a Defaults<'n>,
        prompt_file: PromptFile<'a>,
        mistakes: &'a mut Mistakes,
    ) -> Self {
        let entries = fields::mapping(entry, mistakes).unwrap_or_default();
        Self {
            entry,
            entries,
            defaults,
            prompt_file,
            mistakes,
            uses: Vec::new(),
            origin: None,
        }
    }

    pub(super) fn get(&self, key: &str) -> Option<&'n Entry> {
        find(self.entries, key)
    }

    pub(super) fn read(mut self) -> Draft {
        let known: Vec<&str> = STEP.iter().map(|(key, _)| *key).collect();
        unknown_keys(self.entries, &known, "a step", self.mistakes);
        let deciding = self.deciding();
        let work = deciding.map(|entry| self.work(entry));
        let decided = work.is_some();
        let work = work.unwrap_or_else(|| Work::Approve(empty_template()));
        let kind = work.kind();
        let own_timeout = self
            .get("timeout")
            .map(|entry| fields::timeout(entry, self.mistakes));
        let default_timeout = self.defaults.timeout_ms.filter(|_| kind != "approve");
        let own_cost = self
            .get("max_cost_usd")
            .map(|entry| fields::cost(entry, self.mistakes));
        let default_cost = self.defaults.max_cost_usd.filter(|_| kind == "agent");
        let (repeat, back_to) = self.repeat();
        let step = Step {
            id: self.entry.key.clone(),
            work,
            needs: Vec::new(),
            when: self
                .get("when")
                .and_then(|entry| self.expression(entry, "when")),
            retry: self.retry(),
            timeout_ms: own_timeout.unwrap_or(default_timeout),
            max_cost_usd: own_cost.unwrap_or(default_cost),
            for_each: self
                .get("for_each")
                .and_then(|entry| self.expression(entry, "for_each")),
            repeat,
            line: self.entry.place.line,
        };
        let loop_entry = self.get("loop");
        if let Some(entry) = loop_entry.filter(|_| step.for_each.is_some()) {
            let text = "a step with `for_each` cannot have a `loop`";
            self.mistakes.suggest(
                entry.place,
                text,
                "move the loop to a step that needs this one",
            );
        }
        Draft {
            needs: self.needs(),
            step,
            place: self.entry.place,
            origin: self.origin,
            back_to,
            loop_place: loop_entry.map(|entry| entry.place),
            uses: self.uses,
            decided,
        }
    }

    /// Returns the key that decides the kind of the step, and refuses keys of other kinds.
    fn deciding(&mut self) -> Option<&'n Entry> {
        let mut deciding = self
            .entries
            .iter()
            .filter(|entry| DECIDING.contains(&entry.key.as_str()));
        let Some(first) = deciding.next() else {
            let agent = |entry: &&Entry| owner(&entry.key) == Some(Owner::Agent);
            let (text, suggestion) = match self.entries.iter().find(agent) {
                Some(_) => (
                    "an agent step needs `prompt` or `prompt_file`",
                    "add `prompt: …`",
                ),
                None => (
                    "the step has nothing to do",
                    "add `prompt`, `run`, `shell` or `approve`",
                ),
            };
            self.mistakes.suggest(self.entry.place, text, suggestion);
            return None;
        };
        for other in deciding {
            let text = format!(
                "a step cannot have both `{}` and `{}`",
                first.key, other.key
            );
            self.mistakes.suggest(other.place, text, "write two steps");
        }
        let allowed = |owner: Owner| match first.key.as_str() {
            "approve" => matches!(owner, Owner::All | Owner::Approve),
            "run" | "shell" => matches!(owner, Owner::All | Owner::Command | Owner::AgentOrCommand),
            _ => matches!(owner, Owner::All | Owner::Agent | Owner::AgentOrCommand),
        };
        for entry in self
            .entries
            .iter()
            .filter(|entry| !DECIDING.contains(&entry.key.as_str()))
        {
            if let Some(owner) = owner(&entry.key).filter(|owner| !allowed(*owner)) {
                let belongs = match owner {
                    Owner::Agent => "an agent step (with `prompt`)",
                    Owner::Command => "a step with `run` or `shell`",
                    Owner::AgentOrCommand => "an agent step or a step with `run` or `shell`",
                    Owner::Approve => "a step with `approve`",
                    Owner::All => "any step",
                };
                let text = format!(
                    "`{}` belongs to {belongs}, not to one with `{}`",
                    entry.key, first.key
                );
                self.mistakes.suggest(entry.place, text, "remove the key");
            }
        }
        Some(first)
    }

    fn work(&mut self, deciding: &'n Entry) -> Work {
        match deciding.key.as_str() {
            "run" => Work::Run(CommandWork {
                argv: self.argv(deciding),
                env: self.env(),
                workdir: self.workdir(),
            }),
            "shell" => Work::Shell(ShellWork {
                script: self.script(deciding),
                env: self.env(),
                workdir: self.workdir(),
            }),
            "approve" => Work::Approve(self.template(deciding, "approve")),
            _ => agent::read(self),
        }
    }

    pub(super) fn workdir(&mut self) -> Option<Template> {
        let entry = self.get("workdir").or(self.defaults.workdir)?;
        if entry
            .value
            .text()
            .is_some_and(|text| text.trim().is_empty())
        {
            self.mistakes.add(entry.value.place, "`workdir` is empty");
        }
        Some(self.template(entry, "workdir"))
    }

    fn needs(&mut self) -> Vec<(String, Place)> {
        let Some(entry) = self.get("needs") else {
            return Vec::new();
        };
        let items = fields::texts(entry, self.mistakes).unwrap_or_default();
        items
            .into_iter()
            .map(|item| (item.raw.clone(), item.place))
            .collect()
    }
}

fn owner(key: &str) -> Option<Owner> {
    STEP.iter()
        .find(|(known, _)| *known == key)
        .map(|(_, owner)| *owner)
}

/// Returns the template of a step that has a mistake.
pub(super) fn empty_template() -> Template {
    Template::default()
}

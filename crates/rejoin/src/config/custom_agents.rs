//! Agents of the user's own: `[agents.NAME] kind = "command"` as an adapter.

use std::collections::BTreeMap;

use rejoin_agents::{Adapter, Generic, GenericConfig, JsonPath};
use rejoin_core::{AgentName, TotalsScope};
use serde_json::Value;

use super::keys::agents;
use super::load::Loaded;
use super::setting::Setting;
use rejoin_errors::{CommandError, Result};

/// Builds the agents that the configuration describes.
pub(super) fn build(loaded: &Loaded) -> Result<Vec<&'static dyn Adapter>> {
    let mut sections: BTreeMap<&str, BTreeMap<&str, &Setting>> = BTreeMap::new();
    for setting in loaded.settings.values() {
        if let (Some(key), Some(name)) = (
            setting.key.name.strip_prefix("agents.*."),
            setting.names.first(),
        ) {
            let section = sections.entry(name.as_str()).or_default();
            section.insert(key, setting);
        }
    }
    sections
        .into_iter()
        .filter(|(_, section)| section.contains_key("kind"))
        .map(|(name, section)| Described { name, section }.adapter())
        .collect()
}

struct Described<'a> {
    name: &'a str,
    section: BTreeMap<&'a str, &'a Setting>,
}

impl Described<'_> {
    fn adapter(&self) -> Result<&'static dyn Adapter> {
        let name = self.name;
        if agents().any(|agent| agent == name) {
            return Err(CommandError::config(format!(
                "`agents.{name}.kind`: rejoin knows {name} itself"
            ))
            .try_this("another name for an agent of your own"));
        }
        AgentName::new(name).map_err(|e| CommandError::config(e.to_string()))?;
        let bin = self.section.get("bin").and_then(|s| s.beside_its_file());
        let bin =
            bin.ok_or_else(|| CommandError::config(format!("`agents.{name}.bin` is missing")))?;
        let start_args = self.texts("start_args").unwrap_or_default();
        let session_from = self.pick("session_from")?;
        let told = start_args.iter().any(|arg| arg.contains("{session}"));
        if session_from.is_none() && !told && self.section.contains_key("resume_args") {
            return Err(CommandError::config(format!(
                "`agents.{name}.resume_args` needs a session: say where it stands with session_from, or pass {{session}} in start_args"
            )));
        }
        let file = self.text("session_file");
        if file
            .as_ref()
            .is_some_and(|file| !file.contains("{session}"))
        {
            return Err(CommandError::config(format!(
                "`agents.{name}.session_file` must contain {{session}}"
            )));
        }
        let mut permission = vec![];
        for mode in ["read-only", "edit", "full", "ask"] {
            if let (Some(args), Ok(mode)) =
                (self.texts(&format!("permission.{mode}")), mode.parse())
            {
                permission.push((mode, args));
            }
        }
        let mut text_from = vec![];
        for place in self.texts("text_from").unwrap_or_default() {
            text_from.push(self.parsed("text_from", &place)?);
        }
        Ok(Generic::adapter(GenericConfig {
            name: name.to_owned(),
            bin,
            start_args,
            resume_args: self.texts("resume_args"),
            prompt_as_argument: self.text("prompt").as_deref() == Some("argument"),
            pty: self.text("stdout").as_deref() == Some("pty"),
            permission,
            session_from,
            text_from,
            error_from: self.pick("error_from")?,
            input_from: self.pick("input_from")?,
            output_from: self.pick("output_from")?,
            cost_from: self.pick("cost_from")?,
            done_on: self.text("done_on"),
            refused: self.text("refused"),
            totals: self.text("totals").map(|covers| match covers.as_str() {
                "session" => TotalsScope::Cumulative,
                _ => TotalsScope::PerRun,
            }),
            session_file: file,
            session_user: self.pick("session_user")?,
            session_assistant: self.pick("session_assistant")?,
        }))
    }

    fn value(&self, key: &str) -> Option<&Value> {
        self.section.get(key).map(|setting| &setting.value)
    }

    fn text(&self, key: &str) -> Option<String> {
        self.value(key)?.as_str().map(str::to_owned)
    }

    fn texts(&self, key: &str) -> Option<Vec<String>> {
        let list = self.value(key)?.as_array()?;
        Some(
            list.iter()
                .filter_map(|item| item.as_str().map(str::to_owned))
                .collect(),
        )
    }

    fn pick(&self, key: &str) -> Result<Option<JsonPath>> {
        self.text(key)
            .map(|place| self.parsed(key, &place))
            .transpose()
    }

    fn parsed(&self, key: &str, place: &str) -> Result<JsonPath> {
        place.parse().map_err(|why: String| {
            CommandError::config(format!("`agents.{}.{key}`: {why}", self.name))
        })
    }
}

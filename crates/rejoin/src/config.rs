//! Configuration: a repository's `rejoin.toml` over the user's `config.toml`, environment over both.
//!
//! One table ([`keys`]) says what there is. A mistake is an error that names its line. What a
//! repository's file could abuse counts only after `rejoin trust`.

mod custom_agents;
mod docs;
mod edit;
mod environment;
mod file;
mod keys;
mod kind;
mod load;
mod schedules;
mod schema;
mod section;
mod serve;
mod setting;
mod snapshots;
mod suggest;
pub(crate) use suggest::nearest;
mod tiers;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_agents::Adapter;
use rejoin_core::{Micros, PermissionMode, Policy, Scope, Tiers};
use rejoin_hub::{Keep, Schedule};
use rejoin_runner::config::model_config;
use rejoin_runner::trust::TrustState;
use rejoin_runner::{AgentConfig, ModelConfig, WallMode};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::duration;
use crate::logs::Logs;
use rejoin_errors::{CommandError, Result};

pub(crate) use docs::page;
pub(crate) use edit::{Edit, KeyPath, quoted_name, save};
pub(crate) use file::ConfigFile;
pub(crate) use keys::KEYS;
pub(crate) use kind::written;
pub(crate) use load::{Loaded, Role, Source, repository_file, sources, user_folder};
pub(crate) use schema::schema;
pub(crate) use serve::Serve;
pub(crate) use setting::{Origin, Setting};
pub(crate) use snapshots::Snapshots;

/// The configuration of a command.
#[derive(Clone)]
pub(crate) struct Config {
    pub(crate) default_agent: String,
    pub(crate) permission: Option<PermissionMode>,
    pub(crate) agents: BTreeMap<String, AgentConfig>,
    pub(crate) tiers: Tiers,
    pub(crate) schedules: Vec<Schedule>,
    /// Agents of the user's own.
    pub(crate) described: Vec<&'static dyn Adapter>,
    pub(crate) models: BTreeMap<String, String>,
    /// Prices and context windows by model name.
    pub(crate) prices: BTreeMap<String, ModelConfig>,
    pub(crate) disabled: Vec<String>,
    pub(crate) policy: Policy,
    pub(crate) scope: Scope,
    pub(crate) ask: Ask,
    /// Time after which a question is deferred; none: never.
    pub(crate) defer_after: Option<Duration>,
    /// URL of the store; none: `rejoin.db` in `REJOIN_HOME`.
    pub(crate) database_url: Option<String>,
    pub(crate) snapshots: Snapshots,
    /// Time after which streamed pieces of texts are removed, in microseconds; none: never.
    pub(crate) keep_deltas: Option<i64>,
    pub(crate) serve: Serve,
    pub(crate) wall: WallMode,
    pub(crate) logs: Logs,
    /// Settings of a repository's file that do not count before it is trusted.
    pub(crate) untrusted: Option<Untrusted>,
}

/// Tells whether a turn waits for an answer to its agent's questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ask {
    /// If there is a person at a terminal.
    Terminal,
    Always,
    Never,
}

#[derive(Debug, Clone)]
pub(crate) struct Untrusted {
    pub(crate) path: PathBuf,
    pub(crate) keys: Vec<String>,
    /// Set if the file was trusted and has changed since.
    pub(crate) changed: bool,
    /// Set if the file names a store, and nothing else does.
    pub(crate) names_store: bool,
}

impl Untrusted {
    /// For commands that would run an agent, or open the store it names.
    pub(crate) fn failure(&self) -> CommandError {
        let (path, keys) = (self.path.display(), self.keys.join(", "));
        let text = if self.changed {
            format!("{path} has changed since you trusted it, and sets {keys}")
        } else {
            format!("{path} sets {keys}, which counts only once you trust it")
        };
        CommandError::untrusted(text + "; nothing was run and no message was kept")
            .try_this("rejoin trust")
    }

    /// For all others.
    pub(crate) fn note(&self) -> String {
        let (path, keys) = (self.path.display(), self.keys.join(", "));
        format!("rejoin: leaves out {keys} of {path}, which is not trusted (rejoin trust)")
    }
}

impl Config {
    /// Returns the highest permission that an archive from elsewhere brings along: the configured
    /// one, and never `full`.
    pub(crate) fn import_permission(&self) -> PermissionMode {
        self.permission
            .unwrap_or_default()
            .at_most(PermissionMode::Edit)
    }

    /// Fails if a repository's file that is not trusted would choose what is run.
    pub(crate) fn must_be_trusted(&self) -> Result<()> {
        match &self.untrusted {
            Some(untrusted) => Err(untrusted.failure()),
            None => Ok(()),
        }
    }

    pub(crate) fn load(explicit: Option<&Path>, here: &Path) -> Result<Self> {
        Self::resolve(&Loaded::load(explicit, here)?)
    }

    pub(crate) fn resolve(loaded: &Loaded) -> Result<Self> {
        let mut config = Self {
            default_agent: or_default(loaded, "default_agent")?,
            permission: of(loaded, "permission")?,
            agents: BTreeMap::new(),
            tiers: Tiers::default(),
            schedules: vec![],
            described: vec![],
            models: BTreeMap::new(),
            prices: BTreeMap::new(),
            disabled: vec![],
            policy: Policy {
                context_threshold: or_default(loaded, "resume.context_threshold")?,
                breaker: or_default(loaded, "resume.breaker")?,
                after_compaction: or_default(loaded, "resume.after_compaction")?,
                model_change: or_default(loaded, "resume.model_change")?,
            },
            scope: or_default(loaded, "resume.scope")?,
            ask: or_default(loaded, "questions.ask")?,
            defer_after: defer_after(loaded)?,
            database_url: of(loaded, "database.url")?,
            snapshots: Snapshots::resolve(loaded)?,
            keep_deltas: duration::micros(&or_default::<String>(loaded, "retention.deltas")?),
            serve: Serve::resolve(loaded)?,
            wall: or_default(loaded, "wall.mode")?,
            logs: Logs {
                level: of(loaded, "log.level")?,
                format: or_default(loaded, "log.format")?,
            },
            untrusted: untrusted(loaded),
        };
        for setting in loaded.settings.values() {
            if setting.key.name.starts_with("agents.")
                && let Some(name) = setting.names.first()
            {
                config.agent(name, setting)?;
            }
        }
        for setting in loaded.settings.values() {
            if setting.key.name.starts_with("models.")
                && let Some(name) = setting.names.first()
            {
                config.model(name, setting)?;
            }
        }
        config.described = custom_agents::build(loaded)?;
        config.tiers = tiers::build(loaded, &config.described)?;
        for tier in &mut config.tiers.tiers {
            let model = tier.model.as_deref();
            let known = model.and_then(|model| model_config(&config.prices, model));
            tier.window = known.and_then(|known| known.window);
        }
        config.schedules = schedules::build(loaded, &config.tiers)?;
        Ok(config)
    }

    fn model(&mut self, name: &str, setting: &Setting) -> Result<()> {
        let model = self.prices.entry(name.to_owned()).or_default();
        let price = || Ok::<_, CommandError>(Micros::from_dollars(typed(setting)?));
        match setting.key.name {
            "models.*.window" => model.window = Some(typed(setting)?),
            "models.*.price.input" => model.price.input = price()?,
            "models.*.price.output" => model.price.output = price()?,
            "models.*.price.cache_read" => model.price.cache_read = price()?,
            "models.*.price.cache_write" => model.price.cache_write = price()?,
            _ => {}
        }
        Ok(())
    }

    fn agent(&mut self, name: &str, setting: &Setting) -> Result<()> {
        let agent = self.agents.entry(name.to_owned()).or_default();
        match setting.key.name {
            "agents.*.bin" => agent.bin = setting.beside_its_file(),
            "agents.*.args" => agent.args = typed(setting)?,
            "agents.*.env" => {
                let env: BTreeMap<String, String> = typed(setting)?;
                agent.env = env.into_iter().collect();
            }
            "agents.*.pass_env" => agent.pass_env = typed(setting)?,
            "agents.*.resume" => agent.resume = typed(setting)?,
            "agents.*.idle_timeout" => {
                let text: String = typed(setting)?;
                let micros = duration::micros(&text).map_or(0, i64::unsigned_abs);
                agent.idle_timeout = Some(Duration::from_micros(micros));
            }
            "agents.*.model" => {
                self.models.insert(name.to_owned(), typed(setting)?);
            }
            "agents.*.enabled" if !typed::<bool>(setting)? => self.disabled.push(name.to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Returns the retention of what is swept.
    pub(crate) fn keep(&self) -> Keep {
        Keep {
            snapshots: self.snapshots.keep,
            deltas: self.keep_deltas,
        }
    }
}

fn untrusted(loaded: &Loaded) -> Option<Untrusted> {
    let source = loaded.sources.iter().find(|s| s.role == Role::Repository)?;
    let keys: Vec<String> = loaded.ignored.iter().map(|s| s.path.clone()).collect();
    let is_store = |path: &str| path == "database.url" || path == "blobs.url";
    let names_store = |path: &String| is_store(path) && !loaded.settings.contains_key(path);
    (!keys.is_empty()).then(|| Untrusted {
        path: source.path.clone(),
        changed: source.trust == Some(TrustState::Changed),
        names_store: keys.iter().any(names_store),
        keys,
    })
}

fn defer_after(loaded: &Loaded) -> Result<Option<Duration>> {
    let text: String = or_default(loaded, "questions.defer_after")?;
    let micros = duration::micros(&text).map(i64::unsigned_abs);
    Ok(micros.map(Duration::from_micros))
}

fn of<T: DeserializeOwned>(loaded: &Loaded, path: &str) -> Result<Option<T>> {
    loaded.settings.get(path).map(typed).transpose()
}

fn or_default<T: DeserializeOwned>(loaded: &Loaded, path: &str) -> Result<T> {
    let default = || {
        let key = keys::KEYS.iter().find(|k| k.name == path)?;
        serde_json::from_value(key.default()?).ok()
    };
    of(loaded, path)?
        .or_else(default)
        .ok_or_else(|| CommandError::config(format!("`{path}` has no value")))
}

/// The table has checked it already; this gives it its type.
fn typed<T: DeserializeOwned>(setting: &Setting) -> Result<T> {
    serde_json::from_value(setting.value.clone())
        .map_err(|e| CommandError::config(format!("`{}`: {e}", setting.path)))
}

//! Configuration: a repository's `rejoin.toml` over the user's `config.toml`, environment over both.
//!
//! Unknown keys are an error. What a repository's file could abuse (which program runs, with which
//! arguments and environment, with which permission) is not taken from it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_core::{AfterCompaction, ModelChange, PermissionMode, Scope};
use rejoin_runner::AgentConfig;
use serde::Deserialize;

use crate::failure::{Failure, Result};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileConfig {
    default_agent: Option<String>,
    permission: Option<PermissionMode>,
    agents: BTreeMap<String, FileAgent>,
    resume: FileResume,
    // Sections whose commands come later; known, so that one file serves every version.
    snapshots: Option<toml::Table>,
    serve: Option<toml::Table>,
    notify: Option<toml::Table>,
    models: Option<toml::Table>,
    tier: Option<Vec<toml::Table>>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileAgent {
    bin: Option<String>,
    args: Option<Vec<String>>,
    env: Option<BTreeMap<String, String>>,
    pass_env: Option<Vec<String>>,
    model: Option<String>,
    resume: Option<bool>,
    enabled: Option<bool>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct FileResume {
    context_threshold: Option<f64>,
    breaker: Option<u32>,
    scope: Option<Scope>,
    after_compaction: Option<AfterCompaction>,
    model_change: Option<ModelChange>,
}

/// What the commands use.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    pub(crate) default_agent: String,
    pub(crate) permission: Option<PermissionMode>,
    pub(crate) agents: BTreeMap<String, AgentConfig>,
    pub(crate) models: BTreeMap<String, String>,
    pub(crate) disabled: Vec<String>,
    pub(crate) context_threshold: f64,
    pub(crate) breaker: u32,
    pub(crate) scope: Scope,
    pub(crate) after_compaction: AfterCompaction,
    pub(crate) model_change: ModelChange,
    /// Keys of a repository's file that are not taken from it.
    pub(crate) untrusted: Option<(PathBuf, Vec<String>)>,
}

impl Config {
    pub(crate) fn load(explicit: Option<&Path>, here: &Path) -> Result<Self> {
        let user = match explicit {
            Some(path) => Some(read(path)?),
            None => user_file()
                .filter(|p| p.exists())
                .map(|p| read(&p))
                .transpose()?,
        };
        let repository = repository_file(here)
            .map(|path| read(&path).map(|c| (path, c)))
            .transpose()?;
        let mut merged = user.unwrap_or_default();
        let mut untrusted = None;
        if let Some((path, mut file)) = repository {
            let keys = take_untrusted(&mut file);
            if !keys.is_empty() {
                untrusted = Some((path, keys));
            }
            merge(&mut merged, file);
        }
        merge(&mut merged, from_env()?);
        Self::resolve(merged, untrusted)
    }

    fn resolve(file: FileConfig, untrusted: Option<(PathBuf, Vec<String>)>) -> Result<Self> {
        let context_threshold = file.resume.context_threshold.unwrap_or(0.80);
        if !(context_threshold > 0.0 && context_threshold <= 1.0) {
            return Err(Failure::config(format!(
                "resume.context_threshold is {context_threshold}; it must be above 0 and at most 1"
            )));
        }
        let of = |get: fn(&FileAgent) -> bool| {
            file.agents
                .iter()
                .filter(move |(_, a)| get(a))
                .map(|(n, _)| n.clone())
        };
        Ok(Self {
            default_agent: file
                .default_agent
                .clone()
                .unwrap_or_else(|| "claude".into()),
            permission: file.permission,
            disabled: of(|a| a.enabled == Some(false)).collect(),
            models: file
                .agents
                .iter()
                .filter_map(|(n, a)| Some((n.clone(), a.model.clone()?)))
                .collect(),
            agents: file
                .agents
                .into_iter()
                .map(|(name, a)| (name, agent(a)))
                .collect(),
            context_threshold,
            breaker: file.resume.breaker.unwrap_or(2),
            scope: file.resume.scope.unwrap_or_default(),
            after_compaction: file.resume.after_compaction.unwrap_or_default(),
            model_change: file.resume.model_change.unwrap_or_default(),
            untrusted,
        })
    }
}

fn agent(file: FileAgent) -> AgentConfig {
    AgentConfig {
        bin: file.bin,
        args: file.args.unwrap_or_default(),
        env: file.env.unwrap_or_default().into_iter().collect(),
        pass_env: file.pass_env.unwrap_or_default(),
        resume: file.resume,
    }
}

fn read(path: &Path) -> Result<FileConfig> {
    let text = fs_err::read_to_string(path).map_err(|e| Failure::config(e.to_string()))?;
    toml::from_str(&text).map_err(|error| {
        let line = error.span().map_or(0, |span| {
            text[..span.start.min(text.len())].matches('\n').count() + 1
        });
        let what = error
            .message()
            .lines()
            .next()
            .unwrap_or("not valid")
            .to_owned();
        Failure::config(format!("{}, line {line}: {what}", path.display()))
    })
}

fn user_file() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(base.join("rejoin/config.toml"))
}

/// Upward to the root of the checkout; outside one, only the folder itself.
fn repository_file(here: &Path) -> Option<PathBuf> {
    let root = rejoin_runner::folder::git_root(here).unwrap_or_else(|| here.to_path_buf());
    here.ancestors()
        .take_while(|f| f.starts_with(&root))
        .map(|f| f.join("rejoin.toml"))
        .find(|f| f.is_file())
}

/// Removes what only the user may say, and names it.
fn take_untrusted(file: &mut FileConfig) -> Vec<String> {
    let mut keys = vec![];
    for (name, agent) in &mut file.agents {
        let mut take = |key: &str, present: bool| {
            if present {
                keys.push(format!("agents.{name}.{key}"));
            }
        };
        take("bin", agent.bin.take().is_some());
        take("args", agent.args.take().is_some());
        take("env", agent.env.take().is_some());
        take("pass_env", agent.pass_env.take().is_some());
    }
    if file
        .permission
        .take_if(|p| *p == PermissionMode::Full)
        .is_some()
    {
        keys.push("permission".into());
    }
    keys.extend(file.tier.take().map(|_| "tier".to_owned()));
    keys.extend(file.notify.take().map(|_| "notify".to_owned()));
    keys
}

fn merge(base: &mut FileConfig, over: FileConfig) {
    fn take<T>(base: &mut Option<T>, over: Option<T>) {
        if over.is_some() {
            *base = over;
        }
    }
    take(&mut base.default_agent, over.default_agent);
    take(&mut base.permission, over.permission);
    take(
        &mut base.resume.context_threshold,
        over.resume.context_threshold,
    );
    take(&mut base.resume.breaker, over.resume.breaker);
    take(&mut base.resume.scope, over.resume.scope);
    take(
        &mut base.resume.after_compaction,
        over.resume.after_compaction,
    );
    take(&mut base.resume.model_change, over.resume.model_change);
    for (name, agent) in over.agents {
        let own = base.agents.entry(name).or_default();
        take(&mut own.bin, agent.bin);
        take(&mut own.args, agent.args);
        take(&mut own.env, agent.env);
        take(&mut own.pass_env, agent.pass_env);
        take(&mut own.model, agent.model);
        take(&mut own.resume, agent.resume);
        take(&mut own.enabled, agent.enabled);
    }
}

/// `REJOIN_SECTION_KEY` for every key.
fn from_env() -> Result<FileConfig> {
    let mut file = FileConfig {
        default_agent: env("REJOIN_DEFAULT_AGENT"),
        ..FileConfig::default()
    };
    file.permission = parsed("REJOIN_PERMISSION")?;
    file.resume.context_threshold = parsed("REJOIN_RESUME_CONTEXT_THRESHOLD")?;
    file.resume.breaker = parsed("REJOIN_RESUME_BREAKER")?;
    file.resume.scope = word("REJOIN_RESUME_SCOPE")?;
    file.resume.after_compaction = word("REJOIN_RESUME_AFTER_COMPACTION")?;
    file.resume.model_change = word("REJOIN_RESUME_MODEL_CHANGE")?;
    for adapter in rejoin_agents::ADAPTERS {
        let key = |key: &str| {
            format!(
                "REJOIN_AGENTS_{}_{key}",
                adapter.name().to_ascii_uppercase()
            )
        };
        let list =
            |key: &str| env(key).map(|v| v.split(',').map(|s| s.trim().to_owned()).collect());
        let agent = FileAgent {
            bin: env(&key("BIN")),
            args: list(&key("ARGS")),
            env: None,
            pass_env: list(&key("PASS_ENV")),
            model: env(&key("MODEL")),
            resume: parsed(&key("RESUME"))?,
            enabled: parsed(&key("ENABLED"))?,
        };
        file.agents.insert(adapter.name().into(), agent);
    }
    Ok(file)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|v| !v.is_empty())
}

fn parsed<T: std::str::FromStr>(name: &str) -> Result<Option<T>> {
    env(name)
        .map(|v| v.parse().map_err(|_| bad(name, &v)))
        .transpose()
}

fn word<T: for<'a> Deserialize<'a>>(name: &str) -> Result<Option<T>> {
    env(name)
        .map(|v| serde_json::from_value(v.clone().into()).map_err(|_| bad(name, &v)))
        .transpose()
}

fn bad(name: &str, value: &str) -> Failure {
    Failure::config(format!(
        "{name} is `{value}`, which is not a value it can have"
    ))
}

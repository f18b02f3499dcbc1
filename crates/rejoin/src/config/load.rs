//! Finds the files, reads them, and lays them over each other.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use rejoin_runner::trust::{TrustList, TrustState};
use serde_json::{Value, json};

use super::environment;
use super::file::{ConfigFile, at_line};
use super::keys::{KEYS, agents};
use super::setting::{Origin, Setting};
use super::suggest::nearest;
use crate::app::data_home;
use rejoin_errors::{CommandError, Result};

/// The whole configuration, each value with where it came from.
#[derive(Debug, Default)]
pub(crate) struct Loaded {
    /// Settings that count, by path.
    pub(crate) settings: BTreeMap<String, Setting>,
    /// Settings left out because the repository's file is not trusted.
    pub(crate) ignored: Vec<Setting>,
    /// In the order they are read: the later wins.
    pub(crate) sources: Vec<Source>,
}

/// A place where a file is looked for.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) role: Role,
    pub(crate) exists: bool,
    /// Trust in the repository's file that was read.
    pub(crate) trust: Option<TrustState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Yours,
    /// Named with `--config`.
    Named,
    Repository,
}

impl Role {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Yours => "yours",
            Self::Named => "named",
            Self::Repository => "repository",
        }
    }
}

/// Paths of the files, without reading them.
pub(crate) fn sources(explicit: Option<&Path>, here: &Path) -> Vec<Source> {
    let source = |path: PathBuf, role, exists| Source {
        path,
        role,
        exists,
        trust: None,
    };
    let own = match explicit {
        Some(path) => Some(source(path.to_path_buf(), Role::Named, path.exists())),
        None => user_file().map(|path| {
            let exists = path.exists();
            source(path, Role::Yours, exists)
        }),
    };
    let found = repository_file(here);
    let exists = found.is_some();
    let repository = found.unwrap_or_else(|| here.join("rejoin.toml"));
    // Named by the user it is the user's word, and not read twice.
    let same = |own: &Source| {
        let real = |p: &Path| fs_err::canonicalize(p).ok();
        real(&own.path).is_some_and(|p| Some(p) == real(&repository))
    };
    let repository =
        (!own.as_ref().is_some_and(same)).then(|| source(repository, Role::Repository, exists));
    own.into_iter().chain(repository).collect()
}

impl Loaded {
    pub(crate) fn load(explicit: Option<&Path>, here: &Path) -> Result<Self> {
        let mut loaded = Self {
            sources: sources(explicit, here),
            ..Self::default()
        };
        let (mut own, mut repository) = (vec![], None);
        for source in &loaded.sources {
            // A file that was named must be there.
            if !source.exists && source.role != Role::Named {
                continue;
            }
            let file = ConfigFile::read(&source.path)?;
            let settings = file.settings()?;
            match source.role {
                Role::Yours | Role::Named => own = settings,
                Role::Repository => repository = Some((file, settings)),
            }
        }
        let theirs = repository
            .as_ref()
            .map_or(&[][..], |(_, settings)| settings);
        let named: Vec<String> = own
            .iter()
            .chain(theirs)
            .flat_map(|s| s.names.iter().cloned())
            .collect();
        let from_env = environment::settings(variables(), &named)?;
        agents_are_known(&[&own[..], theirs, &from_env].concat())?;

        loaded.lay_over(own);
        if let Some((file, settings)) = repository {
            let state = loaded.judge(&file, &settings);
            let counts = |s: &Setting| state.counts() || !s.needs_trust(loaded.without(s).as_ref());
            let (good, ignored): (Vec<_>, Vec<_>) = settings.into_iter().partition(counts);
            if let Some(source) = loaded.sources.last_mut() {
                source.trust = Some(state);
            }
            loaded.lay_over(good);
            loaded.ignored = ignored;
        }
        loaded.lay_over(from_env);
        Ok(loaded)
    }

    /// Settings that apply if no file can be read.
    pub(crate) fn without_files() -> Self {
        let mut loaded = Self::default();
        loaded.lay_over(environment::settings(variables(), &[]).unwrap_or_default());
        loaded
    }

    /// Settings of a repository's file that need trust, given the user's own settings.
    pub(crate) fn needing_trust<'a>(&self, settings: &'a [Setting]) -> Vec<&'a Setting> {
        settings
            .iter()
            .filter(|s| s.needs_trust(self.without(s).as_ref()))
            .collect()
    }

    fn judge(&self, file: &ConfigFile, settings: &[Setting]) -> TrustState {
        if self.needing_trust(settings).is_empty() {
            return TrustState::NotNeeded;
        }
        data_home().map_or(TrustState::Untrusted, |home| {
            TrustList::load(&home).state(&file.path, &file.hash)
        })
    }

    /// The value that applies where this setting does not count.
    fn without(&self, setting: &Setting) -> Option<Value> {
        let own = self.settings.get(&setting.path).map(|s| s.value.clone());
        own.or_else(|| setting.key.default())
    }

    /// The later wins, key by key; a list of tables as a whole.
    fn lay_over(&mut self, settings: Vec<Setting>) {
        let in_list = |path: &str| path.split_once('[').map(|(list, _)| format!("{list}["));
        let lists: Vec<_> = settings.iter().filter_map(|s| in_list(&s.path)).collect();
        self.settings
            .retain(|path, _| !lists.iter().any(|list| path.starts_with(list.as_str())));
        for setting in settings {
            self.settings.insert(setting.path.clone(), setting);
        }
    }

    /// The user's own part alone: what would apply in a folder without a file.
    pub(crate) fn own(explicit: Option<&Path>) -> Result<Self> {
        let mut loaded = Self::default();
        let path = explicit.map(Path::to_path_buf).or_else(user_file);
        if let Some(path) = path.filter(|p| explicit.is_some() || p.exists()) {
            loaded.lay_over(ConfigFile::read(&path)?.settings()?);
        }
        Ok(loaded)
    }

    /// Every value that applies, in the order of the keys, defaults included.
    pub(crate) fn all(&self) -> Vec<Setting> {
        let mut all = vec![];
        for key in KEYS {
            let set = self.settings.values().filter(|s| s.key.name == key.name);
            all.extend(set.cloned());
            let named = key.name.contains('*') || key.in_list();
            if !named
                && !self.settings.contains_key(key.name)
                && let Some(value) = key.default()
            {
                all.push(Setting {
                    key,
                    names: vec![],
                    path: key.name.to_owned(),
                    value,
                    origin: Origin::Default,
                });
            }
        }
        all
    }
}

fn variables() -> impl Iterator<Item = (String, String)> {
    std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)))
}

fn user_file() -> Option<PathBuf> {
    Some(user_folder()?.join("config.toml"))
}

/// The folder of the user's configuration.
pub(crate) fn user_folder() -> Option<PathBuf> {
    let base = std::env::var_os("XDG_CONFIG_HOME")
        .map(PathBuf::from)
        .filter(|p| p.is_absolute());
    let base = base.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".config")))?;
    Some(base.join("rejoin"))
}

/// Upward to the root of the checkout; outside one, only the folder itself.
pub(crate) fn repository_file(here: &Path) -> Option<PathBuf> {
    let root = rejoin_runner::folder::git_root(here).unwrap_or_else(|| here.to_path_buf());
    here.ancestors()
        .take_while(|f| f.starts_with(&root))
        .map(|f| f.join("rejoin.toml"))
        .find(|f| f.is_file())
}

/// An agent is one that rejoin knows, or one that a `bin` makes.
fn agents_are_known(settings: &[Setting]) -> Result<()> {
    let made: Vec<&str> = settings
        .iter()
        .filter(|s| s.key.name == "agents.*.bin")
        .filter_map(|s| s.names.first().map(String::as_str))
        .collect();
    let known = |name: &str| agents().any(|agent| agent == name) || made.contains(&name);
    for setting in settings {
        let name = match setting.key.name {
            "default_agent" | "tier[].agent" => setting.value.as_str(),
            key if key.starts_with("agents.") => setting.names.first().map(String::as_str),
            _ => None,
        };
        let Some(name) = name.filter(|n| !known(n)) else {
            continue;
        };
        let near = nearest(name, agents().chain(made.iter().copied()));
        let hint = match near {
            Some((near, true)) => format!("; did you mean `{near}`?"),
            Some((_, false)) | None => format!("; an agent of your own needs `agents.{name}.bin`"),
        };
        let what = format!("`{}`: there is no agent `{name}`{hint}", setting.path);
        return Err(match &setting.origin {
            Origin::File { path, line } => at_line(path, *line, &what),
            Origin::Environment(variable) => {
                CommandError::config(format!("{variable}: there is no agent `{name}`{hint}"))
                    .try_this(format!("unset {variable}"))
            }
            Origin::Default => CommandError::config(what),
        });
    }
    Ok(())
}

impl Source {
    /// Returns true for the user's own file and for one named with `--config`.
    pub(crate) fn is_own(&self) -> bool {
        matches!(self.role, Role::Yours | Role::Named)
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "path": self.path, "role": self.role.word(), "exists": self.exists,
            "trust": self.trust.map(TrustState::word),
        })
    }
}

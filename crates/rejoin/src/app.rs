//! Wires configuration, store, hub and runner together for one command.

use std::cell::OnceCell;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use rejoin_hub::{Clock, Hub, TurnRequest, fields};
use rejoin_runner::send::Defaults;
use rejoin_runner::{Asks, Error as RunnerError, Runner, RunnerConfig, WallConfig};
use tracing::level_filters::LevelFilter;

use crate::cli::must_not_be_deleted;
use crate::config::{Ask, Config, user_folder};
use crate::output::Output;
use crate::store_url::StoreUrl;
use rejoin_errors::{CommandError, Result, codes};

/// Everything a command needs.
pub(crate) struct App {
    pub(crate) out: Output,
    pub(crate) config: Config,
    pub(crate) runner: Runner,
    /// The folder the command was given in.
    pub(crate) here: PathBuf,
    /// The file given with `--config`.
    pub(crate) config_file: Option<PathBuf>,
}

/// The options that every command takes, and the configuration that they select.
pub(crate) struct Invocation {
    pub(crate) out: Output,
    /// The hub given with `--hub`.
    pub(crate) hub: Option<String>,
    /// The file given with `--config`.
    pub(crate) config_file: Option<PathBuf>,
    config: OnceCell<Config>,
}

impl Invocation {
    pub(crate) fn new(out: Output, hub: Option<String>, config_file: Option<PathBuf>) -> Self {
        Self {
            out,
            hub,
            config_file,
            config: OnceCell::new(),
        }
    }

    pub(crate) fn config_file(&self) -> Option<&Path> {
        self.config_file.as_deref()
    }

    /// Returns the configuration, which is read once for a command.
    pub(crate) fn config(&self) -> Result<&Config> {
        if let Some(config) = self.config.get() {
            return Ok(config);
        }
        let config = Config::load(self.config_file(), &here()?)?;
        Ok(self.config.get_or_init(|| config))
    }
}

impl App {
    pub(crate) async fn open(invocation: &Invocation) -> Result<Self> {
        must_not_be_a_turn()?;
        let here = here()?;
        let (out, config) = (invocation.out, invocation.config()?.clone());
        if let Some(untrusted) = config.untrusted.as_ref().filter(|u| u.names_store) {
            return Err(untrusted.failure());
        }
        let home = data_home()?;
        let mut app = Self::open_at(out, config, home, here, std::env::vars_os()).await?;
        app.settle_what_was_left().await?;
        app.config_file =
            (invocation.config_file.as_ref()).and_then(|f| std::path::absolute(f).ok());
        app.runner.config.asks = match app.config.ask {
            Ask::Terminal if crate::cli::person_is_here(out) => Asks::Somebody,
            Ask::Terminal | Ask::Never => Asks::Nobody,
            Ask::Always => Asks::Somebody,
        };
        Ok(app)
    }

    /// On a store of its own in that folder, whatever the configuration says of stores.
    pub(crate) async fn open_private(invocation: &Invocation, home: PathBuf) -> Result<Self> {
        let here = here()?;
        let (out, mut config) = (invocation.out, invocation.config()?.clone());
        config.database_url = None;
        config.snapshots = config.snapshots.travelling();
        let app = Self::open_at(out, config, home, here, std::env::vars_os()).await?;
        app.settle_what_was_left().await?;
        Ok(app)
    }

    /// For a daemon: what was left is seen to while it serves already.
    pub(crate) async fn open_to_serve(invocation: &Invocation) -> Result<Self> {
        must_not_be_a_turn()?;
        let here = here()?;
        let (out, config) = (invocation.out, invocation.config()?.clone());
        config.must_be_trusted()?;
        config.logs.write(LevelFilter::INFO);
        let app = Self::open_at(out, config, data_home()?, here, std::env::vars_os()).await?;
        app.runner.hub.store.stays_open().await;
        Ok(app)
    }

    pub(crate) async fn settle_what_was_left(&self) -> Result<()> {
        let troubles = match self.runner.recover().await {
            Ok(troubles) => troubles,
            // Whoever only reads needs no more; whoever writes is told again.
            Err(RunnerError::Hub(error)) if error.is_unwritable() => {
                vec![format!("turns that were left are settled later: {error}")]
            }
            Err(error) => return Err(error.into()),
        };
        for trouble in troubles {
            self.out.note(&trouble);
        }
        Ok(())
    }

    pub(crate) async fn open_at(
        out: Output,
        config: Config,
        home: PathBuf,
        here: PathBuf,
        env: impl Iterator<Item = (std::ffi::OsString, std::ffi::OsString)>,
    ) -> Result<Self> {
        config.logs.write(LevelFilter::OFF);
        make_home(&home)?;
        let store = StoreUrl::named(&home, config.database_url.as_deref())?;
        must_not_be_deleted(out, &home, &store).await?;
        let store = store.open().await?;
        let machine = nix_hostname();
        let vault = config.snapshots.vault(&store)?;
        let hub = Hub {
            namespace: "".into(),
            ceiling: None,
            store,
            clock: Clock,
            machine,
            vault,
        };
        let wall = wall(&config, &home);
        let env = env
            .filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_string().ok()?)))
            .collect();
        let runner = Runner::new(
            hub,
            RunnerConfig {
                home,
                agents: config.agents.clone(),
                env,
                models: config.prices.clone(),
                described: config.described.clone(),
                unrun: rejoin_runner::Unrun::default(),
                asks: Asks::Nobody,
                defer_after: config.defer_after,
                warm: None,
                wall,
            },
        );
        Ok(Self {
            out,
            config,
            runner,
            here,
            config_file: None,
        })
    }

    /// The request of a turn as the configuration fills it in.
    pub(crate) fn base_request(&self) -> TurnRequest {
        TurnRequest {
            policy: self.config.policy,
            traceparent: crate::traces::parent(),
            ..TurnRequest::default()
        }
    }

    /// Returns the configured defaults for fields that a message leaves out.
    pub(crate) fn defaults(&self) -> Result<Defaults> {
        Ok(Defaults {
            agent: fields::agent(&self.config.default_agent)?,
            scope: self.config.scope,
            permission: self.config.permission,
            models: self.config.models.clone(),
            disabled: self.config.disabled.clone(),
            request: self.base_request(),
            tiers: self.config.tiers.clone(),
            here: self.here.clone(),
        })
    }

    pub(crate) fn hub(&self) -> &Hub {
        &self.runner.hub
    }

    /// Folders in which `last` looks: this one, then the root of its checkout.
    pub(crate) fn folders(&self) -> Vec<String> {
        folders(&self.here)
    }

    /// For commands that run nothing: they go on without these keys, and say so.
    pub(crate) fn say_what_is_left_out(&self) {
        if let Some(untrusted) = &self.config.untrusted {
            self.out.note(&untrusted.note());
        }
    }

    pub(crate) async fn close(self) {
        self.runner.hub.store.close().await;
    }
}

/// Refuses to open the store for a process of a turn: an agent could read every conversation and make
/// itself a token.
fn must_not_be_a_turn() -> Result<()> {
    match rejoin_runner::descent::own_turn() {
        None => Ok(()),
        Some(_) => Err(CommandError::new(
            codes::FORBIDDEN,
            "this is a process of a turn: the store is for its user, not for agents",
        )
        .try_this("the same with --hub URL and a token, or in a terminal of your own")),
    }
}

/// A folder, then the root of its checkout.
pub(crate) fn folders(here: &Path) -> Vec<String> {
    let real = fs_err::canonicalize(here).unwrap_or_else(|_| here.to_owned());
    let root = rejoin_runner::folder::git_root(&real);
    let text = |p: &Path| p.to_str().map(str::to_owned);
    text(&real)
        .into_iter()
        .chain(root.as_deref().and_then(text))
        .collect()
}

/// The folder the command was given in.
pub(crate) fn here() -> Result<PathBuf> {
    std::env::current_dir()
        .map_err(|e| CommandError::usage(format!("the current folder cannot be used: {e}")))
}

/// Folders that are kept from agents: data, also of a store that is not the user's own, and configuration.
pub(crate) fn wall(config: &Config, home: &Path) -> WallConfig {
    let own = [data_home().ok(), user_folder()];
    WallConfig {
        mode: config.wall,
        folders: std::iter::once(home.to_owned())
            .chain(own.into_iter().flatten())
            .collect(),
    }
}

/// Makes the data folder, for its owner only.
pub(crate) fn make_home(home: &Path) -> Result<()> {
    let mut folder = std::fs::DirBuilder::new();
    folder
        .recursive(true)
        .mode(0o700)
        .create(home)
        .map_err(|e| {
            CommandError::unavailable(format!("{} cannot be made: {e}", home.display()))
                .try_this("export REJOIN_HOME=/a/folder/you/can/write")
        })
}

pub(crate) fn data_home() -> Result<PathBuf> {
    let var = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|p| !p.as_os_str().is_empty())
    };
    if let Some(home) = var("REJOIN_HOME") {
        return std::path::absolute(&home)
            .map_err(|e| CommandError::usage(format!("REJOIN_HOME: {e}")));
    }
    var("XDG_DATA_HOME")
        .filter(|p| p.is_absolute())
        .or_else(|| Some(var("HOME")?.join(".local/share")))
        .map(|base| base.join("rejoin"))
        .ok_or_else(|| {
            CommandError::usage("neither REJOIN_HOME nor HOME is set")
                .try_this("export REJOIN_HOME=/some/folder")
        })
}

fn nix_hostname() -> String {
    if let Some(played) = rejoin_hub::fault::machine() {
        return played;
    }
    let name = fs_err::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = name.trim();
    if name.is_empty() {
        "localhost".into()
    } else {
        name.to_owned()
    }
}

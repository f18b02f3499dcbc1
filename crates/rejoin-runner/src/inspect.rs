//! Gathers the facts that a decision needs from this machine: the program, the folder, the
//! session's bytes. Decides nothing and changes nothing.

use std::path::{Path, PathBuf};

use rejoin_agents::{
    Adapter, Memory, Overlay, RepositoryConfig, SessionAt, compose_env, limit_refusal,
};
use rejoin_core::{
    FileMark, Folder, FolderFact, Pin, PinState, SeenPrefix, SessionFact, SnapshotFact,
};
use rejoin_hub::{Candidate, Hub, SnapshotOffers, StoreFacts, TurnRequest};
use rejoin_store::Snapshot;

use crate::binary::{self, Binary};
use crate::config::{AgentConfig, RunnerConfig};
use crate::cost_limit;
use crate::error::{Error, Result};
use crate::folder;
use crate::foreign_file;
use crate::fork::can_fork;
use crate::in_use::{in_use, writers_visible};
use crate::render::Target;
use crate::repository;
use crate::restore::Staged;
use crate::session::Sessions;
use crate::trust::TrustList;
use crate::wall::{self, WallPlan};

/// Facts for one decision.
pub struct Inspection {
    pub adapter: &'static dyn Adapter,
    pub binary: Binary,
    pub settings: AgentConfig,
    pub folder: Folder,
    /// Environment for the CLI, without the variables that its command adds.
    pub env: Vec<(String, String)>,
    /// Folder in which the CLI keeps its sessions, given that environment.
    pub home: PathBuf,
    /// Overlay that we build as that home before each run, if the agent needs one.
    pub overlay: Option<Overlay>,
    pub outlook: StoreFacts,
    pub session: Option<SessionInspection>,
    /// Snapshots that could replace the session, and the fact that the decision gets about them.
    pub(crate) offers: Vec<Snapshot>,
    pub(crate) snapshot: SnapshotFact,
    pub(crate) staged: Option<Staged>,
    pub(crate) elsewhere: bool,
    /// Context window of the model that will run, if it is known.
    pub(crate) window: Option<u64>,
    /// Says if the CLI may obey the repository's configuration.
    pub(crate) repository: RepositoryConfig,
    /// Files of the repository that the CLI must not read.
    pub(crate) ignored: Vec<PathBuf>,
    /// Memory files that the CLI does not read by itself.
    pub(crate) memory: Memory,
    /// Wall that the run gets.
    pub wall: WallPlan,
    pub cannot: Option<String>,
    pub(crate) cannot_resume: Option<String>,
}

/// Session that could be resumed, compared with its confirmed state.
#[derive(Debug, Clone)]
pub struct SessionInspection {
    /// Present path of the session with its confirmed mark.
    pub mark: Option<FileMark>,
    pub fact: SessionFact,
    pub folder: FolderFact,
    pub in_use: Option<u32>,
    pub writers_visible: bool,
    pub has_provider: bool,
}

/// Program and folder of a turn, without its history: the facts that can be checked before a
/// message is accepted.
pub struct Preflight {
    pub adapter: &'static dyn Adapter,
    pub binary: Binary,
    pub folder: Folder,
}

/// Checks that the agent, its program and the folder exist.
pub async fn preflight(
    hub: &Hub,
    config: &RunnerConfig,
    agent: &str,
    workdir: &str,
) -> Result<Preflight> {
    let adapter = config
        .adapter(agent)
        .ok_or_else(|| Error::UnknownAgent(agent.to_owned()))?;
    let folder = folder::look(Path::new(workdir)).map_err(|source| Error::Folder {
        path: workdir.to_owned(),
        source,
    })?;
    let binary = binary::find(hub, config, adapter).await?;
    Ok(Preflight {
        adapter,
        binary,
        folder,
    })
}

/// Gathers the facts for the decision of one turn.
pub async fn inspect(
    hub: &Hub,
    config: &RunnerConfig,
    agent: &str,
    request: &TurnRequest,
    outlook: StoreFacts,
) -> Result<Inspection> {
    let Preflight {
        adapter,
        binary,
        folder,
    } = preflight(hub, config, agent, &request.workdir).await?;
    // A link may have replaced the folder since the message was accepted.
    if !request.may_enter(Path::new(&folder.path)) {
        return Err(Error::OutsideRoots);
    }
    let settings = config.agent(agent);
    let env = environment(config, adapter);
    let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let home = adapter
        .home(&var)
        .ok_or_else(|| Error::Internal(format!("{agent} has no home: HOME is not set")))?;
    let can = adapter.capabilities();
    let overlay = can.overlay.and_then(|home| home.overlay(&var));
    let as_root = nix::unistd::geteuid().is_root() && var("IS_SANDBOX").is_none();
    let user = var("HOME").map(PathBuf::from);
    let (standing, memory) = repository_files(
        config,
        request,
        &binary,
        &Site {
            adapter,
            folder: Path::new(&folder.path),
            home: &home,
            user: user.as_deref(),
        },
    );
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    let wall = wall::plan(
        &config.wall,
        &wall::Site {
            folder: Path::new(&folder.path),
            program: &binary.path,
            home: &home,
            user: var("HOME").as_deref(),
            temporary: var("TMPDIR").as_deref(),
            mounts: can
                .sandbox
                .is_some_and(|sandbox| sandbox.mounts(&request.permissions, &read)),
        },
    );
    let cannot = adapter
        .check_permissions(&request.permissions, as_root)
        .err()
        .or_else(|| cost_limit::refusal(adapter, request, &config.models))
        .or_else(|| limit_refusal(adapter, &request.limits))
        .or(standing.refused)
        .or_else(|| wall.refusal(config.wall.mode));
    let session = match outlook.best() {
        Some(candidate) => Some(inspect_session(adapter, &home, &folder, candidate).await),
        None => None,
    };
    let session = session.filter(|session| {
        let may = || can_fork(adapter, &request.permissions, &binary, session);
        outlook.inherited.is_none() || may()
    });
    let pin = outlook.best().and_then(|c| c.stored.pin.as_ref());
    let target = Target {
        model: request.model.as_deref(),
        models: &config.models,
    };
    let window = target.window(pin);
    let elsewhere = pin.is_some_and(|pin| !is_here(pin, &hub.machine, &home));
    let (offers, snapshot) =
        offered_snapshots(hub, adapter, &outlook, session.as_ref(), elsewhere).await?;
    Ok(Inspection {
        offers,
        snapshot,
        staged: None,
        elsewhere,
        adapter,
        binary,
        settings,
        folder,
        env,
        home,
        overlay,
        outlook,
        session,
        window,
        repository: standing.config,
        ignored: standing.ignored,
        memory,
        wall,
        cannot,
        cannot_resume: adapter.profile().cannot_resume.map(str::to_owned),
    })
}

/// Folders and agent of a turn.
struct Site<'a> {
    adapter: &'static dyn Adapter,
    folder: &'a Path,
    /// Home of the agent.
    home: &'a Path,
    /// Home of the user.
    user: Option<&'a Path>,
}

/// Finds the files of the repository that the CLI would obey, and the memory files that it will not
/// read by itself.
fn repository_files(
    config: &RunnerConfig,
    request: &TurnRequest,
    binary: &Binary,
    site: &Site<'_>,
) -> (repository::RepositoryEffect, Memory) {
    let standing = repository::standing(
        site.adapter,
        request.permissions.mode,
        binary.facts.contained,
        repository::scan(site.adapter, site.folder, site.user),
        || TrustList::load(&config.home),
        || repository::scan_nested(site.adapter, site.folder),
    );
    let memory = match standing.config {
        RepositoryConfig::Ignored | RepositoryConfig::IgnoredWithSkills => {
            repository::unread_memory(site.adapter, site.folder, site.user, site.home)
        }
        RepositoryConfig::Obeyed => Memory::default(),
    };
    (standing, memory)
}

/// Returns the snapshots that could replace the session, and the fact about them. A snapshot is
/// checked later, and only if the decision would use it.
async fn offered_snapshots(
    hub: &Hub,
    adapter: &dyn Adapter,
    outlook: &StoreFacts,
    session: Option<&SessionInspection>,
    elsewhere: bool,
) -> Result<(Vec<Snapshot>, SnapshotFact)> {
    let best = outlook.best();
    let own = outlook.inherited.is_none() || best.is_some_and(|c| c.forked_from.is_none());
    let open = |pin: &Pin| matches!(pin.state, PinState::Open(_));
    // Content that a person added here by hand must not be replaced by a snapshot.
    let replaceable = |pin: &Pin, fact: SessionFact| match fact {
        SessionFact::Untouched | SessionFact::Verified => open(pin),
        SessionFact::Changed => elsewhere || open(pin),
        SessionFact::Missing | SessionFact::Dirty | SessionFact::Damaged | SessionFact::Unknown => {
            true
        }
    };
    let pin = best.and_then(|c| c.stored.pin.as_ref());
    let wanting = pin.zip(session).filter(|(pin, session)| {
        own && adapter.is_session_id(&pin.session) && replaceable(pin, session.fact)
    });
    let offers = match wanting {
        Some((pin, _)) => hub.offers(outlook, pin).await?,
        None => SnapshotOffers::default(),
    };
    let newest = offers.usable.first().map(|snapshot| SnapshotFact::Usable {
        seen: SeenPrefix {
            value: snapshot.value,
            messages: snapshot.messages,
            summarised: 0,
            last_seq: snapshot.last_seq,
            last: None,
        },
    });
    let fact = newest.unwrap_or(if offers.expired {
        SnapshotFact::Expired
    } else {
        SnapshotFact::None
    });
    Ok((offers.usable, fact))
}

/// Returns true if the session was last confirmed in this home. Older builds did not record the
/// home; then the machine alone decides.
pub(crate) fn is_here(pin: &Pin, machine: &str, home: &Path) -> bool {
    pin.machine == machine && (pin.home.is_empty() || Path::new(&pin.home) == home)
}

/// Composes the environment of the CLI: the part of ours that it may see, and the variables that
/// the configuration adds.
pub fn environment(config: &RunnerConfig, adapter: &dyn Adapter) -> Vec<(String, String)> {
    let settings = config.agent(adapter.name());
    let var = |name: &str| {
        let set = settings.env.iter().find(|(n, _)| n == name);
        let set = set.or_else(|| config.env.iter().find(|(n, _)| n == name));
        set.map(|(_, value)| value.clone())
    };
    let mut rules = adapter.environment();
    let read = |file: &Path| foreign_file::read_setting(file);
    let aws = adapter.capabilities().aws_login;
    rules.aws_login = aws.is_some_and(|login| login.selects_aws(&var, &read));
    let mut env = compose_env(
        config.env.clone(),
        &rules,
        &settings.pass_env,
        &settings.env,
    );
    rejoin_agents::refuse_bare_repositories(&mut env);
    let program = settings.bin.as_deref().or(adapter.profile().program);
    if let Some(wrapper) = adapter.capabilities().wrapper
        && let Some(path) = program.and_then(|program| binary::locate(program, config))
    {
        env.extend(wrapper.wrapper_env(&path));
    }
    env
}

async fn inspect_session(
    adapter: &'static dyn Adapter,
    home: &Path,
    today: &Folder,
    candidate: &Candidate,
) -> SessionInspection {
    let Some(pin) = &candidate.stored.pin else {
        return SessionInspection {
            mark: None,
            fact: SessionFact::Unknown,
            folder: FolderFact::Other,
            in_use: None,
            writers_visible: true,
            has_provider: true,
        };
    };
    let sessions = Sessions { adapter, home };
    let at = SessionAt {
        folder: &pin.folder.path,
        session: &pin.session,
        pin: &pin.id.to_string(),
    };
    let place = sessions.locate(&at);
    let mark = place
        .clone()
        .zip(pin.files.first())
        .map(|(path, mark)| FileMark {
            path,
            ..mark.clone()
        });
    let own = candidate.forked_from.is_none();
    let fact = match (&mark, pin.files.is_empty()) {
        (Some(mark), _) if own => sessions.compare_async(mark).await,
        (Some(mark), _) => sessions.confirmed_async(mark).await,
        (None, false) if adapter.is_session_id(&pin.session) => SessionFact::Missing,
        (None, _) => SessionFact::Unknown,
    };
    SessionInspection {
        fact,
        mark,
        folder: folder::compare(&pin.folder, today),
        in_use: in_use(adapter, home, &pin.session, place.as_deref()),
        writers_visible: writers_visible(adapter, &pin.session, place.as_deref()),
        has_provider: has_provider(adapter, home, pin.provider.as_deref()),
    }
}

fn has_provider(adapter: &'static dyn Adapter, home: &Path, provider: Option<&str>) -> bool {
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    provider
        .zip(adapter.capabilities().providers)
        .is_none_or(|(provider, bound)| bound.has_provider(provider, &read))
}

impl Inspection {
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions {
            adapter: self.adapter,
            home: &self.home,
        }
    }

    /// Returns true if another program added to the session on this machine.
    pub(crate) fn went_on(&self) -> bool {
        let changed = |s: &SessionInspection| s.fact == SessionFact::Changed;
        !self.elsewhere && self.session.as_ref().is_some_and(changed)
    }
}

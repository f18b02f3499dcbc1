//! Gathers the facts a decision needs from this machine: the program, the folder, the session's
//! bytes. Nothing is decided here, and nothing is changed.

use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, Memory, Overlay, RepositoryConfig, SessionAt, compose_env};
use rejoin_core::{
    Capability, EnvelopeFact, FileMark, Folder, FolderFact, Pin, PinFacts, PinState, Request, Seen,
    SessionFact, Situation, SnapshotFact,
};
use rejoin_hub::{Candidate, HubLink, Offers, Outlook, TurnRequest};
use rejoin_store::Snapshot;

use crate::binary::{self, Binary};
use crate::config::{AgentConfig, RunnerConfig};
use crate::error::{Error, Result};
use crate::folder;
use crate::foreign_file;
use crate::fork::can_fork;
use crate::in_use::{in_use, writers_visible};
use crate::repository;
use crate::restore::Staged;
use crate::session::Sessions;
use crate::trust::TrustList;
use crate::wall::{self, Site, Standing};
use crate::words::Target;

/// What was found.
pub struct Looked {
    pub adapter: &'static dyn Adapter,
    pub binary: Binary,
    pub settings: AgentConfig,
    pub folder: Folder,
    /// The environment the CLI will get, but for what its command adds.
    pub env: Vec<(String, String)>,
    /// Where the CLI keeps its sessions, given that environment.
    pub home: PathBuf,
    /// That home is made by us, before each run.
    pub overlay: Option<Overlay>,
    pub outlook: Outlook,
    pub session: Option<SessionLook>,
    /// Snapshots that could take its place, and what is known of them.
    pub(crate) offers: Vec<Snapshot>,
    pub(crate) snapshot: SnapshotFact,
    pub(crate) staged: Option<Staged>,
    elsewhere: bool,
    /// The context window of the model that will run, if it is known.
    window: Option<u64>,
    /// Whether the repository's configuration of the CLI counts.
    pub(crate) repository: RepositoryConfig,
    /// Files of the repository that the CLI is kept from.
    pub(crate) ignored: Vec<PathBuf>,
    /// Memory files that the CLI does not read by itself.
    pub(crate) memory: Memory,
    /// The wall that its run gets.
    pub wall: Standing,
    pub cannot: Option<String>,
    cannot_resume: Option<String>,
}

/// The session that could serve, compared with what was confirmed.
#[derive(Debug, Clone)]
pub struct SessionLook {
    /// Where it lies now, and as it was confirmed.
    pub mark: Option<FileMark>,
    pub fact: SessionFact,
    pub folder: FolderFact,
    pub in_use: Option<u32>,
    pub writers_visible: bool,
    pub provider_here: bool,
}

/// The program and the folder of a turn, without its history: what can be checked before a message
/// is even accepted.
pub struct Ground {
    pub adapter: &'static dyn Adapter,
    pub binary: Binary,
    pub folder: Folder,
}

pub async fn ground(
    link: &impl HubLink,
    config: &RunnerConfig,
    agent: &str,
    workdir: &str,
) -> Result<Ground> {
    let adapter = config
        .adapter(agent)
        .ok_or_else(|| Error::UnknownAgent(agent.to_owned()))?;
    let folder = folder::look(Path::new(workdir)).map_err(|source| Error::Folder {
        path: workdir.to_owned(),
        source,
    })?;
    let binary = binary::find(link, config, adapter).await?;
    Ok(Ground {
        adapter,
        binary,
        folder,
    })
}

pub async fn look(
    link: &impl HubLink,
    config: &RunnerConfig,
    agent: &str,
    request: &TurnRequest,
    outlook: Outlook,
) -> Result<Looked> {
    let Ground {
        adapter,
        binary,
        folder,
    } = ground(link, config, agent, &request.workdir).await?;
    // A link may have taken the folder's place since the message was accepted.
    if !request.may_enter(Path::new(&folder.path)) {
        return Err(Error::OutsideRoots);
    }
    let settings = config.agent(agent);
    let env = environment(config, adapter);
    let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let home = adapter
        .home(&var)
        .ok_or_else(|| Error::Internal(format!("{agent} has no home: HOME is not set")))?;
    let overlay = adapter.overlay(&var);
    let as_root = nix::unistd::geteuid().is_root() && var("IS_SANDBOX").is_none();
    let (here, user) = (Path::new(&folder.path), var("HOME").map(PathBuf::from));
    let standing = repository::standing(
        adapter,
        request.envelope.mode,
        binary.facts.contained,
        repository::scan(adapter, here, user.as_deref()),
        || TrustList::load(&config.home),
        || repository::scan_nested(adapter, here),
    );
    let memory = match standing.config {
        RepositoryConfig::Ignored | RepositoryConfig::IgnoredWithSkills => {
            repository::unread_memory(adapter, here, user.as_deref(), &home)
        }
        RepositoryConfig::Obeyed => Memory::default(),
    };
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    let wall = wall::plan(
        &config.wall,
        &Site {
            folder: here,
            program: &binary.path,
            home: &home,
            user: var("HOME").as_deref(),
            temporary: var("TMPDIR").as_deref(),
            mounts: adapter.mounts(&request.envelope, &read),
        },
    );
    let cannot = adapter
        .express(&request.envelope, as_root)
        .err()
        .or(standing.refused)
        .or_else(|| wall.refusal(config.wall.mode));
    let session = match outlook.best() {
        Some(candidate) => Some(look_at(adapter, &home, &folder, candidate).await),
        None => None,
    };
    let session = session.filter(|session| {
        let can = || can_fork(adapter, &request.envelope, &binary, session);
        outlook.inherited.is_none() || can()
    });
    let pin = outlook.best().and_then(|c| c.stored.pin.as_ref());
    let target = Target {
        model: request.model.as_deref(),
        models: &config.models,
    };
    let window = target.window(pin);
    let elsewhere = pin.is_some_and(|pin| !is_here(pin, link.machine(), &home));
    let own =
        outlook.inherited.is_none() || outlook.best().is_some_and(|c| c.forked_from.is_none());
    let open = |pin: &Pin| matches!(pin.state, PinState::Open(_));
    // What somebody added here by hand is not to be put away.
    let replaceable = |pin: &Pin, fact: SessionFact| match fact {
        SessionFact::Untouched | SessionFact::Verified => open(pin),
        SessionFact::Changed => elsewhere || open(pin),
        SessionFact::Missing | SessionFact::Dirty | SessionFact::Damaged | SessionFact::Unknown => {
            true
        }
    };
    let wanting = pin.zip(session.as_ref()).filter(|(pin, session)| {
        own && adapter.is_session_id(&pin.session) && replaceable(pin, session.fact)
    });
    let offers = match wanting {
        Some((pin, _)) => link.offers(&outlook, pin).await?,
        None => Offers::default(),
    };
    // Not checked yet: only if it comes to that.
    let newest = offers.usable.first().map(|snapshot| SnapshotFact::Usable {
        seen: Seen {
            value: snapshot.value,
            messages: snapshot.messages,
            summarised: 0,
            last_seq: snapshot.last_seq,
            last: None,
        },
    });
    let snapshot = newest.unwrap_or(if offers.expired {
        SnapshotFact::Expired
    } else {
        SnapshotFact::None
    });
    Ok(Looked {
        offers: offers.usable,
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
        cannot_resume: adapter.cannot_resume(),
    })
}

/// Was it last confirmed in this very home? (Of an older build that is not known.)
pub(crate) fn is_here(pin: &Pin, machine: &str, home: &Path) -> bool {
    pin.machine == machine && (pin.home.is_empty() || Path::new(&pin.home) == home)
}

/// What of our environment the CLI gets, and what the configuration adds.
pub fn environment(config: &RunnerConfig, adapter: &dyn Adapter) -> Vec<(String, String)> {
    let settings = config.agent(adapter.name());
    let var = |name: &str| {
        let set = settings.env.iter().find(|(n, _)| n == name);
        let set = set.or_else(|| config.env.iter().find(|(n, _)| n == name));
        set.map(|(_, value)| value.clone())
    };
    let mut rules = adapter.environment();
    let read = |file: &Path| foreign_file::read_setting(file);
    rules.aws_login = adapter.aws_login(&var, &read);
    let mut env = compose_env(
        config.env.clone(),
        &rules,
        &settings.pass_env,
        &settings.env,
    );
    let program = settings.bin.as_deref().or(adapter.program());
    if let Some(wrapper) = program.and_then(|program| binary::locate(program, config)) {
        env.extend(adapter.wrapper_env(&wrapper));
    }
    env
}

async fn look_at(
    adapter: &'static dyn Adapter,
    home: &Path,
    today: &Folder,
    candidate: &Candidate,
) -> SessionLook {
    let Some(pin) = &candidate.stored.pin else {
        return SessionLook {
            mark: None,
            fact: SessionFact::Unknown,
            folder: FolderFact::Other,
            in_use: None,
            writers_visible: true,
            provider_here: true,
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
        (Some(mark), _) if own => sessions.compare_apart(mark).await,
        (Some(mark), _) => sessions.confirmed_apart(mark).await,
        (None, false) if adapter.is_session_id(&pin.session) => SessionFact::Missing,
        (None, _) => SessionFact::Unknown,
    };
    SessionLook {
        fact,
        mark,
        folder: folder::compare(&pin.folder, today),
        in_use: in_use(adapter, home, &pin.session, place.as_deref()),
        writers_visible: writers_visible(adapter, &pin.session, place.as_deref()),
        provider_here: provider_here(adapter, home, pin.provider.as_deref()),
    }
}

fn provider_here(adapter: &'static dyn Adapter, home: &Path, provider: Option<&str>) -> bool {
    let read = |file: &str| foreign_file::read_setting(home.join(file));
    provider.is_none_or(|provider| adapter.provider_here(provider, &read))
}

impl Looked {
    pub fn sessions(&self) -> Sessions<'_> {
        Sessions {
            adapter: self.adapter,
            home: &self.home,
        }
    }

    /// Somebody added to the session here.
    pub(crate) fn went_on(&self) -> bool {
        let changed = |s: &SessionLook| s.fact == SessionFact::Changed;
        !self.elsewhere && self.session.as_ref().is_some_and(changed)
    }

    pub fn situation<'a>(
        &'a self,
        agent: &'a rejoin_core::AgentName,
        request: &'a TurnRequest,
    ) -> Situation<'a> {
        let mut wishes: Request = request.for_decision();
        if self.settings.resume == Some(false) {
            wishes.fresh.get_or_insert(rejoin_core::Fresh::Always);
        }
        let facts = &self.binary.facts;
        let pin =
            self.outlook
                .best()
                .zip(self.session.as_ref())
                .and_then(|(candidate, session)| {
                    Some(PinFacts {
                        pin: candidate.stored.pin.as_ref()?,
                        prefix: candidate.prefix,
                        folder: session.folder,
                        provider_here: session.provider_here,
                        session: session.fact,
                        snapshot: self.snapshot,
                        elsewhere: self.elsewhere,
                        in_use: session.in_use,
                        writers_visible: session.writers_visible,
                        forked_from: candidate.forked_from.as_deref(),
                    })
                });
        Situation {
            agent,
            request: wishes,
            policy: request.policy(),
            history: self.outlook.history(),
            runtime: &facts.runtime,
            capability: match (
                self.cannot_resume.as_ref().or(facts.no_resume.as_ref()),
                facts.proven,
            ) {
                (Some(why), _) => Capability::Absent(why),
                (None, true) => Capability::Proven,
                (None, false) => Capability::Probed,
            },
            model: request.model.as_deref(),
            window: self.window,
            envelope: self
                .cannot
                .as_deref()
                .map_or(EnvelopeFact::Expressible, EnvelopeFact::Cannot),
            pin,
        }
    }
}

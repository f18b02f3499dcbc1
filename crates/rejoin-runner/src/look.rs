//! Gathers the facts a decision needs from this machine: the program, the folder, the session's
//! bytes. Nothing is decided here, and nothing is changed.

use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, adapter, compose_env};
use rejoin_core::{
    Capability, EnvelopeFact, FileMark, Folder, FolderFact, PinFacts, Request, SessionFact,
    SessionId, Situation, SnapshotFact,
};
use rejoin_hub::{Candidate, HubLink, Outlook, TurnRequest};

use crate::binary::{self, Binary};
use crate::config::{AgentConfig, RunnerConfig};
use crate::error::{Error, Result};
use crate::{folder, marks};

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
    pub outlook: Outlook,
    pub session: Option<SessionLook>,
    pub cannot: Option<String>,
}

/// The session that could serve, compared with what was confirmed.
#[derive(Debug, Clone)]
pub struct SessionLook {
    /// Where it lies now, and as it was confirmed.
    pub mark: Option<FileMark>,
    pub fact: SessionFact,
    pub folder: FolderFact,
    pub in_use: Option<u32>,
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
    let adapter = adapter(agent).ok_or_else(|| Error::UnknownAgent(agent.to_owned()))?;
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
    let settings = config.agent(agent);
    let env = environment(config, adapter);
    let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
    let home = adapter
        .home(&var)
        .ok_or_else(|| Error::Internal(format!("{agent} has no home: HOME is not set")))?;
    let as_root = nix::unistd::geteuid().is_root() && var("IS_SANDBOX").is_none();
    let cannot = adapter.express(&request.envelope, as_root).err();
    let session = outlook
        .best()
        .map(|candidate| look_at(adapter, &home, &folder, candidate));
    Ok(Looked {
        adapter,
        binary,
        settings,
        folder,
        env,
        home,
        outlook,
        session,
        cannot,
    })
}

/// What of our environment the CLI gets, and what the configuration adds.
pub fn environment(config: &RunnerConfig, adapter: &dyn Adapter) -> Vec<(String, String)> {
    let settings = config.agent(adapter.name());
    compose_env(
        config.env.clone(),
        &adapter.environment(),
        &settings.pass_env,
        &settings.env,
    )
}

fn look_at(
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
        };
    };
    // The path is derived anew: what was recorded is evidence, never input.
    let path = adapter.session_file(&pin.folder.path, &pin.session);
    let mark = pin.files.first().map(|mark| FileMark {
        path,
        ..mark.clone()
    });
    SessionLook {
        fact: mark
            .as_ref()
            .map_or(SessionFact::Unknown, |mark| marks::compare(home, mark)),
        mark,
        folder: folder::compare(&pin.folder, today),
        in_use: in_use(adapter, home, &pin.session),
    }
}

/// A process that says it has this session open. None of ours is running: the turn before this one
/// has ended, and at most one runs at a time.
fn in_use(adapter: &'static dyn Adapter, home: &Path, session: &SessionId) -> Option<u32> {
    let notes = fs_err::read_dir(home.join(adapter.live_marks()?)).ok()?;
    notes
        .flatten()
        .filter_map(|note| adapter.live_mark(&fs_err::read(note.path()).ok()?))
        .find(|mark| mark.session == *session && alive(mark.pid))
        .map(|mark| mark.pid)
}

/// Alive, not a zombie, and not left over from one of our own turns.
fn alive(pid: u32) -> bool {
    let Ok(holder) = crate::holder::Holder::of(pid as i32) else {
        return false;
    };
    let ours = fs_err::read(format!("/proc/{pid}/environ")).is_ok_and(|env| {
        env.split(|b| *b == 0)
            .any(|v| v.starts_with(b"REJOIN_TURN="))
    });
    holder.is_alive() && !ours
}

impl Looked {
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
                        provider_here: true,
                        session: session.fact,
                        snapshot: SnapshotFact::None,
                        in_use: session.in_use,
                    })
                });
        Situation {
            agent,
            request: wishes,
            policy: request.policy(),
            history: self.outlook.history(),
            runtime: &facts.runtime,
            capability: match (&facts.no_resume, facts.proven) {
                (Some(why), _) => Capability::Absent(why),
                (None, true) => Capability::Proven,
                (None, false) => Capability::Probed,
            },
            model: request.model.as_deref(),
            envelope: self
                .cannot
                .as_deref()
                .map_or(EnvelopeFact::Expressible, EnvelopeFact::Cannot),
            pin,
        }
    }
}

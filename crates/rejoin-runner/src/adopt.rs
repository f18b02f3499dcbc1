//! Adopts sessions that users made with the CLIs themselves: finds them, reads them, and makes
//! conversations of them that continue the session.

mod copy;
mod find;
mod from_file;
mod incremental;
mod read;
mod source;

use std::path::{Path, PathBuf};

use rejoin_agents::{Adapter, SessionAt, SessionHeader, SessionStorage, UserSessions};
use rejoin_core::{
    AgentName, ConversationId, Folder, PermissionMode, Pin, PinState, Scope, ScopeValue, SeenPrefix,
};
use rejoin_hub::AdoptedSession;

use crate::binary;
use crate::error::{Error, Result};
use crate::folder;
use crate::foreign_file;
use crate::in_use::in_use;
use crate::inspect::environment;
use crate::session::Sessions;
use crate::turn::Runner;
use crate::worker_thread::on_worker;
use copy::{Copied, copy, remove};
use find::Found;
use read::{Whole, whole};
use source::Source;

/// Filter for sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionFilter {
    pub agent: Option<String>,
    /// Folder as a real path; None means the sessions of all folders.
    pub folder: Option<String>,
}

/// Session that was found.
#[derive(Clone)]
pub struct OutsideSession {
    pub agent: AgentName,
    pub head: SessionHeader,
    pub standing: AdoptionState,
    adapter: &'static dyn Adapter,
    own: UserSessions,
    found: Found,
}

impl OutsideSession {
    /// Returns true if reading takes long, or may have to wait for the lock of a database.
    fn is_large(&self) -> bool {
        let meta = || fs_err::metadata(self.found.home.join(&self.found.path));
        matches!(self.own.kept, SessionStorage::Rows { .. })
            || meta().is_ok_and(|meta| meta.len() >= foreign_file::LARGE)
    }
}

/// State of a session in rejoin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdoptionState {
    New,
    Known(ConversationId),
    /// Known, with this number of messages added since.
    Grown(ConversationId, u64),
}

/// Result of adopting a session.
#[derive(Debug, Clone)]
pub struct Adoption {
    pub conversation: ConversationId,
    /// Number of messages that were taken in.
    pub messages: u64,
    /// True if our session is a copy and the original stays as it is.
    pub copied: bool,
    /// True if the next turn can resume the session.
    pub resumable: bool,
    /// Note for the user.
    pub note: Option<String>,
}

/// Defaults for an adopted conversation.
#[derive(Debug, Clone)]
pub struct Terms {
    pub permission: PermissionMode,
    pub scope: Scope,
    /// Folder for a session that does not name its own.
    pub here: String,
}

impl Runner {
    /// Returns all sessions that match, newest first, each with its state in rejoin.
    pub async fn outside_sessions(&self, wanted: &SessionFilter) -> Result<Vec<OutsideSession>> {
        let mut all = vec![];
        for adapter in self.config.adapters() {
            let name = adapter.name();
            if wanted.agent.as_deref().is_some_and(|agent| agent != name) {
                continue;
            }
            let folder = wanted.folder.as_deref();
            let Some(own) = find::own(&self.config, adapter, folder) else {
                continue;
            };
            let agent = AgentName::new(name).map_err(|e| Error::Internal(e.to_string()))?;
            for found in find::sessions(adapter, &own, folder) {
                let id = found.head.session.to_string();
                let owner = {
                    let mut read = self.hub.store.read().await?;
                    read.adoptions().session_owner(name, &id).await?
                };
                let mut session = OutsideSession {
                    agent: agent.clone(),
                    head: found.head.clone(),
                    standing: AdoptionState::New,
                    adapter,
                    own: own.clone(),
                    found,
                };
                if let Some(c) = owner {
                    session.standing = self.standing(&session, c).await?;
                }
                all.push(session);
            }
        }
        all.sort_by_key(|session| std::cmp::Reverse(session.head.used));
        Ok(all)
    }

    /// Makes a conversation of the session. If the session is known already, takes in the messages
    /// that were added since.
    pub async fn adopt(&self, session: &OutsideSession, terms: &Terms) -> Result<Adoption> {
        match session.standing {
            AdoptionState::New => self.adopt_new(session, terms).await,
            AdoptionState::Known(c) | AdoptionState::Grown(c, _) => {
                self.adopt_more(session, c).await
            }
        }
    }

    async fn adopt_new(&self, session: &OutsideSession, terms: &Terms) -> Result<Adoption> {
        let Ground { home, folder, pin } = self.ground_of(session, &terms.here)?;
        let id = &session.head.session;
        let (place, in_home) = (Some(session.found.path.as_str()), !session.own.copied);
        if let Some(pid) = in_use(session.adapter, &home, id, place.filter(|_| in_home)) {
            return Err(Error::InUse { pid });
        }
        let source = self.read(session).await?;
        if source.said.is_empty() {
            return Err(Error::NothingSaid(id.to_string()));
        }
        let mut trouble = source.trouble.clone();
        let runtime = match binary::find(&self.hub, &self.config, session.adapter).await {
            Ok(binary) => Some(binary.facts.runtime),
            Err(Error::Hub(error)) => return Err(error.into()),
            Err(error) => {
                trouble = trouble.or_else(|| Some(error.to_string()));
                None
            }
        };
        let pin_id = pin.to_string();
        let at = SessionAt {
            folder: &folder.path,
            session: id,
            pin: &pin_id,
        };
        let mut ours: Option<Copied> = None;
        if trouble.is_none() && session.own.copied {
            let made = copy(session.adapter, &session.own, &session.found, &home, &at);
            let made = made.map_err(Error::io(format!("copying session {id}")))?;
            trouble.clone_from(&made.whole.trouble);
            ours = Some(made);
        } else if trouble.is_none() {
            let sessions = Sessions {
                adapter: session.adapter,
                home: &home,
            };
            if sessions.locate(&at).as_deref() != Some(session.found.path.as_str()) {
                trouble = Some("it does not lie where its CLI looks for it".into());
            }
        }
        let kept = ours.as_ref().map_or(&source, |copied| &copied.whole);
        let pinned = match (&trouble, runtime, &kept.mark) {
            (None, Some(runtime), Some(mark)) => Some(Pin {
                id: pin,
                agent: session.agent.clone(),
                session: id.clone(),
                state: PinState::Confirmed,
                // The hub fills in the rest.
                seen: SeenPrefix {
                    value: ScopeValue([0; 32]),
                    messages: 0,
                    summarised: kept.reading.summarised(),
                    last_seq: 0,
                    last: None,
                },
                folder: folder.clone(),
                runtime,
                machine: self.hub.machine.clone(),
                home: home.display().to_string(),
                files: vec![mark.clone()],
                cursor: kept.reading.cursor.clone(),
                total: kept.reading.total,
                usage: kept.reading.usage,
                context: kept.reading.context,
                model: kept.reading.model.clone(),
                provider: kept.reading.provider.clone(),
                failures: 0,
                compacted: kept.reading.compacted,
                instructions: None,
            }),
            _ => None,
        };
        let resumable = pinned.is_some();
        let adopted = AdoptedSession {
            agent: session.agent.clone(),
            session_id: id.to_string(),
            workdir: folder.path.clone(),
            title: None,
            // A copy may hold more than was read before it was made.
            source: kept_source(session, kept)?,
            model: kept
                .reading
                .model
                .clone()
                .filter(|_| !session.adapter.profile().keeps_model),
            said: kept.said.clone(),
            cost: kept.reading.spent.or(kept.reading.total),
            pin: pinned,
            permission: terms.permission,
            scope: terms.scope,
        };
        let messages = adopted.said.len() as u64;
        let made = self.hub.adopt(&adopted).await;
        let path = ours.map(|copied| copied.path);
        if let Some(path) = path.as_ref().filter(|_| made.is_err() || !resumable) {
            remove(&home, path);
        }
        Ok(Adoption {
            conversation: made?,
            messages,
            copied: resumable && session.own.copied,
            resumable,
            note: note(trouble, &folder),
        })
    }

    async fn read(&self, session: &OutsideSession) -> Result<Whole> {
        let id = &session.head.session;
        let (adapter, own, found) = (session.adapter, session.own.clone(), session.found.clone());
        let read = move || whole(adapter, &own, &found);
        let read = if session.is_large() {
            on_worker(read).await
        } else {
            read()
        };
        read.map_err(Error::io(format!("reading session {id}")))
    }

    /// Returns the home for our sessions of the agent, the session's folder, and a new pin id.
    fn ground_of(&self, session: &OutsideSession, here: &str) -> Result<Ground> {
        let env = environment(&self.config, session.adapter);
        let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let none = || Error::Internal(format!("{} has no home: HOME is not set", session.agent));
        let path = session.head.folder.as_deref().unwrap_or(here);
        let folder = match folder::look(Path::new(path)) {
            Ok(there) => Folder {
                checkout: folder::checkout_of(Path::new(&there.path)),
                ..there
            },
            Err(_) => Folder {
                path: path.to_owned(),
                device: 0,
                inode: 0,
                checkout: None,
            },
        };
        Ok(Ground {
            home: session.adapter.home(&var).ok_or_else(none)?,
            folder,
            pin: self.hub.clock.pin_id()?,
        })
    }
}

struct Ground {
    home: PathBuf,
    folder: Folder,
    pin: rejoin_core::PinId,
}

fn kept_source(session: &OutsideSession, read: &Whole) -> Result<serde_json::Value> {
    let source = Source::of(&session.found, &read.said, session.own.copied);
    serde_json::to_value(source).map_err(|e| Error::Internal(e.to_string()))
}

fn note(trouble: Option<String>, folder: &Folder) -> Option<String> {
    if let Some(trouble) = trouble {
        return Some(format!("{trouble}: the next turn is told what was said"));
    }
    (folder.inode == 0).then(|| {
        let path = &folder.path;
        format!("its folder {path} is not here: go on with -w DIR --relocate")
    })
}

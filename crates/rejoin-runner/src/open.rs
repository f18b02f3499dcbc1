//! Hands a session to the agent's own terminal interface, and takes in the messages that were
//! exchanged there.
//!
//! The session is inspected as before a turn. It is handed over only if it could be resumed as it is
//! and has seen all messages. It is not cut back afterwards, because a person wrote the new messages.
//! If we die meanwhile, the next turn takes them in.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rejoin_agents::{CommandSpec, OPEN_MARKER, SessionAt, TerminalOrder};
use rejoin_core::{
    AgentName, Blocker, FileMark, Reason, SessionId, SessionSource, TrustedSession, TurnPlan,
};
use rejoin_hub::TurnRequest;
use rejoin_store::Conversation;

use crate::attempt::text;
use crate::binary;
use crate::decision::Decided;
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::in_use::in_use;
use crate::inspect::{Inspection, inspect};
use crate::overlay;
use crate::process::{ForegroundEnd, foreground};
use crate::relocate::bring_here;
use crate::turn::Runner;

/// Time for which a session may still be held after its CLI has exited.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// Session to open, and its options.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub conversation: &'a Conversation,
    pub agent: &'a AgentName,
    pub request: &'a TurnRequest,
    /// True if stdin and stdout are a terminal.
    pub at_a_terminal: bool,
}

/// Result of opening a session.
#[derive(Debug, Clone)]
pub struct Opened {
    pub session: SessionId,
    pub ended: ForegroundEnd,
    /// Number of messages that were taken in.
    pub taken_in: u64,
    /// True if the next turn could resume the session.
    pub usable: bool,
}

/// Reason why nothing was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unopened {
    NoTerminal,
    /// Conversation without messages.
    Empty,
    /// A turn would not resume the session either, for this reason.
    Unusable {
        why: Reason,
        evidence: String,
    },
    /// The session has not seen this number of newest messages.
    Behind {
        messages: u64,
    },
    /// The session belongs to another folder, and only a turn relocates it.
    Moved {
        from: String,
    },
    /// The adapter offers no terminal interface, with its explanation.
    NoInterface(String),
}

impl fmt::Display for Unopened {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoTerminal => f.write_str("it needs a terminal on stdin and stdout"),
            Self::Empty => f.write_str("nothing was said in it yet"),
            Self::Unusable { why, evidence } => write!(f, "{evidence} ({why})"),
            Self::Behind { messages: 1 } => f.write_str("it has not seen the newest message"),
            Self::Behind { messages } => {
                write!(f, "it has not seen the newest {messages} messages")
            }
            Self::Moved { from } => write!(f, "it still belongs to {from}"),
            Self::NoInterface(why) => f.write_str(why),
        }
    }
}

impl Runner {
    /// Opens the session while holding the conversation, so that no turn of it runs meanwhile.
    pub async fn open(&self, opening: &Opening<'_>) -> Result<Opened> {
        let c = opening.conversation.id;
        let holder = self.holder()?;
        self.hub.hold_open(c, &holder).await?;
        let sitting = self.hand_over(opening, &holder);
        let opened = self.holding_open(c, &holder, Box::pin(sitting)).await;
        self.hub.release_open(c, &holder).await?;
        opened
    }

    async fn hand_over(&self, opening: &Opening<'_>, holder: &str) -> Result<Opened> {
        let c = opening.conversation.id;
        self.end_processes(c).await;
        self.take_in(c, None).await?;
        let (conversation, agent) = (opening.conversation, opening.agent);
        self.restore_held(conversation, agent, opening.request, holder)
            .await?;
        let inspection = self.inspect_for(opening).await?;
        let decided = inspection.decide(opening.agent, opening.request);
        let session = resumable(&decided, &inspection).map_err(|why| match why {
            Held::Not(why) => unopened(opening, why),
            Held::By(error) => error,
        })?;
        let file = self.brought_here(opening, &inspection, &session).await?;
        let command = self.command(opening, &inspection, &session, &file).await?;
        if !opening.at_a_terminal {
            return Err(unopened(opening, Unopened::NoTerminal));
        }
        let ended = run(&inspection, &session, &command).await?;
        quiet(&inspection, session.id(), &file).await;
        let taken = self.take_in(c, None).await?;
        let at = SessionAt {
            folder: &inspection.folder.path,
            session: session.id(),
            pin: &pin_of(&inspection),
        };
        inspection.sessions().tidy(&at, Some(&file.path));
        self.save_opened(opening).await?;
        Ok(Opened {
            session: session.id().clone(),
            ended,
            taken_in: taken.messages,
            usable: self.usable(opening).await,
        })
    }

    async fn inspect_for(&self, opening: &Opening<'_>) -> Result<Inspection> {
        let (c, agent) = (opening.conversation, opening.agent);
        let outlook = self.hub.outlook(c.id, c.scope, agent, None).await?;
        inspect(
            &self.hub,
            &self.config,
            agent.as_str(),
            opening.request,
            outlook,
        )
        .await
    }

    /// Saves a snapshot with the new messages.
    async fn save_opened(&self, opening: &Opening<'_>) -> Result<()> {
        let inspection = self.inspect_for(opening).await?;
        let pin = inspection
            .outlook
            .best()
            .and_then(|c| c.stored.pin.as_ref());
        if let Some(pin) = pin.filter(|_| self.hub.vault.is_some())
            && let Err(why) = self.save(pin).await?
        {
            self.hub.unsaved(pin.id, &why).await?;
        }
        Ok(())
    }

    async fn usable(&self, opening: &Opening<'_>) -> bool {
        let Ok(inspection) = self.inspect_for(opening).await else {
            return false;
        };
        let decided = inspection.decide(opening.agent, opening.request);
        resumable(&decided, &inspection).is_ok()
    }

    /// Returns the session's file, in its folder and with times that are not ahead of this clock,
    /// as before a turn.
    async fn brought_here(
        &self,
        opening: &Opening<'_>,
        inspection: &Inspection,
        session: &TrustedSession,
    ) -> Result<FileMark> {
        let pin = inspection
            .outlook
            .best()
            .and_then(|c| c.stored.pin.as_ref());
        let pin = pin.ok_or_else(|| Error::Internal("a session without a pin".into()))?;
        if pin.folder.path != inspection.folder.path {
            let from = pin.folder.path.clone();
            return Err(unopened(opening, Unopened::Moved { from }));
        }
        Ok(bring_here(inspection, pin, session.id(), self.hub.clock)
            .await?
            .file)
    }

    async fn command(
        &self,
        opening: &Opening<'_>,
        inspection: &Inspection,
        session: &TrustedSession,
        file: &FileMark,
    ) -> Result<CommandSpec> {
        let (adapter, program) = (inspection.adapter, &inspection.binary.path);
        let no_terminal = |why| unopened(opening, Unopened::NoInterface(why));
        let terminal = adapter.capabilities().terminal.ok_or_else(|| {
            let name = adapter.name();
            no_terminal(format!(
                "{name} has no terminal interface that could be opened"
            ))
        })?;
        let help = match terminal.terminal_help() {
            Some(args) => {
                let args = args.iter().map(ToString::to_string).collect();
                let said = binary::ask(&self.config, adapter, program, args).await?;
                String::from_utf8_lossy(&said.stdout).into_owned()
            }
            None => String::new(),
        };
        let read = |file: &str| foreign_file::read_setting(inspection.home.join(file));
        let list = |folder: &str| {
            let entries = fs_err::read_dir(inspection.home.join(folder))
                .into_iter()
                .flatten();
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.into_string().ok()).collect()
        };
        let sandbox = adapter.capabilities().sandbox;
        let mcp_servers = sandbox.map_or_else(Vec::new, |sandbox| sandbox.mcp_servers(&read));
        let order = TerminalOrder {
            session,
            home: &text(&inspection.home)?,
            place: &file.path,
            env: &inspection.env,
            folder: &inspection.folder.path,
            model: opening.request.model.as_deref(),
            permissions: &opening.request.permissions,
            mcp_servers: &mcp_servers,
            repository: inspection.repository,
            memory: &inspection.memory,
            extra_args: &inspection.settings.args,
            help: &help,
            list: &list,
        };
        terminal.terminal(&order).map_err(no_terminal)
    }
}

enum Held {
    Not(Unopened),
    By(Error),
}

/// Returns the session if it can be resumed in place and has seen all messages.
fn resumable(decided: &Decided, inspection: &Inspection) -> Result<TrustedSession, Held> {
    let unusable = |why: Reason| {
        let evidence = decided.failed.clone().unwrap_or_default();
        Held::Not(Unopened::Unusable { why, evidence })
    };
    match &decided.plan {
        Ok(TurnPlan::Resume {
            session, catch_up, ..
        }) => match (session.way(), catch_up.messages()) {
            (SessionSource::InPlace | SessionSource::Live, 0) => Ok(session.clone()),
            (SessionSource::InPlace | SessionSource::Live, messages) => {
                Err(Held::Not(Unopened::Behind { messages }))
            }
            (SessionSource::Snapshot, _) => Err(unusable(Reason::SessionMissing)),
            // The session is the parent's; the first message creates one for the fork.
            (SessionSource::Fork, _) => Err(unusable(Reason::NoSession)),
        },
        Ok(TurnPlan::Start { .. }) => Err(Held::Not(Unopened::Empty)),
        Ok(TurnPlan::Reseed { why, .. }) | Err(Blocker::WouldReseed { why }) => Err(unusable(*why)),
        Err(Blocker::InUse { pid }) => Err(Held::By(Error::InUse { pid: *pid })),
        Err(Blocker::Permissions) => {
            let why = inspection.cannot.clone().unwrap_or_default();
            Err(Held::By(Error::Permissions(why)))
        }
    }
}

fn unopened(opening: &Opening<'_>, why: Unopened) -> Error {
    Error::Unopened {
        agent: opening.agent.to_string(),
        why,
    }
}

fn pin_of(inspection: &Inspection) -> String {
    let pin = inspection.outlook.best().map(|c| c.stored.id.to_string());
    pin.unwrap_or_default()
}

async fn run(
    inspection: &Inspection,
    session: &TrustedSession,
    command: &CommandSpec,
) -> Result<ForegroundEnd> {
    if let Some(overlay) = &inspection.overlay {
        overlay::lay(overlay).map_err(Error::io("preparing the agent's home"))?;
    }
    overlay::put_files(&inspection.home, &command.files)
        .map_err(Error::io("preparing the agent's home"))?;
    let marker = (OPEN_MARKER.to_owned(), session.id().to_string());
    let env = inspection.env.iter().chain(&command.env).cloned();
    let env = env.chain([marker]);
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let folder = Path::new(&inspection.folder.path);
    let prelude = inspection
        .adapter
        .profile()
        .prelude
        .iter()
        .map(ToString::to_string);
    let args: Vec<String> = prelude.chain(command.args.iter().cloned()).collect();
    foreground(
        &inspection.binary.path,
        &args,
        env,
        folder,
        inspection.wall.wall(),
    )
    .await
    .map_err(Error::io("starting the agent"))
}

/// Waits until no process holds the session any more, but not for ever; after that its messages are
/// taken in later.
async fn quiet(inspection: &Inspection, session: &SessionId, file: &FileMark) {
    let since = Instant::now();
    let held = || {
        in_use(
            inspection.adapter,
            &inspection.home,
            session,
            Some(&file.path),
        )
        .is_some()
    };
    while held() && since.elapsed() < QUIET_WITHIN {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

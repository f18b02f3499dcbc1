//! Hands a conversation to the agent's own terminal interface, on that very session, and takes in
//! what was said there.
//!
//! The session is looked at as before a turn, and only one that could be resumed as it is, and has
//! seen everything, is handed over. It is not taken back afterwards: a person said that. If we die
//! meanwhile, the next turn takes it in.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;
use std::time::{Duration, Instant};

use rejoin_agents::{CommandSpec, OPEN_MARKER, SessionAt, TerminalOrder};
use rejoin_core::{
    AgentName, Decision, FileMark, Hold, Reason, SessionId, TrustedSession, TurnPlan, Way, decide,
};
use rejoin_hub::{HubLink, TurnRequest};
use rejoin_store::Conversation;

use crate::attempt::text;
use crate::binary;
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::in_use::in_use;
use crate::look::{Looked, look};
use crate::overlay;
use crate::process::{Ended, foreground};
use crate::relocate::bring_here;
use crate::turn::Runner;

/// How long a session may still be held after its CLI has gone.
const QUIET_WITHIN: Duration = Duration::from_secs(10);
const LOOK_AGAIN: Duration = Duration::from_millis(40);

/// Which session is to be opened, and with what.
#[derive(Debug, Clone, Copy)]
pub struct Opening<'a> {
    pub conversation: &'a Conversation,
    pub agent: &'a AgentName,
    pub request: &'a TurnRequest,
    /// Is there somebody to sit at it?
    pub at_a_terminal: bool,
}

/// What came of it.
#[derive(Debug, Clone)]
pub struct Opened {
    pub session: SessionId,
    pub ended: Ended,
    /// Messages.
    pub taken_in: u64,
    /// The next turn could resume it.
    pub usable: bool,
}

/// Why nothing was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unopened {
    NoTerminal,
    /// Nothing was said yet.
    Empty,
    /// As a turn would be continued otherwise.
    Unusable {
        why: Reason,
        evidence: String,
    },
    /// It has not seen the newest messages.
    Behind {
        messages: u64,
    },
    /// Only a turn brings a session along.
    Moved {
        from: String,
    },
    /// What the adapter says.
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
    /// From the lease to the lease. Nobody else runs a turn of the conversation meanwhile.
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
        let looked = self.look_at(opening).await?;
        let decision = decide(&looked.situation(opening.agent, opening.request));
        let session = whole(&decision, &looked).map_err(|why| match why {
            Held::Not(why) => unopened(opening, why),
            Held::By(error) => error,
        })?;
        let file = self.brought_here(opening, &looked, &session).await?;
        let command = self.command(opening, &looked, &session, &file).await?;
        if !opening.at_a_terminal {
            return Err(unopened(opening, Unopened::NoTerminal));
        }
        let ended = run(&looked, &session, &command).await?;
        quiet(&looked, session.id(), &file).await;
        let taken = self.take_in(c, None).await?;
        let at = SessionAt {
            folder: &looked.folder.path,
            session: session.id(),
            pin: &pin_of(&looked),
        };
        looked.sessions().tidy(&at, Some(&file.path));
        self.save_opened(opening).await?;
        Ok(Opened {
            session: session.id().clone(),
            ended,
            taken_in: taken.messages,
            usable: self.usable(opening).await,
        })
    }

    async fn look_at(&self, opening: &Opening<'_>) -> Result<Looked> {
        let (c, agent) = (opening.conversation, opening.agent);
        let outlook = self.hub.outlook(c.id, c.scope, agent, None).await?;
        look(
            &self.hub,
            &self.config,
            agent.as_str(),
            opening.request,
            outlook,
        )
        .await
    }

    /// What was said there is in no snapshot yet.
    async fn save_opened(&self, opening: &Opening<'_>) -> Result<()> {
        let looked = self.look_at(opening).await?;
        let pin = looked.outlook.best().and_then(|c| c.stored.pin.as_ref());
        if let Some(pin) = pin.filter(|_| self.hub.vault.is_some())
            && let Err(why) = self.save(pin).await?
        {
            self.hub.unsaved(pin.id, &why).await?;
        }
        Ok(())
    }

    async fn usable(&self, opening: &Opening<'_>) -> bool {
        let Ok(looked) = self.look_at(opening).await else {
            return false;
        };
        let decision = decide(&looked.situation(opening.agent, opening.request));
        whole(&decision, &looked).is_ok()
    }

    /// In its folder, and not ahead of this clock: as before a turn.
    async fn brought_here(
        &self,
        opening: &Opening<'_>,
        looked: &Looked,
        session: &TrustedSession,
    ) -> Result<FileMark> {
        let pin = looked.outlook.best().and_then(|c| c.stored.pin.as_ref());
        let pin = pin.ok_or_else(|| Error::Internal("a session without a pin".into()))?;
        if pin.folder.path != looked.folder.path {
            let from = pin.folder.path.clone();
            return Err(unopened(opening, Unopened::Moved { from }));
        }
        let clock = HubLink::clock(&self.hub);
        Ok(bring_here(looked, pin, session.id(), clock).await?.file)
    }

    async fn command(
        &self,
        opening: &Opening<'_>,
        looked: &Looked,
        session: &TrustedSession,
        file: &FileMark,
    ) -> Result<CommandSpec> {
        let (adapter, program) = (looked.adapter, &looked.binary.path);
        let help = match adapter.terminal_help() {
            Some(args) => {
                let args = args.iter().map(ToString::to_string).collect();
                let said = binary::ask(&self.config, adapter, program, args).await?;
                String::from_utf8_lossy(&said.stdout).into_owned()
            }
            None => String::new(),
        };
        let read = |file: &str| foreign_file::read_setting(looked.home.join(file));
        let list = |folder: &str| {
            let entries = fs_err::read_dir(looked.home.join(folder))
                .into_iter()
                .flatten();
            let names = entries.flatten().map(|entry| entry.file_name());
            names.filter_map(|name| name.into_string().ok()).collect()
        };
        let order = TerminalOrder {
            session,
            home: &text(&looked.home)?,
            place: &file.path,
            env: &looked.env,
            folder: &looked.folder.path,
            model: opening.request.model.as_deref(),
            envelope: &opening.request.envelope,
            tool_servers: &adapter.tool_servers(&read),
            repository: looked.repository,
            memory: &looked.memory,
            extra_args: &looked.settings.args,
            help: &help,
            list: &list,
        };
        adapter
            .terminal(&order)
            .map_err(|why| unopened(opening, Unopened::NoInterface(why)))
    }
}

enum Held {
    Not(Unopened),
    By(Error),
}

/// The session, if it can be resumed where it is and knows everything.
fn whole(decision: &Decision<'_>, looked: &Looked) -> Result<TrustedSession, Held> {
    let unusable = |why: Reason| {
        let failed = decision.checks.iter().find(|c| c.ok == Some(false));
        let evidence = failed.map_or_else(String::new, |check| check.evidence.to_string());
        Held::Not(Unopened::Unusable { why, evidence })
    };
    match &decision.plan {
        Ok(TurnPlan::Resume {
            session, catch_up, ..
        }) => match (session.way(), catch_up.messages()) {
            (Way::InPlace | Way::Live, 0) => Ok(session.clone()),
            (Way::InPlace | Way::Live, messages) => Err(Held::Not(Unopened::Behind { messages })),
            (Way::Snapshot, _) => Err(unusable(Reason::SessionMissing)),
            // The session is its parent's; a message makes one of its own.
            (Way::Fork, _) => Err(unusable(Reason::NoSession)),
        },
        Ok(TurnPlan::Start { .. }) => Err(Held::Not(Unopened::Empty)),
        Ok(TurnPlan::Reseed { why, .. }) | Err(Hold::WouldReseed { why }) => Err(unusable(*why)),
        Err(Hold::InUse { pid }) => Err(Held::By(Error::InUse { pid: *pid })),
        Err(Hold::Envelope) => {
            let why = looked.cannot.clone().unwrap_or_default();
            Err(Held::By(Error::Envelope(why)))
        }
    }
}

fn unopened(opening: &Opening<'_>, why: Unopened) -> Error {
    Error::Unopened {
        agent: opening.agent.to_string(),
        why,
    }
}

fn pin_of(looked: &Looked) -> String {
    let pin = looked.outlook.best().map(|c| c.stored.id.to_string());
    pin.unwrap_or_default()
}

async fn run(looked: &Looked, session: &TrustedSession, command: &CommandSpec) -> Result<Ended> {
    if let Some(overlay) = &looked.overlay {
        overlay::lay(overlay).map_err(Error::io("preparing the agent's home"))?;
    }
    overlay::put_files(&looked.home, &command.files)
        .map_err(Error::io("preparing the agent's home"))?;
    let marker = (OPEN_MARKER.to_owned(), session.id().to_string());
    let env = looked.env.iter().chain(&command.env).cloned();
    let env = env.chain([marker]);
    let env = env.map(|(name, value)| (OsString::from(name), OsString::from(value)));
    let folder = Path::new(&looked.folder.path);
    let prelude = looked.adapter.prelude().iter().map(ToString::to_string);
    let args: Vec<String> = prelude.chain(command.args.iter().cloned()).collect();
    foreground(&looked.binary.path, &args, env, folder, looked.wall.wall())
        .await
        .map_err(Error::io("starting the agent"))
}

/// Until nobody holds the session any more; or not for ever, then it is not taken in yet.
async fn quiet(looked: &Looked, session: &SessionId, file: &FileMark) {
    let since = Instant::now();
    let held = || in_use(looked.adapter, &looked.home, session, Some(&file.path)).is_some();
    while held() && since.elapsed() < QUIET_WITHIN {
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

//! `rejoin adopt`

mod keys;
mod picker;
mod report;
mod screen;

use std::path::Path;

use clap::Args;
use rejoin_runner::adopt::{Adoption, AdoptionState, OutsideSession, SessionFilter, Terms};
use serde_json::{Value, json};

use super::change::handle;
use super::send::folder_text;
use crate::app::App;
use crate::cli::command::{Help, Run, Task};
use crate::output::format::Now;
use picker::Choice;
use rejoin_errors::{CommandError, Result};
use report::{done_json, list, row, session_json, told};
use screen::{Picked, can_ask, pick};

/// The least of an id that names a session.
const LEAST: usize = 4;

/// Adopt sessions that were made without rejoin
///
/// On a terminal you choose from a list. Elsewhere the sessions are listed, and adopted only if named.
/// Adopting again adds the messages that are new since.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  rejoin adopt                 choose among the sessions of this folder\n  rejoin adopt --all           all of them\n  rejoin adopt 01a1de49        the session whose id begins so, in any folder"
)]
pub(crate) struct AdoptArgs {
    /// Only sessions of this agent
    #[arg(short, long, value_name = "AGENT")]
    agent: Option<String>,
    /// Adopt all of them
    #[arg(long)]
    all: bool,
    /// Sessions of all folders
    #[arg(long)]
    everywhere: bool,
    /// Folder (default: this one), or session ids or prefixes of them
    #[arg(value_name = "DIR")]
    what: Vec<String>,
}

impl Run for AdoptArgs {
    const NAME: &'static str = "adopt";
    const HELP: Help = Help::SetUp("bring in sessions");

    fn task(self) -> Task {
        Task::store(self, run)
    }
}

/// The result of adopting a session.
struct Done {
    adoption: Adoption,
    handle: String,
    session: OutsideSession,
}

async fn run(app: &App, args: &AdoptArgs) -> Result<u8> {
    known_agent(app, args)?;
    let (folder, named) = asked(app, args)?;
    let wanted = SessionFilter {
        agent: args.agent.clone(),
        folder,
    };
    let sessions = app.runner.outside_sessions(&wanted).await?;
    let chosen = if !named.is_empty() {
        by_name(&sessions, &named)?
    } else if args.all {
        let new = |s: &&OutsideSession| !matches!(s.standing, AdoptionState::Known(_));
        sessions.iter().filter(new).collect()
    } else if can_ask(app.out) && !sessions.is_empty() {
        match pick(app.out, choices(app, &sessions, args.everywhere)).await? {
            Picked::These(these) => these.iter().filter_map(|n| sessions.get(*n)).collect(),
            Picked::Nothing => return Ok(0),
            Picked::Stopped(signal) => return Ok(128 + signal),
        }
    } else {
        vec![]
    };
    if !chosen.is_empty() {
        app.config.must_be_trusted()?;
    }
    let mut done = vec![];
    let mut failed: Option<CommandError> = None;
    // The newest last: that is the conversation one goes on with.
    for session in chosen.into_iter().rev() {
        match adopt(app, session).await {
            Ok(one) => done.push(one),
            // The others are not to blame.
            Err(failure) if args.all => {
                let id = &session.head.session;
                app.out.note(&format!("{id}: {}", failure.message));
                failed = failed.or(Some(failure));
            }
            Err(failure) => return Err(failure),
        }
    }
    let asked = args.all || !named.is_empty() || !done.is_empty();
    if app.out.json {
        let sessions: Vec<Value> = sessions.iter().map(session_json).collect();
        let adopted: Vec<Value> = done.iter().map(done_json).collect();
        app.out
            .json(&json!({"sessions": sessions, "adopted": adopted}));
    } else if asked {
        told(app, &done, failed.is_some());
    } else {
        list(app, &sessions, args);
    }
    Ok(failed.map_or(0, |failure| failure.exit))
}

async fn adopt(app: &App, session: &OutsideSession) -> Result<Done> {
    let terms = Terms {
        permission: app.config.permission.unwrap_or_default(),
        scope: app.config.scope,
        here: folder_text(&app.here)?,
    };
    let adoption = app.runner.adopt(session, &terms).await.map_err(refused)?;
    let mut read = app.hub().store.read().await?;
    let conversation = read.conversations().get(adoption.conversation).await?;
    drop(read);
    let handle = match &conversation {
        Some(conversation) => handle(app, conversation).await?,
        None => String::new(),
    };
    Ok(Done {
        adoption,
        handle,
        session: session.clone(),
    })
}

/// In the words of a command that sends nothing.
fn refused(error: rejoin_runner::Error) -> CommandError {
    if let rejoin_runner::Error::InUse { pid } = error {
        let text = format!("process {pid} is using this session; nothing was adopted");
        return CommandError::conflict(text).try_this("rejoin adopt, when it has ended");
    }
    if let rejoin_runner::Error::Hub(rejoin_hub::Error::Busy) = error {
        let text = "a turn of its conversation is running, and takes in what was said outside";
        return CommandError::conflict(text).try_this("rejoin wait");
    }
    error.into()
}

fn known_agent(app: &App, args: &AdoptArgs) -> Result<()> {
    match &args.agent {
        Some(name) if app.runner.config.adapter(name).is_none() => {
            Err(rejoin_runner::Error::UnknownAgent(name.clone()).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// Which folder, and which sessions by name: those may be of any folder.
fn asked(app: &App, args: &AdoptArgs) -> Result<(Option<String>, Vec<String>)> {
    let is_folder = |what: &&String| {
        let path = Path::new(what.as_str());
        path.is_dir() || what.contains('/') || matches!(what.as_str(), "." | "..")
    };
    let folders: Vec<&String> = args.what.iter().filter(is_folder).collect();
    let named: Vec<String> = args
        .what
        .iter()
        .filter(|what| !is_folder(what))
        .cloned()
        .collect();
    let folder = match folders[..] {
        [] if args.everywhere || !named.is_empty() => None,
        [] => Some(folder_text(&app.here)?),
        [one] => Some(folder_text(Path::new(one)).map_err(|e| e.try_this("rejoin adopt ."))?),
        _ => {
            return Err(CommandError::usage("only one folder can be asked about")
                .try_this("rejoin adopt --everywhere"));
        }
    };
    Ok((folder, named))
}

fn by_name<'s>(
    sessions: &'s [OutsideSession],
    named: &[String],
) -> Result<Vec<&'s OutsideSession>> {
    let mut chosen = vec![];
    for name in named {
        let fits = |s: &&OutsideSession| {
            let id = s.head.session.as_str();
            id == name || (name.len() >= LEAST && id.starts_with(name.as_str()))
        };
        let found: Vec<&OutsideSession> = sessions.iter().filter(fits).collect();
        match found[..] {
            [one] => chosen.push(one),
            [] => {
                let text = format!("there is no folder and no session `{name}`");
                return Err(
                    CommandError::not_found(text).try_this("rejoin adopt --everywhere | cat")
                );
            }
            _ => {
                let text = format!("`{name}` could be {} sessions", found.len());
                return Err(
                    CommandError::ambiguous(text).try_this("rejoin adopt --everywhere | cat")
                );
            }
        }
    }
    Ok(chosen)
}

fn choices(app: &App, sessions: &[OutsideSession], everywhere: bool) -> Vec<Choice> {
    let now = Now::at(app.hub().clock.now());
    let choice = |session: &OutsideSession| {
        let folder = session.head.folder.as_deref().unwrap_or_default();
        let (id, words) = (&session.head.session, &session.head.words);
        Choice {
            cells: row(session, &now, everywhere, false),
            words: format!("{} {folder} {id} {words}", session.agent).to_lowercase(),
        }
    };
    sessions.iter().map(choice).collect()
}

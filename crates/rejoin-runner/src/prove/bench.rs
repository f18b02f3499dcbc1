//! Single runs of a CLI, by hand: for what a conversation never does.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rejoin_agents::{
    Adapter, ChosenBy, End, Forking, Memory, Neutral, Place, Ran, RepositoryConfig, RunOrder,
    SessionAt,
};
use rejoin_core::{
    AgentName, Capability, Composed, Envelope, EnvelopeFact, Folder, FolderFact, HistoryFacts,
    Material, Message, MessageId, MessageState, Outcome, Pin, PinFacts, PinId, PinState, Policy,
    Prefix, Record, Request, Role, Runtime, ScopeValue, Seen, SessionFact, SessionId, Situation,
    SnapshotFact, TurnPlan, compose, decide,
};
use rejoin_hub::Clock;
use rejoin_model::ModelServer;

use super::ready;
use super::stage::Subject;
use crate::fork::{Seed, set_aside};
use crate::overlay;
use crate::process::capture;
use crate::session::Sessions;

const TURN_MAY_TAKE: Duration = Duration::from_mins(1);

/// With which session a run is to go on.
#[derive(Clone, Copy)]
pub(super) enum How<'a> {
    Anew,
    Resume(&'a SessionId),
    /// With a copy of it.
    Fork(&'a SessionId),
}

/// What runs showed that no conversation would ever ask for.
pub(super) struct Strange {
    /// Told to resume a session which it cannot know.
    pub(super) unknown: (Ran, SessionId),
    /// The model was asked for it all the same.
    pub(super) went_on: bool,
    /// None: it has no fork of its own. Else what is wrong with it.
    pub(super) fork: Option<Result<(), String>>,
}

pub(super) async fn strange(subject: Subject<'_>, server: &ModelServer) -> Option<Strange> {
    let scratch = tempfile::tempdir().ok()?;
    let (home, folder) = (scratch.path().join("home"), scratch.path().join("folder"));
    fs_err::create_dir_all(&folder).ok()?;
    let (env, model) = ready(subject.adapter, &server.url(), &home, subject.path)?;
    let late = AtomicBool::new(false);
    let bench = Bench {
        adapter: subject.adapter,
        program: subject.program,
        runtime: &subject.facts.runtime,
        folder: &folder,
        env: &env,
        model: model.as_deref(),
        neutral: subject.facts.neutral,
        late: &late,
    };
    let pin = Clock.pin_id().ok()?.to_string();
    let known = bench
        .turn(&pin, How::Anew, "forked-word #s:proof-1")
        .await?;
    let parent = known.session?;
    server.clear();
    let forked = bench
        .turn(&pin, How::Fork(&parent), "hello #s:proof-2")
        .await;
    let fork = forked.map(|ran| is_fork(&ran, &parent, server));
    server.clear();
    let unknown = subject.adapter.unknown_session(&Clock.foreign_id().ok()?);
    let ran = bench
        .turn(&pin, How::Resume(&unknown), "hello again #s:proof-2")
        .await?;
    Some(Strange {
        went_on: server.requests().iter().any(|r| r.script.is_some()),
        unknown: (ran, unknown),
        fork,
    })
}

/// A copy of the session at this place, ready to be gone on with; where it will lie.
fn planted(seed: &Seed<'_>, parent: &str) -> std::io::Result<Option<String>> {
    let (mark, _) = seed.sessions.read_on(parent, None, None)?;
    set_aside(&seed.sessions, &mark, seed.folder)?;
    let place = seed.place();
    if let Some(place) = &place {
        seed.rename(place)?;
    }
    seed.plant(place.as_deref(), Clock.now() / 1000)?;
    Ok(place)
}

/// A fork knows what its parent knew, and is another session.
fn is_fork(ran: &Ran, parent: &SessionId, server: &ModelServer) -> Result<(), String> {
    let asked = server.requests();
    let shown = asked.iter().rfind(|r| r.script.is_some());
    let times = shown.map_or(0, |r| {
        r.history().to_string().matches("forked-word").count()
    });
    if ran.outcome != Outcome::Succeeded {
        let why = ran.outcome.failure().map(|f| f.message.clone());
        return Err(format!("it failed: {}", why.unwrap_or_default()));
    }
    if times != 1 {
        return Err(format!("what its parent was told was shown {times} times"));
    }
    if ran.session.as_ref() == Some(parent) {
        return Err("it went on with its parent's session".into());
    }
    Ok(())
}

/// A CLI in a private home, run by hand: without a store, without a shim.
pub(super) struct Bench<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) adapter: &'static dyn Adapter,
    pub(super) program: &'a Path,
    pub(super) runtime: &'a Runtime,
    pub(super) folder: &'a Path,
    pub(super) env: &'a [(String, String)],
    pub(super) neutral: Neutral,
    /// Set if a run took too long.
    pub(super) late: &'a AtomicBool,
}

impl Bench<'_> {
    /// One run. None: it could not be run so.
    pub(super) async fn turn(&self, pin: &str, how: How<'_>, text: &str) -> Option<Ran> {
        let minted = Clock.foreign_id().ok()?;
        let resume = match how {
            How::Anew => None,
            How::Resume(session) | How::Fork(session) => Some(session),
        };
        let forking = matches!(how, How::Fork(_)).then(|| self.adapter.forking());
        let minted = match forking {
            Some(Forking::Never) => return None,
            Some(Forking::ByCopy) => SessionId::new(Clock.pin_id().ok()?.to_string()).ok()?,
            Some(_) | None => minted,
        };
        let session = resume.unwrap_or(&minted).clone();
        let (plan, composed) = self.plan(&session, resume.is_some(), forking.is_some(), text)?;
        let folder = fs_err::canonicalize(self.folder).ok()?;
        let prompt_id = Clock.foreign_id().ok()?.to_string();
        let var = |name: &str| {
            let found = self.env.iter().find(|(n, _)| n == name);
            found.map(|(_, v)| v.clone())
        };
        let home = self.adapter.home(&var)?;
        if let Some(overlay) = self.adapter.overlay(&var) {
            overlay::lay(&overlay).ok()?;
        }
        let at = SessionAt {
            folder: folder.to_str()?,
            session: &session,
            pin,
        };
        let sessions = Sessions {
            adapter: self.adapter,
            home: &home,
        };
        let place = match self.adapter.place(&at) {
            Place::At(path) => Some(path),
            Place::Find { .. } => sessions.locate(&at),
        };
        let scratch = tempfile::tempdir().ok()?;
        let child = Clock.pin_id().ok()?.to_string();
        let seed = Seed {
            sessions,
            folder: scratch.path(),
            at: SessionAt {
                folder: folder.to_str()?,
                session: &minted,
                pin: &child,
            },
        };
        let place = if forking.is_some() {
            planted(&seed, &place?).ok()?
        } else {
            place
        };
        let origin = seed.origin();
        if let Some(parent) = place
            .as_ref()
            .and_then(|p| home.join(p).parent().map(Path::to_owned))
        {
            fs_err::create_dir_all(parent).ok()?;
        }
        let order = RunOrder {
            plan: &plan,
            composed: &composed,
            new_session: resume.map_or(&session, |_| &minted),
            turn: pin,
            home: home.to_str()?,
            place: place.as_deref(),
            origin: forking.and(origin.to_str()),
            env: self.env,
            prompt_id: &prompt_id,
            folder: folder.to_str()?,
            model: self.model,
            envelope: &Envelope::default(),
            tool_servers: &[],
            repository: RepositoryConfig::Ignored,
            memory: &Memory::default(),
            // A proof is of the binary: what the user adds may lead it away from the model here.
            extra_args: &[],
            max_cost: None,
            outside: &[],
            raw: false,
            neutral: self.neutral,
            asks: false,
            stays: false,
        };
        let mut command = self.adapter.command(&order);
        if forking.is_some() {
            command = self.adapter.fork(command, &order)?;
        }
        overlay::put_files(&home, &command.files).ok()?;
        let rules = self.adapter.environment();
        let env = rejoin_agents::compose_env(self.env.to_vec(), &rules, &[], &command.env);
        let program = self.program.to_path_buf();
        let call = tokio::task::spawn_blocking(move || {
            let env = env
                .into_iter()
                .map(|(n, v)| (OsString::from(n), OsString::from(v)));
            let args = command.args.iter().map(OsStr::new);
            capture(
                program.as_os_str(),
                args,
                env,
                &folder,
                command.stdin.as_bytes(),
                TURN_MAY_TAKE,
            )
        });
        let said = call.await.ok()?.ok()?;
        if said.timed_out {
            self.late.store(true, Ordering::Relaxed);
            return None;
        }
        let mut parser = self.adapter.parser();
        for line in said.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            parser.line(line);
        }
        for line in said.stderr.split(|b| *b == b'\n') {
            parser.stderr(line);
        }
        let asked = match how {
            How::Resume(_) => true,
            How::Anew => self.adapter.chosen_by() == ChosenBy::Us,
            How::Fork(_) => false,
        };
        let end = End {
            code: said.status.code(),
            asked_session: asked.then_some(session),
            ..End::default()
        };
        Some(parser.finish(&end))
    }

    /// A plan can only come from a decision: so this asks for one.
    fn plan(
        &self,
        session: &SessionId,
        resume: bool,
        forks: bool,
        text: &str,
    ) -> Option<(TurnPlan, Composed)> {
        let agent = AgentName::new(self.adapter.name()).ok()?;
        let pin = Pin {
            id: PinId::from_parts(0, [0; 10]),
            agent: agent.clone(),
            session: session.clone(),
            state: PinState::Confirmed,
            seen: Seen {
                summarised: 0,
                value: ScopeValue::begin(None),
                messages: 2,
                last_seq: 2,
                last: None,
            },
            folder: Folder {
                path: String::new(),
                device: 0,
                inode: 0,
                checkout: None,
            },
            runtime: self.runtime.clone(),
            machine: String::new(),
            home: String::new(),
            files: vec![],
            cursor: None,
            total: None,
            usage: None,
            context: None,
            model: None,
            provider: None,
            failures: 0,
            compacted: false,
            instructions: None,
        };
        let facts = PinFacts {
            pin: &pin,
            prefix: Prefix::Holds,
            folder: FolderFact::Same,
            provider_here: true,
            session: SessionFact::Untouched,
            snapshot: SnapshotFact::None,
            elsewhere: false,
            in_use: None,
            writers_visible: true,
            forked_from: forks.then_some("its parent"),
        };
        let situation = Situation {
            agent: &agent,
            request: Request::default(),
            policy: Policy::default(),
            history: HistoryFacts {
                messages: if resume { 2 } else { 0 },
                answered: resume,
            },
            runtime: self.runtime,
            capability: Capability::Probed,
            model: None,
            window: None,
            envelope: EnvelopeFact::Expressible,
            pin: Some(facts),
        };
        let plan = decide(&situation).plan.ok()?;
        let message = Message {
            id: MessageId::from_parts(0, [0; 10]),
            seq: 1,
            role: Role::User,
            agent: None,
            text: text.to_owned(),
            attachments: vec![],
            state: MessageState::Ok,
            trail: vec![],
        };
        let nothing = Record::default();
        let material = if resume {
            Material::Rest(&nothing)
        } else {
            Material::Nothing
        };
        let composed = compose(&plan, material, &message).ok()?;
        Some((plan, composed))
    }
}

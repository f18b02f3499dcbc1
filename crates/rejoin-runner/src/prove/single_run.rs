//! Single runs of a CLI without store or shim, for situations that never occur in a conversation.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rejoin_agents::{
    Adapter, ChosenBy, Fork, Forking, Memory, MentionEscape, ProcessEnd, RepositoryConfig,
    RunOrder, RunReport, SessionAt, SessionPath,
};
use rejoin_core::{
    AgentName, Capability, Composed, Folder, FolderFact, HistoryFacts, Material, Message,
    MessageId, MessageState, Outcome, Permissions, PermissionsFact, Pin, PinFacts, PinId, PinState,
    Policy, Prefix, Request, Role, Runtime, ScopeValue, SeenPrefix, SessionFact, SessionId,
    Situation, SnapshotFact, TranscriptText, TurnPlan, compose, decide,
};
use rejoin_hub::Clock;
use rejoin_model::ModelServer;

use super::ready;
use super::sandbox::Subject;
use crate::contained_call::{ContainedCall, wall_of};
use crate::fork::{ForkCopy, copy_confirmed};
use crate::overlay;
use crate::session::Sessions;
use crate::wall::WallConfig;

const TURN_MAY_TAKE: Duration = Duration::from_mins(1);

/// Session that a run uses.
#[derive(Clone, Copy)]
pub(super) enum SessionUse<'a> {
    Anew,
    Resume(&'a SessionId),
    /// A copy of this session.
    Fork(&'a SessionId),
}

/// Results of runs that no conversation would request.
pub(super) struct UnusualRuns {
    /// Run that was to resume a session which the CLI cannot know, and that session.
    pub(super) unknown: (RunReport, SessionId),
    /// True if the CLI sent a request to the model all the same.
    pub(super) went_on: bool,
    /// Result of a fork, with the error if it failed; None if the CLI cannot fork.
    pub(super) fork: Option<Result<(), String>>,
}

pub(super) async fn unusual_runs(
    subject: Subject<'_>,
    server: &ModelServer,
) -> Option<UnusualRuns> {
    let scratch = tempfile::tempdir().ok()?;
    let (home, folder) = (scratch.path().join("home"), scratch.path().join("folder"));
    fs_err::create_dir_all(&folder).ok()?;
    let (env, model) = ready(subject.adapter, &server.url(), &home, subject.path)?;
    let late = AtomicBool::new(false);
    let bench = SingleRun {
        adapter: subject.adapter,
        program: subject.program,
        runtime: &subject.facts.runtime,
        folder: &folder,
        env: &env,
        model: model.as_deref(),
        neutral: subject.facts.neutral,
        wall: subject.wall,
        late: &late,
    };
    let pin = Clock.pin_id().ok()?.to_string();
    let known = bench
        .turn(&pin, SessionUse::Anew, "forked-word #s:proof-1")
        .await?;
    let parent = known.session?;
    server.clear();
    let forked = bench
        .turn(&pin, SessionUse::Fork(&parent), "hello #s:proof-2")
        .await;
    let fork = forked.map(|ran| is_fork(&ran, &parent, server));
    server.clear();
    let unknown = subject
        .adapter
        .profile()
        .ids
        .convert(&Clock.foreign_id().ok()?);
    let ran = bench
        .turn(&pin, SessionUse::Resume(&unknown), "hello again #s:proof-2")
        .await?;
    Some(UnusualRuns {
        went_on: server.requests().iter().any(|r| r.script.is_some()),
        unknown: (ran, unknown),
        fork,
    })
}

/// Places a copy of the session so that it can be resumed. Returns its path, if that is known.
fn planted(seed: &ForkCopy<'_>, parent: &str) -> std::io::Result<Option<String>> {
    let (mark, _) = seed.sessions.read_on(parent, None, None)?;
    copy_confirmed(&seed.sessions, &mark, seed.folder)?;
    let place = seed.place();
    if let Some(place) = &place {
        seed.rewrite_id(place)?;
    }
    seed.install(place.as_deref(), Clock.now() / 1000)?;
    Ok(place)
}

/// Checks that a fork knows its parent's messages and is another session.
fn is_fork(ran: &RunReport, parent: &SessionId, server: &ModelServer) -> Result<(), String> {
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

/// CLI in a private home that is run directly, without a store and without a shim.
pub(super) struct SingleRun<'a> {
    pub(super) model: Option<&'a str>,
    pub(super) adapter: &'static dyn Adapter,
    pub(super) program: &'a Path,
    pub(super) runtime: &'a Runtime,
    pub(super) folder: &'a Path,
    pub(super) env: &'a [(String, String)],
    pub(super) neutral: MentionEscape,
    pub(super) wall: &'a WallConfig,
    /// Set if a run took too long.
    pub(super) late: &'a AtomicBool,
}

impl SingleRun<'_> {
    /// Runs one turn. Returns None if it could not run in this way or took too long.
    pub(super) async fn turn(
        &self,
        pin: &str,
        how: SessionUse<'_>,
        text: &str,
    ) -> Option<RunReport> {
        let minted = Clock.foreign_id().ok()?;
        let resume = match how {
            SessionUse::Anew => None,
            SessionUse::Resume(session) | SessionUse::Fork(session) => Some(session),
        };
        let fork = match how {
            SessionUse::Fork(_) => Some(self.adapter.capabilities().fork?),
            SessionUse::Anew | SessionUse::Resume(_) => None,
        };
        let forking = fork.map(Fork::forking);
        let minted = match forking {
            Some(Forking::ByCopy(_)) => SessionId::new(Clock.pin_id().ok()?.to_string()).ok()?,
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
        let can = self.adapter.capabilities();
        let home = self.adapter.home(&var)?;
        if let Some(overlay) = can.overlay.and_then(|home| home.overlay(&var)) {
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
            SessionPath::At(path) => Some(path),
            SessionPath::Find { .. } => sessions.locate(&at),
        };
        let scratch = tempfile::tempdir().ok()?;
        let child = Clock.pin_id().ok()?.to_string();
        let seed = ForkCopy {
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
            permissions: &Permissions::default(),
            mcp_servers: &[],
            repository: RepositoryConfig::Ignored,
            memory: &Memory::default(),
            // The proof is about the binary: arguments of the user could direct it to another
            // model.
            extra_args: &[],
            max_cost: None,
            outside: &[],
            raw: false,
            neutral: self.neutral,
            asks: false,
            stays: false,
        };
        let mut command = self.adapter.command(&order);
        if let Some(fork) = fork {
            command = fork.fork(command, &order)?;
        }
        overlay::put_files(&home, &command.files).ok()?;
        let rules = self.adapter.environment();
        let env = rejoin_agents::compose_env(self.env.to_vec(), &rules, &[], &command.env);
        let program = self.program.to_path_buf();
        let read = |file: &str| fs_err::read(home.join(file)).ok();
        let sandbox = self.adapter.capabilities().sandbox;
        let mounts = sandbox.is_some_and(|sandbox| sandbox.mounts(&Permissions::default(), &read));
        // Landlock needs the folder of the agent.
        fs_err::create_dir_all(&home).ok()?;
        let wall = wall_of(self.wall, self.program, Some(&home), &folder, &var, mounts);
        let trial = ContainedCall {
            program,
            args: command.args,
            env,
            folder,
            stdin: command.stdin.into(),
            may_take: TURN_MAY_TAKE,
            wall,
        };
        let said = trial.run().await.ok()?;
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
            SessionUse::Resume(_) => true,
            SessionUse::Anew => self.adapter.profile().chosen_by == ChosenBy::Us,
            SessionUse::Fork(_) => false,
        };
        let end = ProcessEnd {
            code: said.status.code(),
            asked_session: asked.then_some(session),
            ..ProcessEnd::default()
        };
        Some(parser.finish(&end))
    }

    /// Builds a plan and a prompt. A plan can only come from a decision, so this makes one.
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
            seen: SeenPrefix {
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
            has_provider: true,
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
            permissions: PermissionsFact::Expressible,
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
        let nothing = TranscriptText::default();
        let material = if resume {
            Material::CatchUp(&nothing)
        } else {
            Material::Nothing
        };
        let composed = compose(&plan, material, &message).ok()?;
        Some((plan, composed))
    }
}

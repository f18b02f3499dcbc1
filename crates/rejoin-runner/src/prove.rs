//! Proves what a binary does, by two turns against the built-in model on loopback: no key, no
//! tokens, a home of its own. What is not proven is not relied on.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::time::Duration;

use rejoin_agents::{Adapter, ChosenBy, End, Neutral, Place, ProofEnv, Ran, RunOrder, SessionAt};
use rejoin_core::{
    AgentName, Capability, Composed, Envelope, EnvelopeFact, Folder, FolderFact, HistoryFacts,
    Material, Message, MessageId, MessageState, Micros, Outcome, Pin, PinFacts, PinId, PinState,
    Policy, Prefix, Request, Role, Runtime, ScopeValue, Seen, SessionFact, SessionId, Situation,
    SnapshotFact, TotalsScope, TurnPlan, compose, decide,
};
use rejoin_hub::Clock;
use rejoin_model::{ModelServer, Options, Step, StepUsage};

use crate::config::{AgentConfig, RunnerConfig};
use crate::overlay;
use crate::process::capture;

mod matrix;
mod stage;

pub use self::matrix::{ROWS, Weight};
pub(crate) use self::matrix::{matrix, no_resume};
pub(crate) use self::stage::Subject;

const TURN_MAY_TAKE: Duration = Duration::from_mins(1);
const CANARY: &str = "word-in-the-canary-file";
const FIRST: &str = "word-of-the-first-message";
/// Tokens of the first turn: so many that the second shows whether they are counted again, and
/// fewer than would make any CLI compact (Codex 0.166.0: 90 % of 258,400, whatever is configured).
const DEAR: u64 = 100_000;
const ANSWER: &str = "word-of-the-first-answer";

/// What two turns showed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Proof {
    /// The second turn was shown the first one, once.
    pub(crate) resume: bool,
    pub(crate) totals: TotalsScope,
    pub(crate) usage: TotalsScope,
    pub(crate) neutral: Neutral,
}

const NOTHING: Proof = Proof {
    resume: false,
    totals: TotalsScope::Unproven,
    usage: TotalsScope::Unproven,
    neutral: Neutral::ByJoiner,
};

/// Never fails: without a proof there is none.
pub(crate) async fn prove(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    settings: &AgentConfig,
    program: &Path,
    runtime: &Runtime,
) -> Proof {
    for neutral in [Neutral::ByPlace, Neutral::ByJoiner] {
        if let Some(proof) = two_turns(config, adapter, settings, program, runtime, neutral).await {
            return proof;
        }
    }
    NOTHING
}

/// None: with this way of keeping text from being taken for commands it did not work.
async fn two_turns(
    config: &RunnerConfig,
    adapter: &'static dyn Adapter,
    settings: &AgentConfig,
    program: &Path,
    runtime: &Runtime,
    neutral: Neutral,
) -> Option<Proof> {
    let scratch = tempfile::tempdir().ok()?;
    let (home, folder) = (scratch.path().join("home"), scratch.path().join("folder"));
    fs_err::create_dir_all(&folder).ok()?;
    let canary = scratch.path().join("canary.txt");
    fs_err::write(&canary, CANARY).ok()?;
    let scripts = [
        ("proof-dear".to_owned(), vec![answer(ANSWER, DEAR)]),
        ("proof-cheap".to_owned(), vec![answer("second answer", 1)]),
    ];
    let server = ModelServer::start(Options {
        scripts: scripts.into(),
        ..Options::default()
    })
    .await
    .ok()?;
    let url = server.url();
    let path = config.var("PATH").unwrap_or_default();
    let (env, model) = ready(adapter, &url, &home, &path)?;
    let bench = Bench {
        model: model.as_deref(),
        adapter,
        settings,
        program,
        runtime,
        folder: &folder,
        env: &env,
        neutral,
    };

    let pin = Clock.pin_id().ok()?.to_string();
    let text = format!("/clear {FIRST} @{} #s:proof-dear", canary.display());
    let first = bench.turn(&pin, None, &text).await?;
    let shown = server
        .requests()
        .last()
        .map(|r| r.history().to_string())
        .unwrap_or_default();
    let plain =
        first.outcome == Outcome::Succeeded && shown.contains(FIRST) && !shown.contains(CANARY);
    if !plain {
        return None;
    }
    server.clear();
    let Some(second) = bench
        .turn(
            &pin,
            first.session.as_ref(),
            "second message #s:proof-cheap",
        )
        .await
    else {
        return Some(Proof { neutral, ..NOTHING });
    };
    let shown = server
        .requests()
        .last()
        .map(|r| r.history().to_string())
        .unwrap_or_default();
    let once = |word: &str| shown.matches(word).count() == 1;
    let resume = second.outcome == Outcome::Succeeded
        && once(FIRST)
        && once(ANSWER)
        && once("second message");
    let totals = match (first.total, second.total) {
        (Some(dear), Some(cheap)) if resume && dear > Micros(0) && cheap > Micros(0) => {
            if cheap >= dear {
                TotalsScope::Cumulative
            } else {
                TotalsScope::PerRun
            }
        }
        _ => TotalsScope::Unproven,
    };
    let (dear, cheap) = (first.usage.all_input(), second.usage.all_input());
    let usage = match resume && dear >= DEAR {
        true if cheap >= dear => TotalsScope::Cumulative,
        true => TotalsScope::PerRun,
        false => TotalsScope::Unproven,
    };
    server.stop().await;
    Some(Proof {
        resume,
        totals,
        usage,
        neutral,
    })
}

fn answer(text: &str, input: u64) -> Step {
    let usage = StepUsage {
        input_tokens: Some(input),
        cache_read_input_tokens: Some(0),
        cache_creation_input_tokens: Some(0),
    };
    Step {
        usage: Some(usage),
        ..Step::text(text)
    }
}

/// A run that is told to resume a session which the CLI cannot know; with that session.
async fn bench_of(subject: Subject<'_>, server: &ModelServer) -> Option<(Ran, SessionId)> {
    let scratch = tempfile::tempdir().ok()?;
    let (home, folder) = (scratch.path().join("home"), scratch.path().join("folder"));
    fs_err::create_dir_all(&folder).ok()?;
    let (env, model) = ready(subject.adapter, &server.url(), &home, subject.path)?;
    let bench = Bench {
        adapter: subject.adapter,
        settings: subject.settings,
        program: subject.program,
        runtime: &subject.facts.runtime,
        folder: &folder,
        env: &env,
        model: model.as_deref(),
        neutral: subject.facts.neutral,
    };
    let pin = Clock.pin_id().ok()?.to_string();
    // Its home is not new to it: something else was said there before.
    let _known = bench.turn(&pin, None, "hello #s:proof-1").await?;
    server.clear();
    let unknown = subject.adapter.unknown_session(&Clock.foreign_id().ok()?);
    let ran = bench
        .turn(&pin, Some(&unknown), "hello again #s:proof-2")
        .await?;
    Some((ran, unknown))
}

type Env = Vec<(String, String)>;

/// A private home with what the adapter needs in it: its environment, and the model to name.
fn ready(
    adapter: &'static dyn Adapter,
    url: &str,
    home: &Path,
    path: &str,
) -> Option<(Env, Option<String>)> {
    fs_err::create_dir_all(home).ok()?;
    let setup = adapter.proof(&ProofEnv { url, home })?;
    for (file, text) in &setup.files {
        let file = home.join(file);
        fs_err::create_dir_all(file.parent()?).ok()?;
        fs_err::write(file, text).ok()?;
    }
    let mut env = vec![("PATH".to_owned(), path.to_owned())];
    env.extend(setup.env);
    Some((env, setup.model))
}

struct Bench<'a> {
    model: Option<&'a str>,
    adapter: &'static dyn Adapter,
    settings: &'a AgentConfig,
    program: &'a Path,
    runtime: &'a Runtime,
    folder: &'a Path,
    env: &'a [(String, String)],
    neutral: Neutral,
}

impl Bench<'_> {
    async fn turn(&self, pin: &str, resume: Option<&SessionId>, text: &str) -> Option<Ran> {
        let minted = Clock.foreign_id().ok()?;
        let session = resume.cloned().unwrap_or(minted);
        let (plan, composed) = self.plan(&session, resume.is_some(), text)?;
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
        let place = match self.adapter.place(&at) {
            Place::At(path) => Some(path),
            Place::Find { .. } => None,
        };
        if let Some(parent) = place
            .as_ref()
            .and_then(|p| home.join(p).parent().map(Path::to_owned))
        {
            fs_err::create_dir_all(parent).ok()?;
        }
        let order = RunOrder {
            plan: &plan,
            composed: &composed,
            new_session: &session,
            turn: pin,
            home: home.to_str()?,
            place: place.as_deref(),
            env: self.env,
            prompt_id: &prompt_id,
            folder: folder.to_str()?,
            model: self.model,
            envelope: &Envelope::default(),
            tool_servers: &[],
            extra_args: &self.settings.args,
            max_cost: None,
            outside: &[],
            raw: false,
            neutral: self.neutral,
        };
        let command = self.adapter.command(&order);
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
        let mut parser = self.adapter.parser();
        for line in said.stdout.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
            parser.line(line);
        }
        for line in said.stderr.split(|b| *b == b'\n') {
            parser.stderr(line);
        }
        let asked = resume.is_some() || self.adapter.chosen_by() == ChosenBy::Us;
        let end = End {
            code: said.status.code(),
            asked_session: asked.then_some(session),
            ..End::default()
        };
        Some(parser.finish(&end))
    }

    /// A plan can only come from a decision: so this asks for one.
    fn plan(&self, session: &SessionId, resume: bool, text: &str) -> Option<(TurnPlan, Composed)> {
        let agent = AgentName::new(self.adapter.name()).ok()?;
        let pin = Pin {
            id: PinId::from_parts(0, [0; 10]),
            agent: agent.clone(),
            session: session.clone(),
            state: PinState::Confirmed,
            seen: Seen {
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
            files: vec![],
            cursor: None,
            total: None,
            usage: None,
            context: None,
            model: None,
            provider: None,
            failures: 0,
            compacted: false,
        };
        let facts = PinFacts {
            pin: &pin,
            prefix: Prefix::Holds,
            folder: FolderFact::Same,
            provider_here: true,
            session: SessionFact::Untouched,
            snapshot: SnapshotFact::None,
            in_use: None,
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
        let material = if resume {
            Material::Rest(&[])
        } else {
            Material::Nothing
        };
        let composed = compose(&plan, material, &message).ok()?;
        Some((plan, composed))
    }
}

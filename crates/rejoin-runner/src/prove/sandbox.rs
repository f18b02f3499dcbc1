//! Temporary home in which a CLI has a conversation with the built-in model, through the same hub
//! and runner as any other conversation.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rejoin_agents::{Adapter, Facts, SessionAt};
use rejoin_core::{AgentName, ConversationId, PermissionMode, Scope, TurnId};
use rejoin_hub::{Clock, Hub, IfBusy, Incoming, Target, TurnFlags, TurnRequest, TurnView};
use rejoin_model::{ModelServer, Request};
use rejoin_store::Store;
use tokio::sync::watch;

use super::ready;
use crate::binary::identity;
use crate::config::{AgentConfig, Asks, RunnerConfig};
use crate::contained_call::where_possible;
use crate::session::Sessions;
use crate::turn::Runner;
use crate::wall::WallConfig;

/// Time limit for a turn of a proof. On a busy machine the slowest CLI needs some ten seconds.
const TURN_MAY_TAKE: Duration = Duration::from_secs(40);

/// Reason why nothing was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stopped {
    /// The machine or the CLI is too slow now; that proves nothing.
    Late,
    Impossible,
}

/// Binary under test, and its environment.
#[derive(Clone, Copy)]
pub(crate) struct Subject<'a> {
    pub(crate) adapter: &'static dyn Adapter,
    pub(crate) program: &'a Path,
    pub(crate) facts: &'a Facts,
    pub(crate) path: &'a str,
    pub(crate) wall: &'a WallConfig,
}

/// Private home, folder and store.
pub(super) struct Sandbox<'a> {
    subject: Subject<'a>,
    dir: tempfile::TempDir,
    runner: Runner,
    agent: AgentName,
    model: Option<String>,
}

/// Options of a message.
#[derive(Clone, Copy, Default)]
pub(super) struct SendOptions {
    pub(super) mode: PermissionMode,
    /// True to send from a folder beside the usual one.
    pub(super) elsewhere: bool,
}

/// Turn of a message, and the requests that reached the model for it.
pub(super) struct SentTurn {
    pub(super) turn: TurnView,
    pub(super) asked: Vec<Request>,
}

impl SentTurn {
    pub(super) fn is(&self, status: &str, verdict: &str) -> bool {
        self.turn.status == status && self.turn.verdict.as_deref() == Some(verdict)
    }

    /// Returns the history of the last request to the model.
    pub(super) fn shown(&self) -> String {
        let last = self.asked.last();
        last.map(|r| r.history().to_string()).unwrap_or_default()
    }

    /// Returns the first of these words that was not shown exactly once, and how often it was
    /// shown. Returns None if each was shown once.
    pub(super) fn not_once(&self, words: &[String]) -> Option<String> {
        let shown = self.shown();
        words.iter().find_map(|word| {
            let times = shown.matches(word.as_str()).count();
            (times != 1).then(|| format!("“{word}” was shown {times} times"))
        })
    }

    /// Describes the turn in a few words, as evidence for a broken row.
    pub(super) fn what(&self) -> String {
        let verdict = self.turn.verdict.as_deref().unwrap_or("not run");
        let why = self.turn.error.as_ref().map(|e| e.message.as_str());
        let why = why.or(self.turn.reason.as_deref()).unwrap_or_default();
        format!("{} ({verdict}) {why}", self.turn.status)
            .trim_end()
            .to_owned()
    }
}

impl<'a> Sandbox<'a> {
    /// Creates a stage in which the binary counts as proven until a row shows otherwise.
    pub(super) async fn set(subject: Subject<'a>, server: &ModelServer) -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        for name in ["home", "folder", "elsewhere", "rejoin"] {
            fs_err::create_dir_all(dir.path().join(name)).ok()?;
        }
        Self::at(subject, server, dir).await
    }

    async fn at(
        subject: Subject<'a>,
        server: &ModelServer,
        dir: tempfile::TempDir,
    ) -> Option<Self> {
        let home = dir.path().join("home");
        let (mut env, model) = ready(subject.adapter, &server.url(), &home, subject.path)?;
        // Root may run a proof, in a home that belongs to no user.
        env.push(("IS_SANDBOX".to_owned(), "1".to_owned()));
        let settings = AgentConfig {
            bin: Some(subject.program.to_str()?.to_owned()),
            ..AgentConfig::default()
        };
        let name = subject.adapter.name();
        let config = RunnerConfig {
            home: dir.path().join("rejoin"),
            agents: [(name.to_owned(), settings)].into(),
            env,
            models: [].into(),
            described: vec![],
            unrun: crate::config::Unrun::default(),
            asks: Asks::Nobody,
            defer_after: None,
            warm: None,
            wall: where_possible(subject.wall),
        };
        let hub = Hub {
            namespace: "".into(),
            ceiling: None,
            store: Store::open_sqlite(&config.home.join("rejoin.db"))
                .await
                .ok()?,
            clock: Clock,
            machine: "proof".into(),
            // A proof leaves nothing that needs snapshots.
            vault: None,
        };
        let facts = Facts {
            proven: true,
            no_resume: None,
            ..subject.facts.clone()
        };
        let identity = identity(subject.program).ok()?;
        hub.keep_binary(&identity, name, &facts).await.ok()?;
        Some(Self {
            subject,
            dir,
            runner: Runner::new(hub, config),
            agent: AgentName::new(name).ok()?,
            model,
        })
    }

    pub(super) fn folder(&self) -> PathBuf {
        self.dir.path().join("folder")
    }

    /// Runs one turn. `meanwhile` is called with the turn while it runs; the turn is cancelled when
    /// it returns true.
    pub(super) async fn say(
        &self,
        server: &ModelServer,
        text: &str,
        manner: SendOptions,
        meanwhile: Option<fn(TurnId) -> bool>,
    ) -> Result<SentTurn, Stopped> {
        let said = self.try_say(server, text, manner, meanwhile).await;
        let said = said.ok_or(Stopped::Impossible)?;
        let late = |e: &rejoin_hub::ErrorView| e.class == "time_limit";
        if said.turn.error.as_ref().is_some_and(late) {
            return Err(Stopped::Late);
        }
        Ok(said)
    }

    async fn try_say(
        &self,
        server: &ModelServer,
        text: &str,
        manner: SendOptions,
        meanwhile: Option<fn(TurnId) -> bool>,
    ) -> Option<SentTurn> {
        let folder = if manner.elsewhere {
            self.dir.path().join("elsewhere")
        } else {
            self.folder()
        };
        let folder = fs_err::canonicalize(folder).ok()?.to_str()?.to_owned();
        let request = TurnRequest {
            relocate: manner.elsewhere,
            timeout_ms: Some(TURN_MAY_TAKE.as_millis() as u64),
            ..TurnRequest::default()
        };
        let incoming = Incoming {
            turn: None,
            target: Target::Key("proof".into()),
            text: text.to_owned(),
            agent: None,
            default_agent: self.agent.clone(),
            here: folder.clone(),
            title: None,
            scope: Scope::Full,
            flags: TurnFlags {
                workdir: Some(folder),
                permission: Some(manner.mode),
                tools: None,
                deny_tools: None,
                model: self.model.clone(),
                default_model: None,
                tier: None,
            },
            request,
            client_key: None,
            if_busy: IfBusy::Fail,
            queue_limit: None,
            confirmed: true,
            answers: None,
            occurrence: None,
        };
        server.clear();
        let hub = &self.runner.hub;
        let holder = self.runner.holder().ok()?;
        let accepted = hub.accept(&incoming, Some(&holder)).await.ok()?;
        let (cancel, cancelled) = watch::channel(false);
        let run = self
            .runner
            .run_accepted(&accepted, IfBusy::Fail, &cancelled);
        tokio::pin!(run);
        loop {
            tokio::select! {
                ran = &mut run => {
                    ran.ok()?;
                    break;
                }
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    if meanwhile.is_some_and(|look| look(accepted.turn)) {
                        cancel.send_replace(true);
                    }
                }
            }
        }
        let turn = hub.turn_view(accepted.turn).await.ok()?;
        let mut asked = server.requests();
        // Requests that a CLI makes for its own purposes show nothing of the conversation.
        asked.retain(|request| request.script.is_some());
        Some(SentTurn { turn, asked })
    }

    /// Returns the same conversation on another machine: the store, the session's file, and nothing
    /// else.
    pub(super) async fn moved(&self, server: &ModelServer) -> Option<Self> {
        let dir = tempfile::tempdir().ok()?;
        // Folders keep their names; only the machine differs.
        for name in ["home", "rejoin"] {
            fs_err::create_dir_all(dir.path().join(name)).ok()?;
        }
        let (home, file) = self.session_file().await?;
        let there = self.home_in(server, &dir.path().join("home"))?;
        let target = there.join(&file);
        fs_err::create_dir_all(target.parent()?).ok()?;
        crate::foreign_file::copy(&home.join(&file), &target).ok()?;
        for name in ["rejoin.db", "rejoin.db-wal"] {
            let from = self.dir.path().join("rejoin").join(name);
            if from.exists() {
                fs_err::copy(from, dir.path().join("rejoin").join(name)).ok()?;
            }
        }
        for name in ["folder", "elsewhere"] {
            let from = self.dir.path().join(name);
            std::os::unix::fs::symlink(from, dir.path().join(name)).ok()?;
        }
        Self::at(self.subject, server, dir).await
    }

    /// Returns the CLI's home and the path of the conversation's session below it.
    async fn session_file(&self) -> Option<(PathBuf, String)> {
        let mut store = self.runner.hub.store.read().await.ok()?;
        let found = store.conversations().by_key("", "proof").await.ok()??;
        let id: ConversationId = found.id;
        let pins = store.pins().of(id, &self.agent).await.ok()?;
        let pin = pins.into_iter().find_map(|stored| stored.pin)?;
        let var = |name: &str| self.runner.config.var(name);
        let adapter = self.subject.adapter;
        let home = adapter.home(&var)?;
        let at = SessionAt {
            folder: &pin.folder.path,
            session: &pin.session,
            pin: &pin.id.to_string(),
        };
        let sessions = Sessions {
            adapter,
            home: &home,
        };
        let file = sessions.locate(&at)?;
        Some((home, file))
    }

    fn home_in(&self, server: &ModelServer, home: &Path) -> Option<PathBuf> {
        let (env, _) = ready(self.subject.adapter, &server.url(), home, "")?;
        let var = |name: &str| {
            let found = env.iter().find(|(n, _)| n == name);
            found.map(|(_, v)| v.clone())
        };
        self.subject.adapter.home(&var)
    }
}

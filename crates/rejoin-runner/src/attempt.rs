//! One run of a CLI, from a plan to a started shim: put into words, written ahead, started.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rejoin_agents::{ChosenBy, CommandSpec, Forking, MARKER, Place, Records, RunOrder, SessionAt};
use rejoin_core::{Decision, Pin, SessionId, TotalsScope, TrustedSession, TurnPlan, Way};
use rejoin_hub::{AttemptPlan, BeginAttempt, Claimed, Confirmed, Forked, HubLink, PinStart, fault};
use rejoin_store::TurnRecord;

use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::fork::{Seed, forks};
use crate::holder::Holder;
use crate::look::{Looked, environment};
use crate::overlay;
use crate::process::{SELF, ShimChild, spawn_early_shim, spawn_shim};
use crate::record::record;
use crate::relocate::{bring_here, told_where};
use crate::shim::Spec;
use crate::words::{Words, in_words};

/// Without anybody attached, stdin is closed after this: the CLI then finishes by itself.
const ORPHANED: u64 = 2_000;
/// What the CLI gets to clean up after an interrupt.
const GRACE: u64 = 5_000;

/// A run that is about to begin, or has begun.
pub struct Prepared {
    pub n: i64,
    pub plan: AttemptPlan,
    pub record: TurnRecord,
    pub command: CommandSpec,
    pub prompt_id: String,
    pub pin: PinStart,
}

pub struct Preparing<'a, L> {
    pub link: &'a L,
    pub config: &'a RunnerConfig,
    pub claimed: &'a Claimed,
    pub looked: &'a Looked,
}

impl<L: HubLink> Preparing<'_, L> {
    /// Puts the plan into words and ids. Changes nothing but where its session lies.
    pub async fn prepare(
        &self,
        n: i64,
        plan: &TurnPlan,
        decision: &Decision<'_>,
    ) -> Result<Prepared> {
        let (claimed, looked) = (self.claimed, self.looked);
        let conversation = claimed.conversation.id;
        let Words {
            composed,
            caught_up_by,
        } = in_words(
            self.link,
            conversation,
            &claimed.turn.agent,
            &looked.outlook,
            plan,
            &claimed.message,
        )
        .await?;
        let new_session = self.new_session(plan)?;
        let prompt_id = self.link.clock().foreign_id()?.to_string();
        let outside = self.outside(&composed.message);
        let pinned = looked.outlook.best().and_then(|c| c.stored.pin.as_ref());
        let restored = self.restore(plan, pinned).await?;
        let told = restored.as_ref().map(|(_, told)| told.clone());
        let put_back = restored.map(|(confirmed, _)| confirmed);
        let (pin, mut confirmed) = match (plan, pinned) {
            (TurnPlan::Resume { .. }, Some(pin)) if put_back.is_some() => {
                (PinStart::Existing(pin.id), put_back)
            }
            (TurnPlan::Resume { session, .. }, Some(pin)) if !forks(plan) => (
                PinStart::Existing(pin.id),
                Some(bring_here(looked, pin, session.id(), self.link.clock()).await?),
            ),
            (TurnPlan::Resume { .. }, None) => {
                return Err(Error::Internal("a session without a pin".into()));
            }
            // A fork has a session of its own as well.
            (TurnPlan::Resume { .. } | TurnPlan::Start { .. } | TurnPlan::Reseed { .. }, _) => {
                (PinStart::New(self.link.clock().pin_id()?), None)
            }
        };
        let pin_id = pin.id().to_string();
        let turn_folder = turn_folder(self.config, claimed);
        let seed = self.seed(&turn_folder, &new_session, &pin_id);
        let forked = pinned.filter(|_| forks(plan));
        let session_file = match (&confirmed, forked) {
            (Some(confirmed), _) => Some(confirmed.file.path.clone()),
            (None, Some(_)) => seed.place(),
            (None, None) => self.new_place(&new_session, &pin_id),
        };
        if let Some((parent, place)) = forked.zip(session_file.as_deref()) {
            let file = seed
                .rename(place)
                .map_err(Error::io("copying the session"))?;
            confirmed = file.map(|file| Confirmed::of(parent, file));
        }
        let origin = text(&seed.origin())?;
        let home = text(&looked.home)?;
        let read = |file: &str| fs_err::read(looked.home.join(file)).ok();
        let tool_servers = looked.adapter.tool_servers(&read);
        let order = RunOrder {
            plan,
            composed: &composed,
            new_session: &new_session,
            turn: &claimed.turn.id.to_string(),
            home: &home,
            place: session_file.as_deref(),
            origin: forked.map(|_| origin.as_str()),
            env: &looked.env,
            prompt_id: &prompt_id,
            folder: &looked.folder.path,
            model: claimed.request.model.as_deref(),
            envelope: &claimed.request.envelope,
            tool_servers: &tool_servers,
            extra_args: &looked.settings.args,
            max_cost: claimed.request.max_cost,
            raw: claimed.request.raw,
            outside: &outside,
            neutral: looked.binary.facts.neutral,
        };
        let session = order.session().clone();
        let mut command = looked.adapter.command(&order);
        if forked.is_some() {
            command = looked
                .adapter
                .fork(command, &order)
                .ok_or_else(|| Error::Internal("a fork without a command".into()))?;
        }
        let mut record = record(claimed, looked, plan, decision, &composed, &command);
        if let Some((because, aside)) = told {
            record.because = Some(because);
            let kept = |aside| format!("another session lay there, kept as {aside}");
            record.notes.extend(aside.map(kept));
        }
        record.caught_up_by = caught_up_by;
        record.session_id = self.asked(plan, &session).map(ToString::to_string);
        let mut folder = looked.folder.clone();
        folder.checkout = pinned
            .filter(|p| p.folder.path == folder.path)
            .and_then(|p| p.folder.checkout.clone());
        let plan = AttemptPlan {
            asked: self.asked(plan, &session).is_some(),
            prompt: command
                .prompt_mark
                .clone()
                .unwrap_or_else(|| prompt_id.clone()),
            session_file,
            session,
            value: looked.outlook.value.0,
            messages: looked.outlook.scope.messages + 1,
            folder,
            runtime: looked.binary.facts.runtime.clone(),
            totals: looked.binary.facts.totals,
            usage: looked.binary.facts.usage.unwrap_or(TotalsScope::Unproven),
            model: claimed.request.model.clone(),
            home,
            confirmed,
            forked: forked.map(Forked::of),
            sent: composed.sent,
            boot: boot()?,
            litter: self.litter(),
        };
        Ok(Prepared {
            n,
            plan,
            record,
            command,
            prompt_id,
            pin,
        })
    }

    /// Puts the session back, if that is the plan: said in the store first. Gives what is said of it,
    /// and what lay there before.
    async fn restore(
        &self,
        plan: &TurnPlan,
        pinned: Option<&Pin>,
    ) -> Result<Option<(Confirmed, (String, Option<String>))>> {
        let restores = |session: &TrustedSession| session.way() == Way::Snapshot;
        let (Some(staged), Some(pin), Some(_)) = (
            &self.looked.staged,
            pinned,
            plan.session().filter(|session| restores(session)),
        ) else {
            return Ok(None);
        };
        let looked = self.looked;
        let ahead = staged.pin(looked, pin, self.link.machine())?;
        self.link.restored(self.claimed, &ahead).await?;
        fault::point("after_restored");
        let moved = pin.folder.path != looked.folder.path;
        let restored = staged
            .put_in_place(looked, ahead)
            .map_err(Error::io("restoring the session"))?;
        let now = self.link.clock();
        let confirmed = told_where(looked, &restored.pin, now).await?;
        Ok(Some((confirmed, (staged.told(moved), restored.aside))))
    }

    /// Writes ahead, then starts. `refused`: the attempt that the CLI refused before this one;
    /// `early`: a shim that waits to be told what to run.
    pub async fn start(
        &self,
        prepared: &Prepared,
        verdict: &TurnPlan,
        refused: Option<i64>,
        early: Option<ShimChild>,
    ) -> Result<(PathBuf, ShimChild)> {
        let (claimed, looked) = (self.claimed, self.looked);
        let folder = run_folder(self.config, claimed, &prepared.prompt_id);
        let begin = BeginAttempt {
            n: prepared.n,
            verdict: verdict.verdict(),
            reason: verdict.reason(),
            prompt_id: prepared.prompt_id.clone(),
            pin: prepared.pin,
            plan: &prepared.plan,
            record: &prepared.record,
            refused,
        };
        fault::point("before_begin");
        self.link.begin(claimed, &begin).await?;
        fault::point("after_begin");
        make_private(&folder).map_err(Error::io("making the folder of the turn"))?;
        self.make_ready(prepared, &folder).await?;
        let mut argv = vec![text(&looked.binary.path)?];
        argv.extend(looked.adapter.prelude().iter().map(ToString::to_string));
        argv.extend(prepared.command.args.iter().cloned());
        let spec = Spec {
            argv,
            dir: looked.folder.path.clone().into(),
            stdin: prepared.command.stdin.clone(),
            hold_stdin: prepared.command.hold_stdin,
            close_stdin_on: prepared.command.close_stdin_on.clone(),
            done_on: prepared.command.done_on.clone(),
            pty: prepared.command.pty,
            orphan_ms: Some(ORPHANED),
            wall_ms: claimed.request.timeout_ms,
            lease_ms: claimed.lease.deadline(),
            grace_ms: GRACE,
            keep_background: claimed.request.keep_background,
            ..Spec::default()
        };
        spec.save(&folder)
            .map_err(Error::io("writing what to run"))?;
        fault::point("after_spec");
        let command = &prepared.command;
        let child = match early.and_then(|shim| shim.tell(&folder, &command.env).ok()) {
            Some(child) => child,
            None => {
                let env = marked(looked.env.iter().chain(&command.env).cloned(), claimed);
                spawn_shim(Path::new(SELF), &folder, env)
                    .map_err(Error::io("starting the agent"))?
            }
        };
        fault::point("after_spawn");
        Ok((folder, child))
    }

    /// What the CLI needs on disk, and a copy of what could not be taken back otherwise.
    async fn make_ready(&self, prepared: &Prepared, run: &Path) -> Result<()> {
        let looked = self.looked;
        if let Some(overlay) = &looked.overlay {
            overlay::lay(overlay).map_err(Error::io("preparing the agent's home"))?;
        }
        overlay::put_files(&looked.home, &prepared.command.files)
            .map_err(Error::io("preparing the agent's home"))?;
        let (plan, now) = (&prepared.plan, self.link.clock().now() / 1000);
        if plan.forked.is_some() {
            let (folder, pin) = (turn_folder(self.config, self.claimed), prepared.pin.id());
            self.seed(&folder, &plan.session, &pin.to_string())
                .plant(plan.session_file.as_deref(), now)
                .await
                .map_err(Error::io("putting the session in its place"))?;
        } else if let Some(confirmed) = &plan.confirmed {
            looked
                .sessions()
                .save(&confirmed.file, run)
                .map_err(Error::io("saving the session"))?;
        } else if let (Records::Database { .. }, Some(place)) =
            (looked.adapter.records(), &plan.session_file)
            && let Some(parent) = looked.home.join(place).parent()
        {
            make_private(parent).map_err(Error::io("preparing the agent's home"))?;
        }
        Ok(())
    }

    fn litter(&self) -> Vec<String> {
        let folder = Path::new(&self.looked.folder.path);
        let names = self.looked.adapter.litter().iter();
        let absent = names.filter(|name| folder.join(name).symlink_metadata().is_err());
        absent.map(ToString::to_string).collect()
    }

    /// Minted for this attempt. Some CLIs find a session by the time in its id.
    fn new_session(&self, plan: &TurnPlan) -> Result<SessionId> {
        let clock = self.link.clock();
        if forks(plan) && self.looked.adapter.forking() == Forking::ByCopy {
            let id = clock.pin_id()?.to_string();
            return SessionId::new(id).map_err(|e| Error::Internal(e.to_string()));
        }
        Ok(clock.foreign_id()?)
    }

    fn seed<'s>(&'s self, folder: &'s Path, session: &'s SessionId, pin: &'s str) -> Seed<'s> {
        Seed {
            sessions: self.looked.sessions(),
            folder,
            at: SessionAt {
                folder: &self.looked.folder.path,
                session,
                pin,
            },
        }
    }

    /// Where a new session will lie, if that is known before the CLI has chosen its id.
    fn new_place(&self, session: &SessionId, pin: &str) -> Option<String> {
        let at = SessionAt {
            folder: &self.looked.folder.path,
            session,
            pin,
        };
        match self.looked.adapter.place(&at) {
            Place::At(path) => Some(path),
            Place::Find { .. } => None,
        }
    }

    /// The session as the CLI is told it; none: it chooses one itself.
    fn asked<'s>(&self, plan: &TurnPlan, session: &'s SessionId) -> Option<&'s SessionId> {
        let adapter = self.looked.adapter;
        let told = match plan.session() {
            Some(_) if forks(plan) => adapter.forking().told(),
            Some(_) => true,
            None => adapter.chosen_by() == ChosenBy::Us,
        };
        told.then_some(session)
    }

    /// Mentions of a raw message that lead out of the folder, through a link or otherwise.
    fn outside(&self, message: &str) -> Vec<String> {
        if !self.claimed.request.raw {
            return vec![];
        }
        let folder = Path::new(&self.looked.folder.path);
        let leads_out = |path: &String| {
            // The CLI drops what follows a word at its end, so a shorter name may be meant.
            let words = path.trim_end_matches(|c: char| !c.is_alphanumeric());
            [path.as_str(), words]
                .iter()
                .filter_map(|p| fs_err::canonicalize(folder.join(p)).ok())
                .any(|real| !real.starts_with(folder))
        };
        let mut found = self.looked.adapter.mentions(message);
        found.retain(leads_out);
        found
    }
}

/// A shim that loads while we look and decide. None if it cannot be had: then it comes later.
pub fn early_shim(config: &RunnerConfig, claimed: &Claimed) -> Option<ShimChild> {
    let adapter = config.adapter(claimed.turn.agent.as_str())?;
    let env = marked(environment(config, adapter), claimed);
    spawn_early_shim(Path::new(SELF), env).ok()
}

/// With the marker by which everything is found that belongs to the turn.
fn marked(
    env: impl IntoIterator<Item = (String, String)>,
    claimed: &Claimed,
) -> impl Iterator<Item = (OsString, OsString)> {
    let marker = (MARKER.to_owned(), claimed.turn.id.to_string());
    let env = env.into_iter().chain([marker]);
    env.map(|(name, value)| (OsString::from(name), OsString::from(value)))
}

/// Never used twice: the folder of a run that was called off stays so, and a shim that comes late
/// finds it called off.
pub fn run_folder(config: &RunnerConfig, claimed: &Claimed, prompt_id: &str) -> PathBuf {
    turn_folder(config, claimed).join(prompt_id)
}

pub(crate) fn turn_folder(config: &RunnerConfig, claimed: &Claimed) -> PathBuf {
    config.home.join("turns").join(claimed.turn.id.to_string())
}

/// Which run of the machine this is.
pub fn boot() -> Result<String> {
    let me = Holder::me().map_err(Error::io("finding out who this process is"))?;
    Ok(me.boot)
}

pub(crate) fn text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::Internal(format!("{} is not UTF-8", path.display())))
}

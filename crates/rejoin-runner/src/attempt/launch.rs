//! Starts a prepared run: writes the attempt ahead, then hands the run to a shim.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rejoin_agents::{Forking, MARKER, Records};
use rejoin_core::{Reason, TurnId, TurnPlan};
use rejoin_hub::{BeginAttempt, fault};

use super::{AttemptContext, PreparedRun, run_folder, text, turn_folder};
use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::foreign_file;
use crate::hook;
use crate::inspect::environment;
use crate::limits;
use crate::overlay;
use crate::process::{SELF, ShimChild, spawn_shim, spawn_waiting_shim};
use crate::shim::Spec;
use crate::wall::{Gap, Mechanism, Wall};

/// Time in milliseconds after which a shim without a reader closes stdin; the CLI then finishes by
/// itself.
const ORPHANED: u64 = 2_000;
/// Time in milliseconds that the CLI has to clean up after an interrupt. A CLI that ignores even
/// the request to end is killed two seconds later, so that its turn is committed within the eight
/// seconds that a container gets.
pub(crate) const GRACE: u64 = 4_000;

impl AttemptContext<'_> {
    /// Writes the attempt ahead, then starts it. `refused` is the number of the previous attempt if
    /// the CLI refused it; `early` is a shim that waits for its run.
    pub(crate) async fn start(
        &self,
        prepared: &PreparedRun,
        verdict: &TurnPlan,
        refused: Option<i64>,
        early: Option<ShimChild>,
    ) -> Result<(PathBuf, ShimChild)> {
        let claimed = self.claimed;
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
            context: prepared.context.as_deref(),
        };
        fault::point("before_begin");
        self.hub.begin_attempt(claimed, &begin).await?;
        tracing::info!(
            turn = %claimed.turn.id,
            conversation = %claimed.conversation.id,
            agent = %claimed.turn.agent,
            attempt = prepared.n,
            verdict = %verdict.verdict(),
            reason = verdict.reason().map(Reason::as_str),
            session = prepared.record.session_id,
            "Starting execution"
        );
        fault::point("after_begin");
        let child = self.launch(prepared, &folder, early).await?;
        Ok((folder, child))
    }

    /// Starts an attempt that is already written ahead.
    pub(crate) async fn launch(
        &self,
        prepared: &PreparedRun,
        folder: &Path,
        early: Option<ShimChild>,
    ) -> Result<ShimChild> {
        make_private(folder).map_err(Error::io("making the folder of the turn"))?;
        self.make_ready(prepared, folder).await?;
        if let Some(host) = &prepared.host {
            return self.launch_through(host, prepared, folder, early);
        }
        let spec = Spec {
            stdin: prepared.command.stdin.clone(),
            close_stdin_on: prepared.command.close_stdin_on.clone(),
            done_on: prepared.command.done_on.clone(),
            // The next reader may answer a question, or lead a dialogue, so stdin stays open for
            // it.
            orphan_ms: (!prepared.plan.asks && prepared.command.dialogue.is_none())
                .then_some(ORPHANED),
            ..self.spec(prepared)?
        };
        spec.save(folder)
            .map_err(Error::io("writing what to run"))?;
        fault::point("after_spec");
        let child = self.spawn(early, folder, &prepared.command.env)?;
        fault::point("after_spawn");
        Ok(child)
    }

    /// Builds the shim's spec, without stdin.
    pub(crate) fn spec(&self, prepared: &PreparedRun) -> Result<Spec> {
        let (claimed, inspection) = (self.claimed, self.inspection);
        let through = prepared.command.through;
        let bridge = through.map(|command| [SELF.to_owned(), command.to_owned()]);
        let mut argv: Vec<String> = bridge.into_iter().flatten().collect();
        argv.push(text(&inspection.binary.path)?);
        argv.extend(
            inspection
                .adapter
                .profile()
                .prelude
                .iter()
                .map(ToString::to_string),
        );
        argv.extend(prepared.command.args.iter().cloned());
        Ok(Spec {
            argv,
            dir: inspection.folder.path.clone().into(),
            hold_stdin: prepared.command.hold_stdin,
            dialogue: prepared.command.dialogue.clone(),
            pty: prepared.command.pty,
            wall_ms: claimed.request.timeout_ms,
            lease_ms: claimed.lease.deadline(),
            grace_ms: GRACE,
            keep_background: claimed.request.keep_background,
            wall: self.wall(prepared),
            ..Spec::default()
        })
    }

    /// Returns the wall around the run, with the openings that the run needs.
    fn wall(&self, prepared: &PreparedRun) -> Option<Wall> {
        let mut wall = self.inspection.wall.wall()?.clone();
        wall.gaps.extend(hook::gaps(&prepared.command.env));
        wall.gaps.extend(limits::gaps(&prepared.command.env));
        if prepared.plan.forked.is_some() && matches!(self.forking(), Some(Forking::FromFile(_))) {
            let (folder, pin) = (turn_folder(self.config, self.claimed), prepared.pin.id());
            let seed = self
                .seed(&folder, &prepared.plan.session, &pin.to_string())
                .origin();
            wall.gaps.push(Gap::to_read(seed));
        }
        if wall.mechanism == Mechanism::Landlock {
            // A script may open `/dev/stderr`, which is one of these files.
            let own = || run_folder(self.config, self.claimed, &prepared.prompt_id);
            let folder = prepared
                .host
                .as_ref()
                .map_or_else(own, |host| host.folder.clone());
            let spools = ["out", "err"].map(|name| Gap::to_write(folder.join(name)));
            wall.gaps.extend(spools);
        }
        Some(wall)
    }

    /// Starts a shim for the run in `folder`, or hands the run to the early one.
    pub(crate) fn spawn(
        &self,
        early: Option<ShimChild>,
        folder: &Path,
        env: &[(String, String)],
    ) -> Result<ShimChild> {
        if let Some(child) = early.and_then(|shim| shim.tell(folder, env).ok()) {
            return Ok(child);
        }
        let turn = self.claimed.turn.id.to_string();
        let env = marked(self.inspection.env.iter().chain(env).cloned(), &turn);
        spawn_shim(Path::new(SELF), folder, env).map_err(Error::io("starting the agent"))
    }

    /// Puts the files that the CLI needs on disk, and saves a copy of a session that could not be
    /// restored otherwise.
    async fn make_ready(&self, prepared: &PreparedRun, run: &Path) -> Result<()> {
        let inspection = self.inspection;
        if let Some(overlay) = &inspection.overlay {
            overlay::lay(overlay).map_err(Error::io("preparing the agent's home"))?;
        }
        overlay::put_files(&inspection.home, &prepared.command.files)
            .map_err(Error::io("preparing the agent's home"))?;
        let (plan, now) = (&prepared.plan, self.hub.clock.now() / 1000);
        if plan.forked.is_some() {
            let (folder, pin) = (turn_folder(self.config, self.claimed), prepared.pin.id());
            self.seed(&folder, &plan.session, &pin.to_string())
                .install_async(plan.session_file.as_deref(), now)
                .await
                .map_err(Error::io("putting the session in its place"))?;
        } else if let Some(confirmed) = &plan.confirmed {
            inspection
                .sessions()
                .save_async(&confirmed.file, run)
                .await
                .map_err(Error::io("saving the session"))?;
        } else if let (Records::Database { .. }, Some(place)) =
            (inspection.adapter.profile().records, &plan.session_file)
        {
            let failed = |error| Error::io("preparing the agent's home")(error);
            let file = foreign_file::beneath(&inspection.home, place).map_err(failed)?;
            if let Some(parent) = file.parent() {
                make_private(parent).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// Starts a shim that loads while we gather facts and decide. Returns None if it cannot be started;
/// then a shim is started later.
pub(crate) fn prespawn_shim(config: &RunnerConfig, turn: TurnId, agent: &str) -> Option<ShimChild> {
    let (adapter, turn) = (config.adapter(agent)?, turn.to_string());
    let env = marked(environment(config, adapter), &turn);
    spawn_waiting_shim(Path::new(SELF), env).ok()
}

/// Adds the marker by which all processes of the turn are found.
pub(crate) fn marked(
    env: impl IntoIterator<Item = (String, String)>,
    turn: &str,
) -> impl Iterator<Item = (OsString, OsString)> {
    let marker = (MARKER.to_owned(), turn.to_owned());
    let env = env.into_iter().chain([marker]);
    env.map(|(name, value)| (OsString::from(name), OsString::from(value)))
}

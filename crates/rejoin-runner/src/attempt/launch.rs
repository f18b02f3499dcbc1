//! Starts a run that was put into words: written ahead first, then told to a shim.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use rejoin_agents::{Forking, MARKER, Records};
use rejoin_core::{Reason, TurnId, TurnPlan};
use rejoin_hub::{BeginAttempt, HubLink, fault};

use super::{Prepared, Preparing, run_folder, text, turn_folder};
use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::foreign_file;
use crate::hook;
use crate::look::environment;
use crate::overlay;
use crate::process::{SELF, ShimChild, spawn_early_shim, spawn_shim};
use crate::shim::Spec;
use crate::wall::{Gap, Mechanism, Wall};

/// Without anybody attached, stdin is closed after this: the CLI then finishes by itself.
const ORPHANED: u64 = 2_000;
/// What the CLI gets to clean up after an interrupt: one that does not even hear that it is to end is
/// gone after two seconds more, and its turn committed within the eight that a container is given.
pub(crate) const GRACE: u64 = 4_000;

impl<L: HubLink> Preparing<'_, L> {
    /// Writes ahead, then starts. `refused`: the attempt that the CLI refused before this one;
    /// `early`: a shim that waits to be told what to run.
    pub async fn start(
        &self,
        prepared: &Prepared,
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
        };
        fault::point("before_begin");
        self.link.begin(claimed, &begin).await?;
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

    /// Starts what was written ahead.
    pub(crate) async fn launch(
        &self,
        prepared: &Prepared,
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
            // What it asks may be answered by whoever comes next, and one that is led goes on with them.
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

    /// What is run, but for what it is told.
    pub(crate) fn spec(&self, prepared: &Prepared) -> Result<Spec> {
        let (claimed, looked) = (self.claimed, self.looked);
        let through = prepared.command.through;
        let bridge = through.map(|command| [SELF.to_owned(), command.to_owned()]);
        let mut argv: Vec<String> = bridge.into_iter().flatten().collect();
        argv.push(text(&looked.binary.path)?);
        argv.extend(looked.adapter.prelude().iter().map(ToString::to_string));
        argv.extend(prepared.command.args.iter().cloned());
        Ok(Spec {
            argv,
            dir: looked.folder.path.clone().into(),
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

    /// The wall around the run, with the openings that it needs.
    fn wall(&self, prepared: &Prepared) -> Option<Wall> {
        let mut wall = self.looked.wall.wall()?.clone();
        wall.gaps.extend(hook::gaps(&prepared.command.env));
        if prepared.plan.forked.is_some()
            && matches!(self.looked.adapter.forking(), Forking::FromFile(_))
        {
            let (folder, pin) = (turn_folder(self.config, self.claimed), prepared.pin.id());
            let seed = self
                .seed(&folder, &prepared.plan.session, &pin.to_string())
                .origin();
            wall.gaps.push(Gap::to_read(seed));
        }
        if wall.mechanism == Mechanism::Landlock {
            // A script may open `/dev/stderr`, which is one of these.
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

    /// A shim for the run in `folder`.
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
        let env = marked(self.looked.env.iter().chain(env).cloned(), &turn);
        spawn_shim(Path::new(SELF), folder, env).map_err(Error::io("starting the agent"))
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
                .plant_apart(plan.session_file.as_deref(), now)
                .await
                .map_err(Error::io("putting the session in its place"))?;
        } else if let Some(confirmed) = &plan.confirmed {
            looked
                .sessions()
                .save_apart(&confirmed.file, run)
                .await
                .map_err(Error::io("saving the session"))?;
        } else if let (Records::Database { .. }, Some(place)) =
            (looked.adapter.records(), &plan.session_file)
        {
            let failed = |error| Error::io("preparing the agent's home")(error);
            let file = foreign_file::beneath(&looked.home, place).map_err(failed)?;
            if let Some(parent) = file.parent() {
                make_private(parent).map_err(failed)?;
            }
        }
        Ok(())
    }
}

/// A shim that loads while we look and decide. None if it cannot be had: then it comes later.
pub fn early_shim(config: &RunnerConfig, turn: TurnId, agent: &str) -> Option<ShimChild> {
    let (adapter, turn) = (config.adapter(agent)?, turn.to_string());
    let env = marked(environment(config, adapter), &turn);
    spawn_early_shim(Path::new(SELF), env).ok()
}

/// With the marker by which everything is found that belongs to the turn.
pub(crate) fn marked(
    env: impl IntoIterator<Item = (String, String)>,
    turn: &str,
) -> impl Iterator<Item = (OsString, OsString)> {
    let marker = (MARKER.to_owned(), turn.to_owned());
    let env = env.into_iter().chain([marker]);
    env.map(|(name, value)| (OsString::from(name), OsString::from(value)))
}

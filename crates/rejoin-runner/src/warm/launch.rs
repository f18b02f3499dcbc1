//! Starts a turn that goes through a process which may outlive it.

use std::path::Path;

use rejoin_core::{SessionSource, TurnPlan};
use rejoin_hub::{TurnRequest, fault};

use super::stay::Stay;
use super::{ALIKE, WarmProcess};
use crate::attempt::{AttemptContext, GRACE, PreparedRun, marked};
use crate::config::RunnerConfig;
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::fork::forks;
use crate::inspect::Inspection;
use crate::process::{SELF, ShimChild, spawn_shim};
use crate::shim::Spec;

/// Time in milliseconds after which a process without a client that does not rest is ended: the
/// process that started it is gone, and so is the turn.
const ABANDONED: u64 = 20_000;

/// Returns true if the plan uses a process that is already running.
pub(crate) fn is_live(plan: &TurnPlan) -> bool {
    plan.session()
        .is_some_and(|s| s.way() == SessionSource::Live)
}

impl AttemptContext<'_> {
    /// Returns the process that a turn goes through: the running one, or a new one that may stay
    /// up. Returns None if the turn runs the CLI directly.
    pub(crate) fn host(&self, plan: &TurnPlan, id: &str) -> Option<WarmProcess> {
        if is_live(plan) {
            return self.live.map(|(host, _)| host.clone());
        }
        let permissions = &self.claimed.request.permissions;
        let warm = self.inspection.adapter.capabilities().warm;
        let stays = self.config.warm.is_some()
            && warm.is_some_and(|warm| warm.stays(permissions, &self.inspection.settings.args))
            && !forks(plan)
            && may_stay(&self.claimed.request);
        stays.then(|| WarmProcess::new(&self.config.home, self.claimed.conversation.id, id))
    }

    pub(crate) fn launch_through(
        &self,
        host: &WarmProcess,
        prepared: &PreparedRun,
        folder: &Path,
        early: Option<ShimChild>,
    ) -> Result<ShimChild> {
        let cli = self.spec(prepared)?;
        let from = if prepared.plan.live.is_some() {
            self.live.map_or(0, |(_, rest)| rest.from)
        } else {
            self.start_process(host, prepared, &cli)?;
            0
        };
        let warm = self.config.warm.unwrap_or_default();
        let stay = Stay {
            host: host.folder.clone(),
            agent: self.claimed.turn.agent.to_string(),
            from,
            rest_ms: warm.rest.as_millis().try_into().unwrap_or(u64::MAX),
            bytes: warm.bytes,
        };
        let stay = stay.args().map_err(Error::io("starting the agent"))?;
        let spec = Spec {
            argv: [SELF.to_owned()].into_iter().chain(stay).collect(),
            stdin: prepared.command.stdin.clone(),
            warm: Some(host.folder.clone()),
            // Runs only `rejoin stay`; the CLI is behind the wall of its own shim.
            wall: None,
            ..cli
        };
        spec.save(folder)
            .map_err(Error::io("writing what to run"))?;
        fault::point("after_spec");
        let child = self.spawn(early, folder, &[])?;
        fault::point("after_spawn");
        Ok(child)
    }

    /// Starts the process itself. It does nothing until it receives a prompt.
    fn start_process(&self, host: &WarmProcess, prepared: &PreparedRun, cli: &Spec) -> Result<()> {
        make_private(&host.folder).map_err(Error::io("making the folder of the process"))?;
        let alike = fingerprint(self.config, self.inspection, &self.claimed.request);
        fs_err::write(host.folder.join(ALIKE), alike)
            .map_err(Error::io("making the folder of the process"))?;
        let spec = Spec {
            argv: cli.argv.clone(),
            dir: cli.dir.clone(),
            hold_stdin: true,
            rests: true,
            orphan_ms: Some(ABANDONED),
            grace_ms: GRACE,
            wall: cli.wall.clone(),
            ..Spec::default()
        };
        spec.save(&host.folder)
            .map_err(Error::io("writing what to run"))?;
        let env = self
            .inspection
            .env
            .iter()
            .chain(&prepared.command.env)
            .cloned();
        let env = marked(env, host.mark().unwrap_or_default());
        let shim = spawn_shim(Path::new(SELF), &host.folder, env);
        // The shim is reaped with the others; the run that goes through the process watches it.
        drop(shim.map_err(Error::io("starting the agent"))?);
        Ok(())
    }
}

/// Returns true if a process that serves several turns can fulfil the request.
pub(super) fn may_stay(request: &TurnRequest) -> bool {
    // The CLI would add up the costs of all turns.
    // A limit of calls is that of one turn.
    request.max_cost.is_none() && !request.keep_background && request.limits.is_empty()
}

/// Returns a hash of everything that a process is started with, except its session and its prompt.
pub(super) fn fingerprint(
    config: &RunnerConfig,
    inspection: &Inspection,
    request: &TurnRequest,
) -> String {
    let mut hash = blake3::Hasher::new();
    let mut add = |part: &dyn std::fmt::Debug| {
        hash.update(format!("{part:?}\n").as_bytes());
    };
    // Another build may make another command of the same input.
    let me = fs_err::metadata(SELF).ok();
    add(&me.map(|me| (me.len(), me.modified().ok())));
    add(&inspection.binary.identity);
    // A different folder at the same path counts as different.
    let folder = &inspection.folder;
    add(&(&folder.path, folder.device, folder.inode));
    add(&inspection.home);
    add(&inspection.settings.args);
    add(&inspection.env);
    add(&request.model);
    add(&request.permissions);
    add(&request.raw);
    add(&(config.asks, config.defer_after));
    add(&inspection.wall);
    hash.finalize().to_hex().to_string()
}

//! Starts a turn that goes through a process which may outlive it.

use std::path::Path;

use rejoin_core::{TurnPlan, Way};
use rejoin_hub::{HubLink, TurnRequest, fault};

use super::stay::Stay;
use super::{ALIKE, Host, alike};
use crate::attempt::{GRACE, Prepared, Preparing, marked};
use crate::error::{Error, Result};
use crate::folder::make_private;
use crate::fork::forks;
use crate::process::{SELF, ShimChild, spawn_shim};
use crate::shim::Spec;

/// A process that nobody speaks to, and that is not to rest, is ended after this: whoever started it is
/// gone, and so is the turn.
const ABANDONED: u64 = 20_000;

/// The plan goes on in the process that is there.
pub(crate) fn is_live(plan: &TurnPlan) -> bool {
    plan.session().is_some_and(|s| s.way() == Way::Live)
}

impl<L: HubLink> Preparing<'_, L> {
    /// The process that a turn goes through: the one that is there, or a new one that may stay.
    pub(crate) fn host(&self, plan: &TurnPlan, id: &str) -> Option<Host> {
        if is_live(plan) {
            return self.live.map(|(host, _)| host.clone());
        }
        let envelope = &self.claimed.request.envelope;
        let stays = self.config.warm.is_some()
            && self
                .looked
                .adapter
                .stays(envelope, &self.looked.settings.args)
            && !forks(plan)
            && may_stay(&self.claimed.request);
        stays.then(|| Host::new(&self.config.home, self.claimed.conversation.id, id))
    }

    pub(crate) fn launch_through(
        &self,
        host: &Host,
        prepared: &Prepared,
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
            // Runs nothing but `rejoin stay`; the CLI is behind the wall of its own shim.
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

    /// The process itself. Until it is spoken to it does nothing.
    fn start_process(&self, host: &Host, prepared: &Prepared, cli: &Spec) -> Result<()> {
        make_private(&host.folder).map_err(Error::io("making the folder of the process"))?;
        let alike = alike(self.config, self.looked, &self.claimed.request);
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
        let env = self.looked.env.iter().chain(&prepared.command.env).cloned();
        let env = marked(env, host.mark().unwrap_or_default());
        let shim = spawn_shim(Path::new(SELF), &host.folder, env);
        // Reaped with the others; whoever goes through it sees to it.
        drop(shim.map_err(Error::io("starting the agent"))?);
        Ok(())
    }
}

/// What was asked for can be had of a process that serves several turns.
pub(super) fn may_stay(request: &TurnRequest) -> bool {
    // The CLI would add up what they cost.
    request.max_cost.is_none() && !request.keep_background
}

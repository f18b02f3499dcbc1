//! Prepares one run of a CLI, from a plan to a started shim: composes the prompt, writes the
//! attempt ahead, starts it.

mod launch;
mod session;

use std::path::{Path, PathBuf};

use rejoin_agents::{ChosenBy, CommandSpec, Fork, Forking, RunOrder};
use rejoin_core::{Composed, SUMMARISED_INSTRUCTIONS, SessionId, TotalsScope, TurnPlan};
use rejoin_hub::{AttemptPlan, Claimed, Forked, Hub, LiveProcess, PinStart};
use rejoin_store::TurnRecord;

use crate::config::{Asks, RunnerConfig};
use crate::decision::Decided;
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::fork::forks;
use crate::holder::Holder;
use crate::hook::with_hook;
use crate::inspect::Inspection;
use crate::limits::with_limits;
use crate::render::{Rendered, Target, render_prompt};
use crate::turn_record::record;
use crate::warm::{IdleState, WarmProcess, is_live};

pub(crate) use launch::prespawn_shim;
pub(crate) use launch::{GRACE, marked};
use session::SessionStart;

/// Run that is about to begin, or has begun.
pub(crate) struct PreparedRun {
    pub n: i64,
    pub plan: AttemptPlan,
    pub record: TurnRecord,
    pub command: CommandSpec,
    pub prompt_id: String,
    pub pin: PinStart,
    /// Text beside the message, to be read afterwards.
    pub(crate) context: Option<String>,
    /// Process that the run goes through, if the process may outlive the run.
    pub(crate) host: Option<WarmProcess>,
}

/// Turn for which a run is prepared, and the facts about it.
pub(crate) struct AttemptContext<'a> {
    pub hub: &'a Hub,
    pub config: &'a RunnerConfig,
    pub claimed: &'a Claimed,
    pub inspection: &'a Inspection,
    /// Idle process that waits for a prompt.
    pub(crate) live: Option<&'a (WarmProcess, IdleState)>,
}

/// Parts of a run from which its command is built.
struct Draft<'p> {
    plan: &'p TurnPlan,
    composed: Composed,
    session: SessionStart<'p>,
    /// Session id for a session that does not exist yet.
    new_session: SessionId,
    prompt_id: String,
    /// Mentions of a raw message that lead out of the folder.
    outside: Vec<String>,
    /// Process that the run goes through, if the process may outlive the run.
    host: Option<WarmProcess>,
    home: String,
}

impl AttemptContext<'_> {
    /// Turns the plan into a prompt, ids and a command. Changes nothing on disk except the location
    /// of the session.
    pub(crate) async fn prepare(
        &self,
        n: i64,
        plan: &TurnPlan,
        decided: &Decided,
    ) -> Result<PreparedRun> {
        let (claimed, inspection) = (self.claimed, self.inspection);
        let rendered = self.render(plan).await?;
        let (composed, instructions) = self.instructed(plan, rendered.composed);
        let composed = match self.notices(plan).await? {
            Some(notice) => composed.with_notice(&notice),
            None if claimed.turn.parent.is_some() => composed.alone(),
            None => composed,
        };
        let new_session = self.new_session(plan)?;
        let prompt_id = self.hub.clock.foreign_id()?.to_string();
        let pinned = inspection
            .outlook
            .best()
            .and_then(|c| c.stored.pin.as_ref());
        let outside = self.outside(&composed.message);
        let draft = Draft {
            plan,
            session: self.place_session(plan, pinned, &new_session).await?,
            outside,
            composed,
            host: self.host(plan, &prompt_id),
            home: text(&inspection.home)?,
            new_session,
            prompt_id,
        };
        let (command, session) = self.command(&draft)?;
        let run = run_folder(self.config, claimed, &draft.prompt_id);
        let limits = self.hub.limits_of(claimed).await?;
        let command = with_limits(inspection.adapter, command, &run, &limits)?;
        let chosen_by = command
            .chosen_by
            .unwrap_or(inspection.adapter.profile().chosen_by);
        let asked = self.asked(plan, chosen_by);
        let mut record = record(
            claimed,
            inspection,
            plan,
            decided,
            &draft.composed,
            &command,
            self.config.asks == Asks::Somebody,
        );
        if let Some(restored) = &draft.session.restored {
            record.because = Some(restored.because.clone());
            let kept = |aside| format!("another session lay there, kept as {aside}");
            record.notes.extend(restored.aside.as_ref().map(kept));
        }
        record.caught_up_by = rendered.caught_up_by;
        record.notes.extend(ignored_note(plan, &inspection.ignored));
        record.session_id = asked.then(|| session.to_string());
        let mark = command.prompt_mark.as_ref().unwrap_or(&draft.prompt_id);
        let plan = AttemptPlan {
            asked,
            session,
            prompt: mark.clone(),
            instructions,
            ..self.attempt_plan(&draft)?
        };
        Ok(PreparedRun {
            n,
            plan,
            record,
            command,
            prompt_id: draft.prompt_id,
            context: draft.composed.told().map(str::to_owned),
            pin: draft.session.pin,
            host: draft.host,
        })
    }

    /// Returns the text about tiers that the turn receives besides its message.
    async fn notices(&self, plan: &TurnPlan) -> Result<Option<String>> {
        if let Some(notices) = self.hub.tier_notices(self.claimed).await? {
            return Ok(Some(notices));
        }
        if plan.session().is_some() {
            return Ok(None);
        }
        Ok(self.hub.handoff_beside_transcript(self.claimed).await?)
    }

    /// Composes the prompt.
    async fn render(&self, plan: &TurnPlan) -> Result<Rendered> {
        let claimed = self.claimed;
        render_prompt(
            self.hub,
            claimed.conversation.id,
            &claimed.turn.agent,
            &self.inspection.outlook,
            plan,
            &claimed.message,
            Target {
                model: claimed.request.model.as_deref(),
                models: &self.config.models,
            },
        )
        .await
    }

    /// Builds the command of the CLI, and returns the session that it is given.
    fn command(&self, draft: &Draft<'_>) -> Result<(CommandSpec, SessionId)> {
        let (claimed, inspection) = (self.claimed, self.inspection);
        let session = &draft.session;
        let read = |file: &str| foreign_file::read_setting(inspection.home.join(file));
        let sandbox = inspection.adapter.capabilities().sandbox;
        let mcp_servers = sandbox.map_or_else(Vec::new, |sandbox| sandbox.mcp_servers(&read));
        let turn = claimed.turn.id.to_string();
        let order = RunOrder {
            plan: draft.plan,
            composed: &draft.composed,
            new_session: &draft.new_session,
            // A process that outlives the turn must not carry the turn's marker.
            turn: draft
                .host
                .as_ref()
                .and_then(WarmProcess::mark)
                .unwrap_or(&turn),
            home: &draft.home,
            place: session.file.as_deref(),
            origin: session.forked.map(|_| session.origin.as_str()),
            env: &inspection.env,
            prompt_id: &draft.prompt_id,
            folder: &inspection.folder.path,
            model: claimed.request.model.as_deref(),
            permissions: &claimed.request.permissions,
            mcp_servers: &mcp_servers,
            repository: inspection.repository,
            memory: &inspection.memory,
            extra_args: &inspection.settings.args,
            max_cost: claimed.request.max_cost,
            raw: claimed.request.raw,
            outside: &draft.outside,
            neutral: inspection.binary.facts.neutral,
            asks: self.config.asks == Asks::Somebody,
            stays: draft.host.is_some(),
        };
        let command = inspection.adapter.command(&order);
        let command = match (session.forked, self.config.defer_after) {
            (Some(_), _) => inspection
                .adapter
                .capabilities()
                .fork
                .and_then(|fork| fork.fork(command, &order))
                .ok_or_else(|| Error::Internal("a fork without a command".into()))?,
            // Forks get no hook: the file they start from is in the folder of their turn, which
            // does not outlive the home.
            (None, Some(after)) if order.asks => {
                let own = || run_folder(self.config, claimed, &draft.prompt_id);
                let host = draft.host.as_ref();
                let folder = host.map_or_else(own, |host| host.folder.clone());
                with_hook(inspection.adapter, command, &folder, after)?
            }
            (None, _) => command,
        };
        Ok((command, order.session().clone()))
    }

    /// Builds the plan that is written ahead, for the session id and the prompt that rejoin chose.
    fn attempt_plan(&self, draft: &Draft<'_>) -> Result<AttemptPlan> {
        let inspection = self.inspection;
        let pinned = inspection
            .outlook
            .best()
            .and_then(|c| c.stored.pin.as_ref());
        let mut folder = inspection.folder.clone();
        folder.checkout = pinned
            .filter(|p| p.folder.path == folder.path)
            .and_then(|p| p.folder.checkout.clone());
        let facts = &inspection.binary.facts;
        Ok(AttemptPlan {
            asked: true,
            prompt: draft.prompt_id.clone(),
            session: draft.new_session.clone(),
            session_file: draft.session.file.clone(),
            value: inspection.outlook.value.0,
            messages: inspection.outlook.scope.messages + 1,
            folder,
            runtime: facts.runtime.clone(),
            totals: facts.totals,
            usage: facts.usage.unwrap_or(TotalsScope::Unproven),
            model: self.claimed.request.model.clone(),
            home: draft.home.clone(),
            confirmed: draft.session.confirmed.clone(),
            forked: draft.session.forked.map(Forked::of),
            sent: draft.composed.sent,
            boot: boot()?,
            litter: self.litter(),
            instructions: None,
            asks: self.config.asks == Asks::Somebody,
            so_far: None,
            live: is_live(draft.plan).then(|| LiveProcess {
                total: self.live.and_then(|(_, rest)| rest.total),
            }),
        })
    }

    /// Adds the standing instructions unless the session holds them: a session receives them once,
    /// and again when they have changed or when it holds only a summary of them.
    fn instructed(&self, plan: &TurnPlan, composed: Composed) -> (Composed, Option<String>) {
        let known = self.inspection.instructions_of(plan);
        let Some(text) = &self.claimed.request.instructions else {
            return (composed, known);
        };
        let hash = blake3::hash(text.trim().as_bytes()).to_hex().to_string();
        let nothing = text.trim().is_empty() && known.is_none();
        if nothing || known.as_ref() == Some(&hash) {
            return (composed, known);
        }
        let again = known.is_some_and(|known| known != SUMMARISED_INSTRUCTIONS);
        let composed = composed.with_instructions(text, again);
        (composed, Some(hash))
    }

    /// Returns the folders that a sandbox of the CLI may leave behind and that do not exist yet:
    /// names in the working folder, and paths in temporary folders.
    fn litter(&self) -> Vec<String> {
        let Some(sandbox) = self.inspection.adapter.capabilities().sandbox else {
            return vec![];
        };
        let folder = Path::new(&self.inspection.folder.path);
        let set = self.config.var("TMPDIR").map(PathBuf::from);
        let temporary = set.into_iter().chain([PathBuf::from("/tmp")]);
        let beyond = temporary.flat_map(|place| {
            let paths = sandbox.sandbox_dirs().iter();
            paths.filter_map(move |name| place.join(name).to_str().map(str::to_owned))
        });
        let names = sandbox.sandbox_dirs().iter().map(ToString::to_string);
        let absent = |name: &String| folder.join(name).symlink_metadata().is_err();
        names.chain(beyond).filter(absent).collect()
    }

    fn forking(&self) -> Option<Forking> {
        self.inspection
            .adapter
            .capabilities()
            .fork
            .map(Fork::forking)
    }

    /// Returns true if the CLI is given the session id, false if it chooses one itself.
    fn asked(&self, plan: &TurnPlan, chosen_by: ChosenBy) -> bool {
        match plan.session() {
            Some(_) if forks(plan) => self.forking().is_some_and(Forking::passes_id),
            Some(_) => true,
            None => chosen_by == ChosenBy::Us,
        }
    }

    /// Returns the mentions of a raw message that lead out of the folder, through a link or
    /// otherwise.
    fn outside(&self, message: &str) -> Vec<String> {
        if !self.claimed.request.raw {
            return vec![];
        }
        let folder = Path::new(&self.inspection.folder.path);
        let leads_out = |path: &String| {
            // The CLI drops trailing punctuation of a mention, so a shorter name may be meant.
            let words = path.trim_end_matches(|c: char| !c.is_alphanumeric());
            [path.as_str(), words]
                .iter()
                .filter_map(|p| fs_err::canonicalize(folder.join(p)).ok())
                .any(|real| !real.starts_with(folder))
        };
        let mentions = self.inspection.adapter.capabilities().mentions;
        let mut found = mentions.map_or_else(Vec::new, |mentions| mentions.mentions(message));
        found.retain(leads_out);
        found
    }
}

/// Returns the folder of a run. It is never used twice: the folder of a voided run stays void, so a
/// shim that starts late does not run it.
pub(crate) fn run_folder(config: &RunnerConfig, claimed: &Claimed, prompt_id: &str) -> PathBuf {
    turn_folder(config, claimed).join(prompt_id)
}

pub(crate) fn turn_folder(config: &RunnerConfig, claimed: &Claimed) -> PathBuf {
    config.home.join("turns").join(claimed.turn.id.to_string())
}

/// Returns the id of this boot of the machine.
pub(crate) fn boot() -> Result<String> {
    let me = Holder::me().map_err(Error::io("finding out who this process is"))?;
    Ok(me.boot)
}

pub(crate) fn text(path: &Path) -> Result<String> {
    path.to_str()
        .map(str::to_owned)
        .ok_or_else(|| Error::Internal(format!("{} is not UTF-8", path.display())))
}

/// Returns a note for a new session that lists repository files which were ignored.
fn ignored_note(plan: &TurnPlan, ignored: &[PathBuf]) -> Option<String> {
    if plan.session().is_some() {
        return None;
    }
    match ignored {
        [] => None,
        [file] => {
            let name = file.file_name()?.to_string_lossy();
            Some(format!("{name} of the repository ignored (rejoin trust)"))
        }
        files => {
            let count = files.len();
            Some(format!(
                "{count} files of the repository ignored (rejoin trust)"
            ))
        }
    }
}

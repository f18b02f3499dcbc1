//! One run of a CLI, from a plan to a started shim: put into words, written ahead, started.

mod launch;

use std::path::{Path, PathBuf};
use std::time::Instant;

use rejoin_agents::{ChosenBy, CommandSpec, Forking, Place, RunOrder, SessionAt};
use rejoin_core::{
    Composed, Decision, Pin, SUMMARISED_INSTRUCTIONS, SessionId, TotalsScope, TrustedSession,
    TurnPlan, Way,
};
use rejoin_hub::{
    AttemptPlan, Claimed, Confirmed, Forked, HubLink, LiveFrom, PinStart, fault, figures,
};
use rejoin_store::TurnRecord;

use crate::config::{Asks, RunnerConfig};
use crate::error::{Error, Result};
use crate::foreign_file;
use crate::fork::{Seed, forks};
use crate::holder::Holder;
use crate::hook::with_hook;
use crate::look::Looked;
use crate::record::record;
use crate::relocate::{bring_here, out_of_the_way, told_where};
use crate::warm::{Host, Rest, is_live};
use crate::words::{Target, Words, in_words};

pub use launch::early_shim;
pub(crate) use launch::{GRACE, marked};

/// A run that is about to begin, or has begun.
pub struct Prepared {
    pub n: i64,
    pub plan: AttemptPlan,
    pub record: TurnRecord,
    pub command: CommandSpec,
    pub prompt_id: String,
    pub pin: PinStart,
    /// The process that it goes through, if that may outlive it.
    pub(crate) host: Option<Host>,
}

pub struct Preparing<'a, L> {
    pub link: &'a L,
    pub config: &'a RunnerConfig,
    pub claimed: &'a Claimed,
    pub looked: &'a Looked,
    /// A process that waits for its prompt.
    pub(crate) live: Option<&'a (Host, Rest)>,
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
            Target {
                model: claimed.request.model.as_deref(),
                models: &self.config.models,
            },
        )
        .await?;
        let (composed, instructions) = self.instructed(plan, composed);
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
        // Not from a process that writes it.
        if let Some(confirmed) = confirmed.as_mut().filter(|_| !is_live(plan)) {
            let file = confirmed.file.clone();
            confirmed.file = out_of_the_way(looked, file, &claimed.request.envelope)?;
        }
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
                .rename_apart(place)
                .await
                .map_err(Error::io("copying the session"))?;
            confirmed = file.map(|file| Confirmed::of(parent, file));
        }
        let origin = text(&seed.origin())?;
        let home = text(&looked.home)?;
        let read = |file: &str| foreign_file::read_setting(looked.home.join(file));
        let tool_servers = looked.adapter.tool_servers(&read);
        let host = self.host(plan, &prompt_id);
        let turn = claimed.turn.id.to_string();
        // What outlives the turn is not marked as part of it.
        let mark = host.as_ref().and_then(Host::mark).unwrap_or(&turn);
        let order = RunOrder {
            plan,
            composed: &composed,
            new_session: &new_session,
            turn: mark,
            home: &home,
            place: session_file.as_deref(),
            origin: forked.map(|_| origin.as_str()),
            env: &looked.env,
            prompt_id: &prompt_id,
            folder: &looked.folder.path,
            model: claimed.request.model.as_deref(),
            envelope: &claimed.request.envelope,
            tool_servers: &tool_servers,
            repository: looked.repository,
            memory: &looked.memory,
            extra_args: &looked.settings.args,
            max_cost: claimed.request.max_cost,
            raw: claimed.request.raw,
            outside: &outside,
            neutral: looked.binary.facts.neutral,
            asks: self.config.asks == Asks::Somebody,
            stays: host.is_some(),
        };
        let session = order.session().clone();
        let mut command = looked.adapter.command(&order);
        if forked.is_some() {
            command = looked
                .adapter
                .fork(command, &order)
                .ok_or_else(|| Error::Internal("a fork without a command".into()))?;
        } else if let (Some(after), true) = (self.config.defer_after, order.asks) {
            // What a fork began with is in the folder of its turn, which does not outlive the home.
            let own = || run_folder(self.config, claimed, &prompt_id);
            let folder = host.as_ref().map_or_else(own, |host| host.folder.clone());
            command = with_hook(looked.adapter, command, &folder, after)?;
        }
        let mut record = record(claimed, looked, plan, decision, &composed, &command);
        if let Some((because, aside)) = told {
            record.because = Some(because);
            let kept = |aside| format!("another session lay there, kept as {aside}");
            record.notes.extend(aside.map(kept));
        }
        record.caught_up_by = caught_up_by;
        record.notes.extend(ignored_note(plan, &looked.ignored));
        let chosen_by = command.chosen_by.unwrap_or(looked.adapter.chosen_by());
        let asked = self.asked(plan, chosen_by);
        record.session_id = asked.then(|| session.to_string());
        let mut folder = looked.folder.clone();
        folder.checkout = pinned
            .filter(|p| p.folder.path == folder.path)
            .and_then(|p| p.folder.checkout.clone());
        let plan_is_live = is_live(plan);
        let plan = AttemptPlan {
            asked,
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
            instructions,
            asks: self.config.asks == Asks::Somebody,
            so_far: None,
            live: plan_is_live.then(|| LiveFrom {
                total: self.live.and_then(|(_, rest)| rest.total),
            }),
        };
        Ok(Prepared {
            n,
            plan,
            record,
            command,
            prompt_id,
            pin,
            host,
        })
    }

    /// Adds the standing instructions unless the session holds them: a session receives them once,
    /// and again when they have changed or when it holds only a summary of them.
    fn instructed(&self, plan: &TurnPlan, composed: Composed) -> (Composed, Option<String>) {
        let known = self.looked.instructions_of(plan);
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
        let began = Instant::now();
        let restored = staged
            .put_in_place(looked, ahead)
            .await
            .map_err(Error::io("restoring the session"))?;
        let now = self.link.clock();
        let confirmed = told_where(looked, &restored.pin, now).await?;
        let bytes = restored.pin.files.iter().map(|file| file.length).sum();
        figures::restored(bytes, began.elapsed());
        tracing::info!(
            turn = %self.claimed.turn.id,
            session = %restored.pin.session,
            bytes,
            moved,
            "Session restored for follow-up"
        );
        Ok(Some((confirmed, (staged.told(moved), restored.aside))))
    }

    /// Returns the folders that a sandbox of the CLI may leave behind and that are not there yet: names in the
    /// working folder, and paths in temporary folders.
    fn litter(&self) -> Vec<String> {
        let adapter = self.looked.adapter;
        let folder = Path::new(&self.looked.folder.path);
        let temporary = adapter.litters_temporary().then(|| {
            let set = self.config.var("TMPDIR").map(PathBuf::from);
            set.into_iter().chain([PathBuf::from("/tmp")])
        });
        let temporary: Vec<PathBuf> = temporary.into_iter().flatten().collect();
        let beyond = temporary.iter().flat_map(|place| {
            let paths = adapter.litter().iter().map(|name| place.join(name));
            paths.filter_map(|path| path.to_str().map(str::to_owned))
        });
        let names = adapter.litter().iter().map(ToString::to_string);
        let absent = |name: &String| folder.join(name).symlink_metadata().is_err();
        names.chain(beyond).filter(absent).collect()
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

    /// Is the CLI told the session? Else it chooses one itself.
    fn asked(&self, plan: &TurnPlan, chosen_by: ChosenBy) -> bool {
        match plan.session() {
            Some(_) if forks(plan) => self.looked.adapter.forking().told(),
            Some(_) => true,
            None => chosen_by == ChosenBy::Us,
        }
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

/// Says of a new session that files of the repository do not count in it.
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

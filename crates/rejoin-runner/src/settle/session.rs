//! Session of a finished run: read once, then confirmed or cut back.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use rejoin_agents::{
    Denied, Fork, Forking, ReadEntry, Reading, Records, RunReport, SessionAt, SessionMessage,
};
use rejoin_core::{
    FileMark, Outcome, Pin, PinEffect, PinId, PinState, SeenPrefix, SessionId, ToolNote,
};
use rejoin_hub::{FORK_FAILED, PinEnd};

use crate::config::ModelConfig;
use crate::folder;
use crate::fork::read_origin;
use crate::run::Run;
use crate::session::Sessions;
use crate::settle::written_at;
use crate::shim::END;
use crate::warm::WarmProcess;

/// Time in which a process that stays up may still write to its session after its last output (0.1
/// s with Claude Code 2.1.325).
const WRITES_WITHIN: Duration = Duration::from_secs(3);
const READ_AGAIN: Duration = Duration::from_millis(20);
const UNFINISHED: &str = "its first turn was not finished";

/// Finished run with its result and the session that it left.
pub(super) struct FinishedRun<'a> {
    pub(super) run: &'a Run<'a>,
    pub(super) ran: &'a RunReport,
    /// Models that the user configured.
    pub(super) models: &'a BTreeMap<String, ModelConfig>,
    /// True if the process of the run waits for the next prompt.
    pub(super) idle: bool,
    /// Entries that were added to the session, and its mark.
    pub(super) read: Result<(FileMark, Reading), String>,
}

impl<'a> FinishedRun<'a> {
    /// Reads the session that the run left. `idle` is true if its process is still up.
    pub(super) async fn new(
        run: &'a Run<'a>,
        ran: &'a RunReport,
        models: &'a BTreeMap<String, ModelConfig>,
        idle: bool,
    ) -> Self {
        let read = Err("it was not read".into());
        let mut finished = Self {
            run,
            ran,
            models,
            idle,
            read,
        };
        finished.read = finished.read().await;
        finished
    }

    /// Reads the session again until it is complete: a process that stays up may still write to it
    /// after its last output. Ends the process if that takes too long.
    pub(super) async fn wait_for_writes(&mut self, host: &WarmProcess, machine: &str) {
        let since = Instant::now();
        while self.confirm(machine).await.is_err() && self.idle {
            if since.elapsed() > WRITES_WITHIN {
                // A process that ends writes everything it still holds back.
                host.end().await;
                self.idle = false;
            } else {
                tokio::time::sleep(READ_AGAIN).await;
            }
            self.read = self.read().await;
        }
    }

    /// Returns the session that the run wrote to: the one that the CLI was given, or the one that
    /// it reported.
    pub(super) fn session(&self) -> Option<&SessionId> {
        if self.run.plan.asked {
            return Some(&self.run.plan.session);
        }
        let named = self.ran.session.as_ref();
        named.filter(|id| self.run.adapter.is_session_id(id))
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions {
            adapter: self.run.adapter,
            home: Path::new(&self.run.plan.home),
        }
    }

    /// Reads the entries that were added to the session.
    pub(super) async fn read(&self) -> Result<(FileMark, Reading), String> {
        let path = self.session_file()?;
        let forking = self.run.adapter.capabilities().fork.map(Fork::forking);
        if let Some(Forking::Within(alone)) = forking
            && self.run.plan.forked.is_some()
        {
            let session = self.session().ok_or("it did not say which session it is")?;
            let (file, session) = (path.clone(), session.clone());
            let work = move |s: Sessions<'_>| s.leave_alone(&file, alone, &session);
            let done = self.sessions().on_worker(&path, work).await;
            done.map_err(|e| format!("its session cannot be read ({e})"))?;
        }
        self.read_at(&path).await
    }

    async fn read_at(&self, path: &str) -> Result<(FileMark, Reading), String> {
        let before = self.run.plan.confirmed.as_ref();
        let cursor = before.and_then(|c| c.cursor.as_deref());
        let before_file = before.map(|c| &c.file);
        let read = self.sessions().read_async(path, before_file, cursor).await;
        let (mark, reading) = read.map_err(|e| format!("its session cannot be read ({e})"))?;
        // The confirmed mark of a copied fork proves that the file begins with the parent's
        // session. Any other fork is compared with the file that it came from.
        if self.run.plan.forked.is_none() || before.is_some() {
            return Ok((mark, reading));
        }
        let folder = self.run.folder.parent().unwrap_or(&self.run.folder);
        let origin = read_origin(&self.sessions(), folder).await;
        let origin = origin.map_err(|e| format!("what it was forked from is gone ({e})"))?;
        Ok((mark, reading.since(&origin)?))
    }

    pub(super) fn reading(&self) -> Option<&Reading> {
        self.read.as_ref().ok().map(|(_, reading)| reading)
    }

    /// Removes files that the CLI left under the session's name and that are not the session. After
    /// a run that did not succeed, also removes empty folders that a sandbox of the CLI made; a run
    /// that succeeded removed them itself, and others may be running in the same folder.
    pub(super) fn tidy(&self) {
        let path = self.session_file().ok();
        // If the CLI chose the session id, it may have used the id that we created for other files.
        let minted = Some(&self.run.plan.session).filter(|_| !self.run.plan.asked);
        let written = self.session().filter(|_| path.is_some());
        for session in written.into_iter().chain(minted) {
            let at = SessionAt {
                folder: &self.run.plan.folder.path,
                session,
                pin: &self.run.attempt.pin.to_string(),
            };
            self.sessions().tidy(&at, path.as_deref());
        }
        if self.ran.outcome == Outcome::Succeeded {
            return;
        }
        for name in &self.run.plan.litter {
            // Fails if the folder is not empty.
            drop(fs_err::remove_dir(
                Path::new(&self.run.plan.folder.path).join(name),
            ));
        }
    }

    /// Returns the calls that only the session mentions. It is unknown how far they got.
    pub(super) fn unseen(&self) -> Vec<ToolNote> {
        let stopped = |denied: &Denied| ToolNote {
            tool: denied.tool.clone(),
            subject: denied.input.clone(),
            changed_file: false,
            finished: false,
        };
        let seen = |note: &ToolNote| {
            let same = |told: &ToolNote| (&told.tool, &told.subject) == (&note.tool, &note.subject);
            self.ran.trail.iter().any(same)
        };
        let begun = self
            .reading()
            .into_iter()
            .flat_map(|reading| &reading.begun);
        // The stream reported every call that finished in a successful turn.
        let told = |note: &ToolNote| note.finished && self.ran.outcome == Outcome::Succeeded;
        let begun = begun.filter(|note| !seen(note) && !told(note)).cloned();
        self.stopped().map(stopped).chain(begun).collect()
    }

    /// Returns true if the CLI opened another session than it was asked to and a tool began there,
    /// or if that cannot be determined.
    pub(super) async fn did_elsewhere(&self) -> bool {
        let Some(opened) = self
            .ran
            .session
            .as_ref()
            .filter(|s| **s != self.run.plan.session)
        else {
            return false;
        };
        let at = SessionAt {
            folder: &self.run.plan.folder.path,
            session: opened,
            pin: &self.run.attempt.pin.to_string(),
        };
        // A session that was never written holds nothing.
        let Some(path) = self.sessions().locate(&at) else {
            return false;
        };
        match self.sessions().read_async(&path, None, None).await {
            Ok((_, reading)) => !reading.begun.is_empty() || !reading.denied.is_empty(),
            Err(_) => true,
        }
    }

    fn stopped(&self) -> impl Iterator<Item = &Denied> {
        self.reading()
            .into_iter()
            .flat_map(|reading| &reading.denied)
    }

    /// Returns all calls that were denied. The session names calls that the CLI could not name.
    pub(super) fn denied(&self) -> Vec<Denied> {
        let named = |denied: &Denied| {
            !denied.id.is_empty() || !self.stopped().any(|stopped| stopped.tool == denied.tool)
        };
        let mut all = self.ran.denied.clone();
        all.retain(named);
        all.extend(self.stopped().cloned());
        all
    }

    pub(super) fn compacted(&self) -> bool {
        self.ran.compacted || self.reading().is_some_and(|reading| reading.compacted)
    }

    /// Counts the messages, the prompt included, that the session now holds only in its agent's
    /// summary.
    pub(super) fn summarised(&self) -> u64 {
        if !self.compacted() {
            return self.run.plan.summarised_before();
        }
        let ours = |e: &ReadEntry| matches!(e, ReadEntry::Prompt { id, .. } if *id == self.run.plan.prompt);
        let verbatim = self.reading().is_some_and(|reading| {
            let prompt = reading.entries.iter().position(ours);
            reading.compacted && prompt.is_some_and(|at| at >= reading.summed_up)
        });
        self.run.plan.messages - u64::from(verbatim)
    }

    pub(super) fn model(&self) -> Option<String> {
        let read = || self.reading().and_then(|reading| reading.model.clone());
        self.ran.model.clone().or_else(read)
    }

    /// Returns the pin of the session if it may be used again: the added entries are the prompt
    /// that we sent and the answer that we received, and nothing is broken. Otherwise returns the
    /// reason.
    pub(super) async fn confirm(&self, machine: &str) -> Result<Pin, String> {
        let (plan, ran) = (&self.run.plan, self.ran);
        let session = self.session().ok_or("it did not say which session it is")?;
        let (mark, reading) = self.read.as_ref().map_err(Clone::clone)?;
        self.must_be_ours(reading)?;
        let other = |id: &String| *id != session.as_str();
        if reading.session.as_ref().is_some_and(other) {
            return Err("its file is that of another session".into());
        }
        reading.confirms(&plan.prompt, &ran.text)?;
        let repaired;
        let (mark, reading) = if reading.repeats {
            repaired = self.repaired(mark).await;
            repaired.as_ref().map_or((mark, reading), |(m, r)| (m, r))
        } else {
            (mark, reading)
        };
        self.pin(session, vec![mark.clone()], reading, machine)
    }

    /// Builds the pin for the session as this run leaves it.
    pub(super) fn pin(
        &self,
        session: &SessionId,
        files: Vec<FileMark>,
        reading: &Reading,
        machine: &str,
    ) -> Result<Pin, String> {
        let (plan, ran) = (&self.run.plan, self.ran);
        let mut folder = plan.folder.clone();
        if folder.checkout.is_none() {
            folder.checkout = folder::checkout_of(Path::new(&folder.path));
        }
        let runtime = match &ran.version {
            Some(version) => rejoin_core::Runtime {
                version: rejoin_core::Version(version.clone()),
                ..plan.runtime.clone()
            },
            None => plan.runtime.clone(),
        };
        Ok(Pin {
            id: self.run.attempt.pin,
            agent: rejoin_core::AgentName::new(self.run.adapter.name())
                .map_err(|e| e.to_string())?,
            session: session.clone(),
            state: PinState::Confirmed,
            seen: SeenPrefix {
                value: plan.value(),
                messages: plan.messages,
                summarised: self.summarised(),
                last_seq: 0,
                last: None,
            },
            folder,
            runtime,
            machine: machine.to_owned(),
            home: plan.home.clone(),
            files,
            cursor: reading.cursor.clone(),
            total: self.total_kept(),
            usage: self.usage_kept(),
            context: self.context(),
            model: plan.model.clone().or_else(|| self.model()),
            provider: reading.provider.clone(),
            failures: 0,
            compacted: self.compacted() || plan.compacted_before(),
            instructions: Pin::instructions_after(plan.instructions.as_deref(), self.compacted()),
        })
    }

    /// Replaces entries that the CLI would replay twice, and reads the session again. Returns None
    /// if the session cannot be repaired; then it stays as it is and nothing in it is lost.
    async fn repaired(&self, mark: &FileMark) -> Option<(FileMark, Reading)> {
        let sessions = self.sessions();
        let repaired = match sessions.repair_async(&mark.path).await {
            Ok(()) => self.read_at(&mark.path).await,
            Err(error) => Err(error.to_string()),
        };
        let good = repaired.ok().filter(|(_, reading)| {
            let same = reading.confirms(&self.run.plan.prompt, &self.ran.text);
            same.is_ok() && !reading.repeats
        });
        if good.is_none() {
            // If this fails too, the next inspection finds the session changed and does not use it.
            let _as_it_was = sessions.cut_back_async(mark, &self.run.folder).await;
        }
        good
    }

    /// Leaves no unconfirmed tail: cuts the session back to its confirmed bytes, or retires it.
    pub(super) async fn take_back(&self, effect: PinEffect) -> PinEnd {
        let id: PinId = self.run.attempt.pin;
        let own = self.run.plan.confirmed.as_ref();
        let Some(before) = own.filter(|_| self.run.plan.forked.is_none()) else {
            let failed = self.run.plan.forked.is_some() && effect != PinEffect::Keep;
            let why = if failed { FORK_FAILED } else { UNFINISHED };
            let why = why.to_owned();
            return PinEnd::Retire { id, why };
        };
        // Also cut back a session that is not used again: its owner may continue it by hand.
        let cut = self.cut_back(&before.file).await;
        if effect == PinEffect::Retire {
            let why = self
                .ran
                .outcome
                .failure()
                .map_or("refused", |f| f.class.as_str());
            return PinEnd::Retire {
                id,
                why: format!("the last turn on it failed: {why}"),
            };
        }
        match cut {
            Ok(mark) => {
                let failures = before.failures + u32::from(effect == PinEffect::Count);
                PinEnd::PutBack {
                    id,
                    files: vec![mark],
                    failures,
                }
            }
            Err(why) => PinEnd::Retire {
                id,
                why: format!("it could not be cut back: {why}"),
            },
        }
    }

    /// Returns the messages that another program added to the session while the turn ran, or
    /// between its end and now. That session is retired, but its messages are not lost.
    pub(super) fn said_by_others(&self, end: &PinEnd) -> Vec<SessionMessage> {
        let Some(reading) = self
            .reading()
            .filter(|_| matches!(end, PinEnd::Retire { .. }))
        else {
            return vec![];
        };
        let answer = [self.ran.text.as_str()];
        let known = &answer[..usize::from(!self.ran.text.trim().is_empty())];
        reading.said_by_others(true, self.own_prompts(), known)
    }

    pub(super) fn must_be_ours(&self, reading: &Reading) -> Result<(), String> {
        let mut ours = self.own_prompts();
        let others = reading
            .entries
            .iter()
            .any(|entry| matches!(entry, ReadEntry::Prompt { id, at, .. } if !ours(id, *at)));
        if others || reading.prompts.iter().any(|id| *id != self.run.plan.prompt) {
            return Err("somebody else went on with it".into());
        }
        Ok(())
    }

    /// Returns a predicate that tells the run's own prompt from text of a user, prompt by prompt.
    /// While it runs, a CLI may repeat the prompt (OpenCode 1.18.33 does when it compacts after an
    /// overflow); the same text after the run's end is a user's. If the session keeps no times, the
    /// prompt occurs once.
    fn own_prompts(&self) -> impl FnMut(&str, Option<i64>) -> bool {
        let ended = written_at(&self.run.folder, END);
        let mut sent = false;
        move |id, at| {
            if id != self.run.plan.prompt {
                return false;
            }
            let repeated = std::mem::replace(&mut sent, true);
            // The first one is ours regardless of its time: the clock that it came from may be
            // wrong.
            !repeated || at.is_some_and(|at| ended.is_none_or(|ended| at <= ended))
        }
    }

    /// Returns the path of the session. If the CLI chose the session id, the path is located now.
    fn session_file(&self) -> Result<String, String> {
        if let Some(path) = &self.run.plan.session_file {
            return Ok(path.clone());
        }
        let session = self.session().ok_or("it did not say which session it is")?;
        let at = SessionAt {
            folder: &self.run.plan.folder.path,
            session,
            pin: &self.run.attempt.pin.to_string(),
        };
        let found = self.sessions().locate(&at);
        found.ok_or_else(|| "its session is nowhere to be found".into())
    }

    /// Cuts the session back, unless another program added messages to it.
    async fn cut_back(&self, mark: &FileMark) -> Result<FileMark, String> {
        // A database that cannot be read can still be replaced by its copy.
        match &self.read {
            Ok((_, reading)) => self.must_be_ours(reading)?,
            Err(error) => match self.run.adapter.profile().records {
                Records::Lines => return Err(error.clone()),
                Records::Database { .. } => {}
            },
        }
        self.sessions()
            .cut_back_async(mark, &self.run.folder)
            .await
            .map_err(|e| e.to_string())
    }
}

//! What a run left in its session: read once, then confirmed, or taken back.

use std::collections::BTreeMap;
use std::path::Path;

use rejoin_agents::{Adapter, Denied, Forking, Ran, ReadEntry, Reading, Records, Said, SessionAt};
use rejoin_core::{FileMark, Outcome, Pin, PinEffect, PinId, PinState, Seen, SessionId, ToolNote};
use rejoin_hub::{AttemptPlan, FORK_FAILED, PinEnd};
use rejoin_store::Attempt;

use crate::config::ModelConfig;
use crate::folder;
use crate::fork::read_origin;
use crate::session::Sessions;
use crate::settle::written_at;
use crate::shim::END;

const UNFINISHED: &str = "its first turn was not finished";

/// A run that is over, and what is known of it.
pub(super) struct Run<'a> {
    pub(super) adapter: &'static dyn Adapter,
    pub(super) attempt: &'a Attempt,
    pub(super) plan: &'a AttemptPlan,
    pub(super) ran: &'a Ran,
    pub(super) folder: &'a Path,
    pub(super) models: &'a BTreeMap<String, ModelConfig>,
    /// Its process waits for the next prompt.
    pub(super) rests: bool,
    /// What was added to the session, and its mark.
    pub(super) read: Result<(FileMark, Reading), String>,
}

impl Run<'_> {
    /// The session the run wrote to: as the CLI was told, or as it said itself.
    pub(super) fn session(&self) -> Option<&SessionId> {
        if self.plan.asked {
            return Some(&self.plan.session);
        }
        let named = self.ran.session.as_ref();
        named.filter(|id| self.adapter.is_session_id(id))
    }

    fn sessions(&self) -> Sessions<'_> {
        Sessions {
            adapter: self.adapter,
            home: Path::new(&self.plan.home),
        }
    }

    /// Reads what was added to the session.
    pub(super) async fn read(&self) -> Result<(FileMark, Reading), String> {
        let path = self.session_file()?;
        if let Forking::Within(alone) = self.adapter.forking()
            && self.plan.forked.is_some()
        {
            let session = self.session().ok_or("it did not say which session it is")?;
            let (file, session) = (path.clone(), session.clone());
            let work = move |s: Sessions<'_>| s.leave_alone(&file, alone, &session);
            let done = self.sessions().apart(&path, work).await;
            done.map_err(|e| format!("its session cannot be read ({e})"))?;
        }
        self.read_at(&path).await
    }

    async fn read_at(&self, path: &str) -> Result<(FileMark, Reading), String> {
        let before = self.plan.confirmed.as_ref();
        let cursor = before.and_then(|c| c.cursor.as_deref());
        let before_file = before.map(|c| &c.file);
        let read = self.sessions().read_apart(path, before_file, cursor).await;
        let (mark, reading) = read.map_err(|e| format!("its session cannot be read ({e})"))?;
        // Of a copy that was put in its place the confirmed bytes say that it holds the parent's.
        if self.plan.forked.is_none() || before.is_some() {
            return Ok((mark, reading));
        }
        let folder = self.folder.parent().unwrap_or(self.folder);
        let origin = read_origin(&self.sessions(), folder).await;
        let origin = origin.map_err(|e| format!("what it was forked from is gone ({e})"))?;
        Ok((mark, reading.since(&origin)?))
    }

    pub(super) fn reading(&self) -> Option<&Reading> {
        self.read.as_ref().ok().map(|(_, reading)| reading)
    }

    /// What the CLI left under the session's name is not the session; and what a sandbox of it made
    /// in the folder goes. A run that ended well has done that itself, and others may be running in
    /// the same folder.
    pub(super) fn tidy(&self) {
        let path = self.session_file().ok();
        // The one that was minted may have served only for the CLI's own.
        let minted = Some(&self.plan.session).filter(|_| !self.plan.asked);
        let written = self.session().filter(|_| path.is_some());
        for session in written.into_iter().chain(minted) {
            let at = SessionAt {
                folder: &self.plan.folder.path,
                session,
                pin: &self.attempt.pin.to_string(),
            };
            self.sessions().tidy(&at, path.as_deref());
        }
        if self.ran.outcome == Outcome::Succeeded {
            return;
        }
        for name in &self.plan.litter {
            // Fails if there is something in it.
            drop(fs_err::remove_dir(
                Path::new(&self.plan.folder.path).join(name),
            ));
        }
    }

    /// Calls of which only the session tells. How far they got, nobody knows.
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
        // What ended in a turn that ended well was told by the stream.
        let told = |note: &ToolNote| note.finished && self.ran.outcome == Outcome::Succeeded;
        let begun = begun.filter(|note| !seen(note) && !told(note)).cloned();
        self.stopped().map(stopped).chain(begun).collect()
    }

    /// It opened another session than it was told to, and a tool began there; or nobody can say.
    pub(super) async fn did_elsewhere(&self) -> bool {
        let Some(opened) = self
            .ran
            .session
            .as_ref()
            .filter(|s| **s != self.plan.session)
        else {
            return false;
        };
        let at = SessionAt {
            folder: &self.plan.folder.path,
            session: opened,
            pin: &self.attempt.pin.to_string(),
        };
        // A session that was never written holds nothing.
        let Some(path) = self.sessions().locate(&at) else {
            return false;
        };
        match self.sessions().read_apart(&path, None, None).await {
            Ok((_, reading)) => !reading.begun.is_empty() || !reading.denied.is_empty(),
            Err(_) => true,
        }
    }

    fn stopped(&self) -> impl Iterator<Item = &Denied> {
        self.reading()
            .into_iter()
            .flat_map(|reading| &reading.denied)
    }

    /// All that was not allowed. What the CLI could not name, the session can.
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

    /// Counts the messages, the prompt included, that the session now holds only in its agent's summary.
    pub(super) fn summarised(&self) -> u64 {
        if !self.compacted() {
            return self.plan.summarised_before();
        }
        let ours =
            |e: &ReadEntry| matches!(e, ReadEntry::Prompt { id, .. } if *id == self.plan.prompt);
        let verbatim = self.reading().is_some_and(|reading| {
            let prompt = reading.entries.iter().position(ours);
            reading.compacted && prompt.is_some_and(|at| at >= reading.summed_up)
        });
        self.plan.messages - u64::from(verbatim)
    }

    pub(super) fn model(&self) -> Option<String> {
        let read = || self.reading().and_then(|reading| reading.model.clone());
        self.ran.model.clone().or_else(read)
    }

    /// Only if what was added is the prompt we sent and the answer we got, and nothing is broken,
    /// may the session serve again.
    pub(super) async fn confirm(&self, machine: &str) -> Result<Pin, String> {
        let (plan, ran) = (self.plan, self.ran);
        let session = self.session().ok_or("it did not say which session it is")?;
        let (mark, reading) = self.read.as_ref().map_err(Clone::clone)?;
        self.must_be_ours(reading)?;
        let other = |id: &String| *id != session.as_str();
        if reading.session.as_ref().is_some_and(other) {
            return Err("its file is that of another session".into());
        }
        reading.confirms(&plan.prompt, &ran.text)?;
        let mended;
        let (mark, reading) = if reading.repeats {
            mended = self.mended(mark).await;
            mended.as_ref().map_or((mark, reading), |(m, r)| (m, r))
        } else {
            (mark, reading)
        };
        self.pin(session, vec![mark.clone()], reading, machine)
    }

    /// The session as this run leaves it.
    pub(super) fn pin(
        &self,
        session: &SessionId,
        files: Vec<FileMark>,
        reading: &Reading,
        machine: &str,
    ) -> Result<Pin, String> {
        let (plan, ran) = (self.plan, self.ran);
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
            id: self.attempt.pin,
            agent: rejoin_core::AgentName::new(self.adapter.name()).map_err(|e| e.to_string())?,
            session: session.clone(),
            state: PinState::Confirmed,
            seen: Seen {
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

    /// With what its CLI would replay twice replaced, and read again. A session that cannot be mended
    /// stays as it is: nothing in it is lost.
    async fn mended(&self, mark: &FileMark) -> Option<(FileMark, Reading)> {
        let sessions = self.sessions();
        let mended = match sessions.mend_apart(&mark.path).await {
            Ok(()) => self.read_at(&mark.path).await,
            Err(error) => Err(error.to_string()),
        };
        let good = mended.ok().filter(|(_, reading)| {
            let same = reading.confirms(&self.plan.prompt, &self.ran.text);
            same.is_ok() && !reading.repeats
        });
        if good.is_none() {
            // If even that fails, the next look finds it changed and does not use it.
            let _as_it_was = sessions.cut_back_apart(mark, self.folder).await;
        }
        good
    }

    /// No unknown tails: the session goes back to its confirmed bytes, or is never used again.
    pub(super) async fn take_back(&self, effect: PinEffect) -> PinEnd {
        let id: PinId = self.attempt.pin;
        let own = self.plan.confirmed.as_ref();
        let Some(before) = own.filter(|_| self.plan.forked.is_none()) else {
            let failed = self.plan.forked.is_some() && effect != PinEffect::Keep;
            let why = if failed { FORK_FAILED } else { UNFINISHED };
            let why = why.to_owned();
            return PinEnd::Retire { id, why };
        };
        // Also one that is not used again: its owner may go on with it by hand.
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

    /// What somebody else said in the session while the turn ran, or after it and before it was
    /// settled: that session is not used again, but nothing said is forgotten.
    pub(super) fn said_by_others(&self, end: &PinEnd) -> Vec<Said> {
        let Some(reading) = self
            .reading()
            .filter(|_| matches!(end, PinEnd::Retire { .. }))
        else {
            return vec![];
        };
        let mut theirs = Reading::default();
        let mut mine = true;
        let mut ours = self.own_prompts();
        for entry in &reading.entries {
            if let ReadEntry::Prompt { id, at, .. } = entry {
                mine = ours(id, *at);
            }
            if !mine {
                theirs.entries.push(entry.clone());
            }
        }
        theirs.said()
    }

    pub(super) fn must_be_ours(&self, reading: &Reading) -> Result<(), String> {
        let mut ours = self.own_prompts();
        let others = reading
            .entries
            .iter()
            .any(|entry| matches!(entry, ReadEntry::Prompt { id, at, .. } if !ours(id, *at)));
        if others || reading.prompts.iter().any(|id| *id != self.plan.prompt) {
            return Err("somebody else went on with it".into());
        }
        Ok(())
    }

    /// Tells the run's own prompt from words of a user, prompt by prompt. While it runs, a CLI may repeat the
    /// prompt (OpenCode 1.18.33 does when it compacts after an overflow); the same words after its end are a
    /// user's. Where the session keeps no times, the prompt stands there once.
    fn own_prompts(&self) -> impl FnMut(&str, Option<i64>) -> bool {
        let ended = written_at(self.folder, END);
        let mut sent = false;
        move |id, at| {
            if id != self.plan.prompt {
                return false;
            }
            let repeated = std::mem::replace(&mut sent, true);
            // The first is ours whatever its time says: the clock that it was read from may be wrong.
            !repeated || at.is_some_and(|at| ended.is_none_or(|ended| at <= ended))
        }
    }

    /// Where it lies. The place of a session whose id the CLI chose is found out now.
    fn session_file(&self) -> Result<String, String> {
        if let Some(path) = &self.plan.session_file {
            return Ok(path.clone());
        }
        let session = self.session().ok_or("it did not say which session it is")?;
        let at = SessionAt {
            folder: &self.plan.folder.path,
            session,
            pin: &self.attempt.pin.to_string(),
        };
        let found = self.sessions().locate(&at);
        found.ok_or_else(|| "its session is nowhere to be found".into())
    }

    /// Never cuts away what somebody else said in it meanwhile.
    async fn cut_back(&self, mark: &FileMark) -> Result<FileMark, String> {
        // What cannot be read can still be replaced by its copy.
        match &self.read {
            Ok((_, reading)) => self.must_be_ours(reading)?,
            Err(error) => match self.adapter.records() {
                Records::Lines => return Err(error.clone()),
                Records::Database { .. } => {}
            },
        }
        self.sessions()
            .cut_back_apart(mark, self.folder)
            .await
            .map_err(|e| e.to_string())
    }
}

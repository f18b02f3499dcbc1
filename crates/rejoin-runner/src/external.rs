//! Detects messages that users added to the agents' sessions outside rejoin, and takes them in
//! before a new message is sent.

use rejoin_agents::{ReadEntry, Reading, SessionAt, SessionMessage};
use rejoin_core::{ConversationId, FileMark, MessageId, Pin, PinState, SessionFact};
use rejoin_hub::{Claimed, ContinuedSession, SessionNow};
use rejoin_store::{SentPrompt, WatchedPin};

use crate::error::{Error, Result};
use crate::in_use::in_use;
use crate::inspect::environment;
use crate::session::Sessions;
use crate::turn::Runner;

/// Messages that were taken in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExternalMessages {
    pub messages: u64,
    /// Agents to whose sessions they were added.
    pub agents: Vec<String>,
}

impl ExternalMessages {
    /// Returns a note for the verdict line.
    pub fn note(&self) -> Option<String> {
        let messages = match self.messages {
            0 => return None,
            1 => "1 message".to_owned(),
            n => format!("{n} messages"),
        };
        Some(format!("{messages} said outside were taken in"))
    }
}

impl Runner {
    /// Takes in external messages before the history is changed, because they are already part of
    /// it.
    pub async fn take_in_before_change(&self, c: ConversationId) -> Result<()> {
        self.take_in(c, None).await.map(drop)
    }

    /// Takes in external messages like [`Self::take_in_before_change`], for the conversation of a
    /// message.
    pub async fn take_in_before_change_at(&self, id: MessageId) -> Result<()> {
        let mut store = self.hub.store.read().await?;
        let found = store.messages().conversation_of(id).await?;
        drop(store);
        match found {
            Some(c) => self.take_in_before_change(c).await,
            None => Ok(()),
        }
    }

    /// Takes in the external messages of a conversation. No turn of it may be running, except
    /// `claimed`, which is about to run.
    pub async fn take_in(
        &self,
        c: ConversationId,
        mut claimed: Option<&mut Claimed>,
    ) -> Result<ExternalMessages> {
        let mut taken = ExternalMessages::default();
        let pins = {
            let mut read = self.hub.store.read().await?;
            read.external().watched_pins(c).await?
        };
        for watch in pins {
            for grown in self.went_on(&watch).await? {
                let session = ContinuedSession {
                    was: &watch.pin,
                    now: grown.now(),
                };
                let in_hand = claimed.as_deref();
                let done = self.hub.take_in(c, in_hand, &grown.said, session).await;
                let done = match done {
                    // A turn began meanwhile and takes in the messages itself.
                    Err(rejoin_hub::Error::Busy) => return Ok(taken),
                    other => other.map_err(Error::from)?,
                };
                if let (Some(claimed), Some(message)) = (claimed.as_deref_mut(), done.message) {
                    claimed.message = message;
                }
                if done.messages > 0 {
                    taken.messages += done.messages;
                    taken.agents.push(watch.pin.agent.to_string());
                }
            }
        }
        self.take_in_sources(c, claimed, &mut taken).await?;
        Ok(taken)
    }

    /// Reads the messages that a user added to a session by hand, in its place and in old copies of
    /// it. Files that another process is writing are read later.
    pub(crate) async fn went_on(&self, watch: &WatchedPin) -> Result<Vec<Grown>> {
        let was = &watch.pin;
        let Some(adapter) = self.config.adapter(was.agent.as_str()) else {
            return Ok(vec![]);
        };
        let env = environment(&self.config, adapter);
        let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let Some(home) = adapter.home(&var) else {
            return Ok(vec![]);
        };
        let sessions = Sessions {
            adapter,
            home: &home,
        };
        let pin = was.id.to_string();
        let at = |folder: &str| {
            sessions.locate(&SessionAt {
                folder,
                session: &was.session,
                pin: &pin,
            })
        };
        let place = at(&was.folder.path);
        let mut grown = vec![];
        if let Some(path) = &place {
            grown.extend(self.grown(was, &sessions, path).await?);
        }
        let mut seen: Vec<String> = place.into_iter().collect();
        for path in watch.folders.iter().filter_map(|folder| at(folder)) {
            if seen.contains(&path) {
                continue;
            }
            if !self.is_busy(was, &sessions, &path).await?
                && let Some((file, reading)) = self.read_old(was, true, &sessions, &path).await?
            {
                grown.extend(self.copy(was, file, &reading).await?);
            }
            seen.push(path);
        }
        Ok(grown)
    }

    async fn grown(&self, was: &Pin, sessions: &Sessions<'_>, path: &str) -> Result<Option<Grown>> {
        let Some(first) = was.files.first() else {
            return Ok(None);
        };
        let mark = at_path(first, path);
        let fact = sessions.compare_async(&mark).await;
        if !matches!(fact, SessionFact::Changed | SessionFact::Damaged)
            || self.is_busy(was, sessions, path).await?
        {
            return Ok(None);
        }
        let home = sessions.home.display().to_string();
        let read = if fact == SessionFact::Changed {
            let cursor = was.cursor.as_deref();
            sessions.read_async(path, Some(&mark), cursor).await
        } else {
            Err(std::io::Error::other("it is not as it was confirmed"))
        };
        // A database that was left behind is recognised by its messages.
        let left =
            (was.machine.as_str(), was.home.as_str()) != (self.hub.machine.as_str(), home.as_str());
        let behind = match &read {
            Ok((_, reading)) => left && sessions.is_database() && !reading.connected,
            Err(_) => true,
        };
        if behind && let Some((file, reading)) = self.read_old(was, false, sessions, path).await? {
            return self.copy(was, file, &reading).await;
        }
        let Ok((file, reading)) = read else {
            return Ok(None);
        };
        if !is_of(&reading, was) {
            return Ok(None);
        }
        let (said, ours) = self.by_hand(was, &reading).await?;
        let grown = |state| Some(Grown { said, state });
        if ours {
            return Ok(grown(State::Copy(file)));
        }
        // Wherever it was confirmed, the session continues here.
        let here = Pin {
            machine: self.hub.machine.clone(),
            home,
            ..was.clone()
        };
        let good = |reading: &Reading| reading.whole().is_ok() && !reading.repeats;
        if good(&reading) {
            let now = Box::new(moved_on(&here, file, &reading));
            return Ok(grown(State::Whole(now)));
        }
        let cursor = was.cursor.as_deref();
        if reading.whole().is_ok() && sessions.repair_async(path).await.is_ok() {
            let again = sessions.read_async(path, Some(&mark), cursor).await.ok();
            if let Some((file, reading)) = again.filter(|(_, reading)| good(reading)) {
                let now = Box::new(moved_on(&here, file, &reading));
                return Ok(grown(State::Whole(now)));
            }
        }
        if !reading.only_added {
            return Ok(None);
        }
        Ok(grown(State::Broken(file)))
    }

    async fn copy(&self, was: &Pin, file: FileMark, reading: &Reading) -> Result<Option<Grown>> {
        if !is_of(reading, was) {
            return Ok(None);
        }
        let (said, _) = self.by_hand(was, reading).await?;
        let state = State::Copy(file);
        Ok(Some(Grown { said, state }))
    }

    /// Returns the messages that no turn sent; see [`by_hand`].
    async fn by_hand(&self, was: &Pin, reading: &Reading) -> Result<(Vec<SessionMessage>, bool)> {
        let mut store = self.hub.store.read().await?;
        let sent = store.external().prompts_of(was.id).await?;
        let mut answers = vec![];
        for one in &sent {
            if let Some(reply) = one.reply
                && reading.prompts.iter().any(|id| one.is(id, None))
            {
                answers.extend(store.external().text_of(reply).await?);
            }
        }
        Ok(by_hand(reading, &sent, &answers))
    }

    /// Returns true if another process is writing this file, or if all its messages were already
    /// taken in.
    async fn is_busy(&self, was: &Pin, sessions: &Sessions<'_>, path: &str) -> Result<bool> {
        let Sessions { adapter, home } = *sessions;
        if in_use(adapter, home, &was.session, Some(path)).is_some() {
            return Ok(true);
        }
        let read = self
            .hub
            .store
            .read()
            .await?
            .external()
            .files_read(was.id)
            .await?;
        for file in &read {
            let fact = sessions.compare_async(&at_path(file, path)).await;
            if fact == SessionFact::Untouched {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a file that holds an older state of the session, from the newest known state on.
    async fn read_old(
        &self,
        was: &Pin,
        with_today: bool,
        sessions: &Sessions<'_>,
        path: &str,
    ) -> Result<Option<(FileMark, Reading)>> {
        let mut store = self.hub.store.read().await?;
        let Some(stored) = store.pins().get(was.id).await? else {
            return Ok(None);
        };
        let mut states: Vec<Pin> = with_today.then(|| was.clone()).into_iter().collect();
        states.extend(store.pins().earlier(&stored).await?);
        for snapshot in store.snapshots().of_pin(was.id, SNAPSHOTS).await? {
            if let Some(manifest) = snapshot.manifest().ok().filter(|_| !snapshot.open) {
                states.push(snapshot.pin(&manifest, &PinState::Confirmed, 0));
            }
        }
        drop(store);
        for state in states {
            let Some(mark) = state.files.first().map(|mark| at_path(mark, path)) else {
                continue;
            };
            let cursor = state.cursor.as_deref();
            if sessions.is_database() {
                let read = sessions.read_async(path, Some(&mark), cursor).await.ok();
                if let Some(read) = read.filter(|(_, reading)| reading.connected) {
                    return Ok(Some(read));
                }
                continue;
            }
            match sessions.compare_async(&mark).await {
                SessionFact::Changed => {
                    let read = sessions.read_async(path, Some(&mark), cursor).await;
                    return Ok(read.ok());
                }
                SessionFact::Untouched | SessionFact::Verified => return Ok(None),
                SessionFact::Missing
                | SessionFact::Dirty
                | SessionFact::Damaged
                | SessionFact::Unknown => {}
            }
        }
        Ok(None)
    }
}

/// Number of snapshots of a session that are compared with a file which is older than its pin.
const SNAPSHOTS: i64 = 64;

/// Session that a user continued by hand.
pub(crate) struct Grown {
    /// Messages of the user and the answers to them.
    pub(crate) said: Vec<SessionMessage>,
    state: State,
}

enum State {
    Whole(Box<Pin>),
    Broken(FileMark),
    Copy(FileMark),
}

impl Grown {
    pub(crate) fn now(&self) -> SessionNow<'_> {
        match &self.state {
            State::Whole(pin) => SessionNow::Whole(pin),
            State::Broken(file) => SessionNow::Broken(file),
            State::Copy(file) => SessionNow::Copy(file),
        }
    }
}

fn is_of(reading: &Reading, was: &Pin) -> bool {
    let own = |id: &String| *id == was.session.as_str();
    reading.session.as_ref().is_none_or(own)
}

fn at_path(mark: &FileMark, path: &str) -> FileMark {
    FileMark {
        path: path.to_owned(),
        ..mark.clone()
    }
}

/// Returns the messages that no turn sent, with the answers to them; the flag is true if the
/// session also holds prompts of turns. Within its turn a CLI may repeat a prompt (OpenCode 1.18.33
/// does when it compacts after an overflow). Without times, each prompt of ours occurs in a session
/// once: the same text again is a user's. `answers` are those to the prompts of turns.
///
/// Words off the branch count if a turn wrote to the session at the same time. Otherwise the user
/// went back to an earlier message and took them back.
fn by_hand(
    reading: &Reading,
    sent: &[SentPrompt],
    answers: &[String],
) -> (Vec<SessionMessage>, bool) {
    let replayed: Vec<(&String, Option<i64>)> = reading
        .entries
        .iter()
        .filter_map(|entry| match entry {
            ReadEntry::Prompt { id, at, .. } => Some((id, *at)),
            ReadEntry::Answer { .. } | ReadEntry::Did(_) | ReadEntry::Synthetic => None,
        })
        .collect();
    let aside = reading.prompts.iter().map(|id| (id, None));
    let aside = aside.filter(|(id, _)| !replayed.iter().any(|(known, _)| known == id));
    let ours = replayed
        .iter()
        .copied()
        .chain(aside)
        .any(|(id, at)| sent.iter().any(|sent| sent.is(id, at)));
    let mut left: Vec<&SentPrompt> = sent.iter().collect();
    let is_ours = |id: &str, at: Option<i64>| {
        let known = left.iter().position(|sent| sent.is(id, at));
        if at.is_none() {
            known.map(|known| left.remove(known));
        }
        known.is_some()
    };
    let answers: Vec<&str> = answers.iter().map(String::as_str).collect();
    let said = if ours {
        reading.said_by_others(false, is_ours, &answers)
    } else {
        let branch = Reading {
            entries: reading.entries.clone(),
            ..Reading::default()
        };
        branch.said_by_others(false, is_ours, &[])
    };
    (said, ours)
}

/// Builds the pin for a session that continued. Totals are known only if the session contains them.
fn moved_on(was: &Pin, file: FileMark, reading: &Reading) -> Pin {
    let mut seen = was.seen;
    if reading.compacted {
        seen.summarised = seen.messages + reading.summarised();
    }
    Pin {
        seen,
        files: vec![file],
        cursor: reading.cursor.clone(),
        total: reading.total,
        usage: reading.usage,
        context: reading.context.or(was.context),
        model: reading.model.clone().or_else(|| was.model.clone()),
        provider: reading.provider.clone().or_else(|| was.provider.clone()),
        compacted: was.compacted || reading.compacted,
        instructions: Pin::instructions_after(was.instructions.as_deref(), reading.compacted),
        failures: 0,
        ..was.clone()
    }
}

#[cfg(test)]
mod tests;

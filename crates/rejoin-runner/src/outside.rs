//! Looks whether somebody went on with one of the agents' sessions outside rejoin, and takes in what
//! was said there before anything else is said.

use rejoin_agents::{ReadEntry, Reading, Said, SessionAt};
use rejoin_core::{ConversationId, FileMark, MessageId, Pin, PinState, SessionFact};
use rejoin_hub::{Claimed, SessionNow, WentOn};
use rejoin_store::{SentPrompt, WatchedPin};

use crate::error::{Error, Result};
use crate::in_use::in_use;
use crate::look::environment;
use crate::session::Sessions;
use crate::turn::Runner;

/// What was taken in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Taken {
    pub messages: u64,
    /// Agents in whose sessions it was said.
    pub agents: Vec<String>,
}

impl Taken {
    /// For the verdict line.
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
    /// Takes in the words of sessions before the history is changed: they are part of it already.
    pub async fn take_in_before_change(&self, c: ConversationId) -> Result<()> {
        self.take_in(c, None).await.map(drop)
    }

    /// The same for the conversation of a message.
    pub async fn take_in_before_change_at(&self, id: MessageId) -> Result<()> {
        let mut store = self.hub.store.read().await?;
        let found = store.conversation_of(id).await?;
        drop(store);
        match found {
            Some(c) => self.take_in_before_change(c).await,
            None => Ok(()),
        }
    }

    /// Of a conversation that nothing is running for; before a turn, the one in hand.
    pub async fn take_in(
        &self,
        c: ConversationId,
        mut claimed: Option<&mut Claimed>,
    ) -> Result<Taken> {
        let mut taken = Taken::default();
        let pins = {
            let mut read = self.hub.store.read().await?;
            read.watched_pins(c).await?
        };
        for watch in pins {
            for grown in self.went_on(&watch).await? {
                let session = WentOn {
                    was: &watch.pin,
                    now: grown.now(),
                };
                let in_hand = claimed.as_deref();
                let done = self.hub.take_in(c, in_hand, &grown.said, session).await;
                let done = match done {
                    // A turn began meanwhile: it takes in what there is.
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

    /// Reads the words that a user added to a session by hand, in its place and in old copies of it.
    /// Files that another process is writing are read later.
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
        let fact = sessions.compare_apart(&mark).await;
        if !matches!(fact, SessionFact::Changed | SessionFact::Damaged)
            || self.is_busy(was, sessions, path).await?
        {
            return Ok(None);
        }
        let home = sessions.home.display().to_string();
        let read = if fact == SessionFact::Changed {
            let cursor = was.cursor.as_deref();
            sessions.read_apart(path, Some(&mark), cursor).await
        } else {
            Err(std::io::Error::other("it is not as it was confirmed"))
        };
        // A database that was left behind says so by its messages.
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
        let (said, ours) = by_hand(&reading, &self.sent(was).await?);
        let grown = |state| Some(Grown { said, state });
        if ours {
            return Ok(grown(State::Copy(file)));
        }
        // Wherever it was confirmed: it goes on here.
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
        if reading.whole().is_ok() && sessions.mend_apart(path).await.is_ok() {
            let again = sessions.read_apart(path, Some(&mark), cursor).await.ok();
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
        let (said, _) = by_hand(reading, &self.sent(was).await?);
        let state = State::Copy(file);
        Ok(Some(Grown { said, state }))
    }

    async fn sent(&self, was: &Pin) -> Result<Vec<SentPrompt>> {
        Ok(self.hub.store.read().await?.prompts_of(was.id).await?)
    }

    /// Is another process writing this file, or every word of it taken in already?
    async fn is_busy(&self, was: &Pin, sessions: &Sessions<'_>, path: &str) -> Result<bool> {
        let Sessions { adapter, home } = *sessions;
        if in_use(adapter, home, &was.session, Some(path)).is_some() {
            return Ok(true);
        }
        let read = self.hub.store.read().await?.files_read(was.id).await?;
        for file in &read {
            let fact = sessions.compare_apart(&at_path(file, path)).await;
            if fact == SessionFact::Untouched {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reads a file that holds an older state of the session from the newest such state on.
    async fn read_old(
        &self,
        was: &Pin,
        with_today: bool,
        sessions: &Sessions<'_>,
        path: &str,
    ) -> Result<Option<(FileMark, Reading)>> {
        let mut store = self.hub.store.read().await?;
        let Some(stored) = store.pin(was.id).await? else {
            return Ok(None);
        };
        let mut states: Vec<Pin> = with_today.then(|| was.clone()).into_iter().collect();
        states.extend(store.earlier_pins(&stored).await?);
        for snapshot in store.snapshots_of_pin(was.id, SNAPSHOTS).await? {
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
                let read = sessions.read_apart(path, Some(&mark), cursor).await.ok();
                if let Some(read) = read.filter(|(_, reading)| reading.connected) {
                    return Ok(Some(read));
                }
                continue;
            }
            match sessions.compare_apart(&mark).await {
                SessionFact::Changed => {
                    let read = sessions.read_apart(path, Some(&mark), cursor).await;
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

/// How many snapshots of a session are compared with a file that is older than its pin.
const SNAPSHOTS: i64 = 64;

/// A session that a user continued by hand.
pub(crate) struct Grown {
    /// The user's words and the answers to them.
    pub(crate) said: Vec<Said>,
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

/// Returns the words that no turn sent, with the answers to them; and whether there are others. Within its
/// turn a CLI may repeat a prompt (OpenCode 1.18.33 does when it compacts after an overflow). Without
/// times each prompt of ours stands in a session once: the same words again are a user's.
fn by_hand(reading: &Reading, sent: &[SentPrompt]) -> (Vec<Said>, bool) {
    let mut left: Vec<&SentPrompt> = sent.iter().collect();
    let mut theirs = Reading::default();
    let (mut mine, mut ours) = (false, false);
    let mut replayed = vec![];
    for entry in &reading.entries {
        if let ReadEntry::Prompt { id, at, .. } = entry {
            replayed.push(id);
            let known = left.iter().position(|sent| sent.is(id, *at));
            mine = known.is_some();
            ours |= mine;
            if at.is_none() {
                known.map(|known| left.remove(known));
            }
        }
        if !mine {
            theirs.entries.push(entry.clone());
        }
    }
    let aside = reading.prompts.iter().filter(|id| !replayed.contains(id));
    ours |= aside
        .into_iter()
        .any(|id| left.iter().any(|sent| sent.is(id, None)));
    (theirs.said(), ours)
}

/// What it has counted meanwhile is only known where the session says so.
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

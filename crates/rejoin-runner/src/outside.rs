//! Looks whether somebody went on with one of the agents' sessions outside rejoin, and takes in what
//! was said there before anything else is said.

use rejoin_agents::{Reading, SessionAt};
use rejoin_core::{ConversationId, FileMark, Pin, SessionFact};
use rejoin_hub::{Claimed, WentOn};

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
        for was in pins {
            let Some((now, reading)) = self.went_on(&was).await else {
                continue;
            };
            let said = reading.said();
            let session = WentOn {
                was: &was,
                now: now.as_ref(),
            };
            let in_hand = claimed.as_deref();
            let done = self.hub.take_in(c, in_hand, &said, session).await;
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
                taken.agents.push(was.agent.to_string());
            }
        }
        self.take_in_sources(c, claimed, &mut taken).await?;
        Ok(taken)
    }

    /// What was added to a session, and the session as it is now, if all of it can be read and gone on
    /// with. If not, what was said there was said all the same, as long as it can be told from what was
    /// there before; else it is left alone: the decision then says why.
    pub(crate) async fn went_on(&self, was: &Pin) -> Option<(Option<Pin>, Reading)> {
        let adapter = self.config.adapter(was.agent.as_str())?;
        let env = environment(&self.config, adapter);
        let var = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, v)| v.clone());
        let home = adapter.home(&var)?;
        let sessions = Sessions {
            adapter,
            home: &home,
        };
        let at = SessionAt {
            folder: &was.folder.path,
            session: &was.session,
            pin: &was.id.to_string(),
        };
        let path = sessions.locate(&at)?;
        let mark = FileMark {
            path: path.clone(),
            ..was.files.first()?.clone()
        };
        if sessions.compare(&mark) != SessionFact::Changed
            || in_use(adapter, &home, &was.session, Some(&path)).is_some()
        {
            return None;
        }
        let cursor = was.cursor.as_deref();
        let (file, reading) = sessions.read_on(&path, Some(&mark), cursor).ok()?;
        // What a turn of ours left there was said already, here or on another machine.
        if self.hub.sent(was.id, &reading.prompts).await.ok()? {
            return None;
        }
        let own = |id: &String| *id == was.session.as_str();
        if !reading.session.as_ref().is_none_or(own) {
            return None;
        }
        // Wherever it was confirmed: it goes on here.
        let here = Pin {
            machine: self.hub.machine.clone(),
            home: home.display().to_string(),
            ..was.clone()
        };
        let good = |reading: &Reading| reading.whole().is_ok() && !reading.repeats;
        if good(&reading) {
            return Some((Some(moved_on(&here, file, &reading)), reading));
        }
        if reading.whole().is_ok() && sessions.mend(&path).is_ok() {
            let again = sessions.read_on(&path, Some(&mark), cursor).ok();
            if let Some((file, reading)) = again.filter(|(_, reading)| good(reading)) {
                return Some((Some(moved_on(&here, file, &reading)), reading));
            }
        }
        reading.only_added.then_some((None, reading))
    }
}

/// What it has counted meanwhile is only known where the session says so.
fn moved_on(was: &Pin, file: FileMark, reading: &Reading) -> Pin {
    Pin {
        files: vec![file],
        cursor: reading.cursor.clone(),
        total: reading.total,
        usage: reading.usage,
        context: reading.context.or(was.context),
        model: reading.model.clone().or_else(|| was.model.clone()),
        provider: reading.provider.clone().or_else(|| was.provider.clone()),
        compacted: was.compacted || reading.compacted,
        instructions: was.instructions.clone(),
        failures: 0,
        ..was.clone()
    }
}

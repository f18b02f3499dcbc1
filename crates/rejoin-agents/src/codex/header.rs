//! Reads the beginning of a session file: its id, folder, start time and first prompt.

use rejoin_core::{SessionId, strip};
use serde::Deserialize;
use serde_json::Value;

use super::escape;
use super::rollout::{Line, Spoken};
use crate::external::{Ancestor, HeaderReader, SessionHeader, first_words};
use crate::session::{is_uuid, moment};

#[derive(Default)]
pub(super) struct Header {
    meta: Option<Meta>,
    foreign: bool,
    words: Option<String>,
}

#[derive(Deserialize)]
struct Meta {
    id: String,
    cwd: Option<String>,
    timestamp: Option<String>,
    /// A word, or a description of the origin of a sub-agent.
    #[serde(default)]
    source: Value,
    thread_source: Option<String>,
    history_base: Option<Base>,
}

/// Parent of a fork. The fork's own file begins where it left its parent, and continues the
/// numbering (0.166.0).
#[derive(Deserialize)]
struct Base {
    thread_id: String,
    end_ordinal_exclusive: u64,
}

impl Meta {
    fn is_a_persons(&self) -> bool {
        let of_an_agent = self.source.get("subagent").is_some()
            || self.source.get("sub_agent").is_some()
            || self
                .thread_source
                .as_deref()
                .is_some_and(|s| s.contains("agent"));
        is_uuid(&self.id) && !of_an_agent
    }
}

fn meta(line: &[u8]) -> Option<Meta> {
    let line: Line = serde_json::from_slice(line).ok()?;
    let is_it = line.kind == "session_meta";
    Meta::deserialize(line.payload).ok().filter(|_| is_it)
}

impl HeaderReader for Header {
    fn line(&mut self, line: &[u8]) -> bool {
        if self.meta.is_none() {
            self.meta = meta(line).filter(Meta::is_a_persons);
            self.foreign = self.meta.is_none();
            return self.foreign;
        }
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            return false;
        };
        if line.kind != "response_item" || line.payload["type"] != "message" {
            return false;
        }
        if let Ok(spoken) = Spoken::deserialize(line.payload)
            && spoken.role == "user"
            && spoken.by_a_person()
        {
            let text = spoken.text();
            self.words = Some(strip(&escape::said(&text)).trim().to_owned());
        }
        self.words.is_some()
    }

    fn finish(self: Box<Self>) -> Option<SessionHeader> {
        let meta = self.meta?;
        Some(SessionHeader {
            session: SessionId::new(meta.id).ok()?,
            folder: meta.cwd,
            words: first_words(&self.words?),
            began: meta.timestamp.as_deref().and_then(moment),
            used: None,
        })
    }
}

/// Returns the parent of a fork, from the fork's first line.
pub(super) fn ancestor(first: &[u8]) -> Option<Ancestor> {
    let base = meta(first)?.history_base?;
    let session = SessionId::new(base.thread_id).ok()?;
    is_uuid(session.as_str()).then_some(Ancestor {
        session,
        lines: base.end_ordinal_exclusive,
    })
}

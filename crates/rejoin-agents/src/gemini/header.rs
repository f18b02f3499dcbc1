//! Reads the beginning of a user's chat: its id, folder, start time and first prompt.

use rejoin_core::SessionId;
use serde_json::{Value, json};

use super::escape;
use super::session::{Record, StoredText, read};
use crate::external::{HeaderReader, SessionHeader, first_words};
use crate::session::moment;

pub(super) struct Header {
    /// Folder that a file beside the chat names.
    folder: Option<String>,
    session: Option<SessionId>,
    began: Option<i64>,
    used: Option<i64>,
    words: Option<String>,
    of_an_agent: bool,
}

impl Header {
    pub(super) fn new(path: &str, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Self {
        Self {
            folder: owner(path, read),
            session: None,
            began: None,
            used: None,
            words: None,
            of_an_agent: false,
        }
    }

    /// Reads the first line, or a whole chat in the format of older versions.
    fn header(&mut self, line: &[u8]) {
        let header: Value = serde_json::from_slice(line).unwrap_or_default();
        self.of_an_agent |= header["kind"] == "subagent";
        let time = |name: &str| header[name].as_str().and_then(moment);
        self.began = self.began.or_else(|| time("startTime"));
        if header["messages"].is_array() {
            self.used = time("lastUpdated");
        }
    }

    fn heard(&mut self, messages: &[super::session::Message]) {
        for message in messages {
            if self.folder.is_none() {
                self.folder = message.workspace();
            }
            if self.words.is_none()
                && let Some(StoredText::Prompt { text, .. }) = message.said()
            {
                self.words = Some(escape::message_of(&text));
            }
        }
    }
}

impl HeaderReader for Header {
    fn line(&mut self, line: &[u8]) -> bool {
        match read(line) {
            Some(Record::Header { session, messages }) => {
                self.header(line);
                let named = session.and_then(|id| SessionId::new(id).ok());
                self.session = self.session.take().or(named);
                self.heard(&messages);
            }
            Some(Record::Message(message)) => self.heard(&[message]),
            Some(Record::Messages(messages)) => self.heard(&messages),
            Some(Record::Rewind(_) | Record::Other) | None => {}
        }
        self.of_an_agent || (self.session.is_some() && self.words.is_some())
    }

    fn finish(self: Box<Self>) -> Option<SessionHeader> {
        if self.of_an_agent {
            return None;
        }
        Some(SessionHeader {
            session: self.session?,
            folder: self.folder,
            words: first_words(&self.words?),
            began: self.began,
            used: self.used,
        })
    }
}

/// Returns the owner of the chats in `tmp/NAME/chats`, from a marker file there or from the CLI's
/// list of names.
fn owner(path: &str, read: &dyn Fn(&str) -> Option<Vec<u8>>) -> Option<String> {
    let name = path.strip_prefix("tmp/")?.split('/').next()?;
    let marked = read(&format!("tmp/{name}/.project_root"));
    let marked = marked.and_then(|bytes| String::from_utf8(bytes).ok());
    let marked = marked.map(|text| text.trim().to_owned());
    marked.filter(|text| !text.is_empty()).or_else(|| {
        let known: Value = serde_json::from_slice(&read("projects.json")?).ok()?;
        let projects = known["projects"].as_object()?;
        let (folder, _) = projects.iter().find(|(_, slug)| *slug == name)?;
        Some(folder.clone())
    })
}

/// Converts a chat that an older version stored as one document into lines. The CLI itself does the
/// same when it resumes it (0.61.0).
pub(super) fn as_lines(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut whole: Value = serde_json::from_slice(bytes).ok()?;
    let messages = whole.as_object_mut()?.remove("messages")?;
    whole["sessionId"].as_str()?;
    if whole["kind"].is_null() {
        whole["kind"] = json!("main");
    }
    let lines = [whole].into_iter().chain(messages.as_array()?.clone());
    let mut out = vec![];
    for line in lines {
        out.extend(line.to_string().into_bytes());
        out.push(b'\n');
    }
    Some(out)
}

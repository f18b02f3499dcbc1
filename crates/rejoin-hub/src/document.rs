//! A conversation as a document to read: Markdown or JSON, page by page, without secrets.

use std::fmt::Write as _;

use rejoin_core::{Role, ToolNote, without_secrets};
use rejoin_store::Conversation;
use serde::Serialize;

use crate::Hub;
use crate::error::{Error, Result};
use crate::page::PageRequest;
use crate::view::MessageView;

/// Number of messages to read at once.
const PAGE: i64 = 100;

/// Form of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DocumentForm {
    Markdown,
    Json,
}

/// Writer of a document. Each call of [`Document::next`] returns a piece, so that the whole is
/// never in memory.
#[derive(Debug)]
pub struct Document {
    hub: Hub,
    conversation: Conversation,
    form: DocumentForm,
    /// False: secrets stay in the text.
    clean: bool,
    /// Number of secrets that were removed so far.
    pub removed: usize,
    /// Number of messages that were written so far.
    pub messages: u64,
    at: At,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum At {
    Begin,
    After(i64),
    End,
}

#[derive(Serialize)]
struct Entry<'m> {
    seq: i64,
    role: Role,
    agent: Option<&'m str>,
    text: String,
    created_at: &'m str,
    edited: bool,
    tools: Vec<ToolNote>,
}

impl Document {
    pub fn new(hub: &Hub, conversation: &Conversation, form: DocumentForm, clean: bool) -> Self {
        Self {
            hub: hub.clone(),
            conversation: conversation.clone(),
            form,
            clean,
            removed: 0,
            messages: 0,
            at: At::Begin,
        }
    }

    /// Returns the next piece, or `None` after the last one.
    pub async fn next(&mut self) -> Result<Option<String>> {
        let after = match self.at {
            At::Begin => {
                self.at = At::After(0);
                return Ok(Some(self.begin()));
            }
            At::After(seq) => seq,
            At::End => return Ok(None),
        };
        let page = PageRequest {
            after: Some(after),
            limit: Some(PAGE),
            ..PageRequest::default()
        };
        let page = self.hub.page_view(&self.conversation, &page).await?;
        let mut piece = String::new();
        for message in &page.messages {
            if let Some(seq) = message.seq {
                self.message(&mut piece, seq, message)?;
            }
        }
        self.at = page.newer.map_or(At::End, At::After);
        if self.at == At::End {
            self.end(&mut piece);
        }
        Ok(Some(piece))
    }

    fn begin(&mut self) -> String {
        let title = self.conversation.title.clone();
        let title = self.text(&title);
        match self.form {
            DocumentForm::Markdown => format!("# {}\n", title.replace('\n', " ")),
            DocumentForm::Json => {
                let head = serde_json::json!({
                    "id": self.conversation.id, "key": self.conversation.key, "title": title,
                    "agent": self.conversation.agent,
                    "created_at": crate::rfc3339(self.conversation.created_at),
                });
                format!("{{\"conversation\":{head},\"messages\":[")
            }
        }
    }

    fn message(&mut self, piece: &mut String, seq: i64, message: &MessageView) -> Result<()> {
        let text = self.text(&message.text);
        let tools: Vec<ToolNote> = message.tools.iter().map(|note| self.tool(note)).collect();
        match self.form {
            DocumentForm::Markdown => {
                let author = match (message.role, &message.agent) {
                    (Role::User, _) => "You",
                    (Role::Assistant, Some(agent)) => agent,
                    (Role::Assistant, None) => "Agent",
                };
                let _ = write!(
                    piece,
                    "\n## {seq}. {author} · {}\n\n{text}\n",
                    message.created_at
                );
                if !tools.is_empty() {
                    let list = tools.iter().map(|t| format!("{} `{}`", t.tool, t.subject));
                    let _ = writeln!(piece, "\nTools: {}", list.collect::<Vec<_>>().join(", "));
                }
            }
            DocumentForm::Json => {
                let entry = Entry {
                    seq,
                    role: message.role,
                    agent: message.agent.as_deref(),
                    text,
                    created_at: &message.created_at,
                    edited: message.edited,
                    tools,
                };
                if self.messages > 0 {
                    piece.push(',');
                }
                let entry = serde_json::to_string(&entry);
                piece.push_str(&entry.map_err(|e| Error::Internal(e.to_string()))?);
            }
        }
        self.messages += 1;
        Ok(())
    }

    fn end(&self, piece: &mut String) {
        let removed = self.removed;
        match self.form {
            DocumentForm::Markdown if removed > 0 => {
                let many = if removed == 1 {
                    "secret was"
                } else {
                    "secrets were"
                };
                let _ = write!(
                    piece,
                    "\n---\n\n{removed} {many} removed from this document.\n"
                );
            }
            DocumentForm::Markdown => {}
            DocumentForm::Json => {
                let _ = writeln!(piece, "],\"secrets_removed\":{removed}}}");
            }
        }
    }

    fn tool(&mut self, note: &ToolNote) -> ToolNote {
        ToolNote {
            subject: self.text(&note.subject),
            ..note.clone()
        }
    }

    fn text(&mut self, text: &str) -> String {
        if !self.clean {
            return text.to_owned();
        }
        let (kept, found) = without_secrets(text);
        self.removed += found;
        kept
    }
}

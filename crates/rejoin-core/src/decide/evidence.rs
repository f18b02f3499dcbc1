//! Findings of the guards, as data. They are formatted only for display.

use std::fmt;

use crate::agent::Runtime;
use crate::ids::SessionId;
use crate::situation::{Fresh, HistoryChange};
use crate::usage::Context;

#[derive(Debug, Clone, Copy)]
pub enum Evidence<'a> {
    NotApplicable,
    Text(&'a str),
    Permissions,
    Messages {
        messages: u64,
    },
    Fresh(Fresh),
    Session(&'a SessionId),
    /// Session of the conversation that this one was forked from.
    Parent {
        session: &'a SessionId,
        conversation: &'a str,
    },
    Failures {
        failures: u32,
        limit: u32,
    },
    Seen {
        seen: u64,
        messages: u64,
    },
    Changed {
        seen: u64,
        by: Option<HistoryChange>,
    },
    OtherFolder(&'a str),
    Runtime {
        wrote: &'a Runtime,
        now: &'a Runtime,
    },
    Context {
        context: Context,
        limit: f64,
    },
    ContextUnknown {
        limit: f64,
    },
    Missing {
        path: Option<&'a str>,
    },
    InUse {
        pid: u32,
    },
    Model {
        wrote: &'a str,
        now: &'a str,
    },
    Compacted {
        summarised: u64,
        messages: u64,
    },
}

impl fmt::Display for Evidence<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::NotApplicable => f.write_str("does not apply"),
            Self::Text(text) => f.write_str(text),
            Self::Permissions => f.write_str("the agent can be held to these permissions"),
            Self::Messages { messages } => {
                write!(f, "{messages} messages in scope before this one")
            }
            Self::Fresh(Fresh::Asked) => f.write_str("a fresh session was asked for"),
            Self::Fresh(Fresh::Retry) => f.write_str("a retry never resumes"),
            Self::Fresh(Fresh::Always) => f.write_str("set to always start a fresh session"),
            Self::Session(id) => write!(f, "{id}"),
            Self::Parent {
                session,
                conversation,
            } => write!(
                f,
                "a copy of {session} of {conversation}, from which this one was forked"
            ),
            Self::Failures { failures, limit } => {
                write!(f, "{failures} failed turns in a row, limit {limit}")
            }
            Self::Seen { seen, messages } => write!(f, "seen through message {seen} of {messages}"),
            Self::Changed {
                by: Some(HistoryChange::Edited(at)),
                ..
            } => write!(f, "message {at} was edited"),
            Self::Changed {
                by: Some(HistoryChange::Removed(at)),
                ..
            } => write!(f, "message {at} and what followed it were removed"),
            Self::Changed { seen, by: None } => {
                write!(
                    f,
                    "the session saw {seen} messages that are no longer the history"
                )
            }
            Self::OtherFolder(path) => write!(f, "the session belongs to {path}"),
            Self::Runtime { wrote, now } if wrote == now => {
                write!(f, "same product and version, {now}")
            }
            Self::Runtime { wrote, now } => write!(f, "written by {wrote}, here is {now}"),
            Self::Context {
                context: Context { used, window },
                limit,
            } => {
                let percent = used as f64 * 100.0 / window as f64;
                write!(
                    f,
                    "{used} of {window} tokens ({percent:.1} %, limit {:.0} %)",
                    limit * 100.0
                )
            }
            Self::ContextUnknown { limit } => {
                write!(
                    f,
                    "how full it is is not known (limit {:.0} %)",
                    limit * 100.0
                )
            }
            Self::Missing { path: Some(path) } => {
                write!(f, "{path} is not here, and no snapshot of it")
            }
            Self::Missing { path: None } => f.write_str("not here, and no snapshot of it"),
            Self::InUse { pid } => write!(f, "process {pid} is using it"),
            Self::Model { wrote, now } => write!(f, "was {wrote}, now {now}"),
            Self::Compacted {
                summarised,
                messages,
            } => write!(
                f,
                "compacted by the agent before this turn: {}",
                crate::summary::knows(messages, summarised)
            ),
        }
    }
}

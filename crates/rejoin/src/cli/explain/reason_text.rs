//! Verdicts and reasons in the words of somebody who once lost a conversation.

use rejoin_core::{GONE_AND_SWEPT, Reason, Sent, Verdict};

use crate::output::format::{count, size};

/// A decision and the facts that its explanation needs.
pub(in crate::cli) struct Case<'a> {
    pub(in crate::cli) agent: &'a str,
    pub(in crate::cli) verdict: Option<Verdict>,
    pub(in crate::cli) reason: Option<Reason>,
    pub(in crate::cli) sent: Sent,
    /// Evidence of the check that gave the reason.
    pub(in crate::cli) evidence: &'a str,
}

/// Did it happen, or would it?
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Tense {
    Past,
    Future,
}

impl Case<'_> {
    pub(in crate::cli) fn headline(&self, tense: Tense) -> String {
        let agent = self.agent;
        let word = match (tense, self.verdict) {
            (Tense::Past, Some(verdict)) => verdict.as_str(),
            (Tense::Past, None) => "not decided yet",
            (Tense::Future, Some(Verdict::Started)) => "would start",
            (Tense::Future, Some(Verdict::Live)) => "would go on live",
            (Tense::Future, Some(Verdict::Resumed)) => "would resume",
            (Tense::Future, Some(Verdict::Restored)) => "would restore",
            (Tense::Future, Some(Verdict::Reseeded)) => "would reseed",
            (Tense::Future, None) => "would not run",
        };
        let known = self.sent.knows();
        let knows = match (self.sent.caught_up, tense) {
            (0, _) => known,
            (more, _) if self.sent.summarised > 0 => format!("{known}; {more} more were told"),
            (more, Tense::Past) => {
                let known = count(self.sent.resumed, "message");
                format!("knew {known} and was told {more} more")
            }
            (more, Tense::Future) => {
                let known = count(self.sent.resumed, "message");
                format!("knows {known} and is told {more} more")
            }
        };
        match self.verdict {
            Some(Verdict::Started) => format!("{word}: nothing came before"),
            Some(Verdict::Resumed | Verdict::Live) => format!("{word}: {agent} {knows}"),
            Some(Verdict::Restored) => format!("{word} from a snapshot: {agent} {knows}"),
            Some(Verdict::Reseeded) | None => match self.reason {
                Some(reason) => format!("{word} because {}", self.because(reason)),
                None if self.evidence.is_empty() => word.to_owned(),
                None => format!("{word}: {}", self.evidence),
            },
        }
    }

    fn because(&self, reason: Reason) -> String {
        let (agent, evidence) = (self.agent, self.evidence);
        match reason {
            Reason::FirstTurn => "what came before was never answered".into(),
            Reason::FreshRequested => evidence.to_owned(),
            Reason::NoCapability => format!("this {agent} cannot resume a session"),
            Reason::NoSession => format!("{agent} has no session of this conversation"),
            Reason::SessionRetired => format!("{agent}'s session is not used any more"),
            Reason::HistoryChanged => format!("the history changed after {agent} had seen it"),
            Reason::OtherFolder => "the working folder is another one".into(),
            Reason::OtherRuntime => format!("another {agent} wrote the session"),
            Reason::OtherProvider => "the session's model provider is not set up here".into(),
            Reason::ContextFull => format!("{agent}'s session is nearly full"),
            Reason::SessionMissing => format!("{agent}'s session file is gone"),
            Reason::InUse => format!("another process is using {agent}'s session"),
            Reason::SessionDirty => "an unfinished turn left something in the session".into(),
            Reason::SessionDamaged => format!("{agent}'s session file is not what it was"),
            Reason::SessionChanged => "somebody went on with the session outside rejoin".into(),
            Reason::ModelChanged => "another model was asked for".into(),
            Reason::Compacted => format!("{agent} had shortened its session"),
            Reason::SnapshotDamaged => "the snapshot of the session is damaged".into(),
            Reason::SnapshotExpired if evidence == GONE_AND_SWEPT => {
                format!("{agent}'s session file is gone, and its snapshot was swept")
            }
            Reason::SnapshotExpired => "the snapshot of the session was swept".into(),
            Reason::Rejected => format!("{agent} refused its own session"),
        }
    }
}

/// The number in what a program says of its version.
pub(in crate::cli) fn version(agent: &str, runtime: Option<&str>) -> String {
    let number = runtime.and_then(|r| r.rsplit(' ').next());
    number.map_or_else(|| agent.to_owned(), |number| format!("{agent} {number}"))
}

/// How the model came to know what was said before, and how much travelled.
pub(in crate::cli) fn told(sent: &Sent, tense: Tense) -> String {
    let mut parts = vec![];
    if sent.transcribed > 0 {
        let mut part = format!("{} re-told", count(sent.transcribed, "message"));
        if sent.shortened > 0 || sent.left_out > 0 {
            part = format!(
                "{part} ({} shortened, {} left out)",
                sent.shortened, sent.left_out
            );
        }
        parts.push(part);
    }
    if sent.caught_up > 0 {
        parts.push(format!("{} caught up on", count(sent.caught_up, "message")));
    }
    let new = match tense {
        Tense::Past => "the new message",
        Tense::Future => "your message",
    };
    parts.push(if parts.is_empty() {
        format!("only {new}")
    } else {
        new.into()
    });
    let size = match (tense, sent.bytes) {
        (Tense::Past, bytes) => size(bytes),
        (Tense::Future, 0) => return parts.join(", "),
        (Tense::Future, bytes) => format!("{} besides it", size(bytes)),
    };
    format!("{}; {size}", parts.join(", "))
}

/// The permissions of the agent, in words.
pub(in crate::cli) fn allowed(mode: &str, tools: Option<&[String]>, denied: &[String]) -> String {
    let mut text = match mode {
        "read-only" => "read-only: may look, may not change anything".to_owned(),
        "edit" => "edit: may change files in the working folder".into(),
        "full" => "full: may do anything without asking".into(),
        "ask" => "ask: a person decides".into(),
        other => other.to_owned(),
    };
    if let Some(tools) = tools {
        let list = if tools.is_empty() {
            "no tools".into()
        } else {
            format!("only {}", tools.join(", "))
        };
        text = format!("{text}; {list}");
    }
    if !denied.is_empty() {
        text = format!("{text}; never {}", denied.join(", "));
    }
    text
}

//! How a run ended. The stream's own last word counts, not the exit code; other words are looked at
//! only where they are the CLI's, never the assistant's.

use rejoin_core::{Class, Failure, Outcome};

use super::probe::NOT_FOUND;
use crate::stream::{End, EndCause};

mod api;

/// What the stream showed of the end.
#[derive(Default)]
pub(super) struct Seen {
    /// The session it opened.
    pub(super) thread: Option<String>,
    /// A later line named another one.
    pub(super) moved: bool,
    pub(super) completed: bool,
    pub(super) failed: Option<String>,
    /// The last error that was not the end.
    pub(super) trouble: Option<String>,
    pub(super) stderr: Vec<String>,
    /// It is held to less than it was told to: nothing was sent to it.
    pub(super) wider: Option<String>,
}

pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) refused: bool,
}

/// It was asked to resume, and said that it does not have that session, or cannot load it.
const NOT_LOADED: &[&str] = &[
    NOT_FOUND,
    "failed to read session metadata",
    "invalid paginated history lineage",
    "modelProviderNotConfigured",
    "is archived. Run",
];

/// Words with which it says that it does not resume a session, whatever the cause.
const NOT_RESUMED: &[&str] = &[
    "thread/resume failed",
    "error resuming thread",
    "failed to initialize session",
];

/// Another process writes the session: it can be resumed later.
const IN_USE: &str = "already has an active writer";

pub(super) fn judge(seen: &Seen, end: &End) -> Judged {
    let refusal = refusal(seen, end);
    Judged {
        refused: refusal.is_some(),
        outcome: match refusal {
            Some(message) => failed(Class::Refused, message),
            None => outcome(seen, end),
        },
    }
}

fn refusal(seen: &Seen, end: &End) -> Option<String> {
    if let Some(opened) = &seen.thread {
        let asked = end.asked_session.as_ref()?.as_str();
        return (!asked.eq_ignore_ascii_case(opened))
            .then(|| format!("the CLI opened the session {opened} instead of {asked}"));
    }
    let resumed = end.asked_session.is_some();
    let unknown = |said: &&String| {
        let lower = said.to_lowercase();
        let not_resumed = NOT_RESUMED.iter().any(|words| lower.contains(words));
        NOT_LOADED.iter().any(|word| said.contains(word))
            || (resumed && not_resumed && !said.contains(IN_USE))
    };
    let said = seen.stderr.iter().find(unknown)?;
    Some(format!(
        "the CLI does not load the session: {}",
        api::sentence(said)
    ))
}

fn outcome(seen: &Seen, end: &End) -> Outcome {
    let done = seen.completed && seen.failed.is_none() && !end.torn;
    if let Some(how) = &seen.wider {
        return failed(
            Class::Envelope,
            format!("the CLI does not keep to the permissions of the turn: {how}"),
        );
    }
    match end.cause {
        EndCause::NotStarted => failed(
            Class::NotStarted,
            last_words(seen, "the CLI could not be started"),
        ),
        // It was done before anybody stopped it, and may have been ended because it lingered.
        EndCause::ByItself
        | EndCause::Unseen
        | EndCause::Cancelled
        | EndCause::WallLimit
        | EndCause::IdleLimit
        | EndCause::CostLimit
        | EndCause::SpoolFull
        | EndCause::DiskFull
            if done =>
        {
            if seen.moved {
                return failed(Class::NotRecorded, "the CLI went on in another session");
            }
            Outcome::Succeeded
        }
        EndCause::Cancelled => Outcome::Cancelled,
        EndCause::WallLimit => failed(Class::TimeLimit, "it took longer than allowed"),
        EndCause::IdleLimit => failed(Class::TimeLimit, "it was silent for longer than allowed"),
        EndCause::CostLimit => failed(Class::CostLimit, "it cost more than allowed"),
        EndCause::SpoolFull => failed(Class::DiskFull, "it printed more than can be kept"),
        EndCause::DiskFull => failed(Class::DiskFull, "the disk is full"),
        EndCause::ByItself | EndCause::Unseen => match &seen.failed {
            Some(said) => Outcome::Failed(api::failure(said)),
            None => without_result(seen, end),
        },
    }
}

fn without_result(seen: &Seen, end: &End) -> Outcome {
    let lost = end.code.is_none() && end.signal.is_none();
    if end.cause == EndCause::Unseen || lost {
        let message = "nobody saw how it ended".into();
        return Outcome::Lost(Failure {
            class: Class::Lost,
            message,
        });
    }
    if let Some(signal) = end.signal {
        return failed(
            Class::Crashed,
            format!("the CLI was killed by signal {signal}"),
        );
    }
    if end.torn {
        return failed(Class::Crashed, "the last line of its output is incomplete");
    }
    let said = seen.stderr.join(" ");
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let class = if says(&[IN_USE]) {
        Class::InUse
    } else if says(&["Unknown feature flag"]) {
        Class::Envelope
    } else if end.code == Some(2)
        || says(&["Not inside a trusted directory", "rror loading config"])
    {
        Class::NotStarted
    } else if said.contains("panicked at") || end.code.is_some_and(|code| code > 1) {
        Class::Crashed
    } else {
        let class = api::failure(&said).class;
        match (class == Class::Unknown, seen.thread.is_some()) {
            (false, _) => class,
            // Interrupted, it says nothing more and ends with 1.
            (true, true) => Class::Interrupted,
            (true, false) => Class::Crashed,
        }
    };
    failed(class, last_words(seen, "the CLI ended without a result"))
}

fn last_words(seen: &Seen, otherwise: &str) -> String {
    let own = |line: &&String| line.starts_with("Error: ") || line.starts_with("error: ");
    let said = seen.stderr.iter().rev().find(own).or(seen.stderr.last());
    match said.filter(|said| !said.starts_with("WARNING:")) {
        Some(said) => format!("{otherwise}: {}", api::sentence(said)),
        None => otherwise.to_owned(),
    }
}

fn failed(class: Class, message: impl Into<String>) -> Outcome {
    Outcome::Failed(Failure {
        class,
        message: message.into(),
    })
}

#[cfg(test)]
mod tests;

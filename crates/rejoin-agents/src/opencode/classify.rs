//! How a run ended. Structure first; words are looked at only where they are the CLI's own, never
//! the assistant's.

use rejoin_core::{Class, Failure, Outcome};

use super::probe::NOT_FOUND;
use super::serve::NO_SERVER;
use crate::stream::{End, EndCause};

mod api;
mod retries;

pub(super) use api::ApiError;
pub(super) use retries::Retries;

/// Why a run that asks its model again and again is stopped.
pub(super) const LOOPS: &str = "the answers of its model had no end, and it asked for ever again";

/// What the stream showed of the end.
#[derive(Default)]
pub(super) struct Seen {
    /// Of the first line.
    pub(super) session: Option<String>,
    /// A later line named another one.
    pub(super) moved: bool,
    pub(super) error: Option<ApiError>,
    /// Why the last step ended.
    last: Option<String>,
    /// Steps in a row that ended for no reason, and answers.
    unknown: u64,
    answers: u64,
    pub(super) looping: bool,
    pub(super) retries: Retries,
    pub(super) stderr: Vec<String>,
}

impl Seen {
    pub(super) fn step(&mut self, reason: &str, most_unknown: u64, most_answers: u64) {
        self.unknown = if reason == "unknown" {
            self.unknown + 1
        } else {
            0
        };
        self.answers += u64::from(reason == "stop");
        self.looping |= self.unknown >= most_unknown || self.answers >= most_answers;
        self.retries.answered(reason);
        self.last = Some(reason.to_owned());
    }
}

pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) refused: bool,
}

pub(super) fn judge(seen: &Seen, answered: bool, end: &End) -> Judged {
    let refusal = refusal(seen, end);
    Judged {
        refused: refusal.is_some(),
        outcome: match refusal {
            Some(message) => failed(Class::Refused, message),
            None => outcome(seen, answered, end),
        },
    }
}

/// The session to resume is not known, or another one was opened in its place.
fn refusal(seen: &Seen, end: &End) -> Option<String> {
    match seen.session.as_deref() {
        Some(opened) => {
            let asked = end.asked_session.as_ref()?.as_str();
            (opened != asked)
                .then(|| format!("the CLI opened the session {opened} instead of {asked}"))
        }
        None => {
            let unknown = seen.stderr.iter().any(|said| said.contains(NOT_FOUND));
            unknown.then(|| "the CLI does not know the session".into())
        }
    }
}

/// There is no last word: an answer, a step that ended by itself, and no error after it.
fn outcome(seen: &Seen, answered: bool, end: &End) -> Outcome {
    let stopped = seen.last.as_deref() == Some("stop");
    let whole = answered && stopped && seen.error.is_none() && !seen.looping && !end.torn;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    match end.cause {
        EndCause::NotStarted => failed(
            Class::NotStarted,
            last_words(seen, "the CLI could not be started"),
        ),
        // It was done before anybody stopped it.
        EndCause::ByItself
        | EndCause::Cancelled
        | EndCause::WallLimit
        | EndCause::IdleLimit
        | EndCause::CostLimit
        | EndCause::SpoolFull
        | EndCause::DiskFull
            if whole && by_itself =>
        {
            recorded(seen)
        }
        EndCause::Unseen if whole => recorded(seen),
        EndCause::Cancelled if seen.looping => match seen.retries.overflow() {
            // It makes room and goes on, for ever.
            Some(failure) => Outcome::Failed(failure),
            None => failed(Class::Transient, LOOPS),
        },
        EndCause::Cancelled if let Some(failure) = seen.retries.hopeless() => {
            Outcome::Failed(failure)
        }
        EndCause::Cancelled => Outcome::Cancelled,
        EndCause::WallLimit => failed(Class::TimeLimit, "it took longer than allowed"),
        EndCause::IdleLimit => failed(Class::TimeLimit, "it was silent for longer than allowed"),
        EndCause::CostLimit => failed(Class::CostLimit, "it cost more than allowed"),
        EndCause::SpoolFull => failed(Class::DiskFull, "it printed more than can be kept"),
        EndCause::DiskFull => failed(Class::DiskFull, "the disk is full"),
        EndCause::ByItself | EndCause::Unseen => match &seen.error {
            Some(error) => Outcome::Failed(error.failure()),
            None => without_error(seen, end),
        },
    }
}

fn recorded(seen: &Seen) -> Outcome {
    if seen.moved {
        return failed(Class::NotRecorded, "the CLI went on in another session");
    }
    Outcome::Succeeded
}

fn without_error(seen: &Seen, end: &End) -> Outcome {
    let lost = end.code.is_none() && end.signal.is_none();
    if end.cause == EndCause::Unseen || lost {
        let message = "nobody saw how it ended".into();
        return Outcome::Lost(Failure {
            class: Class::Lost,
            message,
        });
    }
    if let Some(signal) = end.signal {
        let message = format!("the CLI was killed by signal {signal}");
        return failed(Class::Crashed, message);
    }
    if end.torn {
        return failed(Class::Crashed, "the last line of its output is incomplete");
    }
    if end.code != Some(0) {
        return failed(
            class_of_words(seen),
            last_words(seen, "the CLI ended without an answer"),
        );
    }
    match seen.last.as_deref() {
        None => failed(
            Class::Crashed,
            last_words(seen, "the CLI ended without asking its model anything"),
        ),
        Some("stop") => failed(Class::Unknown, "its model ended without an answer"),
        Some("tool-calls") => failed(
            Class::Interrupted,
            last_words(
                seen,
                "a tool needs a permission, and nobody is there to give it",
            ),
        ),
        Some("length") => failed(
            Class::Interrupted,
            "the answer was longer than its model may give",
        ),
        Some("content-filter") => failed(Class::InvalidRequest, "the API withheld the answer"),
        Some("unknown" | "error") => failed(Class::Transient, "the answer broke off"),
        Some(reason) => failed(
            Class::Unknown,
            format!("its last step ended with `{reason}`"),
        ),
    }
}

/// Of an end with nothing but a few words on stderr.
fn class_of_words(seen: &Seen) -> Class {
    let said = seen.stderr.join(" ");
    let not_started = [NO_SERVER, "Unknown argument", "Failed to change directory"];
    if not_started.iter().any(|words| said.contains(words)) {
        Class::NotStarted
    } else if said.contains("database is locked") || said.contains("SQLITE_BUSY") {
        Class::InUse
    } else {
        Class::Crashed
    }
}

fn last_words(seen: &Seen, otherwise: &str) -> String {
    match seen.stderr.last() {
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

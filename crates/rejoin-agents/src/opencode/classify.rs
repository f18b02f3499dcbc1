//! Classification of the end of a run. Structured fields decide first. Text is examined only if the
//! CLI itself wrote it, never if the assistant did.

use rejoin_core::{Class, Outcome};

use super::probe::NOT_FOUND;
use super::serve::NO_SERVER;
use crate::failure::{self, Judged, failed};
use crate::stream::{EndCause, ProcessEnd};

mod api;
mod retries;

pub(super) use api::ApiError;
pub(super) use retries::Retries;

/// Reason for stopping a run that asks its model again and again.
pub(super) const LOOPS: &str = "the answers of its model had no end, and it asked for ever again";

/// Facts of the stream that determine the outcome.
#[derive(Default)]
pub(super) struct RunFacts {
    /// Session of the first line.
    pub(super) session: Option<String>,
    /// True if a later line named another session.
    pub(super) moved: bool,
    pub(super) error: Option<ApiError>,
    /// Reason for which the last step ended.
    last: Option<String>,
    /// Number of consecutive steps that ended without a reason, and number of answers.
    unknown: u64,
    answers: u64,
    pub(super) looping: bool,
    pub(super) retries: Retries,
    pub(super) stderr: Vec<String>,
}

impl RunFacts {
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

pub(super) fn judge(seen: &RunFacts, answered: bool, end: &ProcessEnd) -> Judged {
    Judged::new(refusal(seen, end), || outcome(seen, answered, end))
}

/// Returns a message if the CLI does not know the session to resume, or opened another one instead.
/// None if it did neither.
fn refusal(seen: &RunFacts, end: &ProcessEnd) -> Option<String> {
    match seen.session.as_deref() {
        Some(opened) => {
            let asked = end.asked_session.as_ref()?.as_str();
            failure::another_session(asked, opened)
        }
        None => {
            let unknown = seen.stderr.iter().any(|said| said.contains(NOT_FOUND));
            unknown.then(|| "the CLI does not know the session".into())
        }
    }
}

/// Determines the outcome. The CLI prints no final line: a success is an answer, a step that ended
/// by itself, and no error after it.
fn outcome(seen: &RunFacts, answered: bool, end: &ProcessEnd) -> Outcome {
    let stopped = seen.last.as_deref() == Some("stop");
    let whole = answered && stopped && seen.error.is_none() && !seen.looping && !end.torn;
    let whole = whole && end.cause != EndCause::NotStarted;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    // A run that was stopped may have finished before.
    if whole && (by_itself || end.cause == EndCause::Unseen) {
        return failure::recorded(seen.moved);
    }
    if end.cause == EndCause::Cancelled {
        return cancelled(seen);
    }
    let stopped = failure::of_cause(end.cause, || last_words(seen));
    stopped.unwrap_or_else(|| match &seen.error {
        Some(error) => Outcome::Failed(error.failure()),
        None => without_error(seen, end),
    })
}

/// Classifies a run that was stopped: by the user, or because it asks its model for ever.
fn cancelled(seen: &RunFacts) -> Outcome {
    if !seen.looping {
        let failure = seen.retries.hopeless();
        return failure.map_or(Outcome::Cancelled, Outcome::Failed);
    }
    // After an overflow the CLI compacts the session and continues, endlessly.
    let overflow = seen.retries.overflow().map(Outcome::Failed);
    overflow.unwrap_or_else(|| failed(Class::Transient, LOOPS))
}

fn without_error(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    if let Some(outcome) = failure::of_process(end) {
        return outcome;
    }
    let explained = |message| failure::explained(message, last_words(seen));
    if end.code != Some(0) {
        return failed(
            class_of_words(seen),
            explained("the CLI ended without an answer"),
        );
    }
    match seen.last.as_deref() {
        None => failed(
            Class::Crashed,
            explained("the CLI ended without asking its model anything"),
        ),
        Some("stop") => failed(Class::Unknown, "its model ended without an answer"),
        Some("tool-calls") => failed(
            Class::Interrupted,
            explained("a tool needs a permission, and nobody is there to give it"),
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

/// Classifies an end from the text on stderr alone.
fn class_of_words(seen: &RunFacts) -> Class {
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

fn last_words(seen: &RunFacts) -> Option<String> {
    seen.stderr.last().map(|said| api::sentence(said))
}

//! Classification of the end of a run. The last line decides about success. The exit code is wrong
//! in both directions (0.61.0: 0 after a signal, the HTTP status modulo 256 after a failure).

use rejoin_core::{Class, Failure, Outcome};

use super::wire::{ErrorBody, Finished};
use crate::failure::{self, Judged, failed, failure};
use crate::stream::{EndCause, ProcessEnd};

mod api;

/// Prefix of the CLI's message about a session that it cannot resume, printed before anything else.
pub(super) const NOT_RESUMED: &str = "Error resuming session:";
/// Message of the CLI when it knows no details.
const NO_WORDS: &str = "An unknown error occurred";
/// Prefix of a message that continues with the name of a report, and the cause.
const TALKING: &str = "Error when talking to Gemini API";
const NOT_IMPORTED: &str = "Error importing session from file:";

/// Facts of the stream that determine the outcome.
#[derive(Default)]
pub(super) struct RunFacts {
    pub(super) init: bool,
    pub(super) session: Option<String>,
    pub(super) result: Option<Finished>,
    /// Errors and warnings during the run.
    pub(super) notes: Vec<ErrorBody>,
    pub(super) stderr: Vec<String>,
}

pub(super) fn judge(seen: &RunFacts, end: &ProcessEnd) -> Judged {
    Judged::new(refusal(seen, end), || outcome(seen, end))
}

/// Returns a message if the CLI does not know the session to resume, or opened another one instead.
/// None if it did neither.
fn refusal(seen: &RunFacts, end: &ProcessEnd) -> Option<String> {
    let begins = |with: &str| seen.stderr.iter().any(|said| said.starts_with(with));
    if begins(NOT_IMPORTED) && !seen.init && seen.result.is_none() {
        return Some("the CLI does not take the copy of the session".into());
    }
    let asked = end.asked_session.as_ref()?.as_str();
    if seen.init {
        let opened = seen.session.as_deref().unwrap_or("none");
        return failure::another_session(asked, opened);
    }
    (begins(NOT_RESUMED) && seen.result.is_none())
        .then(|| "the CLI does not know the session".into())
}

fn outcome(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    let succeeded = |result: &Finished| result.status.as_deref() == Some("success");
    let whole = seen.result.as_ref().is_some_and(succeeded) && !end.torn && seen.init;
    let whole = whole && end.cause != EndCause::NotStarted;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    match failure::was_stopped(end.cause) {
        false if whole => return in_circles(seen),
        // The run had finished before it was stopped.
        true if whole && by_itself && gave_up(seen).is_none() => return Outcome::Succeeded,
        true | false => {}
    }
    let stopped = failure::of_cause(end.cause, || last_words(seen));
    stopped.unwrap_or_else(|| match &seen.result {
        Some(result) if !succeeded(result) => Outcome::Failed(of_result(seen, result, end)),
        Some(_) | None => without_result(seen, end),
    })
}

/// Classifies a success. The CLI also reports "success" for a turn that it gave up, and then loses
/// the history.
fn in_circles(seen: &RunFacts) -> Outcome {
    match gave_up(seen) {
        Some(words) => failed(Class::Interrupted, format!("the CLI gave up: {words}")),
        None => Outcome::Succeeded,
    }
}

/// Returns the CLI's own message if it detected a loop. It does so for slow answers on a busy
/// machine too (0.61.0).
fn gave_up(seen: &RunFacts) -> Option<&str> {
    let words = seen.notes.iter().map(|note| note.message.as_str());
    words
        .into_iter()
        .find(|words| words.starts_with("Loop detected"))
}

fn of_result(seen: &RunFacts, result: &Finished, end: &ProcessEnd) -> Failure {
    let error = result.error.clone().unwrap_or_default();
    match (error.kind.as_deref(), end.code) {
        (Some("FatalTurnLimitedError"), _) | (_, Some(53)) => {
            return failure(Class::TimeLimit, "it used all the rounds it was allowed");
        }
        (Some("FatalCancellationError"), _) | (_, Some(130)) => {
            return failure(Class::Interrupted, "it was interrupted");
        }
        (_, _) => {}
    }
    if error.message.is_empty() {
        // An empty answer: blocked, or only thoughts.
        let said = seen.notes.last().map_or("", |note| note.message.as_str());
        return api::failure(said, None);
    }
    let status = error.status.or_else(|| api::status_of(end.code));
    // 0.51.0 reports the cause only on stderr.
    match beside(seen) {
        Some((said, status)) if error.message.contains(NO_WORDS) => api::failure(said, status),
        Some(_) | None => api::failure(&error.message, status),
    }
}

/// Returns the last cause on stderr: the reason of a retry, with its HTTP status, or the final
/// error.
fn beside(seen: &RunFacts) -> Option<(&str, Option<u64>)> {
    seen.stderr.iter().rev().find_map(|line| {
        if let Some(told) = line.strip_prefix(TALKING) {
            return told.split_once(".json ").map(|(_, why)| (why, None));
        }
        let (_, why) = line.strip_prefix("Attempt ")?.split_once(" failed")?;
        let status = why.strip_prefix(" with status ").and_then(|rest| {
            let digits = rest.split(|c: char| !c.is_ascii_digit()).next()?;
            digits.parse().ok()
        });
        Some((why.trim_start_matches([':', ' ']), status))
    })
}

fn without_result(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    if let Some(outcome) = failure::of_process(end) {
        return outcome;
    }
    let said = seen.stderr.join(" ");
    let yolo = said.contains("YOLO mode is disabled") || said.contains("Cannot start in YOLO mode");
    let (class, how) = match end.code {
        // The CLI obeyed a signal.
        Some(0 | 130) if seen.init => (Class::Interrupted, "it was interrupted"),
        Some(41) => (Class::Auth, "the login is missing or was refused"),
        Some(_) if yolo => (
            Class::Permissions,
            "full permission is switched off for this CLI",
        ),
        Some(42 | 44 | 52 | 55) => (Class::NotStarted, "the CLI did not begin"),
        Some(53) => (Class::TimeLimit, "it used all the rounds it was allowed"),
        Some(_) | None if !seen.init => (Class::NotStarted, "the CLI did not begin"),
        Some(_) | None => (Class::Crashed, "the CLI ended without a result"),
    };
    failed(class, failure::explained(how, last_words(seen)))
}

/// Prefixes of lines that are printed at every start, or are part of a stack trace.
const NOISE: &[&str] = &[
    "Warning:",
    "Ripgrep is not",
    "YOLO mode is",
    "at ",
    "[STARTUP]",
    "}",
];

fn last_words(seen: &RunFacts) -> Option<String> {
    let noise = |said: &&String| !NOISE.iter().any(|word| said.starts_with(word));
    let said = seen.stderr.iter().find(noise)?;
    Some(failure::sentence(said, ""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Output of 0.51.0 on stderr.
    #[test]
    fn what_it_was_is_told_beside_the_result() {
        let told = |lines: &[&str]| {
            let seen = RunFacts {
                stderr: lines.iter().map(ToString::to_string).collect(),
                ..RunFacts::default()
            };
            beside(&seen).map(|(said, status)| (said.to_owned(), status))
        };
        let limited = [
            "Attempt 1 failed: rate limited",
            "Suggested retry after 1s..",
        ];
        assert_eq!(told(&limited), Some(("rate limited".into(), None)));
        let down = "Attempt 2 failed with status 529. Retrying with backoff... _ApiError";
        let (said, status) = told(&["Attempt 1 failed: x", down]).unwrap_or_default();
        assert_eq!(
            (said.starts_with("with status 529"), status),
            (true, Some(529))
        );
        let cut = "Error when talking to Gemini API Full report available at: /tmp/r.json TypeError: terminated";
        assert_eq!(
            told(&[limited[0], cut]),
            Some(("TypeError: terminated".into(), None))
        );
        assert_eq!(told(&["Attempt", "Attempt 1", "no"]), None);
    }
}

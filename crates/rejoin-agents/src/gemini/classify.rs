//! How a run ended. Success is what the last line says; the exit code is wrong in both directions
//! (0.61.0: 0 after a signal, the HTTP status modulo 256 after a failure).

use rejoin_core::{Class, Failure, Outcome};

use super::wire::{Finished, Trouble};
use crate::stream::{End, EndCause};

mod api;

/// What the CLI says about a session it cannot go on with, before it prints anything.
pub(super) const NOT_RESUMED: &str = "Error resuming session:";
/// Said where nothing better is known.
const NO_WORDS: &str = "An unknown error occurred";
/// Followed by the name of a report, and by what happened.
const TALKING: &str = "Error when talking to Gemini API";
const NOT_IMPORTED: &str = "Error importing session from file:";

/// What the stream showed of the end.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) init: bool,
    pub(super) session: Option<String>,
    pub(super) result: Option<Finished>,
    /// What it complained of on the way.
    pub(super) notes: Vec<Trouble>,
    pub(super) stderr: Vec<String>,
}

pub(super) struct Judged {
    pub(super) outcome: Outcome,
    pub(super) refused: bool,
}

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

/// The session to resume is not known, or another one was opened in its place.
fn refusal(seen: &Seen, end: &End) -> Option<String> {
    let begins = |with: &str| seen.stderr.iter().any(|said| said.starts_with(with));
    if begins(NOT_IMPORTED) && !seen.init && seen.result.is_none() {
        return Some("the CLI does not take the copy of the session".into());
    }
    let asked = end.asked_session.as_ref()?.as_str();
    if seen.init {
        let opened = seen.session.as_deref().unwrap_or("none");
        return (asked != opened)
            .then(|| format!("the CLI opened the session {opened} instead of {asked}"));
    }
    (begins(NOT_RESUMED) && seen.result.is_none())
        .then(|| "the CLI does not know the session".into())
}

fn outcome(seen: &Seen, end: &End) -> Outcome {
    let succeeded = |result: &Finished| result.status.as_deref() == Some("success");
    let whole = seen.result.as_ref().is_some_and(succeeded) && !end.torn && seen.init;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    match end.cause {
        EndCause::NotStarted => failed(
            Class::NotStarted,
            last_words(seen, "the CLI could not be started"),
        ),
        EndCause::ByItself | EndCause::Unseen if whole => in_circles(seen),
        // It was done before anybody stopped it.
        EndCause::Cancelled
        | EndCause::WallLimit
        | EndCause::IdleLimit
        | EndCause::CostLimit
        | EndCause::SpoolFull
        | EndCause::DiskFull
            if whole && by_itself && gave_up(seen).is_none() =>
        {
            Outcome::Succeeded
        }
        EndCause::Cancelled => Outcome::Cancelled,
        EndCause::WallLimit => failed(Class::TimeLimit, "it took longer than allowed"),
        EndCause::IdleLimit => failed(Class::TimeLimit, "it was silent for longer than allowed"),
        EndCause::CostLimit => failed(Class::CostLimit, "it cost more than allowed"),
        EndCause::SpoolFull => failed(Class::DiskFull, "it printed more than can be kept"),
        EndCause::DiskFull => failed(Class::DiskFull, "the disk is full"),
        EndCause::ByItself | EndCause::Unseen => match &seen.result {
            Some(result) if !succeeded(result) => Outcome::Failed(of_result(seen, result, end)),
            Some(_) | None => without_result(seen, end),
        },
    }
}

/// A turn that the CLI gave up says "success" too, and takes the history along.
fn in_circles(seen: &Seen) -> Outcome {
    match gave_up(seen) {
        Some(words) => failed(Class::Interrupted, format!("the CLI gave up: {words}")),
        None => Outcome::Succeeded,
    }
}

/// The CLI's own words if it detected a loop, as it does with slow answers on a busy machine too (0.61.0).
fn gave_up(seen: &Seen) -> Option<&str> {
    let words = seen.notes.iter().map(|note| note.message.as_str());
    words
        .into_iter()
        .find(|words| words.starts_with("Loop detected"))
}

fn of_result(seen: &Seen, result: &Finished, end: &End) -> Failure {
    let failure = |class, message: &str| Failure {
        class,
        message: message.into(),
    };
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
        // An answer without words: blocked, or only thoughts.
        let said = seen.notes.last().map_or("", |note| note.message.as_str());
        return api::failure(said, None);
    }
    let status = error.status.or_else(|| api::status_of(end.code));
    // 0.51.0 tells what it was only there.
    match beside(seen) {
        Some((said, status)) if error.message.contains(NO_WORDS) => api::failure(said, status),
        Some(_) | None => api::failure(&error.message, status),
    }
}

/// What it says last beside its result: why it was tried again, with the status that was given, or what
/// became of it.
fn beside(seen: &Seen) -> Option<(&str, Option<u64>)> {
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
    let yolo = said.contains("YOLO mode is disabled") || said.contains("Cannot start in YOLO mode");
    let class = match end.code {
        // A signal that it obeyed.
        Some(0 | 130) if seen.init => Class::Interrupted,
        Some(41) => Class::Auth,
        Some(_) if yolo => Class::Envelope,
        Some(42 | 44 | 52 | 55) => Class::NotStarted,
        Some(53) => Class::TimeLimit,
        Some(_) | None if !seen.init => Class::NotStarted,
        Some(_) | None => Class::Crashed,
    };
    let how = match class {
        Class::Interrupted => "it was interrupted",
        Class::Auth => "the login is missing or was refused",
        Class::Envelope => "full permission is switched off for this CLI",
        Class::TimeLimit => "it used all the rounds it was allowed",
        Class::NotStarted => "the CLI did not begin",
        Class::Refused
        | Class::Transient
        | Class::Quota
        | Class::ContextOverflow
        | Class::Poisoned
        | Class::InvalidRequest
        | Class::Crashed
        | Class::DiskFull
        | Class::NotRecorded
        | Class::IdleLimit
        | Class::CostLimit
        | Class::WouldReseed
        | Class::InUse
        | Class::Lost
        | Class::Unknown => "the CLI ended without a result",
    };
    failed(class, last_words(seen, how))
}

/// Said at every start, or part of a stack trace.
const NOISE: &[&str] = &[
    "Warning:",
    "Ripgrep is not",
    "YOLO mode is",
    "at ",
    "[STARTUP]",
    "}",
];

fn last_words(seen: &Seen, otherwise: &str) -> String {
    let noise = |said: &&String| !NOISE.iter().any(|word| said.starts_with(word));
    match seen.stderr.iter().find(noise) {
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
mod tests {
    use super::*;

    /// As 0.51.0 has it on stderr.
    #[test]
    fn what_it_was_is_told_beside_the_result() {
        let told = |lines: &[&str]| {
            let seen = Seen {
                stderr: lines.iter().map(ToString::to_string).collect(),
                ..Seen::default()
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

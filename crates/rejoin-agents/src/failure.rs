//! Outcomes of a run that all CLIs share: ends that the process alone decides, and the messages of
//! failures. Each adapter classifies the texts of its own CLI.

use rejoin_core::{Class, Failure, Outcome};

use crate::stream::{EndCause, ProcessEnd};

/// Outcome of a run.
pub(crate) struct Judged {
    pub(crate) outcome: Outcome,
    /// True if the CLI did not resume the session that it was asked for.
    pub(crate) refused: bool,
}

impl Judged {
    /// Returns a refusal if there is a message about one, otherwise the outcome.
    pub(crate) fn new(refusal: Option<String>, outcome: impl FnOnce() -> Outcome) -> Self {
        Self {
            refused: refusal.is_some(),
            outcome: match refusal {
                Some(message) => failed(Class::Refused, message),
                None => outcome(),
            },
        }
    }
}

pub(crate) fn failed(class: Class, message: impl Into<String>) -> Outcome {
    Outcome::Failed(failure(class, message))
}

pub(crate) fn failure(class: Class, message: impl Into<String>) -> Failure {
    let message = message.into();
    Failure { class, message }
}

/// Builds the failure of an API call from the CLI's own message.
pub(crate) fn of_api(class: Class, said: &str) -> Failure {
    let cause = match class {
        Class::Quota => return failure(class, said),
        Class::Auth => "the login is missing or was refused",
        Class::Transient => "the API could not be reached or failed",
        Class::ContextOverflow => "the session does not fit the model's context",
        Class::Poisoned => "the API refuses what is in the session",
        Class::InvalidRequest => "the API refused the request",
        Class::Refused
        | Class::Interrupted
        | Class::Crashed
        | Class::DiskFull
        | Class::NotRecorded
        | Class::TimeLimit
        | Class::IdleLimit
        | Class::CostLimit
        | Class::NotStarted
        | Class::WouldReseed
        | Class::Permissions
        | Class::InUse
        | Class::Lost
        | Class::Unknown => "the CLI reported an error",
    };
    failure(class, format!("{cause}: {said}"))
}

/// Returns true if rejoin stopped the run. Its last line may have been printed before.
pub(crate) fn was_stopped(cause: EndCause) -> bool {
    match cause {
        EndCause::Cancelled
        | EndCause::WallLimit
        | EndCause::IdleLimit
        | EndCause::CostLimit
        | EndCause::SpoolFull
        | EndCause::DiskFull => true,
        EndCause::ByItself | EndCause::NotStarted | EndCause::Unseen => false,
    }
}

/// Returns the outcome of a run that was stopped or not started. None if its output decides. `last`
/// is the last message of the CLI.
pub(crate) fn of_cause(cause: EndCause, last: impl FnOnce() -> Option<String>) -> Option<Outcome> {
    Some(match cause {
        EndCause::ByItself | EndCause::Unseen => return None,
        EndCause::Cancelled => Outcome::Cancelled,
        EndCause::NotStarted => failed(
            Class::NotStarted,
            explained("the CLI could not be started", last()),
        ),
        EndCause::WallLimit => failed(Class::TimeLimit, "it took longer than allowed"),
        EndCause::IdleLimit => failed(Class::TimeLimit, "it was silent for longer than allowed"),
        EndCause::CostLimit => failed(Class::CostLimit, "it cost more than allowed"),
        EndCause::SpoolFull => failed(Class::DiskFull, "it printed more than can be kept"),
        EndCause::DiskFull => failed(Class::DiskFull, "the disk is full"),
    })
}

/// Returns the outcome of a run without a final line whose process was lost or killed. None if its
/// output decides.
pub(crate) fn of_process(end: &ProcessEnd) -> Option<Outcome> {
    let lost = end.code.is_none() && end.signal.is_none();
    if end.cause == EndCause::Unseen || lost {
        return Some(Outcome::Lost(failure(
            Class::Lost,
            "nobody saw how it ended",
        )));
    }
    if let Some(signal) = end.signal {
        let message = format!("the CLI was killed by signal {signal}");
        return Some(failed(Class::Crashed, message));
    }
    let torn = "the last line of its output is incomplete";
    end.torn.then(|| failed(Class::Crashed, torn))
}

/// Returns a message if the CLI opened another session than the one it was asked for.
pub(crate) fn another_session(asked: &str, opened: &str) -> Option<String> {
    (asked != opened).then(|| format!("the CLI opened the session {opened} instead of {asked}"))
}

/// Returns the outcome of a successful run, which fails if the CLI changed the session meanwhile.
pub(crate) fn recorded(moved: bool) -> Outcome {
    if moved {
        return failed(Class::NotRecorded, "the CLI went on in another session");
    }
    Outcome::Succeeded
}

/// Adds the last message of the CLI to a message.
pub(crate) fn explained(message: &str, last: Option<String>) -> String {
    match last {
        Some(last) => format!("{message}: {last}"),
        None => message.to_owned(),
    }
}

/// Puts a message on one line, limits its length and removes the CLI's own prefix.
pub(crate) fn sentence(text: &str, prefix: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let line = line.strip_prefix(prefix).unwrap_or(&line);
    if line.is_empty() {
        return "it did not say why".into();
    }
    line.chars().take(300).collect()
}

/// Formats seconds since 1970 as a time for people. None if out of range.
pub(crate) fn when(seconds: f64) -> Option<String> {
    let seconds = (0.0..1e11).contains(&seconds).then_some(seconds as i64)?;
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(time.strftime("%Y-%m-%d %H:%M UTC").to_string())
}

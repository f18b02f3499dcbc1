//! How a run ended. Structure first; words are looked at only where they are the CLI's own, never
//! the assistant's.

use rejoin_core::{Class, Failure, Outcome};

use super::probe::NOT_FOUND;
use super::wire::Finished;
use crate::stream::{End, EndCause};

mod api;

/// What the stream showed of the end.
#[derive(Default)]
pub(super) struct Seen {
    pub(super) init: bool,
    /// Of the first `init`.
    pub(super) session: Option<String>,
    /// A later `init` named another session.
    pub(super) moved: bool,
    pub(super) results: Vec<Finished>,
    /// The last failure the CLI wrote as a message of its own.
    pub(super) api: Option<ApiError>,
    /// When a limit that was hit ends.
    pub(super) resets: Option<String>,
    pub(super) stderr: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ApiError {
    pub(super) word: Option<String>,
    pub(super) status: Option<u64>,
    pub(super) text: String,
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
    if seen.init {
        let asked = end.asked_session.as_ref()?.as_str();
        let opened = seen.session.as_deref().unwrap_or("none");
        return (asked != opened)
            .then(|| format!("the CLI opened the session {opened} instead of {asked}"));
    }
    let unknown = |said: &String| said.starts_with(NOT_FOUND);
    let structured = seen.results.iter().any(|result| {
        let begun = result.num_turns.unwrap_or(0) > 0;
        let errors = result.errors.as_deref().unwrap_or_default();
        result.is_error == Some(true) && !begun && errors.iter().any(unknown)
    });
    let plain = seen.results.is_empty() && seen.stderr.iter().any(unknown);
    (structured || plain).then(|| "the CLI does not know the session".into())
}

fn outcome(seen: &Seen, end: &End) -> Outcome {
    let trouble = seen.results.iter().find(|result| !succeeded(result));
    let whole = !seen.results.is_empty() && trouble.is_none() && !end.torn && seen.init;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    match end.cause {
        EndCause::NotStarted => failed(
            Class::NotStarted,
            last_words(seen, "the CLI could not be started"),
        ),
        EndCause::ByItself | EndCause::Unseen if whole => recorded(seen),
        // It was done before anybody stopped it.
        EndCause::Cancelled
        | EndCause::WallLimit
        | EndCause::IdleLimit
        | EndCause::CostLimit
        | EndCause::SpoolFull
        | EndCause::DiskFull
            if whole && by_itself =>
        {
            recorded(seen)
        }
        EndCause::Cancelled => Outcome::Cancelled,
        EndCause::WallLimit => failed(Class::TimeLimit, "it took longer than allowed"),
        EndCause::IdleLimit => failed(Class::TimeLimit, "it was silent for longer than allowed"),
        EndCause::CostLimit => failed(Class::CostLimit, "it cost more than allowed"),
        EndCause::SpoolFull => failed(Class::DiskFull, "it printed more than can be kept"),
        EndCause::DiskFull => failed(Class::DiskFull, "the disk is full"),
        EndCause::ByItself | EndCause::Unseen => match trouble {
            Some(result) => Outcome::Failed(of_result(seen, result)),
            None => without_result(seen, end),
        },
    }
}

fn succeeded(result: &Finished) -> bool {
    let deferred = result
        .stop_reason
        .as_deref()
        .is_some_and(|why| why.starts_with("tool_deferred"));
    well(result) && !deferred
}

fn well(result: &Finished) -> bool {
    result.is_error == Some(false) && result.subtype.as_deref() == Some("success")
}

/// It ended because a call was put off, and can go on from there.
pub(super) fn is_deferred(result: &Finished) -> bool {
    well(result) && result.stop_reason.as_deref() == Some("tool_deferred")
}

fn recorded(seen: &Seen) -> Outcome {
    if seen.moved {
        return failed(Class::NotRecorded, "the CLI went on in another session");
    }
    Outcome::Succeeded
}

fn of_result(seen: &Seen, result: &Finished) -> Failure {
    let reason = result.terminal_reason.as_deref().unwrap_or_default();
    let failure = |class, message: &str| Failure {
        class,
        message: message.into(),
    };
    match result.subtype.as_deref() {
        Some("error_max_turns") => {
            return failure(Class::TimeLimit, "it used all the rounds it was allowed");
        }
        Some("error_max_budget_usd") => {
            return failure(Class::CostLimit, "it used all the money it was allowed");
        }
        Some(_) | None => {}
    }
    if reason.starts_with("aborted") {
        return failure(Class::Interrupted, "it was interrupted");
    }
    if result.is_error == Some(false) {
        return failure(
            Class::Interrupted,
            "a tool call was put off by a hook, and nobody is there to decide it",
        );
    }
    let said = result.errors.as_deref().unwrap_or_default().first();
    let own = result
        .result
        .as_ref()
        .filter(|_| result.subtype.as_deref() == Some("success"));
    let noted = seen.api.clone().unwrap_or_default();
    let error = ApiError {
        word: noted.word,
        status: result.api_error_status.or(noted.status),
        text: own.or(said).cloned().unwrap_or(noted.text),
    };
    api::failure(&error, reason, seen.resets.as_deref())
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
    let class = if said.contains("cannot be used with root/sudo") {
        Class::Envelope
    } else if said.contains("error: unknown option") || said.contains("error: option ") {
        Class::NotStarted
    } else if said.starts_with("Not logged in") || said.contains("Please run /login") {
        Class::Auth
    } else if said.contains("is already in use") {
        Class::InUse
    } else if end.code.is_some_and(|code| code > 128) {
        Class::Crashed
    } else {
        api::failure(
            &ApiError {
                text: said,
                ..ApiError::default()
            },
            "",
            None,
        )
        .class
    };
    let class = if class == Class::Unknown {
        Class::Crashed
    } else {
        class
    };
    failed(class, last_words(seen, "the CLI ended without a result"))
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

/// Seconds since 1970 as a time people read.
pub(super) fn when(seconds: f64) -> Option<String> {
    let seconds = (0.0..1e11).contains(&seconds).then_some(seconds as i64)?;
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Howard Hinnant's civil_from_days, for days after 1970.
    let shifted = days + 719_468;
    let (era, of_era) = (shifted / 146_097, shifted % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, carry) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    let year = year + era * 400 + carry;
    Some(format!(
        "{year}-{month:02}-{day:02} {:02}:{:02} UTC",
        rest / 3600,
        rest % 3600 / 60
    ))
}

#[cfg(test)]
mod tests;

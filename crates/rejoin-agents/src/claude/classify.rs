//! Classification of the end of a run. Structured fields decide first. Text is examined only if the
//! CLI itself wrote it, never if the assistant did.

use rejoin_core::{Class, Failure, Outcome};

use super::probe::NOT_FOUND;
use super::wire::Finished;
use crate::failure::{self, Judged, failed, failure};
use crate::stream::{EndCause, ProcessEnd};

mod api;

/// Facts of the stream that determine the outcome.
#[derive(Default)]
pub(super) struct RunFacts {
    pub(super) init: bool,
    /// Session of the first `init`.
    pub(super) session: Option<String>,
    /// True if a later `init` named another session.
    pub(super) moved: bool,
    pub(super) results: Vec<Finished>,
    /// Last failure that the CLI wrote as a message of its own.
    pub(super) api: Option<ApiError>,
    /// Time at which an exhausted limit resets.
    pub(super) resets: Option<String>,
    pub(super) stderr: Vec<String>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct ApiError {
    pub(super) word: Option<String>,
    pub(super) status: Option<u64>,
    pub(super) text: String,
}

pub(super) fn judge(seen: &RunFacts, end: &ProcessEnd) -> Judged {
    Judged::new(refusal(seen, end), || outcome(seen, end))
}

/// Returns a message if the CLI does not know the session to resume, or opened another one instead.
/// None if it did neither.
fn refusal(seen: &RunFacts, end: &ProcessEnd) -> Option<String> {
    if seen.init {
        let asked = end.asked_session.as_ref()?.as_str();
        let opened = seen.session.as_deref().unwrap_or("none");
        return failure::another_session(asked, opened);
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

fn outcome(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    let trouble = seen.results.iter().find(|result| !succeeded(result));
    let whole = !seen.results.is_empty() && trouble.is_none() && !end.torn && seen.init;
    let whole = whole && end.cause != EndCause::NotStarted;
    let by_itself = end.code == Some(0) && end.signal.is_none();
    // A run that was stopped may have finished before.
    if whole && (by_itself || !failure::was_stopped(end.cause)) {
        return failure::recorded(seen.moved);
    }
    let stopped = failure::of_cause(end.cause, || last_words(seen));
    stopped.unwrap_or_else(|| match trouble {
        Some(result) => Outcome::Failed(of_result(seen, result)),
        None => without_result(seen, end),
    })
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

/// True if the run ended because a tool call was deferred, and can be continued from there.
pub(super) fn is_deferred(result: &Finished) -> bool {
    well(result) && result.stop_reason.as_deref() == Some("tool_deferred")
}

fn of_result(seen: &RunFacts, result: &Finished) -> Failure {
    let reason = result.terminal_reason.as_deref().unwrap_or_default();
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

fn without_result(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    if let Some(outcome) = failure::of_process(end) {
        return outcome;
    }
    let said = seen.stderr.join(" ");
    let class = if said.contains("cannot be used with root/sudo") {
        Class::Permissions
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
    failed(
        class,
        failure::explained("the CLI ended without a result", last_words(seen)),
    )
}

fn last_words(seen: &RunFacts) -> Option<String> {
    seen.stderr.last().map(|said| api::sentence(said))
}

#[cfg(test)]
mod tests;

//! Classification of the end of a run. The last line of the stream decides, not the exit code.
//! Other text is examined only if the CLI itself wrote it, never if the assistant did.

use rejoin_core::{Class, Outcome};

use super::probe::NOT_FOUND;
use crate::failure::{self, Judged, failed};
use crate::stream::{EndCause, ProcessEnd};

mod api;

/// Facts of the stream that determine the outcome.
#[derive(Default)]
pub(super) struct RunFacts {
    /// Session that the CLI opened.
    pub(super) thread: Option<String>,
    /// True if a later line named another session.
    pub(super) moved: bool,
    pub(super) completed: bool,
    pub(super) failed: Option<String>,
    /// Last error that did not end the run.
    pub(super) trouble: Option<String>,
    pub(super) stderr: Vec<String>,
    /// Permissions of the CLI that are wider than requested; the prompt was not sent then.
    pub(super) wider: Option<String>,
}

/// Messages with which the CLI reports that it does not have the session to resume, or cannot load
/// it.
const NOT_LOADED: &[&str] = &[
    NOT_FOUND,
    "failed to read session metadata",
    "invalid paginated history lineage",
    "modelProviderNotConfigured",
    "is archived. Run",
];

/// Messages with which the CLI reports that it does not resume a session, for any cause.
const NOT_RESUMED: &[&str] = &[
    "thread/resume failed",
    "error resuming thread",
    "failed to initialize session",
];

/// Another process is writing to the session, so it can be resumed later.
const IN_USE: &str = "already has an active writer";

pub(super) fn judge(seen: &RunFacts, end: &ProcessEnd) -> Judged {
    Judged::new(refusal(seen, end), || outcome(seen, end))
}

fn refusal(seen: &RunFacts, end: &ProcessEnd) -> Option<String> {
    if let Some(opened) = &seen.thread {
        let asked = end.asked_session.as_ref()?.as_str();
        let same = asked.eq_ignore_ascii_case(opened);
        return failure::another_session(asked, opened).filter(|_| !same);
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

fn outcome(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    let done = seen.completed && seen.failed.is_none() && !end.torn;
    if let Some(how) = &seen.wider {
        return failed(
            Class::Permissions,
            format!("the CLI does not keep to the permissions of the turn: {how}"),
        );
    }
    // A run that was stopped had finished before, and may have been killed because it did not exit.
    if done && end.cause != EndCause::NotStarted {
        return failure::recorded(seen.moved);
    }
    let stopped = failure::of_cause(end.cause, || last_words(seen));
    stopped.unwrap_or_else(|| match &seen.failed {
        Some(said) => Outcome::Failed(api::failure(said)),
        None => without_result(seen, end),
    })
}

fn without_result(seen: &RunFacts, end: &ProcessEnd) -> Outcome {
    if let Some(outcome) = failure::of_process(end) {
        return outcome;
    }
    let said = seen.stderr.join(" ");
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let class = if says(&[IN_USE]) {
        Class::InUse
    } else if says(&["Unknown feature flag"]) {
        Class::Permissions
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
            // After an interrupt the CLI prints nothing more and exits with 1.
            (true, true) => Class::Interrupted,
            (true, false) => Class::Crashed,
        }
    };
    failed(
        class,
        failure::explained("the CLI ended without a result", last_words(seen)),
    )
}

fn last_words(seen: &RunFacts) -> Option<String> {
    let own = |line: &&String| line.starts_with("Error: ") || line.starts_with("error: ");
    let said = seen.stderr.iter().rev().find(own).or(seen.stderr.last());
    let said = said.filter(|said| !said.starts_with("WARNING:"));
    said.map(|said| api::sentence(said))
}

#[cfg(test)]
mod tests;

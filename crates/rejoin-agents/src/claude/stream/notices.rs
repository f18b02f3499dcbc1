//! Lines that only inform, and lines without information.

use rejoin_core::EventBody;

use super::super::wire::{LimitInfo, Retry};
use crate::failure::when;

/// Lines without information for a reader of the turn (2.1.197, 2.1.325).
const QUIET: &[&str] = &[
    "attachment",
    "auth_status",
    "command_lifecycle",
    "control_cancel_request",
    "control_response",
    "keep_alive",
    "progress",
    "prompt_suggestion",
    "tool_progress",
    "tool_use_summary",
    "transcript_mirror",
];
const QUIET_SYSTEM: &[&str] = &[
    "background_tasks_changed",
    "commands_changed",
    "files_persisted",
    "hook_progress",
    "hook_response",
    "hook_started",
    "informational",
    "local_command_output",
    "memory_recall",
    "memory_saved",
    "notification",
    "post_turn_summary",
    "session_state_changed",
    "status",
    "stop_hook_summary",
    "task_notification",
    "task_progress",
    "task_started",
    "task_summary",
    "task_updated",
    "thinking",
    "thinking_tokens",
    "turn_duration",
];

pub(super) fn is_quiet(kind: &str, subtype: Option<&str>) -> bool {
    match (kind, subtype) {
        ("system", Some(subtype)) => QUIET_SYSTEM.contains(&subtype),
        (kind, _) => QUIET.contains(&kind),
    }
}

pub(super) fn retry(retry: &Retry) -> EventBody {
    let what = match (retry.error_status, retry.error.as_deref()) {
        (Some(status), Some(word)) => format!("{status} {word}"),
        (Some(status), None) => status.to_string(),
        (None, Some("unknown") | None) => "no connection".into(),
        (None, Some(word)) => word.to_owned(),
    };
    let count = |n: Option<u64>| n.map_or_else(|| "?".into(), |n| n.to_string());
    EventBody::warning(format!(
        "The API call failed ({}); retry {} of {}.",
        what.replace('_', " "),
        count(retry.attempt),
        count(retry.max_retries)
    ))
}

/// Returns the reset time of an exhausted limit, and a warning for the user.
pub(super) fn limit(info: LimitInfo) -> (Option<String>, Option<EventBody>) {
    let name = info.rate_limit_type.unwrap_or_else(|| "usage".into());
    let name = name.replace('_', " ");
    match info.status.as_deref() {
        Some("rejected") => {
            let resets = info.resets_at.and_then(when);
            let at = resets
                .as_ref()
                .map(|at| format!(", resets {at}"))
                .unwrap_or_default();
            (
                resets,
                Some(EventBody::warning(format!(
                    "The {name} limit is reached{at}."
                ))),
            )
        }
        Some("allowed_warning") => (
            None,
            Some(EventBody::warning(format!("The {name} limit is near."))),
        ),
        Some(_) | None => (None, None),
    }
}

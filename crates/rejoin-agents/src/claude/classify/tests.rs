use rejoin_core::SessionId;

use super::*;
use crate::failure::when;

const ASKED: &str = "b731fd0c-68de-4452-a02a-ef7d040b8069";

fn ended(code: i32) -> ProcessEnd {
    ProcessEnd {
        code: Some(code),
        asked_session: SessionId::new(ASKED).ok(),
        ..ProcessEnd::default()
    }
}

fn seen(results: Vec<Finished>) -> RunFacts {
    RunFacts {
        init: true,
        session: Some(ASKED.into()),
        results,
        ..RunFacts::default()
    }
}

fn good() -> Finished {
    Finished {
        subtype: Some("success".into()),
        is_error: Some(false),
        num_turns: Some(1),
        ..Finished::default()
    }
}

fn bad(status: Option<u64>, text: &str) -> Finished {
    Finished {
        is_error: Some(true),
        api_error_status: status,
        result: Some(text.into()),
        ..good()
    }
}

fn class_of(seen: &RunFacts, end: &ProcessEnd) -> String {
    match judge(seen, end).outcome {
        Outcome::Succeeded => "succeeded".into(),
        Outcome::Cancelled => "cancelled".into(),
        Outcome::Failed(failure) => failure.class.to_string(),
        Outcome::Lost(_) => "LOST".into(),
    }
}

#[test]
fn api_errors_by_status_then_words() {
    for (status, text, class) in [
        (Some(401), "Invalid API key · Fix external API key", "auth"),
        (Some(403), "API Error: 403 forbidden", "auth"),
        (None, "Not logged in · Please run /login", "auth"),
        (
            Some(429),
            "API Error: Request rejected (429) · rate limited",
            "quota",
        ),
        (
            Some(429),
            "Server is temporarily limiting requests (not your usage limit)",
            "transient",
        ),
        (None, "Claude AI usage limit reached|1763218800", "quota"),
        (None, "You've hit your limit · resets 3pm (UTC)", "quota"),
        (Some(400), "Credit balance is too low", "quota"),
        (Some(529), "API Error: 529 Overloaded.", "transient"),
        (Some(500), "API Error: 500", "transient"),
        (Some(504), "API Error: 504", "transient"),
        (
            None,
            "API Error: Unable to connect to API (ConnectionRefused)",
            "transient",
        ),
        (
            None,
            "API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED)",
            "transient",
        ),
        (None, "API Error: Request timed out.", "transient"),
        (
            None,
            "API Error: Connection closed mid-response.",
            "transient",
        ),
        (
            Some(400),
            "prompt is too long: 208310 tokens > 200000 maximum",
            "context_overflow",
        ),
        (
            Some(413),
            "Request too large (max 32MB)",
            "context_overflow",
        ),
        (
            Some(400),
            "API Error: 400 messages.3: `tool_use` ids were found without `tool_result` blocks",
            "poisoned",
        ),
        (
            Some(400),
            "API Error: 400 due to tool use concurrency issues.",
            "poisoned",
        ),
        (
            Some(400),
            "messages.1.content.0: Invalid `signature` in `thinking` block",
            "poisoned",
        ),
        (
            Some(400),
            "messages: text content blocks must be non-empty",
            "poisoned",
        ),
        (Some(400), "image exceeds 5 MB maximum", "poisoned"),
        (
            Some(400),
            "API Error: 400 bad request made up",
            "invalid_request",
        ),
        (
            Some(404),
            "API Error: 404 model: nonsense",
            "invalid_request",
        ),
        (None, "something else", "unknown"),
    ] {
        assert_eq!(
            class_of(&seen(vec![bad(status, text)]), &ended(1)),
            class,
            "{status:?} {text}"
        );
    }
}

#[test]
fn the_cli_names_the_kind_of_failure_itself() {
    for (word, class) in [
        ("authentication_failed", "auth"),
        ("billing_error", "quota"),
        ("rate_limit", "quota"),
        ("overloaded", "transient"),
        ("server_error", "transient"),
        ("invalid_request", "invalid_request"),
        ("model_not_found", "invalid_request"),
        ("unknown", "unknown"),
    ] {
        let mut seen = seen(vec![bad(None, "x")]);
        seen.api = Some(ApiError {
            word: Some(word.into()),
            ..ApiError::default()
        });
        assert_eq!(class_of(&seen, &ended(1)), class, "{word}");
    }
    for (reason, class) in [
        ("blocking_limit", "context_overflow"),
        ("prompt_too_long", "context_overflow"),
        ("image_error", "poisoned"),
        ("aborted_streaming", "interrupted"),
        ("aborted_tools", "interrupted"),
    ] {
        let result = Finished {
            terminal_reason: Some(reason.into()),
            ..bad(None, "x")
        };
        assert_eq!(class_of(&seen(vec![result]), &ended(1)), class, "{reason}");
    }
    for (subtype, class) in [
        ("error_max_turns", "time_limit"),
        ("error_max_budget_usd", "cost_limit"),
    ] {
        let result = Finished {
            subtype: Some(subtype.into()),
            ..bad(None, "x")
        };
        assert_eq!(class_of(&seen(vec![result]), &ended(1)), class);
    }
}

#[test]
fn success_needs_the_whole_of_it() {
    let fine = seen(vec![good()]);
    assert_eq!(class_of(&fine, &ended(0)), "succeeded");
    assert_eq!(
        class_of(
            &fine,
            &ProcessEnd {
                torn: true,
                ..ended(0)
            }
        ),
        "crashed"
    );
    assert_eq!(class_of(&seen(vec![]), &ended(0)), "crashed");
    assert_eq!(
        class_of(&seen(vec![good(), bad(Some(529), "x")]), &ended(1)),
        "transient"
    );
    let moved = RunFacts {
        moved: true,
        ..seen(vec![good()])
    };
    assert_eq!(class_of(&moved, &ended(0)), "not_recorded");
    let deferred = Finished {
        stop_reason: Some("tool_deferred".into()),
        ..good()
    };
    assert_eq!(class_of(&seen(vec![deferred]), &ended(0)), "interrupted");
    let headless = RunFacts {
        init: false,
        session: None,
        ..seen(vec![good()])
    };
    assert_eq!(class_of(&headless, &ended(0)), "crashed");
}

#[test]
fn ends_that_others_brought_about() {
    let cause = |cause| ProcessEnd {
        cause,
        code: None,
        signal: Some(9),
        ..ended(0)
    };
    for (end, without, with) in [
        (cause(EndCause::Cancelled), "cancelled", "cancelled"),
        (
            ProcessEnd {
                cause: EndCause::Cancelled,
                ..ended(0)
            },
            "cancelled",
            "succeeded",
        ),
        (cause(EndCause::WallLimit), "time_limit", "time_limit"),
        (cause(EndCause::IdleLimit), "time_limit", "time_limit"),
        (cause(EndCause::CostLimit), "cost_limit", "cost_limit"),
        (cause(EndCause::DiskFull), "disk_full", "disk_full"),
        (cause(EndCause::SpoolFull), "disk_full", "disk_full"),
        (cause(EndCause::NotStarted), "not_started", "not_started"),
        (cause(EndCause::ByItself), "crashed", "succeeded"),
        (
            ProcessEnd {
                cause: EndCause::Unseen,
                code: None,
                ..ended(0)
            },
            "LOST",
            "succeeded",
        ),
    ] {
        assert_eq!(class_of(&seen(vec![]), &end), without, "{end:?}");
        assert_eq!(class_of(&seen(vec![good()]), &end), with, "{end:?}");
    }
}

/// only structure makes a refusal, never the assistant's text.
#[test]
fn a_refusal_is_structural() {
    let unknown = format!("No conversation found with session ID: {ASKED}");
    let result = Finished {
        subtype: Some("error_during_execution".into()),
        num_turns: Some(0),
        result: None,
        errors: Some(vec![unknown.clone()]),
        ..bad(None, "")
    };
    let refused = RunFacts {
        results: vec![result],
        ..RunFacts::default()
    };
    assert!(judge(&refused, &ended(1)).refused);
    assert_eq!(class_of(&refused, &ended(1)), "refused");
    let only_stderr = RunFacts {
        stderr: vec![unknown.clone()],
        ..RunFacts::default()
    };
    assert!(judge(&only_stderr, &ended(1)).refused);
    let quoted = Finished {
        result: Some(unknown.clone()),
        ..good()
    };
    assert!(!judge(&seen(vec![quoted]), &ended(0)).refused);
    let begun = RunFacts {
        stderr: vec![unknown],
        ..seen(vec![good()])
    };
    assert!(!judge(&begun, &ended(0)).refused);
    let other = RunFacts {
        session: Some("other".into()),
        ..seen(vec![good()])
    };
    assert!(judge(&other, &ended(0)).refused);
}

#[test]
fn messages_are_for_people() {
    let said = |status, text: &str| match judge(&seen(vec![bad(status, text)]), &ended(1)).outcome {
        Outcome::Failed(failure) => failure.message,
        Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost(_) => String::new(),
    };
    assert_eq!(
        said(None, "Claude AI usage limit reached|1763218800"),
        "Claude AI usage limit reached, resets 2025-11-15 15:00 UTC"
    );
    assert_eq!(
        said(Some(529), "API Error: 529\nOverloaded"),
        "the API could not be reached or failed: 529 Overloaded"
    );
    let root = RunFacts { stderr: vec!["--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons".into()], ..RunFacts::default() };
    assert_eq!(class_of(&root, &ended(1)), "envelope");
    let flag = RunFacts {
        stderr: vec!["error: unknown option '--zork'".into()],
        ..RunFacts::default()
    };
    assert_eq!(class_of(&flag, &ended(1)), "not_started");
    assert_eq!(when(0.0).as_deref(), Some("1970-01-01 00:00 UTC"));
    assert_eq!(
        when(1_709_210_096.0).as_deref(),
        Some("2024-02-29 12:34 UTC")
    );
    assert_eq!(when(f64::NAN), None);
}

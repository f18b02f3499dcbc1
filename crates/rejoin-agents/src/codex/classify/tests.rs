use rejoin_core::SessionId;

use super::*;

const ID: &str = "01a1de49-2494-7391-a595-647f5b1aba14";

fn class(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Succeeded => "succeeded",
        Outcome::Cancelled => "cancelled",
        Outcome::Failed(failure) | Outcome::Lost(failure) => failure.class.as_str(),
    }
}

fn begun() -> RunFacts {
    RunFacts {
        thread: Some(ID.into()),
        ..RunFacts::default()
    }
}

fn ended(code: i32) -> ProcessEnd {
    ProcessEnd {
        code: Some(code),
        ..ProcessEnd::default()
    }
}

/// Messages as measured on 0.166.0, except those that contain only an error code of the API.
#[test]
fn failures_of_the_api() {
    let table = [
        (
            "{\"error\":{\"message\":\"bad request made up\",\"type\":\"invalid_request_error\"}}",
            "invalid_request",
        ),
        (
            "{\"detail\":\"The model is not supported\"}",
            "invalid_request",
        ),
        (
            "unexpected status 401 Unauthorized: fake, url: http://127.0.0.1/v1/responses",
            "auth",
        ),
        ("unexpected status 403 Forbidden: no", "auth"),
        (
            "unexpected status 404 Not Found: no such model",
            "invalid_request",
        ),
        (
            "unexpected status 413 Payload Too Large: x",
            "context_overflow",
        ),
        ("unexpected status 503 Service Unavailable: x", "transient"),
        (
            "exceeded retry limit, last status: 429 Too Many Requests",
            "quota",
        ),
        (
            "exceeded retry limit, last status: 500 Internal Server Error",
            "transient",
        ),
        (
            "We’re currently experiencing high demand, which may cause temporary errors.",
            "transient",
        ),
        (
            "Codex ran out of room in the model's context window. Start a new thread",
            "context_overflow",
        ),
        ("rate limit exceeded: try later", "quota"),
        (
            "You've hit your usage limit. Try again at 3:00 PM.",
            "quota",
        ),
        (
            "stream disconnected before completion: stream closed before response.completed",
            "transient",
        ),
        ("Missing environment variable: `FAKE_KEY`.", "auth"),
        (
            "{\"error\":{\"message\":\"No tool output found for function call call_1.\"}}",
            "poisoned",
        ),
        (
            "{\"error\":{\"message\":\"x\",\"code\":\"invalid_encrypted_content\"}}",
            "poisoned",
        ),
        ("something nobody has seen", "unknown"),
    ];
    for (said, expected) in table {
        let seen = RunFacts {
            failed: Some(said.into()),
            ..begun()
        };
        let judged = judge(&seen, &ended(1));
        assert_eq!(
            (class(&judged.outcome), judged.refused),
            (expected, false),
            "{said}"
        );
    }
}

#[test]
fn the_api_is_quoted_and_not_its_json() {
    let said = "{\"error\":{\"message\":\"bad  request\\nmade up\",\"type\":\"x\"}}";
    let failure = api::failure(said);
    assert_eq!(
        failure.message,
        "the API refused the request: bad request made up"
    );
}

#[test]
fn the_last_word_counts_and_not_the_exit() {
    let done = RunFacts {
        completed: true,
        ..begun()
    };
    let of = |end: &ProcessEnd| class(&judge(&done, end).outcome);
    assert_eq!(of(&ended(0)), "succeeded");
    assert_eq!(of(&ended(1)), "succeeded");
    for cause in [
        EndCause::ByItself,
        EndCause::Cancelled,
        EndCause::WallLimit,
        EndCause::Unseen,
    ] {
        let killed = ProcessEnd {
            signal: Some(9),
            cause,
            ..ProcessEnd::default()
        };
        assert_eq!(of(&killed), "succeeded");
    }
    let torn = ProcessEnd {
        torn: true,
        ..ended(0)
    };
    assert_eq!(of(&torn), "crashed");
    let moved = RunFacts {
        moved: true,
        completed: true,
        ..begun()
    };
    assert_eq!(class(&judge(&moved, &ended(0)).outcome), "not_recorded");
}

#[test]
fn without_a_last_word() {
    let of = |seen: &RunFacts, end: &ProcessEnd| class(&judge(seen, end).outcome);
    assert_eq!(of(&begun(), &ended(1)), "interrupted");
    assert_eq!(of(&begun(), &ended(101)), "crashed");
    assert_eq!(of(&begun(), &ProcessEnd::default()), "lost");
    let killed = ProcessEnd {
        signal: Some(9),
        ..ProcessEnd::default()
    };
    assert_eq!(of(&begun(), &killed), "crashed");
    for (cause, expected) in [
        (EndCause::Cancelled, "cancelled"),
        (EndCause::WallLimit, "time_limit"),
        (EndCause::IdleLimit, "time_limit"),
        (EndCause::CostLimit, "cost_limit"),
        (EndCause::SpoolFull, "disk_full"),
        (EndCause::DiskFull, "disk_full"),
        (EndCause::NotStarted, "not_started"),
        (EndCause::Unseen, "lost"),
    ] {
        let end = ProcessEnd { cause, ..ended(1) };
        assert_eq!(of(&begun(), &end), expected);
    }
    let said = |line: &str| RunFacts {
        stderr: vec!["WARNING: proceeding".into(), line.into()],
        ..RunFacts::default()
    };
    for (line, code, expected) in [
        ("Error: Unknown feature flag: shell_tool", 1, "envelope"),
        (
            "error: unexpected argument '--zork' found",
            2,
            "not_started",
        ),
        (
            "Not inside a trusted directory and --skip-git-repo-check was not specified.",
            1,
            "not_started",
        ),
        (
            "Error: thread/resume: thread/resume failed: thread x already has an active writer (code -32600)",
            1,
            "in_use",
        ),
        ("thread 'main' panicked at core/src/x.rs:1", 101, "crashed"),
        ("Error: nobody knows", 1, "crashed"),
    ] {
        let judged = judge(&said(line), &ended(code));
        assert_eq!(
            (class(&judged.outcome), judged.refused),
            (expected, false),
            "{line}"
        );
    }
}

#[test]
fn refusals() {
    let end = |asked: &str| ProcessEnd {
        asked_session: SessionId::new(asked).ok(),
        ..ended(1)
    };
    let said = |text: &str| RunFacts {
        stderr: text.lines().map(str::to_owned).collect(),
        ..RunFacts::default()
    };
    for text in [
        include_str!("../../../fixtures/codex/0.166.0/unknown_session_failure.stderr.txt"),
        include_str!("../../../fixtures/codex/0.166.0/empty_rollout.stderr.txt"),
        include_str!("../../../fixtures/codex/0.166.0/provider_not_configured.stderr.txt"),
    ] {
        assert!(judge(&said(text), &end(ID)).refused, "{text}");
    }
    for text in [
        "Error: thread/resume: thread/resume failed: failed to load configuration (code -32603)",
        "Error: error resuming thread: cannot migrate the rollout",
        "ERROR: TurnFailed to initialize session: unsupported rollout version 9",
    ] {
        assert!(judge(&said(text), &end(ID)).refused, "{text}");
        // A run that begins a new session cannot be refused.
        assert!(!judge(&said(text), &ended(1)).refused, "{text}");
    }
    let busy = include_str!("../../../fixtures/codex/0.166.0/concurrent_resume_loser.stderr.txt");
    assert!(!judge(&said(busy), &end(ID)).refused);
    // The CLI opened another session than requested. The same id in capitals is the same session.
    assert!(judge(&begun(), &end("01a1de49-ffff-7391-a595-647f5b1aba14")).refused);
    assert!(!judge(&begun(), &end(&ID.to_uppercase())).refused);
    // Once the CLI has opened the session, stderr cannot contain a refusal.
    let late = RunFacts {
        thread: Some(ID.into()),
        ..said("a tool printed: no rollout found for thread id x")
    };
    assert!(!judge(&late, &end(ID)).refused);
}

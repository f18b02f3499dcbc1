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

fn begun() -> Seen {
    Seen {
        thread: Some(ID.into()),
        ..Seen::default()
    }
}

fn ended(code: i32) -> End {
    End {
        code: Some(code),
        ..End::default()
    }
}

/// As measured on 0.166.0, but for those marked with a word of the API alone.
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
        let seen = Seen {
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
    let done = Seen {
        completed: true,
        ..begun()
    };
    let of = |end: &End| class(&judge(&done, end).outcome);
    assert_eq!(of(&ended(0)), "succeeded");
    assert_eq!(of(&ended(1)), "succeeded");
    for cause in [
        EndCause::ByItself,
        EndCause::Cancelled,
        EndCause::WallLimit,
        EndCause::Unseen,
    ] {
        let killed = End {
            signal: Some(9),
            cause,
            ..End::default()
        };
        assert_eq!(of(&killed), "succeeded");
    }
    let torn = End {
        torn: true,
        ..ended(0)
    };
    assert_eq!(of(&torn), "crashed");
    let moved = Seen {
        moved: true,
        completed: true,
        ..begun()
    };
    assert_eq!(class(&judge(&moved, &ended(0)).outcome), "not_recorded");
}

#[test]
fn without_a_last_word() {
    let of = |seen: &Seen, end: &End| class(&judge(seen, end).outcome);
    assert_eq!(of(&begun(), &ended(1)), "interrupted");
    assert_eq!(of(&begun(), &ended(101)), "crashed");
    assert_eq!(of(&begun(), &End::default()), "lost");
    let killed = End {
        signal: Some(9),
        ..End::default()
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
        let end = End { cause, ..ended(1) };
        assert_eq!(of(&begun(), &end), expected);
    }
    let said = |line: &str| Seen {
        stderr: vec!["WARNING: proceeding".into(), line.into()],
        ..Seen::default()
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
    let end = |asked: &str| End {
        asked_session: SessionId::new(asked).ok(),
        ..ended(1)
    };
    let said = |text: &str| Seen {
        stderr: text.lines().map(str::to_owned).collect(),
        ..Seen::default()
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
        "ERROR: Failed to initialize session: unsupported rollout version 9",
    ] {
        assert!(judge(&said(text), &end(ID)).refused, "{text}");
        // A session that is begun cannot be refused.
        assert!(!judge(&said(text), &ended(1)).refused, "{text}");
    }
    let busy = include_str!("../../../fixtures/codex/0.166.0/concurrent_resume_loser.stderr.txt");
    assert!(!judge(&said(busy), &end(ID)).refused);
    // Another session than the one asked for; the same in capitals is the same.
    assert!(judge(&begun(), &end("01a1de49-ffff-7391-a595-647f5b1aba14")).refused);
    assert!(!judge(&begun(), &end(&ID.to_uppercase())).refused);
    // Once it has opened the session, what stderr says is no refusal.
    let late = Seen {
        thread: Some(ID.into()),
        ..said("a tool printed: no rollout found for thread id x")
    };
    assert!(!judge(&late, &end(ID)).refused);
}

//! The calls, by plan and permission; data in, data out.

use rejoin_agents::{MentionEscape, SessionAt, SessionPath, Trace, adapter};
use rejoin_core::SessionId;

use crate::order::{Ask, Kind, OLD, PLAIN, command};

#[test]
fn each_plan_names_its_session() {
    let extra = ["--add-dir".to_owned(), "/x".to_owned()];
    let args = |kind| {
        command(&Ask {
            kind,
            extra: &extra,
            ..PLAIN
        })
        .args
        .join(" ")
    };
    insta::assert_snapshot!(args(Kind::Start), @"-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages --permission-prompt-tool stdio --session-id 22222222-2222-4222-8222-222222222222 --model sonnet --permission-mode acceptEdits --setting-sources user --add-dir /w --add-dir /x");
    insta::assert_snapshot!(args(Kind::Resume), @"-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages --permission-prompt-tool stdio --resume 33333333-3333-4333-8333-333333333333 --model sonnet --permission-mode acceptEdits --setting-sources user --add-dir /w --add-dir /x");
    insta::assert_snapshot!(args(Kind::Reseed), @"-p --input-format stream-json --output-format stream-json --verbose --include-partial-messages --permission-prompt-tool stdio --session-id 22222222-2222-4222-8222-222222222222 --model sonnet --permission-mode acceptEdits --setting-sources user --add-dir /w --add-dir /x");
}

#[test]
fn stdin_is_held_until_the_result() {
    let spec = command(&PLAIN);
    assert!(spec.hold_stdin);
    assert_eq!(spec.close_stdin_on, ["result"]);
    assert_eq!(
        spec.env,
        [
            "CLAUDE_CODE_EAGER_FLUSH",
            "CLAUDE_CODE_ADDITIONAL_DIRECTORIES_CLAUDE_MD",
            "CLAUDE_CODE_DISABLE_CRON"
        ]
        .map(|name| (name.to_owned(), "1".to_owned()))
    );
    insta::assert_snapshot!(spec.stdin, @r#"{"message":{"content":[{"text":"hello","type":"text"}],"role":"user"},"type":"user","uuid":"11111111-1111-4111-8111-111111111111"}"#);
}

/// Promise 11: a message is data.
#[test]
fn words_are_not_commands() {
    let stdin = |ask: &Ask<'_>| {
        let line: serde_json::Value = serde_json::from_str(&command(ask).stdin).unwrap();
        let blocks = line["message"]["content"].as_array().unwrap().clone();
        blocks
            .iter()
            .map(|b| b["text"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let context = Some("<rejoin>\nsaid @/etc/hostname\n</rejoin>");
    let nasty = Ask {
        kind: Kind::Resume,
        context,
        message: "/clear @/etc/hostname",
        ..PLAIN
    };
    insta::assert_debug_snapshot!(stdin(&nasty), @r#"
    [
        "<rejoin>\nsaid @/etc/hostname\n</rejoin>",
        "\n/clear @/etc/hostname",
        "<rejoin>end of message</rejoin>",
    ]
    "#);
    insta::assert_debug_snapshot!(stdin(&Ask { neutral: MentionEscape::ByJoiner, kind: Kind::Resume, ..nasty }), @r#"
    [
        "<rejoin>\nsaid \u{2060}@/etc/hostname\n</rejoin>",
        "\n/clear \u{2060}@/etc/hostname",
        "<rejoin>end of message</rejoin>",
    ]
    "#);
    let raw = Ask {
        raw: true,
        message: "/review @src/x @/etc/hostname",
        ..PLAIN
    };
    insta::assert_debug_snapshot!(stdin(&raw), @r#"
    [
        "/review @src/x \u{2060}@/etc/hostname",
    ]
    "#);
    let odd = Ask {
        message: "-p --resume\u{0} \"quoted\" \n line",
        ..PLAIN
    };
    assert_eq!(stdin(&odd), [odd.message]);
}

#[test]
fn sessions_lie_where_the_cli_puts_them() {
    let claude = adapter("claude").unwrap();
    let session = SessionId::new(OLD).unwrap();
    assert_eq!(
        claude.place(&SessionAt {
            folder: "/srv/a.b",
            session: &session,
            pin: ""
        }),
        SessionPath::At(format!("projects/-srv-a-b/{OLD}.jsonl"))
    );
    let trace = claude.capabilities().in_use.unwrap().trace(&session, None);
    assert!(matches!(
        trace,
        Some(Trace::Notes {
            folder: "sessions",
            ..
        })
    ));
}

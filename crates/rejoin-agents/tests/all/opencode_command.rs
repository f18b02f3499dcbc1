//! The calls of OpenCode, by plan and permission; data in, data out.

use rejoin_agents::{Moving, SessionAt, SessionPath, adapter, text_mark};
use rejoin_core::{PermissionMode, Permissions, SessionId};

use crate::order::{Ask, Kind, PLAIN, command};

const PLAIN_RUN: Ask<'static> = Ask {
    agent: "opencode",
    session: "ses_e21a13099ffesPgMJlFhtDvy9X",
    model: Some("scripted/m1"),
    ..PLAIN
};

#[test]
fn each_plan_names_its_session() {
    let extra = ["--variant".to_owned(), "high".to_owned()];
    let args = |kind| {
        let ask = Ask {
            kind,
            extra: &extra,
            ..PLAIN_RUN
        };
        command(&ask).args.join(" ")
    };
    insta::assert_snapshot!(args(Kind::Start), @"run --format json --title rejoin --print-logs --log-level INFO --dir /w --agent rejoin-01900000-0000-7000-8000-000000000001 -m scripted/m1 --variant high");
    insta::assert_snapshot!(args(Kind::Resume), @"run --format json --title rejoin --print-logs --log-level INFO --dir /w --agent rejoin-01900000-0000-7000-8000-000000000001 -m scripted/m1 -s ses_e21a13099ffesPgMJlFhtDvy9X --variant high");
    insta::assert_snapshot!(args(Kind::Reseed), @"run --format json --title rejoin --print-logs --log-level INFO --dir /w --agent rejoin-01900000-0000-7000-8000-000000000001 -m scripted/m1 --variant high");
}

#[test]
fn environment_and_stdin_of_a_run() {
    let spec = command(&PLAIN_RUN);
    let env: Vec<String> = spec.env.iter().map(|(n, v)| format!("{n}={v}")).collect();
    insta::assert_snapshot!(env.join("\n"), @r#"
    PWD=/w
    OPENCODE_PERMISSION={"*_*":"deny","bash":"deny","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}
    OPENCODE_CONFIG_CONTENT={"agent":{"rejoin-01900000-0000-7000-8000-000000000001":{"mode":"primary","permission":{"*_*":"deny","bash":"deny","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}}},"instructions":["/w/AGENTS.md"]}
    OPENCODE_DB=/home/u/.cli/place/of/the/session
    "#);
    assert_eq!(spec.stdin, "hello");
    assert!(!spec.hold_stdin);
    assert_eq!(spec.prompt_mark, Some(text_mark("hello")));
    let full = Permissions {
        mode: PermissionMode::Full,
        ..Permissions::default()
    };
    let spec = command(&Ask {
        permissions: &full,
        model: None,
        kind: Kind::Resume,
        context: Some("<rejoin>\nnote\n</rejoin>"),
        message: "--continue /clear @/etc/hostname",
        ..PLAIN_RUN
    });
    insta::assert_snapshot!(spec.args.join(" "), @"run --format json --title rejoin --print-logs --log-level INFO --dir /w --agent rejoin-01900000-0000-7000-8000-000000000001 -s ses_e21a13099ffesPgMJlFhtDvy9X --auto");
    insta::assert_snapshot!(spec.stdin, @"
    <rejoin>
    note
    </rejoin>

    --continue /clear @/etc/hostname
    ");
}

/// What the user has put into the environment stays, in the order in which rules count.
#[test]
fn the_users_own_configuration_is_kept() {
    let own = r#"{"permission":{"zz":"allow","aa":"deny"},"instructions":["x.md"],"agent":{"build":{"permission":{"bash":"allow"}},"rejoin":{"permission":{"bash":"allow"}}},"model":"a/b"}"#;
    let env = [("OPENCODE_CONFIG_CONTENT".to_owned(), own.to_owned())];
    let spec = command(&Ask {
        env: &env,
        ..PLAIN_RUN
    });
    let named = |name: &str| {
        let found = spec.env.iter().find(|(n, _)| n == name);
        found.map(|(_, value)| value.clone()).unwrap()
    };
    insta::assert_snapshot!(named("OPENCODE_CONFIG_CONTENT"), @r#"{"agent":{"build":{"permission":{"bash":"allow"}},"rejoin":{"permission":{"bash":"allow"}},"rejoin-01900000-0000-7000-8000-000000000001":{"mode":"primary","permission":{"*_*":"deny","bash":"deny","read":{"*.env":"deny","*.env.*":"deny","*.env.example":"allow"},"task":"deny","plan_enter":"deny","plan_exit":"deny","question":"deny"}}},"instructions":["x.md","/w/AGENTS.md"],"model":"a/b","permission":{"zz":"allow","aa":"deny"}}"#);
    for odd in ["", "[]", "{", "7", r#"{"agent":7,"instructions":7}"#] {
        let env = [("OPENCODE_CONFIG_CONTENT".to_owned(), odd.to_owned())];
        let spec = command(&Ask {
            env: &env,
            ..PLAIN_RUN
        });
        let ours = spec
            .env
            .iter()
            .any(|(_, v)| v.contains(r#""agent":{"rejoin-"#));
        assert!(ours, "{odd}");
    }
}

#[test]
fn a_session_has_a_file_of_its_own_and_moves_in_it() {
    let session = SessionId::new("ses_e21a13099ffesPgMJlFhtDvy9X").unwrap();
    let at = SessionAt {
        folder: "/w",
        session: &session,
        pin: "01900000-0000-7000-8000-000000000001",
    };
    let adapter = adapter("opencode").unwrap();
    let place = SessionPath::At("rejoin/01900000-0000-7000-8000-000000000001.db".into());
    assert_eq!(adapter.place(&at), place);
    assert!(matches!(adapter.moving(&at, &|_| None), Moving::Rewrite(_)));
}

//! The calls, by plan and permission; data in, data out.

use rejoin_agents::{ChosenBy, Moving, SessionAt, SessionPath, Trace, adapter, text_mark};
use rejoin_core::{PermissionMode, Permissions, SessionId};

use crate::order::{Ask, Kind, PLAIN, command};

const THREAD: &str = "01a1de49-2494-7391-a595-647f5b1aba14";

const CODEX: Ask<'static> = Ask {
    agent: "codex",
    session: THREAD,
    model: Some("gpt-5.5"),
    ..PLAIN
};

fn args(ask: &Ask<'_>) -> String {
    command(ask).args.join(" ")
}

/// C-40, C-41, E-14: the same flags on every run, and none that names a session on a first one.
#[test]
fn each_plan_names_its_session() {
    let extra = ["--add-dir".to_owned(), "/x".to_owned()];
    let of = |kind| {
        args(&Ask {
            kind,
            extra: &extra,
            ..CODEX
        })
    };
    insta::assert_snapshot!(of(Kind::Start), @r#"exec -s workspace-write -C /w -c projects={"/w"={trust_level="untrusted"}} -c shell_environment_policy.set.REJOIN_TURN="01900000-0000-7000-8000-000000000001" -c features.unbounded_connection_retries=false -m gpt-5.5 --skip-git-repo-check --add-dir /x --json -"#);
    insta::assert_snapshot!(of(Kind::Resume), @r#"exec -s workspace-write -C /w -c projects={"/w"={trust_level="untrusted"}} -c shell_environment_policy.set.REJOIN_TURN="01900000-0000-7000-8000-000000000001" -c features.unbounded_connection_retries=false -m gpt-5.5 --skip-git-repo-check --add-dir /x resume --json 01a1de49-2494-7391-a595-647f5b1aba14 -"#);
    assert_eq!(of(Kind::Reseed), of(Kind::Start));
}

#[test]
fn permissions_are_said_again_on_a_resume() {
    let servers = ["files".to_owned()];
    let of = |mode, deny: &[&str]| {
        let permissions = Permissions {
            mode,
            tools: None,
            deny_tools: deny.iter().map(|&d| d.to_owned()).collect(),
            commands: false,
        };
        let ask = Ask {
            kind: Kind::Resume,
            permissions: &permissions,
            servers: &servers,
            model: None,
            ..CODEX
        };
        args(&ask)
    };
    insta::assert_snapshot!(of(PermissionMode::ReadOnly, &["web"]), @r#"exec -s read-only -C /w -c projects={"/w"={trust_level="untrusted"}} -c shell_environment_policy.set.REJOIN_TURN="01900000-0000-7000-8000-000000000001" -c features.unbounded_connection_retries=false --skip-git-repo-check -c web_search="disabled" -c sandbox_workspace_write.network_access=false -c features.apps=false -c features.plugins=false -c features.browser_use=false -c features.computer_use=false -c features.image_generation=false -c mcp_servers.files.enabled=false --ignore-rules resume --json 01a1de49-2494-7391-a595-647f5b1aba14 -"#);
    insta::assert_snapshot!(of(PermissionMode::Full, &["shell"]), @r#"exec -s danger-full-access -C /w -c projects={"/w"={trust_level="untrusted"}} -c shell_environment_policy.set.REJOIN_TURN="01900000-0000-7000-8000-000000000001" -c features.unbounded_connection_retries=false --skip-git-repo-check --disable shell_tool resume --json 01a1de49-2494-7391-a595-647f5b1aba14 -"#);
}

/// Promise 11: a message is data.
#[test]
fn words_are_not_commands() {
    let context = Some("<rejoin>\nsaid $skill @/etc/hostname\n</rejoin>");
    let nasty = Ask {
        kind: Kind::Resume,
        context,
        message: "/clear $skill -x @/etc/hostname",
        ..CODEX
    };
    let spec = command(&nasty);
    insta::assert_debug_snapshot!(spec.stdin, @r#""<rejoin>\nsaid $\u{2060}skill @/etc/hostname\n</rejoin>\n/clear $\u{2060}skill -x @/etc/hostname""#);
    assert_eq!(spec.prompt_mark, Some(text_mark(&spec.stdin)));
    assert_eq!((spec.hold_stdin, spec.env.len()), (false, 0));
    assert_eq!(spec.done_on, ["turn.completed", "turn.failed"]);
    // Its own meaning to the message alone, not to what others said.
    let raw = command(&Ask { raw: true, ..nasty }).stdin;
    assert!(raw.ends_with("\n/clear $skill -x @/etc/hostname"), "{raw}");
    assert!(!raw.contains("said $skill"), "{raw}");
    let marked = Ask {
        message: "\u{feff}x",
        ..CODEX
    };
    assert_eq!(command(&marked).stdin, "\n\u{feff}x");
}

#[test]
fn sessions_lie_where_the_cli_puts_them() {
    let codex = adapter("codex").unwrap();
    let session = SessionId::new(THREAD).unwrap();
    let at = SessionAt {
        folder: "/srv/a.b",
        session: &session,
        pin: "",
    };
    let SessionPath::Find {
        folders,
        begins,
        ends,
        ..
    } = codex.place(&at)
    else {
        panic!("at a fixed place");
    };
    assert_eq!(folders[0], "sessions/2026/11/15");
    assert_eq!(begins, "rollout-");
    assert_eq!(ends, format!("-{THREAD}.jsonl"));
    assert_eq!(codex.profile().chosen_by, ChosenBy::TheCli);
    assert_eq!(codex.moving(&at, &|_| None), Moving::Stays);
    let Some(Trace::Lock(lock)) = codex.capabilities().in_use.unwrap().trace(&session, None) else {
        panic!("codex locks a file");
    };
    assert_eq!(lock, format!("thread-writer-locks/{THREAD}.lock"));
    // E-15: what is none is looked up as a name, and a new session is begun.
    for bad in ["latest", "01a1de49", "last"] {
        assert!(!codex.is_session_id(&SessionId::new(bad).unwrap()), "{bad}");
    }
}

//! The calls of terminal interfaces; data in, data out.

use rejoin_agents::{CommandSpec, Memory, RepositoryConfig, TerminalOrder, adapter};
use rejoin_core::{PermissionMode, Permissions};

use crate::order::{Kind, OLD, plan};

const SESSIONS: &[(&str, &str, &str)] = &[
    ("claude", OLD, "sonnet"),
    ("codex", OLD, "gpt-5.6-sol"),
    ("gemini", OLD, "gemini-2.5-flash"),
    ("opencode", "ses_e21a13099ffesPgMJlFhtDvy9X", "p/m"),
];

fn of(mode: PermissionMode) -> Permissions {
    Permissions {
        mode,
        ..Permissions::default()
    }
}

/// `rules`: what lies in that folder of the home.
fn opened(
    agent: &str,
    permissions: &Permissions,
    help: &str,
    rules: &[&str],
) -> Result<CommandSpec, String> {
    let known = SESSIONS.iter().find(|(name, ..)| *name == agent);
    let (_, session, model) = known.copied().unwrap_or((agent, OLD, "m"));
    let plan = plan(agent, session, Kind::Resume);
    let terminal = adapter(agent).unwrap().capabilities().terminal;
    terminal.unwrap().terminal(&TerminalOrder {
        session: plan.session().unwrap(),
        home: "/home/u/.cli",
        place: "place/of/the/session",
        env: &[],
        folder: "/w/d",
        model: Some(model),
        permissions,
        mcp_servers: &["files".to_owned()],
        repository: RepositoryConfig::Ignored,
        memory: &Memory::default(),
        extra_args: &["--mine".to_owned()],
        help,
        list: &|folder| {
            assert_eq!(folder, "rules");
            rules.iter().map(|&name| name.to_owned()).collect()
        },
    })
}

fn told(spec: &CommandSpec) -> String {
    let env = spec.env.iter().map(|(n, v)| format!("{n}={v}"));
    let files = spec.files.iter().map(|(n, t)| format!("{n}: {t:?}"));
    let rest: Vec<String> = env.chain(files).collect();
    format!("{}\n{}", spec.args.join(" "), rest.join("\n"))
}

/// Promise 7: what a turn may do is said again.
#[test]
fn each_is_told_session_model_and_permissions() {
    for (agent, session, model) in SESSIONS {
        for mode in [
            PermissionMode::ReadOnly,
            PermissionMode::Edit,
            PermissionMode::Full,
        ] {
            let spec = opened(agent, &of(mode), "  --no-daemon", &[]).unwrap();
            for word in [session, model, &"--mine"] {
                assert!(spec.args.contains(&(*word).to_owned()), "{agent}: {word}");
            }
            assert_eq!(spec.stdin, "");
            insta::assert_snapshot!(format!("{agent}_{mode:?}"), told(&spec));
        }
    }
}

#[test]
fn a_flag_that_the_codex_does_not_know_is_left_out() {
    let alone = |help| {
        let spec = opened("codex", &of(PermissionMode::Edit), help, &[]).unwrap();
        spec.args.contains(&"--no-daemon".to_owned())
    };
    assert!(alone("      --no-daemon\n          Run without"));
    assert!(!alone("      --no-alt-screen\n"));
}

/// A rule of the user's lets a command out of the sandbox.
#[test]
fn codex_is_not_opened_wider_than_a_read_only_turn() {
    let read_only = opened(
        "codex",
        &of(PermissionMode::ReadOnly),
        "",
        &["default.rules"],
    );
    assert!(read_only.is_err_and(|why| why.contains("rules/default.rules")));
    assert!(opened("codex", &of(PermissionMode::Edit), "", &["default.rules"]).is_ok());
}

/// Nothing is written that it did not ask for, nor typed into what was once allowed.
#[test]
fn codex_that_asks_asks_in_its_terminal_too() {
    let spec = opened("codex", &of(PermissionMode::Ask), "", &[]).unwrap();
    let args = spec.args.join(" ");
    for flags in ["-s read-only -a on-request", "--disable unified_exec_tty"] {
        assert!(args.contains(flags), "{args}");
    }
}

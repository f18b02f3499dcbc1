//! Rules for the CLI's environment.

use crate::capability::ProofEnv;
use crate::environment::EnvRules;
use crate::probe;

/// Variables that the CLI sets for its tools (seen on 2.1.197 and 2.1.325), which rejoin inherits
/// when an agent calls it, and variables that would change how a session is resumed.
const REMOVE: &[&str] = &[
    "AI_AGENT",
    "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_EXECPATH",
    "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
    "CLAUDE_CODE_SESSION_ATTENDED",
    "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_SSE_PORT",
    "CLAUDE_EFFORT",
    "CLAUDE_PID",
];
const REMOVE_PREFIXES: &[&str] = &["CLAUDECODE", "CLAUDE_CODE_MESSAGING_"];

/// Keys and tokens that the CLI accepts, and variables that select services with a login of their
/// own.
pub(super) const LOGINS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
];

/// The CLI retries ten times by default, even after a refused login: 182 s (2.1.197). Three retries
/// bridge an outage of a few seconds and end a hopeless run soon. rejoin then reports that the turn
/// may be sent again.
const RETRIES: &str = "3";

pub(super) fn rules() -> EnvRules {
    EnvRules {
        remove: REMOVE,
        remove_prefixes: REMOVE_PREFIXES,
        vendor: Some("anthropic"),
        aws_login: false,
        set: vec![("CLAUDE_CODE_MAX_RETRIES", RETRIES.into())],
    }
}

/// Returns the variables of every run, which override the caller's. Without
/// `CLAUDE_CODE_EAGER_FLUSH` the answer reaches the session up to 30 ms after `result` is printed,
/// and a kill in between loses it (8 of 8 times; with it 0 of 8).
pub(super) fn always() -> Vec<(String, String)> {
    vec![("CLAUDE_CODE_EAGER_FLUSH".into(), "1".into())]
}

pub(super) fn proof(at: &ProofEnv<'_>) -> Vec<(String, String)> {
    let on = || "1".to_owned();
    let own = [
        (
            "CLAUDE_CONFIG_DIR",
            format!("{}/.claude", at.home.display()),
        ),
        ("ANTHROPIC_BASE_URL", at.url.to_owned()),
        ("ANTHROPIC_API_KEY", "sk-ant-rejoin-proof".to_owned()),
        ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", on()),
        ("DISABLE_AUTOUPDATER", on()),
        ("DISABLE_ERROR_REPORTING", on()),
        ("DISABLE_TELEMETRY", on()),
    ];
    probe::env(at, own)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::environment::compose_env;

    #[test]
    fn an_agent_that_calls_rejoin_does_not_leak_its_own_session() {
        let caller = [
            "PATH",
            "CLAUDECODE",
            "AI_AGENT",
            "CLAUDE_PID",
            "CLAUDE_CODE_MESSAGING_TOKEN",
            "CLAUDE_CODE_SESSION_ID",
            "CLAUDE_CODE_RESUME_INTERRUPTED_TURN",
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CONFIG_DIR",
            "ANTHROPIC_BASE_URL",
            "IS_SANDBOX",
        ];
        let env = compose_env(
            caller.map(|n| (n.to_owned(), "x".to_owned())),
            &rules(),
            &[],
            &always(),
        );
        let names: Vec<_> = env.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            [
                "PATH",
                "ANTHROPIC_API_KEY",
                "CLAUDE_CONFIG_DIR",
                "ANTHROPIC_BASE_URL",
                "IS_SANDBOX",
                "CLAUDE_CODE_MAX_RETRIES",
                "CLAUDE_CODE_EAGER_FLUSH",
            ]
        );
    }

    #[test]
    fn the_callers_own_number_of_retries_stays() {
        let caller = [("CLAUDE_CODE_MAX_RETRIES".to_owned(), "7".to_owned())];
        let env = compose_env(caller.clone(), &rules(), &[], &[]);
        assert_eq!(env, caller);
    }

    #[test]
    fn a_proof_stays_on_loopback_and_in_its_home() {
        let env = proof(&ProofEnv {
            url: "http://127.0.0.1:9",
            home: Path::new("/p"),
        });
        assert!(env.contains(&("ANTHROPIC_BASE_URL".into(), "http://127.0.0.1:9".into())));
        assert!(env.contains(&("CLAUDE_CONFIG_DIR".into(), "/p/.claude".into())));
        assert!(env.iter().all(|(_, value)| !value.is_empty()));
    }
}

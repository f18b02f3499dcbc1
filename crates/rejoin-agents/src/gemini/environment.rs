//! Rules for the CLI's environment.

use super::home;
use crate::capability::{ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::probe;

/// Variables that the CLI sets for its tools (0.61.0), which rejoin inherits when an agent calls
/// it, and variables that belong to one run.
const REMOVE: &[&str] = &[
    "GEMINI_CLI",
    "GEMINI_CLI_ACTIVITY_LOG_TARGET",
    "GEMINI_CLI_NO_RELAUNCH",
    "GEMINI_CLI_PROMPT_ID",
    "GEMINI_CLI_REJOIN_TURN",
    "GEMINI_CLI_SESSION_ID",
    "GEMINI_CLI_WORKTREE_HANDLED",
];

/// Keys that the CLI accepts, and variables that select services with a login of their own.
pub(super) const LOGINS: &[&str] = &[
    "GEMINI_API_KEY",
    "GOOGLE_API_KEY",
    "GOOGLE_GENAI_USE_GCA",
    "GOOGLE_GENAI_USE_VERTEXAI",
];

pub(super) fn rules() -> EnvRules {
    EnvRules {
        remove: REMOVE,
        remove_prefixes: &[],
        vendor: Some("google"),
        aws_login: false,
        set: vec![],
    }
}

/// Returns the variables of every run: one process instead of a wrapper whose child outlives it,
/// and no question whether the folder is trusted, which would end a headless run.
pub(super) fn always(home: &str) -> Vec<(String, String)> {
    [
        ("GEMINI_CLI_HOME", home::variable(home)),
        ("GEMINI_CLI_NO_RELAUNCH", "true".into()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".into()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Returns the marker of a turn under a name that the CLI always passes on.
pub(super) fn marker(turn: &str) -> (String, String) {
    ("GEMINI_CLI_REJOIN_TURN".to_owned(), turn.to_owned())
}

pub(super) fn proof(at: &ProofEnv<'_>) -> ProofSetup {
    let own = [
        ("GOOGLE_GEMINI_BASE_URL", at.url.to_owned()),
        ("GEMINI_API_KEY", "rejoin-proof".to_owned()),
    ];
    let settings = serde_json::json!({
        "general": {"enableAutoUpdate": false, "enableAutoUpdateNotification": false, "maxAttempts": 1},
        "privacy": {"usageStatisticsEnabled": false},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "telemetry": {"enabled": false},
    });
    ProofSetup {
        env: probe::env(at, own),
        files: vec![(".gemini/settings.json".into(), settings.to_string())],
        // The default asks another model first which model to use.
        model: Some("gemini-2.5-flash".into()),
    }
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
            "GEMINI_CLI",
            "GEMINI_CLI_SESSION_ID",
            "GEMINI_CLI_REJOIN_TURN",
            "GEMINI_CLI_HOME",
            "GEMINI_API_KEY",
            "ANTHROPIC_API_KEY",
        ];
        let caller = caller.map(|n| (n.to_owned(), "x".to_owned()));
        let env = compose_env(caller, &rules(), &[], &[]);
        let names: Vec<_> = env.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(names, ["PATH", "GEMINI_CLI_HOME", "GEMINI_API_KEY"]);
    }

    #[test]
    fn a_proof_stays_on_loopback_and_in_its_home() {
        let setup = proof(&ProofEnv {
            url: "http://127.0.0.1:9",
            home: Path::new("/p"),
        });
        let set = |name: &str, value: &str| setup.env.contains(&(name.into(), value.into()));
        assert!(set("GOOGLE_GEMINI_BASE_URL", "http://127.0.0.1:9") && set("HOME", "/p"));
    }
}

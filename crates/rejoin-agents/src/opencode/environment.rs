//! Rules for the CLI's environment.

use serde_json::json;

use crate::capability::{ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::probe;

/// Variables that the CLI sets for its tools, which rejoin inherits when an agent calls it, and
/// variables that would make it talk to another process.
const REMOVE: &[&str] = &[
    "AGENT",
    "OPENCODE",
    "OPENCODE_CLIENT",
    "OPENCODE_DB",
    "OPENCODE_PERMISSION",
    "OPENCODE_PID",
    "OPENCODE_ROUTE",
    "OPENCODE_SERVER_PASSWORD",
    "OPENCODE_SERVER_USERNAME",
    "OPENCODE_WORKSPACE_ID",
    super::serve::GUARD_TOLD,
];

/// The most common variables of very many. A key of any vendor is sufficient.
pub(super) const LOGINS: &[&str] = &[
    "ANTHROPIC_API_KEY",
    "AZURE_API_KEY",
    "DEEPSEEK_API_KEY",
    "GEMINI_API_KEY",
    "GITHUB_TOKEN",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GROQ_API_KEY",
    "MISTRAL_API_KEY",
    "OPENAI_API_KEY",
    "OPENCODE_API_KEY",
    "OPENCODE_AUTH_CONTENT",
    "OPENROUTER_API_KEY",
    "XAI_API_KEY",
];

/// Switches that are on in every run, so that it neither updates the CLI nor downloads optional
/// files. A repository's own configuration can name another server for the user's keys, start
/// programs and allow tools, so it counts only for users who set that variable to 0.
const OFF: &[&str] = &[
    "OPENCODE_DISABLE_AUTOUPDATE",
    "OPENCODE_DISABLE_LSP_DOWNLOAD",
    "OPENCODE_DISABLE_MODELS_FETCH",
    super::repository::DISABLE,
];

pub(super) fn rules() -> EnvRules {
    EnvRules {
        remove: REMOVE,
        remove_prefixes: &[],
        vendor: None,
        aws_login: false,
        set: OFF.iter().map(|&name| (name, "1".to_owned())).collect(),
    }
}

const CONFIG: &str = "opencode-proof.json";
const MODELS: &str = "opencode-models.json";

/// Returns a setup with a model that has a price, and a context window that is never full.
pub(super) fn proof(at: &ProofEnv<'_>) -> ProofSetup {
    let home = at.home.display();
    let model = json!({
        "name": "proof",
        "limit": {"context": 100_000_000, "output": 8000},
        "cost": {"input": 3, "output": 15},
    });
    let config = json!({
        "provider": {"rejoin": {
            "npm": "@ai-sdk/openai-compatible",
            "name": "rejoin",
            "options": {"baseURL": format!("{}/v1", at.url), "apiKey": "rejoin-proof"},
            "models": {"proof": model},
        }},
        "enabled_providers": ["rejoin"],
        "small_model": "rejoin/proof",
        "share": "disabled",
    });
    let own = [
        ("OPENCODE_CONFIG", format!("{home}/{CONFIG}")),
        ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".to_owned()),
        // At every start the CLI installs a package of its own into its configuration folder. None
        // of its flags prevents that (1.18.33).
        ("npm_config_offline", "true".to_owned()),
        // Reading the list of all vendors' models takes longer than everything else.
        ("OPENCODE_MODELS_PATH", format!("{home}/{MODELS}")),
    ];
    ProofSetup {
        env: probe::env(at, own),
        files: vec![
            (CONFIG.into(), config.to_string()),
            (MODELS.into(), "{}".to_owned()),
        ],
        model: Some("rejoin/proof".into()),
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
            "AGENT",
            "OPENCODE",
            "OPENCODE_PID",
            "OPENCODE_DB",
            "OPENCODE_PERMISSION",
            "OPENCODE_SERVER_PASSWORD",
            "REJOIN_OPENCODE_GUARD",
            "OPENCODE_CONFIG",
            "OPENCODE_DISABLE_PROJECT_CONFIG",
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
        ];
        let caller = caller.map(|n| (n.to_owned(), "x".to_owned()));
        let env = compose_env(caller, &rules(), &[], &[]);
        let told: Vec<_> = env.iter().map(|(n, v)| format!("{n}={v}")).collect();
        assert_eq!(
            told,
            [
                "PATH=x",
                "OPENCODE_CONFIG=x",
                "OPENCODE_DISABLE_PROJECT_CONFIG=x",
                "OPENAI_API_KEY=x",
                "ANTHROPIC_API_KEY=x",
                "OPENCODE_DISABLE_AUTOUPDATE=1",
                "OPENCODE_DISABLE_LSP_DOWNLOAD=1",
                "OPENCODE_DISABLE_MODELS_FETCH=1",
            ]
        );
    }

    #[test]
    fn a_proof_stays_on_loopback_and_in_its_home() {
        let setup = proof(&ProofEnv {
            url: "http://127.0.0.1:9",
            home: Path::new("/p"),
        });
        assert!(setup.files[0].1.contains("http://127.0.0.1:9/v1"));
        let config = ("OPENCODE_CONFIG".into(), "/p/opencode-proof.json".into());
        assert!(setup.env.contains(&config));
        assert!(setup.env.iter().all(|(_, value)| !value.is_empty()));
    }
}

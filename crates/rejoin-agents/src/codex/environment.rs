//! Rules for the CLI's environment.

use crate::capability::{ProofEnv, ProofSetup};
use crate::environment::EnvRules;
use crate::probe;

/// Variables that the CLI sets for its tools (0.166.0), which rejoin inherits when an agent calls
/// it, and variables that its npm wrapper sets anew.
const REMOVE: &[&str] = &[
    "CODEX_APPLY_PATCH_PRESERVE_LINE_ENDINGS",
    "CODEX_CI",
    "CODEX_SESSION_ID",
    "CODEX_THREAD_ID",
    "CODEX_TOOL_CALL_ID",
    "CODEX_VERSION",
];
const REMOVE_PREFIXES: &[&str] = &["CODEX_MANAGED_", "CODEX_SANDBOX"];

/// Keys that the CLI accepts without a login.
pub(super) const LOGINS: &[&str] = &["CODEX_API_KEY", "CODEX_ACCESS_TOKEN"];

/// Returns the rules. The configuration may name any provider, with any variable for its key.
pub(super) fn rules() -> EnvRules {
    EnvRules {
        remove: REMOVE,
        remove_prefixes: REMOVE_PREFIXES,
        vendor: None,
        aws_login: false,
        set: vec![],
    }
}

/// Configuration of a proof. Plugins, apps and analytics make network calls even with a custom
/// provider.
const PROOF: &str = r#"
model_provider = "rejoin"
check_for_update_on_startup = false

[model_providers.rejoin]
name = "rejoin"
base_url = "URL/v1"
wire_api = "responses"
env_key = "PROOF_KEY"
request_max_retries = 0
stream_max_retries = 0

[features]
plugins = false
apps = false
remote_plugin = false
plugin_discovery_prefetch = false
api_key_model_discovery = false

[analytics]
enabled = false
"#;

pub(super) fn proof(at: &ProofEnv<'_>) -> ProofSetup {
    let own = [
        ("CODEX_HOME", format!("{}/.codex", at.home.display())),
        ("PROOF_KEY", "sk-rejoin-proof".to_owned()),
    ];
    let config = PROOF.replace("URL", at.url);
    ProofSetup {
        env: probe::env(at, own),
        files: vec![(".codex/config.toml".into(), config)],
        model: Some("gpt-5.5".into()),
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
            "CODEX_HOME",
            "CODEX_THREAD_ID",
            "CODEX_SANDBOX_NETWORK_DISABLED",
            "CODEX_MANAGED_BY_NPM",
            "CODEX_API_KEY",
            "OPENROUTER_API_KEY",
        ];
        let caller = caller.map(|n| (n.to_owned(), "x".to_owned()));
        let env = compose_env(caller, &rules(), &[], &[]);
        let names: Vec<_> = env.iter().map(|(n, _)| n.as_str()).collect();
        assert_eq!(
            names,
            ["PATH", "CODEX_HOME", "CODEX_API_KEY", "OPENROUTER_API_KEY"]
        );
    }

    #[test]
    fn a_proof_stays_on_loopback_and_in_its_home() {
        let setup = proof(&ProofEnv {
            url: "http://127.0.0.1:9",
            home: Path::new("/p"),
        });
        assert!(
            setup
                .env
                .contains(&("CODEX_HOME".into(), "/p/.codex".into()))
        );
        let (path, text) = &setup.files[0];
        assert_eq!(path, ".codex/config.toml");
        let config: toml::Table = text.parse().unwrap();
        let provider = &config["model_providers"]["rejoin"];
        assert_eq!(provider["base_url"].as_str(), Some("http://127.0.0.1:9/v1"));
        assert!(
            setup
                .env
                .iter()
                .any(|(n, _)| Some(n.as_str()) == provider["env_key"].as_str())
        );
    }
}

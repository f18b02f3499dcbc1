//! The environment a CLI gets: the caller's, minus what would confuse it or does not concern it.

/// Names the turn in the environment of the CLI and of everything it starts, so that what outlives
/// even the shim can be found. No KEY, TOKEN or SECRET in the name: some CLIs drop those.
pub const MARKER: &str = "REJOIN_TURN";

/// API keys by vendor: an agent with one vendor gets that one's only (agents/risks.md 4).
const VENDOR_KEYS: &[(&str, &[&str])] = &[
    (
        "anthropic",
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
        ],
    ),
    (
        "openai",
        &["OPENAI_API_KEY", "CODEX_API_KEY", "AZURE_OPENAI_API_KEY"],
    ),
    (
        "google",
        &[
            "GEMINI_API_KEY",
            "GOOGLE_API_KEY",
            "GOOGLE_GENERATIVE_AI_API_KEY",
        ],
    ),
    (
        "other",
        &[
            "OPENROUTER_API_KEY",
            "MISTRAL_API_KEY",
            "GROQ_API_KEY",
            "DEEPSEEK_API_KEY",
            "XAI_API_KEY",
            "COHERE_API_KEY",
        ],
    ),
];

/// A session on its way to us, and where one is fetched from: none of the CLI's business.
const ENVELOPE: &[&str] = &[
    "AGENT_SESSION_BLOB",
    "AGENT_SESSION_ID",
    "SESSION_DOWNLOAD_URL",
];

/// What an adapter wants removed and set.
#[derive(Debug, Clone, Default)]
pub struct EnvRules {
    pub remove: &'static [&'static str],
    pub remove_prefixes: &'static [&'static str],
    /// Of `VENDOR_KEYS`; none: it may talk to any vendor and keeps all keys.
    pub vendor: Option<&'static str>,
    pub set: Vec<(&'static str, String)>,
}

impl EnvRules {
    fn drops(&self, name: &str) -> bool {
        let listed = self.remove.contains(&name);
        let prefixed = self.remove_prefixes.iter().any(|p| name.starts_with(p));
        let ours = name.starts_with("REJOIN_") || ENVELOPE.contains(&name);
        let others = self.vendor.is_some_and(|own| {
            VENDOR_KEYS
                .iter()
                .any(|(vendor, keys)| *vendor != own && keys.contains(&name))
        });
        listed || prefixed || ours || others
    }
}

/// `set` of the rules only fills what the caller left open; `extra` (the configuration's `env`, and
/// the command's own) wins over everything; `pass` brings back what was removed.
pub fn compose_env(
    caller: impl IntoIterator<Item = (String, String)>,
    rules: &EnvRules,
    pass: &[String],
    extra: &[(String, String)],
) -> Vec<(String, String)> {
    let mut env: Vec<(String, String)> = caller
        .into_iter()
        .filter(|(name, _)| pass.contains(name) || !rules.drops(name))
        .collect();
    for (name, value) in &rules.set {
        if !env.iter().any(|(n, _)| n == name) {
            env.push(((*name).to_owned(), value.clone()));
        }
    }
    for (name, value) in extra {
        env.retain(|(n, _)| n != name);
        env.push((name.clone(), value.clone()));
    }
    env
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn removed_brought_back_and_set() {
        let rules = EnvRules {
            remove: &["CLAUDE_CODE_SESSION_ID"],
            remove_prefixes: &["CLAUDECODE"],
            vendor: Some("anthropic"),
            set: vec![("A", "1".into()), ("B", "1".into())],
        };
        let caller = [
            "PATH",
            "A",
            "CLAUDECODE",
            "CLAUDECODE_X",
            "REJOIN_TOKEN",
            "AGENT_SESSION_BLOB",
            "SESSION_DOWNLOAD_URL",
            "OPENAI_API_KEY",
            "ANTHROPIC_API_KEY",
            "CLAUDE_CODE_SESSION_ID",
        ];
        let caller = caller.map(|n| (n.to_owned(), "x".to_owned()));
        let names = |env: &[(String, String)]| {
            env.iter()
                .map(|(n, v)| format!("{n}={v}"))
                .collect::<Vec<_>>()
        };
        let env = compose_env(caller.clone(), &rules, &[], &[(MARKER.into(), "t".into())]);
        assert_eq!(
            names(&env),
            [
                "PATH=x",
                "A=x",
                "ANTHROPIC_API_KEY=x",
                "B=1",
                "REJOIN_TURN=t"
            ]
        );
        let passed = compose_env(caller, &rules, &["OPENAI_API_KEY".into()], &[]);
        assert!(names(&passed).contains(&"OPENAI_API_KEY=x".to_owned()));
    }
}

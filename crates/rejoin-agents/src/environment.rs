//! Environment of a CLI: the caller's, without variables that would confuse the CLI or are not
//! meant for it.

/// Names the turn in the environment of the CLI and of all its child processes, so that processes
/// which outlive even the shim can be found. The name contains no KEY, TOKEN or SECRET, because
/// some CLIs drop such variables.
pub const MARKER: &str = "REJOIN_TURN";

/// API keys by vendor. An agent with one vendor receives only the keys of that vendor
/// (agents/risks.md 4).
const VENDOR_KEYS: &[(&str, &[&str])] = &[
    (
        "anthropic",
        &[
            "ANTHROPIC_API_KEY",
            "ANTHROPIC_AUTH_TOKEN",
            "CLAUDE_CODE_OAUTH_TOKEN",
            "AWS_BEARER_TOKEN_BEDROCK",
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

/// Variables that carry a session to import, or the address to fetch one from. They are not meant
/// for the CLI.
const ENVELOPE: &[&str] = &[
    "AGENT_SESSION_BLOB",
    "AGENT_SESSION_ID",
    "SESSION_DOWNLOAD_URL",
];

/// Variables that libpq reads, and the address that most frameworks read. They are database logins,
/// possibly for the store itself. Every name with the prefix `PGSSL` counts too.
const DATABASE: &[&str] = &[
    "DATABASE_URL",
    "PGAPPNAME",
    "PGCHANNELBINDING",
    "PGCLIENTENCODING",
    "PGCONNECT_TIMEOUT",
    "PGDATABASE",
    "PGDATESTYLE",
    "PGGEQO",
    "PGGSSDELEGATION",
    "PGGSSENCMODE",
    "PGGSSLIB",
    "PGHOST",
    "PGHOSTADDR",
    "PGKRBSRVNAME",
    "PGLOADBALANCEHOSTS",
    "PGLOCALEDIR",
    "PGMAXPROTOCOLVERSION",
    "PGMINPROTOCOLVERSION",
    "PGOAUTHDEBUG",
    "PGOPTIONS",
    "PGPASSFILE",
    "PGPASSWORD",
    "PGPORT",
    "PGREALM",
    "PGREQUIREAUTH",
    "PGREQUIREPEER",
    "PGREQUIRESSL",
    "PGSERVICE",
    "PGSERVICEFILE",
    "PGSYSCONFDIR",
    "PGTARGETSESSIONATTRS",
    "PGTTY",
    "PGTZ",
    "PGUSER",
];

/// Names of AWS that hold no bucket login. Dropping them would make an agent act in another region
/// or account than its caller.
const AWS_PLACES: &[&str] = &[
    "AWS_BEARER_TOKEN_BEDROCK",
    "AWS_CA_BUNDLE",
    "AWS_DEFAULT_REGION",
    "AWS_PROFILE",
    "AWS_REGION",
];

/// True for variables that can hold a login of the store: its database, or its bucket (`AWS_*`).
fn opens_store(name: &str, aws_login: bool) -> bool {
    let aws = name.starts_with("AWS_") && !AWS_PLACES.contains(&name);
    DATABASE.contains(&name) || name.starts_with("PGSSL") || (aws && !aws_login)
}

/// True for the values that CLIs accept as "on" in a variable that selects a service.
pub(crate) fn is_on(value: &str) -> bool {
    ["1", "true", "yes", "on"].contains(&value.trim().to_ascii_lowercase().as_str())
}

/// Changes that an adapter makes to the environment.
#[derive(Debug, Clone, Default)]
pub struct EnvRules {
    /// Variables that the CLI does not receive.
    pub remove: &'static [&'static str],
    /// Beginnings of names of further such variables.
    pub remove_prefixes: &'static [&'static str],
    /// Key of `VENDOR_KEYS`. None: the CLI may talk to any vendor and keeps all keys.
    pub vendor: Option<&'static str>,
    /// The CLI logs in with `AWS_*` ([`AwsLogin`](crate::AwsLogin)), so it receives them.
    pub aws_login: bool,
    /// Variables that the CLI receives unless the caller has set them.
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
        listed || prefixed || ours || others || opens_store(name, self.aws_login)
    }
}

/// Builds the environment of a CLI. `set` of the rules only adds variables that the caller has not
/// set. `extra` (the configuration's `env` and the command's own) overrides everything. `pass`
/// lists variables that the rules must not remove.
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

/// Adds git's `safe.bareRepository=explicit` to an environment, where it outweighs every file. Other
/// settings that the caller passes this way stay, and a value of this setting too.
///
/// Git then does not take a folder of a checkout for a bare repository, whose configuration a clone
/// brings along. Claude Code 2.1.197 runs `git status` and `git log` at its start.
pub fn refuse_bare_repositories(env: &mut Vec<(String, String)>) {
    let (key, value) = ("safe.bareRepository", "explicit");
    let get = |name: &str| env.iter().find(|(n, _)| n == name).map(|(_, value)| value);
    let count: usize = get(GIT_COUNT).and_then(|n| n.parse().ok()).unwrap_or(0);
    let is_set = (0..count)
        .filter_map(|n| get(&format!("GIT_CONFIG_KEY_{n}")))
        .any(|set| set.eq_ignore_ascii_case(key));
    if is_set {
        return;
    }
    env.retain(|(name, _)| name != GIT_COUNT);
    let more = [
        (GIT_COUNT.to_owned(), (count + 1).to_string()),
        (format!("GIT_CONFIG_KEY_{count}"), key.to_owned()),
        (format!("GIT_CONFIG_VALUE_{count}"), value.to_owned()),
    ];
    env.extend(more);
}

const GIT_COUNT: &str = "GIT_CONFIG_COUNT";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_git_are_added_behind_those_of_the_caller() {
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let mut env = vec![
            pair(GIT_COUNT, "1"),
            pair("GIT_CONFIG_KEY_0", "core.abbrev"),
            pair("GIT_CONFIG_VALUE_0", "12"),
        ];
        refuse_bare_repositories(&mut env);
        let added = [
            pair(GIT_COUNT, "2"),
            pair("GIT_CONFIG_KEY_1", "safe.bareRepository"),
            pair("GIT_CONFIG_VALUE_1", "explicit"),
        ];
        assert!(added.iter().all(|it| env.contains(it)), "{env:?}");
        let twice = env.clone();
        refuse_bare_repositories(&mut env);
        assert_eq!(env, twice);
    }

    #[test]
    fn removed_brought_back_and_set() {
        let rules = EnvRules {
            remove: &["CLAUDE_CODE_SESSION_ID"],
            remove_prefixes: &["CLAUDECODE"],
            vendor: Some("anthropic"),
            aws_login: false,
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

    #[test]
    fn logins_of_the_store_reach_an_agent_only_by_name() {
        let caller = [
            "PATH",
            "PGPASSWORD",
            "PGSSLKEY",
            "PGDATA",
            "DATABASE_URL",
            "AWS_ACCESS_KEY_ID",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN",
            "AWS_REGION",
        ];
        let caller = caller.map(|n| (n.to_owned(), "x".to_owned()));
        let names = |rules: &EnvRules, pass: &[String]| {
            let env = compose_env(caller.clone(), rules, pass, &[]);
            env.into_iter().map(|(n, _)| n).collect::<Vec<_>>()
        };
        let rules = EnvRules::default();
        assert_eq!(names(&rules, &[]), ["PATH", "PGDATA", "AWS_REGION"]);
        assert_eq!(
            names(&rules, &["DATABASE_URL".into()]),
            ["PATH", "PGDATA", "DATABASE_URL", "AWS_REGION"]
        );
        let aws_login = EnvRules {
            aws_login: true,
            ..rules
        };
        assert_eq!(
            names(&aws_login, &[])[2..],
            [
                "AWS_ACCESS_KEY_ID",
                "AWS_CONTAINER_AUTHORIZATION_TOKEN",
                "AWS_REGION"
            ]
        );
    }
}

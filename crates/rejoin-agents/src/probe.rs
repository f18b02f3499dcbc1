//! Parts of a binary's identification and proof that the adapters share.

use std::path::PathBuf;

use rejoin_core::{Runtime, Version};

use crate::adapter::Env;
use crate::capability::ProofEnv;

/// Returns the first line that is not empty, without spaces around it.
pub(crate) fn first_line(output: &str) -> Option<&str> {
    output.lines().map(str::trim).find(|line| !line.is_empty())
}

/// Returns the runtime. None if the version is not one, or if the product has no name.
pub(crate) fn runtime(product: &str, version: &str) -> Option<Runtime> {
    let numbered = version.split('.').count() >= 2
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    (numbered && !product.is_empty()).then(|| Runtime {
        product: product.to_owned(),
        version: Version(version.to_owned()),
    })
}

/// Judges a call that resumes a session which does not exist. None if the CLI looked for the
/// session (`not_found`), which it does only if it knows the flags. Otherwise its first message.
pub(crate) fn judge(stdout: &str, stderr: &str, not_found: &str) -> Option<String> {
    if stdout.contains(not_found) || stderr.contains(not_found) {
        return None;
    }
    let mut lines = stderr.lines().chain(stdout.lines()).map(str::trim);
    let found = lines.find(|line| !line.is_empty() && !line.starts_with("WARNING:"));
    let why = found.unwrap_or("it printed nothing");
    let why = why.trim_start_matches("error: ");
    Some(
        why.trim_start_matches("Error: ")
            .chars()
            .take(200)
            .collect(),
    )
}

/// Returns the variables of a proof: those of the CLI, its home, and no proxy on loopback.
pub(crate) fn env<const N: usize>(
    at: &ProofEnv<'_>,
    own: [(&str, String); N],
) -> Vec<(String, String)> {
    let home = at.home.to_string_lossy().into_owned();
    let common = [
        ("HOME", home),
        ("NO_PROXY", "127.0.0.1,localhost".to_owned()),
    ];
    let all = own.into_iter().chain(common);
    all.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Returns the folder that a variable names, or else one beneath the user's home.
pub(crate) fn folder(env: Env<'_>, variable: &str, beneath_home: &str) -> Option<PathBuf> {
    let set = |name| {
        env(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    set(variable).or_else(|| Some(set("HOME")?.join(beneath_home)))
}

//! Which product answers to the name, and whether it knows the flags used here.

use rejoin_core::{Runtime, Version};

/// No session has this id: the call ends before it could cost a token.
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

/// What the CLI says about a session it does not know, on stderr.
pub(super) const NOT_FOUND: &str = "no rollout found for thread id";

/// `codex-cli 0.166.0`; a fork calls itself otherwise.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let line = output.lines().find(|line| !line.trim().is_empty())?;
    let (product, version) = line.trim().rsplit_once(' ')?;
    let numbered = version.split('.').count() >= 2
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    let named = product
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    (numbered && named && !product.is_empty()).then(|| Runtime {
        product: product.to_owned(),
        version: Version(version.to_owned()),
    })
}

/// Every flag of a run, with a prompt that is never sent.
pub(super) fn arguments() -> Vec<String> {
    let args = [
        "exec",
        "-s",
        "read-only",
        "-C",
        ".",
        "-c",
        "features.unbounded_connection_retries=false",
        "--skip-git-repo-check",
        "--disable",
        "shell_tool",
        "--ignore-rules",
        "resume",
        "--json",
        NOBODY,
        "x",
    ];
    args.map(str::to_owned).into()
}

pub(super) fn judge(stdout: &str, stderr: &str) -> Option<String> {
    if stderr.contains(NOT_FOUND) || stdout.contains(NOT_FOUND) {
        return None;
    }
    let said = stderr
        .lines()
        .chain(stdout.lines())
        .map(str::trim)
        .find(|line| !line.is_empty() && !line.starts_with("WARNING:"));
    let why = said.map_or("it printed nothing", |line| {
        line.trim_start_matches("error: ")
            .trim_start_matches("Error: ")
    });
    Some(why.chars().take(200).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_forks() {
        let read = |text: &str| runtime(text).map(|r| r.to_string());
        assert_eq!(
            read("codex-cli 0.166.0\n").as_deref(),
            Some("codex-cli 0.166.0")
        );
        assert_eq!(
            read("my-codex 1.0-beta").as_deref(),
            Some("my-codex 1.0-beta")
        );
        for garbage in [
            "",
            "\n",
            "0.166.0",
            "codex-cli",
            "no such command",
            "2.1 (Claude Code)",
        ] {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn a_known_flag_and_an_unknown_one() {
        let known = include_str!("../../fixtures/codex/0.166.0/unknown_session_failure.stderr.txt");
        assert_eq!(judge("", known), None);
        assert_eq!(
            judge(
                "",
                "WARNING: x\nerror: unexpected argument '--zork' found\n"
            )
            .as_deref(),
            Some("unexpected argument '--zork' found")
        );
        assert_eq!(judge("", "").as_deref(), Some("it printed nothing"));
    }
}

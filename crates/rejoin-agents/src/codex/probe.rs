//! Identifies the product behind the program name, and checks that it knows the flags used here.

use rejoin_core::Runtime;

use super::{Codex, environment};
use crate::capability::{Proof, ProofEnv, ProofSetup};
use crate::probe;

/// Id of no session: the call ends before it could cost a token.
const NOBODY: &str = "00000000-0000-7000-8000-000000000000";

/// Message of the CLI about a session that it does not know, on stderr.
pub(super) const NOT_FOUND: &str = "no rollout found for thread id";

/// Parses `codex-cli 0.166.0`. A fork prints another name.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let (product, version) = probe::first_line(output)?.rsplit_once(' ')?;
    let named = product
        .chars()
        .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
    probe::runtime(product, version).filter(|_| named)
}

impl Proof for Codex {
    /// Returns every flag of a run, with a prompt that is never sent.
    fn probe(&self) -> Vec<String> {
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

    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String> {
        probe::judge(stdout, stderr, NOT_FOUND)
    }

    fn proof(&self, at: &ProofEnv<'_>) -> ProofSetup {
        environment::proof(at)
    }
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
        assert_eq!(Codex.judge_probe("", known), None);
        assert_eq!(
            Codex
                .judge_probe(
                    "",
                    "WARNING: x\nerror: unexpected argument '--zork' found\n"
                )
                .as_deref(),
            Some("unexpected argument '--zork' found")
        );
        assert_eq!(
            Codex.judge_probe("", "").as_deref(),
            Some("it printed nothing")
        );
    }
}

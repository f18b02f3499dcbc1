//! Identifies the product behind the program name, and checks that it knows the flags used here.

use rejoin_core::Runtime;

use super::{Claude, command, environment};
use crate::capability::{Proof, ProofEnv, ProofSetup};
use crate::probe;

/// Id of no session: the call ends before it could cost a token.
const UNKNOWN_SESSION: &str = "00000000-0000-4000-8000-000000000000";

/// Message of the CLI about a session that it does not know, on stdout and on stderr.
pub(super) const NOT_FOUND: &str = "No conversation found with session ID";

/// Parses `2.1.197 (Claude Code)`. A fork prints another name in the brackets.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let (version, rest) = probe::first_line(output)?.split_once(' ')?;
    let product = rest.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
    probe::runtime(product, version)
}

/// Returns the arguments of a call that checks the flags. `--help` cannot tell: it does not list
/// hidden flags and accepts unknown ones.
fn arguments() -> Vec<String> {
    let mut args: Vec<String> = vec![
        "-p".into(),
        "x".into(),
        "--resume".into(),
        UNKNOWN_SESSION.into(),
    ];
    // With stream-json input the prompt would have to be on stdin.
    let skip = ["-p", "--input-format"];
    let mut flags = command::FLAGS.iter().copied().peekable();
    while let Some(flag) = flags.next() {
        let value = flags.next_if(|next| !next.starts_with('-'));
        if !skip.contains(&flag) {
            args.push(flag.to_owned());
            args.extend(value.map(str::to_owned));
        }
    }
    let permissions = [
        "--permission-mode",
        "dontAsk",
        "--tools",
        "Read",
        "--disallowedTools",
        "Bash",
        "--setting-sources",
        "user",
        "--add-dir",
        ".",
    ];
    args.extend(permissions.map(str::to_owned));
    args
}

impl Proof for Claude {
    fn probe(&self) -> Vec<String> {
        arguments()
    }

    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String> {
        probe::judge(stdout, stderr, NOT_FOUND)
    }

    fn proof(&self, at: &ProofEnv<'_>) -> ProofSetup {
        ProofSetup {
            env: environment::proof(at),
            ..ProofSetup::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_and_forks() {
        let read = |text: &str| runtime(text).map(|r| r.to_string());
        assert_eq!(
            read("2.1.197 (Claude Code)\n").as_deref(),
            Some("Claude Code 2.1.197")
        );
        assert_eq!(read("1.0 (OpenClaude)").as_deref(), Some("OpenClaude 1.0"));
        for garbage in [
            "",
            "\n",
            "2.1.197",
            "v2 (x",
            "command not found",
            "x.y (z)",
            "2.1 ()",
        ] {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn the_probe_names_every_flag_and_no_prompt_on_stdin() {
        insta::assert_snapshot!(arguments().join(" "), @"-p x --resume 00000000-0000-4000-8000-000000000000 --output-format stream-json --verbose --include-partial-messages --permission-prompt-tool stdio --permission-mode dontAsk --tools Read --disallowedTools Bash --setting-sources user --add-dir .");
    }

    #[test]
    fn a_known_flag_and_an_unknown_one() {
        let known = include_str!("../../fixtures/claude/2.1.197/unknown_session.stdout.jsonl");
        assert_eq!(Claude.judge_probe(known, ""), None);
        assert_eq!(
            Claude.judge_probe("", "No conversation found with session ID: x\n"),
            None
        );
        assert_eq!(
            Claude
                .judge_probe("", "error: unknown option '--zork'\n")
                .as_deref(),
            Some("unknown option '--zork'")
        );
        assert_eq!(
            Claude.judge_probe("", "").as_deref(),
            Some("it printed nothing")
        );
    }
}

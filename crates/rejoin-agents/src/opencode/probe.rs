//! Identifies the product behind the program name, and checks that it knows the flags used here.

use rejoin_core::Runtime;

use super::{OpenCode, environment};
use crate::capability::{Proof, ProofEnv, ProofSetup};
use crate::probe;

/// Id of no session: the call ends before it could cost a token.
const NOBODY: &str = "ses_00000000000000000000000000";

/// Message of the CLI about a session that it does not know, on stderr.
pub(super) const NOT_FOUND: &str = "Session not found";

/// Parses `1.18.33`. None if there is any other output.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let mut lines = output.lines().map(str::trim).filter(|l| !l.is_empty());
    let (version, rest) = (lines.next()?, lines.next());
    probe::runtime("OpenCode", version).filter(|_| rest.is_none())
}

impl Proof for OpenCode {
    fn probe(&self) -> Vec<String> {
        let args = [
            "run", "x", "--format", "json", "--title", "rejoin", "--dir", ".", "--agent", "build",
            "--auto", "-s", NOBODY,
        ];
        args.map(str::to_owned).into()
    }

    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String> {
        let (stdout, stderr) = (plain(stdout), plain(stderr));
        if stdout.contains(NOT_FOUND) || stderr.contains(NOT_FOUND) {
            return None;
        }
        // After an unknown flag, the last line names it.
        let lines = stderr.lines().rev().chain(stdout.lines().rev());
        let said = lines.map(str::trim).find(|line| !line.is_empty());
        let why = said.unwrap_or("it printed nothing");
        Some(
            why.trim_start_matches("Error: ")
                .chars()
                .take(200)
                .collect(),
        )
    }

    fn proof(&self, at: &ProofEnv<'_>) -> ProofSetup {
        environment::proof(at)
    }
}

/// Removes colours, which the CLI writes into files too.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("\u{1b}[") {
        out.push_str(before);
        let end = after.find(|c: char| c.is_ascii_alphabetic());
        rest = end.map_or("", |end| &after[end + 1..]);
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions() {
        let read = |text: &str| runtime(text).map(|r| r.to_string());
        assert_eq!(read("1.18.33\n").as_deref(), Some("OpenCode 1.18.33"));
        assert_eq!(
            read("2.0.0-beta.1").as_deref(),
            Some("OpenCode 2.0.0-beta.1")
        );
        for garbage in [
            "",
            "\n",
            "1",
            "v1.2",
            "opencode: not found",
            "1.2\nmore",
            "1.2 (x)",
        ] {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn a_known_flag_and_an_unknown_one() {
        let known = include_str!("../../fixtures/opencode/1.18.33/unknown_session.stderr");
        assert_eq!(OpenCode.judge_probe("", known), None);
        let unknown = "opencode run [message..]\n\n  --x  [boolean]\n\nUnknown argument: zork\n";
        assert_eq!(
            OpenCode.judge_probe("", unknown).as_deref(),
            Some("Unknown argument: zork")
        );
        assert_eq!(
            OpenCode.judge_probe("", "").as_deref(),
            Some("it printed nothing")
        );
    }

    #[test]
    fn colours_are_taken_off() {
        let said = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found";
        assert_eq!(plain(said), "Error: Session not found");
        assert_eq!(plain("a\u{1b}[b\u{1b}["), "a");
    }
}

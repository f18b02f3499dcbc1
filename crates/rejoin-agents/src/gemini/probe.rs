//! Identifies the product behind the program name, and checks that it knows the flags used here.

use rejoin_core::Runtime;

use super::{Gemini, environment};
use crate::capability::{Proof, ProofEnv, ProofSetup};
use crate::probe;

/// Flags that a run may need. `--help` lists them all and starts nothing.
const NEEDED: &[&str] = &[
    "--admin-policy",
    "--approval-mode",
    "--output-format",
    "--policy",
    "--resume",
    "--session-id",
];

/// Parses a bare version number. The product does not print its name.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    probe::runtime("Gemini CLI", probe::first_line(output)?)
}

impl Proof for Gemini {
    fn probe(&self) -> Vec<String> {
        vec!["--help".into()]
    }

    fn judge_probe(&self, stdout: &str, stderr: &str) -> Option<String> {
        let known = |flag: &str| stdout.contains(flag) || stderr.contains(flag);
        let missing = NEEDED.iter().find(|flag| !known(flag))?;
        Some(format!("it does not know the option {missing}"))
    }

    fn proof(&self, at: &ProofEnv<'_>) -> ProofSetup {
        environment::proof(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_garbage() {
        let read = |text: &str| runtime(text).map(|r| r.to_string());
        assert_eq!(read("0.61.0\n").as_deref(), Some("Gemini CLI 0.61.0"));
        assert_eq!(
            read("\n0.62.0-nightly.1+g1\n").as_deref(),
            Some("Gemini CLI 0.62.0-nightly.1+g1")
        );
        for garbage in [
            "",
            "command not found",
            "v1.2",
            "2.1.197 (Claude Code)",
            "7",
        ] {
            assert_eq!(read(garbage), None, "{garbage:?}");
        }
    }

    #[test]
    fn a_flag_that_is_missing_is_named() {
        let help = NEEDED.join("\n");
        assert_eq!(Gemini.judge_probe(&help, ""), None);
        let older = help.replace("--admin-policy", "");
        assert_eq!(
            Gemini.judge_probe(&older, "").as_deref(),
            Some("it does not know the option --admin-policy")
        );
    }
}

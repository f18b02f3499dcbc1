//! Which product answers to the name, and whether it knows the flags used here.

use rejoin_core::{Runtime, Version};

/// What a run may need; `--help` lists them all and starts nothing.
const NEEDED: &[&str] = &[
    "--admin-policy",
    "--approval-mode",
    "--output-format",
    "--policy",
    "--resume",
    "--session-id",
];

/// A bare number; the product does not say its name.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let version = output
        .lines()
        .map(str::trim)
        .find(|line| !line.is_empty())?;
    let numbered = version.split('.').count() >= 2
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    numbered.then(|| Runtime {
        product: "Gemini CLI".into(),
        version: Version(version.to_owned()),
    })
}

pub(super) fn arguments() -> Vec<String> {
    vec!["--help".into()]
}

pub(super) fn judge(stdout: &str, stderr: &str) -> Option<String> {
    let known = |flag: &str| stdout.contains(flag) || stderr.contains(flag);
    let missing = NEEDED.iter().find(|flag| !known(flag))?;
    Some(format!("it does not know the option {missing}"))
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
        assert_eq!(judge(&help, ""), None);
        let older = help.replace("--admin-policy", "");
        assert_eq!(
            judge(&older, "").as_deref(),
            Some("it does not know the option --admin-policy")
        );
    }
}

//! Which product answers to the name, and whether it knows the flags used here.

use rejoin_core::{Runtime, Version};

/// No session has this id: the call ends before it could cost a token.
const NOBODY: &str = "ses_00000000000000000000000000";

/// What the CLI says, on stderr, about a session it does not know.
pub(super) const NOT_FOUND: &str = "Session not found";

/// `1.18.33` and nothing else.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let mut lines = output.lines().map(str::trim).filter(|l| !l.is_empty());
    let (version, rest) = (lines.next()?, lines.next());
    let numbered = version.split('.').count() >= 2
        && version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
    (numbered && rest.is_none()).then(|| Runtime {
        product: "OpenCode".into(),
        version: Version(version.to_owned()),
    })
}

pub(super) fn arguments() -> Vec<String> {
    let args = [
        "run", "x", "--format", "json", "--title", "rejoin", "--dir", ".", "--agent", "build",
        "--auto", "-s", NOBODY,
    ];
    args.map(str::to_owned).into()
}

pub(super) fn judge(stdout: &str, stderr: &str) -> Option<String> {
    let (stdout, stderr) = (plain(stdout), plain(stderr));
    if stdout.contains(NOT_FOUND) || stderr.contains(NOT_FOUND) {
        return None;
    }
    // After a flag it does not know, the last line says which one.
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

/// Without colours, which the CLI also writes into files.
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
        assert_eq!(judge("", known), None);
        let unknown = "opencode run [message..]\n\n  --x  [boolean]\n\nUnknown argument: zork\n";
        assert_eq!(
            judge("", unknown).as_deref(),
            Some("Unknown argument: zork")
        );
        assert_eq!(judge("", "").as_deref(), Some("it printed nothing"));
    }

    #[test]
    fn colours_are_taken_off() {
        let said = "\u{1b}[91m\u{1b}[1mError: \u{1b}[0mSession not found";
        assert_eq!(plain(said), "Error: Session not found");
        assert_eq!(plain("a\u{1b}[b\u{1b}["), "a");
    }
}

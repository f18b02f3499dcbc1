//! Which product answers to the name, and whether it knows the flags used here.

use rejoin_core::{Runtime, Version};

use super::command;

/// No session has this id: the call ends before it could cost a token.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// What the CLI says about a session it does not know, on stdout and on stderr.
pub(super) const NOT_FOUND: &str = "No conversation found with session ID";

/// `2.1.197 (Claude Code)`; a fork says another name in the brackets.
pub(super) fn runtime(output: &str) -> Option<Runtime> {
    let line = output.lines().find(|line| !line.trim().is_empty())?;
    let (version, rest) = line.trim().split_once(' ')?;
    let product = rest.trim().strip_prefix('(')?.strip_suffix(')')?.trim();
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

/// `--help` does not list hidden flags and accepts unknown ones, so it cannot tell.
pub(super) fn arguments() -> Vec<String> {
    let mut args: Vec<String> = vec!["-p".into(), "x".into(), "--resume".into(), NOBODY.into()];
    // With stream-json input the prompt would have to come on stdin.
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

pub(super) fn judge(stdout: &str, stderr: &str) -> Option<String> {
    if stdout.contains(NOT_FOUND) || stderr.contains(NOT_FOUND) {
        return None;
    }
    let said = stderr
        .lines()
        .chain(stdout.lines())
        .map(str::trim)
        .find(|line| !line.is_empty());
    let why = said.map_or("it printed nothing", |line| {
        line.trim_start_matches("error: ")
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
        assert_eq!(judge(known, ""), None);
        assert_eq!(
            judge("", "No conversation found with session ID: x\n"),
            None
        );
        assert_eq!(
            judge("", "error: unknown option '--zork'\n").as_deref(),
            Some("unknown option '--zork'")
        );
        assert_eq!(judge("", "").as_deref(), Some("it printed nothing"));
    }
}

//! Lines by which a session reaches out of its conversation.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;

/// Lines that lead a resumed turn elsewhere (2.1.325): to another folder, to a conversation with a
/// server, to modifications of the CLI, to another session.
const ELSEWHERE: &[(&str, &str)] = &[
    ("bridge-session", "it would be steered from a server"),
    ("continued-in", "it goes on in another session"),
    ("dev-mods", "it names modifications of the CLI"),
    ("fork-context-ref", "it refers to another session"),
    ("relocated", "it was moved to another folder"),
];
const WORKTREE: &str = "it works in another folder, a git worktree";
const UNREADABLE: &str = "it has lines that cannot be read";

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow, default)]
    kind: Option<Cow<'a, str>>,
    #[serde(rename = "worktreeSession", default)]
    worktree: Option<IgnoredAny>,
}

/// Returns the reason why a session with this line is not continued. A line that this parser reads
/// otherwise than the CLI, such as one with a key twice, is a reason too.
pub(in crate::claude) fn refuses(line: &[u8]) -> Option<&'static str> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return None;
    }
    let Ok(line) = serde_json::from_slice::<Line<'_>>(line) else {
        return Some(UNREADABLE);
    };
    let kind = line.kind?;
    if kind == "worktree-state" {
        // Null: the worktree was left.
        return line.worktree.map(|_| WORKTREE);
    }
    let found = ELSEWHERE.iter().find(|(known, _)| *known == kind);
    found.map(|(_, why)| *why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_lead_elsewhere() {
        let folder = r#"{"type":"worktree-state","worktreeSession":{"worktreePath":"/x"}}"#;
        let escaped = folder
            .replace("type", "t\\u0079pe")
            .replace("work", "wor\\u006b");
        let twice = folder.replacen('{', r#"{"type":"mode","#, 1);
        let padded = format!("\0{folder}");
        for line in [folder, &escaped, &twice, &padded, r#"{"type":"relocated"}"#] {
            assert!(refuses(line.as_bytes()).is_some(), "{line}");
        }
        let left = r#"{"type":"worktree-state","worktreeSession":null}"#;
        let said = r#"{"type":"user","message":{"type":"relocated","content":"\ud800"}}"#;
        for line in [left, said, "", r#"{"type":"mode","mode":"normal"}"#] {
            assert_eq!(refuses(line.as_bytes()), None, "{line}");
        }
    }
}

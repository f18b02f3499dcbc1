//! A process that answers several prompts, one after the other.
//!
//! Measured on 2.1.197 and 2.1.325: each `user` line has its own `init` and `result`. The `usage`
//! of a result covers that line alone; `total_cost_usd` adds up over the process. 2.1.325 reports
//! of each line that it is `queued`, `started` and, after the `result`, `completed`. The session is
//! complete by then, or a moment later. Only when it exits does the process add `last-prompt` and
//! `cost-state`.

use serde::Deserialize;
use serde_json::Value;

use crate::turn_end::{TurnEndReader, TurnState, contains};

const OF_INTEREST: [&[u8]; 4] = [
    b"\"result\"",
    b"\"command_lifecycle\"",
    b"\"task_started\"",
    b"\"run_in_background\":true",
];

/// State of one turn, from its output so far.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Number of prompts that are started but not completed.
    open: u32,
    /// True after a plain success. None if the turn has no `result` yet.
    result: Option<bool>,
    /// True if the turn leaves something in the process: background work, or a permission rule that
    /// a person gave for this turn.
    lasting: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    state: Option<String>,
    subtype: Option<String>,
    is_error: Option<bool>,
    deferred_tool_use: Option<Value>,
    permission_denials: Option<Vec<Value>>,
}

impl Line {
    /// True for a success without deferred or denied calls. The next turn would list denied calls
    /// again.
    fn is_plain(&self) -> bool {
        self.subtype.as_deref() == Some("success")
            && self.is_error == Some(false)
            && self.deferred_tool_use.is_none()
            && self.permission_denials.as_ref().is_none_or(Vec::is_empty)
    }
}

impl TurnEndReader for Reader {
    fn line(&mut self, line: &[u8]) {
        if self.result.is_none() && !OF_INTEREST.iter().any(|word| contains(line, word)) {
            return;
        }
        // Background work reports later, in a turn of its own. A slow tool is not announced at all
        // yet.
        self.lasting |= contains(line, b"\"task_started\"");
        self.lasting |= contains(line, b"\"run_in_background\":true");
        let read = serde_json::from_slice::<Line>(line).ok();
        let kind = read.as_ref().map(|line| line.kind.as_str());
        let state = read.as_ref().and_then(|line| line.state.as_deref());
        match (kind, state) {
            (Some("command_lifecycle"), Some("started")) => self.open += 1,
            (Some("command_lifecycle"), Some("completed")) => {
                self.open = self.open.saturating_sub(1);
            }
            (Some("command_lifecycle"), _) => {}
            (Some("result"), _) if self.result.is_none() => {
                self.result = Some(read.is_some_and(|line| line.is_plain()));
            }
            // A process that prints more after the result is not idle.
            _ if self.result.is_some() => self.result = Some(false),
            _ => {}
        }
    }

    /// An answer `always` becomes a rule in the memory of the process.
    fn stdin_line(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"updatedPermissions\"");
    }

    fn state(&self) -> TurnState {
        match (self.result, self.open) {
            (None, _) => TurnState::Running,
            (Some(true), 1..) if !self.lasting => TurnState::ResultPrinted,
            (Some(well), _) => TurnState::Ended(well && !self.lasting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","permission_denials":[]}"#;

    fn after(lines: &[&str]) -> TurnState {
        let mut reader = Reader::default();
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.state()
    }

    #[test]
    fn only_after_a_plain_success() {
        assert_eq!(after(&[OK]), TurnState::Ended(true));
        for (part, other) in [
            ("\"is_error\":false", "\"is_error\":true"),
            ("success", "error_during_execution"),
            ("denials\":[]", "denials\":[{\"tool_name\":\"Bash\"}]"),
            ("\"result\":\"x\"", "\"deferred_tool_use\":{\"id\":\"t\"}"),
        ] {
            let line = OK.replace(part, other);
            assert_eq!(after(&[&line]), TurnState::Ended(false), "{line}");
        }
        for line in [
            r#"{"type":"assistant","message":"result"}"#,
            r#"{"type":"user","text":"a \"result\""}"#,
            "\"result\"{",
        ] {
            assert_eq!(after(&[line]), TurnState::Running, "{line}");
        }
    }

    #[test]
    fn with_all_that_belongs_to_it() {
        let life = |state: &str| format!(r#"{{"type":"command_lifecycle","state":"{state}"}}"#);
        let [queued, started, completed] = ["queued", "started", "completed"].map(life);
        let begun = [queued.as_str(), &started, OK];
        assert_eq!(after(&begun), TurnState::ResultPrinted);
        let whole = [&begun[..], &[&completed]].concat();
        assert_eq!(after(&whole), TurnState::Ended(true));
        let more = [&whole[..], &[r#"{"type":"system","subtype":"init"}"#]].concat();
        assert_eq!(after(&more), TurnState::Ended(false));
    }

    #[test]
    fn not_with_anything_that_outlasts_the_turn() {
        let task = r#"{"type":"system","subtype":"task_started","task_id":"t"}"#;
        let job =
            r#"{"type":"assistant","message":{"content":[{"input":{"run_in_background":true}}]}}"#;
        for line in [task, job] {
            assert_eq!(after(&[line, OK]), TurnState::Ended(false), "{line}");
        }
        let mut reader = Reader::default();
        reader.stdin_line(
            br#"{"response":{"behavior":"allow","updatedPermissions":[{"type":"addRules"}]}}"#,
        );
        reader.line(OK.as_bytes());
        assert_eq!(reader.state(), TurnState::Ended(false));
    }
}

//! A process that answers one prompt after the other.
//!
//! Measured on 2.1.197 and 2.1.325: each `user` line has its own `init` and `result`; `usage` in it is of
//! that line alone, `total_cost_usd` adds up over the process. 2.1.325 says of each line that it is
//! `queued`, `started` and, after the `result`, `completed`. What the session holds is there by then, or a
//! moment later; only at its end the process adds `last-prompt` and `cost-state`.

use serde::Deserialize;
use serde_json::Value;

use crate::stay::{Standing, StayReader, contains};

const OF_INTEREST: [&[u8]; 4] = [
    b"\"result\"",
    b"\"command_lifecycle\"",
    b"\"task_started\"",
    b"\"run_in_background\":true",
];

/// What one turn printed so far.
#[derive(Debug, Default)]
pub(super) struct Reader {
    /// Prompts that were started and are not completed.
    open: u32,
    /// It has a `result`; true after a plain success.
    result: Option<bool>,
    /// Something outlasts the turn in this process: what was begun in the background, or a rule that a
    /// person gave for this turn.
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
    /// What was denied would be listed again in the next turn.
    fn is_plain(&self) -> bool {
        self.subtype.as_deref() == Some("success")
            && self.is_error == Some(false)
            && self.deferred_tool_use.is_none()
            && self.permission_denials.as_ref().is_none_or(Vec::is_empty)
    }
}

impl StayReader for Reader {
    fn line(&mut self, line: &[u8]) {
        if self.result.is_none() && !OF_INTEREST.iter().any(|word| contains(line, word)) {
            return;
        }
        // It reports later, in a turn of its own; of a tool that takes long nobody knows yet.
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
            // Whoever has more to say after it does not rest.
            _ if self.result.is_some() => self.result = Some(false),
            _ => {}
        }
    }

    /// `always` is a rule in the memory of the process.
    fn told(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"updatedPermissions\"");
    }

    fn standing(&self) -> Standing {
        match (self.result, self.open) {
            (None, _) => Standing::Runs,
            (Some(true), 1..) if !self.lasting => Standing::Trails,
            (Some(well), _) => Standing::Over(well && !self.lasting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OK: &str = r#"{"type":"result","subtype":"success","is_error":false,"result":"x","permission_denials":[]}"#;

    fn after(lines: &[&str]) -> Standing {
        let mut reader = Reader::default();
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.standing()
    }

    #[test]
    fn only_after_a_plain_success() {
        assert_eq!(after(&[OK]), Standing::Over(true));
        for (part, other) in [
            ("\"is_error\":false", "\"is_error\":true"),
            ("success", "error_during_execution"),
            ("denials\":[]", "denials\":[{\"tool_name\":\"Bash\"}]"),
            ("\"result\":\"x\"", "\"deferred_tool_use\":{\"id\":\"t\"}"),
        ] {
            let line = OK.replace(part, other);
            assert_eq!(after(&[&line]), Standing::Over(false), "{line}");
        }
        for line in [
            r#"{"type":"assistant","message":"result"}"#,
            r#"{"type":"user","text":"a \"result\""}"#,
            "\"result\"{",
        ] {
            assert_eq!(after(&[line]), Standing::Runs, "{line}");
        }
    }

    #[test]
    fn with_all_that_belongs_to_it() {
        let life = |state: &str| format!(r#"{{"type":"command_lifecycle","state":"{state}"}}"#);
        let [queued, started, completed] = ["queued", "started", "completed"].map(life);
        let begun = [queued.as_str(), &started, OK];
        assert_eq!(after(&begun), Standing::Trails);
        let whole = [&begun[..], &[&completed]].concat();
        assert_eq!(after(&whole), Standing::Over(true));
        let more = [&whole[..], &[r#"{"type":"system","subtype":"init"}"#]].concat();
        assert_eq!(after(&more), Standing::Over(false));
    }

    #[test]
    fn not_with_anything_that_outlasts_the_turn() {
        let task = r#"{"type":"system","subtype":"task_started","task_id":"t"}"#;
        let job =
            r#"{"type":"assistant","message":{"content":[{"input":{"run_in_background":true}}]}}"#;
        for line in [task, job] {
            assert_eq!(after(&[line, OK]), Standing::Over(false), "{line}");
        }
        let mut reader = Reader::default();
        reader.told(
            br#"{"response":{"behavior":"allow","updatedPermissions":[{"type":"addRules"}]}}"#,
        );
        reader.line(OK.as_bytes());
        assert_eq!(reader.standing(), Standing::Over(false));
    }
}

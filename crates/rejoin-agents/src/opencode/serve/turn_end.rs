//! A server that accepts several prompts, one after the other, all for one session. The bridge,
//! which is a process of its own, reports the end of a turn.

use serde::Deserialize;

use super::END;
use crate::turn_end::{TurnEndReader, TurnState, contains};

#[derive(Debug, Default)]
pub(crate) struct TurnEnd {
    over: bool,
    failed: bool,
    /// True if a permission was given beyond this turn, or work continues after it.
    lasting: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    /// True if work continues after the turn.
    #[serde(default)]
    busy: bool,
}

impl TurnEndReader for TurnEnd {
    fn line(&mut self, line: &[u8]) {
        let of_interest = [END.as_bytes(), b"session.error"];
        if !of_interest.iter().any(|word| contains(line, word)) {
            return;
        }
        match serde_json::from_slice::<Line>(line).as_ref() {
            Ok(Line { kind, busy }) if kind == END => {
                self.over = true;
                self.lasting |= busy;
            }
            Ok(Line { kind, .. }) if kind == "session.error" => self.failed = true,
            Ok(_) | Err(_) => {}
        }
    }

    fn stdin_line(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"reply\":\"always\"");
    }

    fn state(&self) -> TurnState {
        if self.over {
            TurnState::Ended(!self.failed && !self.lasting)
        } else {
            TurnState::Running
        }
    }

    fn processes(&self) -> usize {
        2
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::{AnswerTo, ServeAnswer, line};
    use super::*;

    fn after(told: &str, lines: &[&str]) -> TurnState {
        let mut reader = TurnEnd::default();
        reader.stdin_line(told.as_bytes());
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.state()
    }

    #[test]
    fn only_after_a_plain_success() {
        let end = r#"{"type":"rejoin.end"}"#;
        assert_eq!(after("", &[end]), TurnState::Ended(true));
        let busy = r#"{"type":"rejoin.end","busy":true}"#;
        assert_eq!(after("", &[busy]), TurnState::Ended(false));
        let error = r#"{"type":"session.error","properties":{}}"#;
        assert_eq!(after("", &[error, end]), TurnState::Ended(false));
        let quoted = r#"{"type":"message.part.updated","text":"rejoin.end session.error"}"#;
        assert_eq!(after("", &[quoted, "rejoin.end"]), TurnState::Running);
        let answer = |reply: &str| {
            line(&ServeAnswer {
                to: AnswerTo::Permission,
                id: "p".into(),
                body: json!({"reply": reply}),
            })
        };
        assert_eq!(after(&answer("once"), &[end]), TurnState::Ended(true));
        assert_eq!(after(&answer("always"), &[end]), TurnState::Ended(false));
    }
}

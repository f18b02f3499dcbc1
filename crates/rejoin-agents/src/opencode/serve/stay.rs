//! A server that takes one prompt after the other, all for one session. The bridge says when a turn is
//! over; it is a process itself.

use serde::Deserialize;

use super::END;
use crate::stay::{Standing, StayReader, contains};

#[derive(Debug, Default)]
pub(crate) struct Stays {
    over: bool,
    failed: bool,
    /// Something was allowed for longer than this turn, or goes on.
    lasting: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    /// Something goes on after the turn.
    #[serde(default)]
    busy: bool,
}

impl StayReader for Stays {
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

    fn told(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"reply\":\"always\"");
    }

    fn standing(&self) -> Standing {
        if self.over {
            Standing::Over(!self.failed && !self.lasting)
        } else {
            Standing::Runs
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

    fn after(told: &str, lines: &[&str]) -> Standing {
        let mut reader = Stays::default();
        reader.told(told.as_bytes());
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.standing()
    }

    #[test]
    fn only_after_a_plain_success() {
        let end = r#"{"type":"rejoin.end"}"#;
        assert_eq!(after("", &[end]), Standing::Over(true));
        let busy = r#"{"type":"rejoin.end","busy":true}"#;
        assert_eq!(after("", &[busy]), Standing::Over(false));
        let error = r#"{"type":"session.error","properties":{}}"#;
        assert_eq!(after("", &[error, end]), Standing::Over(false));
        let quoted = r#"{"type":"message.part.updated","text":"rejoin.end session.error"}"#;
        assert_eq!(after("", &[quoted, "rejoin.end"]), Standing::Runs);
        let answer = |reply: &str| {
            line(&ServeAnswer {
                to: AnswerTo::Permission,
                id: "p".into(),
                body: json!({"reply": reply}),
            })
        };
        assert_eq!(after(&answer("once"), &[end]), Standing::Over(true));
        assert_eq!(after(&answer("always"), &[end]), Standing::Over(false));
    }
}

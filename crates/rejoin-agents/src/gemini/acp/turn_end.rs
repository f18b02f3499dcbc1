//! Detects the end of a turn in the output of a process that takes several prompts.

use super::{END_REQUEST, PROMPT};
use crate::rpc::Message;
use crate::turn_end::{TurnEndReader, TurnState, contains};

#[derive(Debug, Default)]
pub(crate) struct TurnEnd {
    /// Some(true) after `end_turn`, Some(false) after any other end. None while the turn runs.
    succeeded: Option<bool>,
}

impl TurnEndReader for TurnEnd {
    fn line(&mut self, line: &[u8]) {
        if ![PROMPT, END_REQUEST]
            .iter()
            .any(|id| contains(line, id.as_bytes()))
        {
            return;
        }
        let Ok(Message {
            id: Some(id),
            method: None,
            result,
            error,
            ..
        }) = serde_json::from_slice(line)
        else {
            return;
        };
        if id == PROMPT {
            self.succeeded = Some(error.is_none() && result["stopReason"] == "end_turn");
        } else if id == END_REQUEST {
            self.succeeded = Some(false);
        }
    }

    fn stdin_line(&mut self, _line: &[u8]) {}

    fn state(&self) -> TurnState {
        self.succeeded.map_or(TurnState::Running, TurnState::Ended)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_after_the_answer_to_its_prompt() {
        for (line, standing) in [
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-prompt","result":{"stopReason":"end_turn"}}"#,
                TurnState::Ended(true),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-prompt","result":{"stopReason":"cancelled"}}"#,
                TurnState::Ended(false),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-prompt","error":{"code":429}}"#,
                TurnState::Ended(false),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-bye","error":{"code":-32601}}"#,
                TurnState::Ended(false),
            ),
            (
                r#"{"method":"session/update","params":{"text":"rejoin-prompt"}}"#,
                TurnState::Running,
            ),
            (
                r#"{"id":"rejoin-prompt","method":"session/request_permission"}"#,
                TurnState::Running,
            ),
            ("rejoin-prompt", TurnState::Running),
        ] {
            let mut reader = TurnEnd::default();
            reader.line(line.as_bytes());
            assert_eq!(reader.state(), standing, "{line}");
        }
    }
}

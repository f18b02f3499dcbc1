//! A process that takes one prompt after the other, all for one session.
//!
//! What was allowed counts once: see [`super::asks`].

use super::{BYE, PROMPT};
use crate::rpc::Message;
use crate::stay::{Standing, StayReader, contains};

#[derive(Debug, Default)]
pub(crate) struct Stays {
    /// True after a plain success.
    over: Option<bool>,
}

impl StayReader for Stays {
    fn line(&mut self, line: &[u8]) {
        if ![PROMPT, BYE].iter().any(|id| contains(line, id.as_bytes())) {
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
            self.over = Some(error.is_none() && result["stopReason"] == "end_turn");
        } else if id == BYE {
            self.over = Some(false);
        }
    }

    fn told(&mut self, _line: &[u8]) {}

    fn standing(&self) -> Standing {
        self.over.map_or(Standing::Runs, Standing::Over)
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
                Standing::Over(true),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-prompt","result":{"stopReason":"cancelled"}}"#,
                Standing::Over(false),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-prompt","error":{"code":429}}"#,
                Standing::Over(false),
            ),
            (
                r#"{"jsonrpc":"2.0","id":"rejoin-bye","error":{"code":-32601}}"#,
                Standing::Over(false),
            ),
            (
                r#"{"method":"session/update","params":{"text":"rejoin-prompt"}}"#,
                Standing::Runs,
            ),
            (
                r#"{"id":"rejoin-prompt","method":"session/request_permission"}"#,
                Standing::Runs,
            ),
            ("rejoin-prompt", Standing::Runs),
        ] {
            let mut reader = Stays::default();
            reader.line(line.as_bytes());
            assert_eq!(reader.standing(), standing, "{line}");
        }
    }
}

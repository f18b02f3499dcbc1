//! A server that accepts several prompts, one after the other, all for one thread.
//!
//! RunFacts on 0.166.0: a request to open a loaded thread does not read it again, and the response
//! contains the effective settings as usual. Permissions for the session last until the process
//! ends.

use serde::Deserialize;

use super::super::dialogue::END;
use crate::rpc::Message;
use crate::turn_end::{TurnEndReader, TurnState, contains};

#[derive(Debug, Default)]
pub(crate) struct TurnEnd {
    /// Thread that received the prompt. Sub-agents have threads of their own.
    thread: Option<String>,
    /// True after a plain success. None while the turn runs.
    over: Option<bool>,
    /// True if a permission was given beyond this turn.
    lasting: bool,
}

#[derive(Deserialize)]
struct Prompted {
    method: String,
    params: Params,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Params {
    thread_id: String,
}

impl TurnEndReader for TurnEnd {
    fn line(&mut self, line: &[u8]) {
        let last = [b"turn/completed".as_slice(), END.as_bytes()];
        if !last.iter().any(|word| contains(line, word)) {
            return;
        }
        let Ok(message) = serde_json::from_slice::<Message>(line) else {
            return;
        };
        let thread = message.params["threadId"].as_str();
        let ours = thread.is_some() && thread == self.thread.as_deref();
        if message.method.as_deref() == Some("turn/completed") && ours {
            self.over = Some(message.params["turn"]["status"] == "completed");
        } else if message.id.is_some_and(|id| id == END) {
            self.over = Some(false);
        }
    }

    fn stdin_line(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"acceptForSession\"");
        if let Ok(Prompted { method, params }) = serde_json::from_slice(line)
            && method == "turn/start"
        {
            self.thread = Some(params.thread_id);
        }
    }

    fn state(&self) -> TurnState {
        match self.over {
            None => TurnState::Running,
            Some(well) => TurnState::Ended(well && !self.lasting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"id":"rejoin-turn","method":"turn/start","params":{"threadId":"t","input":[]}}"#;
    const DONE: &str = r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#;

    fn after(told: &[&str], lines: &[&str]) -> TurnState {
        let mut reader = TurnEnd::default();
        for line in told {
            reader.stdin_line(line.as_bytes());
        }
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.state()
    }

    #[test]
    fn only_after_the_end_of_its_own_turn() {
        assert_eq!(after(&[PROMPT], &[DONE]), TurnState::Ended(true));
        let of_another = DONE.replace("\"t\"", "\"s\"");
        let quoted = r#"{"method":"item/completed","params":{"text":"turn/completed"}}"#;
        for line in [
            &of_another,
            quoted,
            "turn/completed",
            "{\"id\":\"rejoin-turn\"}",
        ] {
            assert_eq!(after(&[PROMPT], &[line]), TurnState::Running, "{line}");
        }
        let failed = DONE.replace("\"completed\"}", "\"failed\"}");
        assert_eq!(after(&[PROMPT], &[&failed]), TurnState::Ended(false));
        let end = r#"{"id":"rejoin-end","result":{}}"#;
        assert_eq!(after(&[], &[end]), TurnState::Ended(false));
    }

    #[test]
    fn not_with_what_outlasts_the_turn() {
        let always = r#"{"id":0,"result":{"decision":"acceptForSession"}}"#;
        assert_eq!(after(&[PROMPT, always], &[DONE]), TurnState::Ended(false));
    }
}

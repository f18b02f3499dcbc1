//! A server that takes one prompt after the other, all for one thread.
//!
//! Seen on 0.166.0: a thread that is loaded is opened again without being read again, and says what holds
//! there as if it were not. What was allowed for the session counts until the process ends.

use serde::Deserialize;

use super::super::dialogue::END;
use crate::rpc::Message;
use crate::stay::{Standing, StayReader, contains};

#[derive(Debug, Default)]
pub(crate) struct Stays {
    /// Where the prompt went: sub-agents have threads of their own.
    thread: Option<String>,
    /// True after a plain success.
    over: Option<bool>,
    /// Something was allowed for longer than this turn.
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

impl StayReader for Stays {
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

    fn told(&mut self, line: &[u8]) {
        self.lasting |= contains(line, b"\"acceptForSession\"");
        if let Ok(Prompted { method, params }) = serde_json::from_slice(line)
            && method == "turn/start"
        {
            self.thread = Some(params.thread_id);
        }
    }

    fn standing(&self) -> Standing {
        match self.over {
            None => Standing::Runs,
            Some(well) => Standing::Over(well && !self.lasting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str =
        r#"{"id":"rejoin-turn","method":"turn/start","params":{"threadId":"t","input":[]}}"#;
    const DONE: &str = r#"{"method":"turn/completed","params":{"threadId":"t","turn":{"id":"u","status":"completed"}}}"#;

    fn after(told: &[&str], lines: &[&str]) -> Standing {
        let mut reader = Stays::default();
        for line in told {
            reader.told(line.as_bytes());
        }
        for line in lines {
            reader.line(line.as_bytes());
        }
        reader.standing()
    }

    #[test]
    fn only_after_the_end_of_its_own_turn() {
        assert_eq!(after(&[PROMPT], &[DONE]), Standing::Over(true));
        let of_another = DONE.replace("\"t\"", "\"s\"");
        let quoted = r#"{"method":"item/completed","params":{"text":"turn/completed"}}"#;
        for line in [
            &of_another,
            quoted,
            "turn/completed",
            "{\"id\":\"rejoin-turn\"}",
        ] {
            assert_eq!(after(&[PROMPT], &[line]), Standing::Runs, "{line}");
        }
        let failed = DONE.replace("\"completed\"}", "\"failed\"}");
        assert_eq!(after(&[PROMPT], &[&failed]), Standing::Over(false));
        let end = r#"{"id":"rejoin-end","result":{}}"#;
        assert_eq!(after(&[], &[end]), Standing::Over(false));
    }

    #[test]
    fn not_with_what_outlasts_the_turn() {
        let always = r#"{"id":0,"result":{"decision":"acceptForSession"}}"#;
        assert_eq!(after(&[PROMPT, always], &[DONE]), Standing::Over(false));
    }
}

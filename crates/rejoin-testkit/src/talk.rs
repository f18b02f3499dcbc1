//! A conversation that records the messages that the model must receive.

use serde_json::{Value, json};

use crate::chronicle::{assert_same_told, foreseen};
use crate::words::{answer, assert_shown, texts, user};
use crate::world::{Done, World};

/// The words that the model must receive, and the number of messages without an answer.
pub struct Talk {
    pub world: World,
    pub words: Vec<String>,
    pub unanswered: usize,
    pub n: usize,
}

impl Talk {
    pub fn begin(world: World) -> Self {
        let words = vec![];
        Self {
            world,
            words,
            unanswered: 0,
            n: 0,
        }
    }

    /// Sends a turn that succeeds; the model receives every word once. It must match the prediction
    /// of `explain --next`, also after a failed turn, unless it has to wait for another turn first.
    #[track_caller]
    pub fn good(&mut self, verdict: &str, more: &[&str]) -> Value {
        let foreseen = self.foreseen(more);
        self.n += 1;
        let turn = self.world.say(self.n, more);
        if let Some(next) = foreseen {
            assert_eq!(
                (&next["verdict"], &next["reason"]),
                (&turn["verdict"], &turn["reason"]),
                "foreseen: {next:#}"
            );
            assert_same_told(&next, &turn);
        }
        assert_eq!(
            (&turn["verdict"], &turn["status"]),
            (&json!(verdict), &json!("succeeded"))
        );
        assert_eq!(turn["text"], answer(self.n));
        self.words.push(user(self.n));
        let last = self.world.model.last();
        assert_shown(&last, &self.words);
        let said = texts(&last);
        assert_eq!(
            said.matches("unanswered=\"true\"").count(),
            self.unanswered,
            "{said}"
        );
        for never in [
            "API Error",
            "No response requested",
            "Continue from where",
            "[Request int",
        ] {
            assert!(!said.contains(never), "{never} in {said}");
        }
        self.words.push(answer(self.n));
        turn
    }

    /// Returns the output of `explain --next`, unless another turn must end first.
    #[track_caller]
    fn foreseen(&self, more: &[&str]) -> Option<Value> {
        if self.words.is_empty() || self.world.show()["conversation"]["state"] != "idle" {
            return None;
        }
        foreseen(&self.world, more).filter(|next| next["reason"] != "in_use")
    }

    /// Sends a turn that fails. Its message is kept, and none of its output becomes an answer.
    #[track_caller]
    pub fn bad(&mut self, script: &str, more: &[&str], expected: (&str, &str, i32)) -> Value {
        self.n += 1;
        let done = self.world.send(self.n, script, more);
        self.failed(&done, expected)
    }

    #[track_caller]
    pub fn failed(&mut self, done: &Done, (status, class, exit): (&str, &str, i32)) -> Value {
        let turn = done.json();
        assert_eq!(done.code, exit, "{turn}");
        assert_eq!(
            (&turn["status"], &turn["error"]["class"]),
            (&json!(status), &json!(class)),
            "{turn}"
        );
        assert_eq!(
            (&turn["reply_id"], &turn["text"]),
            (&Value::Null, &Value::Null),
            "{turn}"
        );
        let messages = self.world.messages();
        let (role, state, text) = messages.last().unwrap();
        assert_eq!((role.as_str(), state.as_str()), ("user", "unanswered"));
        assert!(text.starts_with(&user(self.n)), "{text}");
        assert!(
            !messages
                .iter()
                .any(|(_, _, text)| text.contains("API Error")),
            "{messages:?}"
        );
        self.world.assert_quiet();
        self.words.push(user(self.n));
        self.unanswered += 1;
        turn
    }
}

//! A scripted conversation. Each turn is checked against all messages so far.

use std::path::PathBuf;

use rejoin_model::Request;
use serde_json::{Value, json};

use crate::words::{answer, assert_shown, user};
use crate::world::{Done, World};

/// The conversation `k` of a world, and the messages that the model must know.
pub struct Chronicle {
    pub world: World,
    /// Marker word of every message so far, in order.
    pub words: Vec<String>,
    /// Sessions that were started for it, in order.
    pub sessions: Vec<String>,
    turns: usize,
    /// Number of words beyond one per message, from an agent that repeats its prompt.
    surplus: usize,
}

/// Expected way of continuing a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Continued {
    Started,
    Resumed,
    Restored,
    /// With its reason code.
    Reseeded(&'static str),
}

const REFUSED: Continued = Continued::Reseeded("rejected");

impl Chronicle {
    pub fn new(world: World) -> Self {
        Self {
            world,
            words: vec![],
            sessions: vec![],
            turns: 0,
            surplus: 0,
        }
    }

    /// Creates a conversation with one completed turn.
    #[track_caller]
    pub fn begun(world: World) -> Self {
        let mut story = Self::new(world);
        story.turn(Continued::Started, &[]);
        story
    }

    /// Number of the next turn.
    pub fn next(&self) -> usize {
        self.turns + 1
    }

    #[track_caller]
    pub fn resumes(&mut self, flags: &[&str]) -> Value {
        self.turn(Continued::Resumed, flags)
    }

    /// Sends a turn that restores the session from its snapshot. The next turn resumes it in place.
    #[track_caller]
    pub fn restores(&mut self, flags: &[&str]) -> Value {
        self.turn(Continued::Restored, flags)
    }

    /// Sends a turn that gets the transcript for this reason, and one after it that resumes again.
    #[track_caller]
    pub fn reseeds(&mut self, reason: &'static str, flags: &[&str]) -> Value {
        let turn = self.turn(Continued::Reseeded(reason), flags);
        self.resumes(&kept(flags, &["-w"]));
        turn
    }

    /// Sends a turn that succeeds, and checks every claim about it.
    #[track_caller]
    pub fn turn(&mut self, how: Continued, flags: &[&str]) -> Value {
        let script = format!("#s:a{}", self.next());
        self.scripted(how, &script, flags)
    }

    /// Sends a turn with its own script, which answers with the word of the turn.
    #[track_caller]
    pub fn scripted(&mut self, how: Continued, script: &str, flags: &[&str]) -> Value {
        let text = format!("{} {script}", user(self.next()));
        self.says(how, &text, flags)
    }

    /// Sends a turn with its own text, which contains the word of the turn. Checks the prediction
    /// of `explain --next` before, if that supports the flags.
    #[track_caller]
    pub fn says(&mut self, how: Continued, text: &str, flags: &[&str]) -> Value {
        let foreseen = self.foreseen(flags);
        let turn = self.send(text, flags).ok().json();
        if let Some(next) = foreseen {
            how.assert_foreseen(&next, &turn);
        }
        let (verdict, reason) = how.names();
        assert_eq!(
            (&turn["verdict"], &turn["reason"]),
            (&verdict, &reason),
            "{turn:#}"
        );
        self.check(&turn, how);
        let n = self.turns;
        assert_eq!(turn["text"], answer(n), "{turn:#}");
        self.words.push(answer(n));
        turn
    }

    /// Sends a turn that fails. Its message stays and is shown in the next turn.
    #[track_caller]
    pub fn fails(&mut self, script: &str, flags: &[&str]) -> Value {
        self.fails_saying(&format!("{} {script}", user(self.next())), flags)
    }

    /// Sends a turn that fails, with its own text.
    #[track_caller]
    pub fn fails_saying(&mut self, text: &str, flags: &[&str]) -> Value {
        let done = self.send(text, flags);
        assert_ne!(done.code, 0, "{done:?}");
        let turn = done.json();
        assert_eq!(turn["status"], "failed", "{turn:#}");
        turn
    }

    fn send(&mut self, text: &str, flags: &[&str]) -> Done {
        let mut args = vec!["send", "--json", "-k", "k"];
        if !flags.contains(&"-m") {
            args.extend(["-m", self.world.cli.models()[0]]);
        }
        args.extend(flags);
        args.extend(["--", text]);
        self.turns += 1;
        self.words.push(user(self.turns));
        self.world.run(&args)
    }

    /// Records a turn of another agent: the word of its message, and the words of its answer.
    pub fn passed_over(&mut self, answered: Vec<String>) {
        self.turns += 1;
        self.words.push(user(self.turns));
        self.surplus += answered.len() - 1;
        self.words.extend(answered);
    }

    /// Records a message that never got an answer.
    pub fn unanswered(&mut self) {
        self.turns += 1;
        self.words.push(user(self.turns));
    }

    /// Records that all messages so far are out of scope.
    pub fn out_of_scope(&mut self) {
        self.words.clear();
        self.surplus = 0;
    }

    /// Continues the newest session with the CLI itself. Its messages then belong to the
    /// conversation.
    #[track_caller]
    pub fn by_hand(&mut self) {
        self.turns += 1;
        let n = self.turns;
        let session = self.sessions.last().unwrap();
        let text = format!("{} #s:a{n}", user(n));
        let done = self.world.by_hand(session, &text);
        assert!(done.status.success(), "{done:?}");
        self.words.extend([user(n), answer(n)]);
    }

    /// Returns the file of the newest session.
    #[track_caller]
    pub fn session_file(&self) -> PathBuf {
        let id = self.sessions.last().unwrap().as_str();
        let mut files = self.world.sessions();
        files.retain(|file| self.world.cli.is_of(file, id));
        assert_eq!(files.len(), 1, "{id}: {files:?}");
        files.remove(0)
    }

    /// Returns the request for the newest answer.
    #[track_caller]
    pub fn request(&self) -> Request {
        self.world.model.last()
    }

    fn foreseen(&self, flags: &[&str]) -> Option<Value> {
        (!self.words.is_empty()).then(|| foreseen(&self.world, flags))?
    }

    /// either a session and none of the messages it holds, or no session and all
    /// messages.
    #[track_caller]
    fn check(&mut self, turn: &Value, how: Continued) {
        assert_eq!(turn["status"], "succeeded", "{turn:#}");
        let earlier = (self.words.len() - self.surplus) as u64 - 1;
        let sent = |what: &str| turn["sent"][what].as_u64().unwrap();
        let session = turn["session_id"].as_str().unwrap().to_owned();
        let cli = self.world.cli;
        let command = turn["command"].as_array().unwrap();
        let command: Vec<String> = command
            .iter()
            .map(|arg| arg.as_str().unwrap().to_owned())
            .collect();
        let (resumed, begun) = (cli.resumed(&command), cli.begun(&command));
        let known = self.sessions.contains(&session);
        let told = (sent("transcribed"), sent("left_out"), sent("shortened"));
        if matches!(how, Continued::Resumed | Continued::Restored) {
            assert_eq!(sent("resumed") + sent("caught_up"), earlier, "{turn:#}");
            assert_eq!(told, (0, 0, 0), "{turn:#}");
            assert_eq!((resumed, begun), (Some(session), None));
            assert!(known, "{turn:#}");
        } else {
            assert_eq!((sent("resumed"), sent("caught_up")), (0, 0), "{turn:#}");
            assert_eq!(told, (earlier, 0, 0), "{turn:#}");
            assert_eq!(resumed, None);
            assert!(begun.is_none_or(|id| id == session), "{turn:#}");
            assert!(!known, "an id was used twice: {turn:#}");
            self.sessions.push(session);
        }
        assert_attempts(turn, how);
        assert_shown(&self.request(), &self.words);
        let explained = self.world.run(&["explain", "k", "--json"]).ok().json();
        assert_eq!(&explained, turn);
    }
}

#[track_caller]
fn assert_attempts(turn: &Value, how: Continued) {
    let attempts = turn["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|a| &a["status"]).collect();
    if how == REFUSED {
        assert_eq!(statuses, ["refused", "succeeded"], "{turn:#}");
        assert_eq!(attempts[0]["verdict"], "resumed", "{turn:#}");
        assert_ne!(attempts[0]["session_id"], attempts[1]["session_id"]);
    } else {
        assert_eq!(statuses, ["succeeded"], "{turn:#}");
    }
}

impl Continued {
    fn names(self) -> (Value, Value) {
        match self {
            Self::Started => ("started".into(), "first_turn".into()),
            Self::Resumed => ("resumed".into(), Value::Null),
            Self::Restored => ("restored".into(), Value::Null),
            Self::Reseeded(reason) => ("reseeded".into(), reason.into()),
        }
    }

    /// A refusal by the CLI itself cannot be predicted.
    #[track_caller]
    fn assert_foreseen(self, next: &Value, turn: &Value) {
        if self == REFUSED {
            assert_eq!(next["verdict"], "resumed", "{next:#}");
            return;
        }
        let (verdict, reason) = self.names();
        assert_eq!(
            (&next["verdict"], &next["reason"]),
            (&verdict, &reason),
            "foreseen: {next:#}"
        );
        assert_same_told(next, turn);
    }
}

/// Returns the output of `explain --next` for the conversation `k`. `None` if it does not support
/// one of the flags.
#[track_caller]
pub(crate) fn foreseen(world: &World, flags: &[&str]) -> Option<Value> {
    if kept(flags, &["-w", "-m", "--config"]).len() != flags.len() {
        return None;
    }
    let mut args = vec!["explain", "k", "--next", "--json"];
    args.extend(flags);
    Some(world.run(&args).ok().json())
}

#[track_caller]
pub(crate) fn assert_same_told(next: &Value, turn: &Value) {
    for count in ["resumed", "caught_up", "transcribed"] {
        assert_eq!(next["sent"][count], turn["sent"][count], "{next:#}");
    }
}

/// Returns the flags with a value that have one of these names.
fn kept<'a>(flags: &[&'a str], names: &[&str]) -> Vec<&'a str> {
    let pairs = flags.windows(2).filter(|pair| names.contains(&pair[0]));
    pairs.flatten().copied().collect()
}

/// Returns a script that answers with the word of turn `n` and reports these token counts.
pub fn answering(n: usize, input: u64, output: u64) -> String {
    let step = costing(input, output, &json!({"text": answer(n)}));
    steps(n, &json!([step]))
}

/// Returns a step that reports exactly these token counts, with nothing cached.
pub fn costing(input: u64, output: u64, step: &Value) -> Value {
    let mut step = step.clone();
    step["output_tokens"] = output.into();
    step["usage"] = json!({
        "input_tokens": input, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0,
    });
    step
}

/// Returns a script for a prompt. The word of its answer is escaped, so that the prompt does not
/// contain it.
pub fn steps(n: usize, script: &Value) -> String {
    let word = answer(n);
    format!("#j:{script}#").replace(&word, &word.replacen('-', "\\u002d", 1))
}

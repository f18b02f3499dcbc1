//! A question that need not keep its process: before it asks one, the CLI calls a hook, which waits for
//! the answer and, if none comes in time, has the CLI put the call off and end. Resumed without a
//! prompt, it asks again, and goes on with the answer (2.1.197, 2.1.325).

use std::collections::HashSet;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Block, Said};
use crate::order::{CommandSpec, Hook};

/// What the hook prints to put a call off. Nothing: the CLI asks as it would without it.
pub const DEFER: &str =
    r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}"#;

/// The only tool whose calls are put off.
const TOOL: &str = "AskUserQuestion";

/// The command with the hook; a user who passes settings of their own keeps those.
pub(super) fn hooked(mut command: CommandSpec, hook: &Hook<'_>) -> Option<CommandSpec> {
    let own = |arg: &String| arg == "--settings" || arg.starts_with("--settings=");
    if command.args.iter().any(own) {
        return None;
    }
    let program = hook.program.replace('\'', r"'\''");
    // Whatever becomes of that program: only what it prints may decide. (Exit code 2 is a denial.)
    let run = format!("'{program}' hook || true");
    let settings = json!({"hooks": {"PreToolUse": [{
        "matcher": TOOL,
        "hooks": [{"type": "command", "command": run, "timeout": hook.seconds}],
    }]}});
    command
        .args
        .extend(["--settings".to_owned(), settings.to_string()]);
    Some(command)
}

/// A call that the hook is asked about, or that was put off.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct HeldCall {
    #[serde(rename = "tool_use_id", alias = "id")]
    pub id: String,
    #[serde(rename = "tool_name", alias = "name")]
    tool: String,
    #[serde(rename = "tool_input", alias = "input")]
    input: Value,
}

impl HeldCall {
    /// From the hook's stdin, or from a line of [`HeldCall::line`].
    pub fn read(bytes: &[u8]) -> Option<Self> {
        Self::of(&serde_json::from_slice(bytes).ok()?)
    }

    pub(super) fn of(value: &Value) -> Option<Self> {
        let call = Self::deserialize(value).ok()?;
        (!call.id.is_empty() && call.tool == TOOL).then_some(call)
    }

    /// For whoever follows the run, with its newline.
    pub fn line(&self) -> String {
        let call =
            json!({"tool_use_id": self.id, "tool_name": self.tool, "tool_input": self.input});
        format!("{call}\n")
    }

    pub(super) fn into_parts(self) -> (String, String, Value) {
        (self.id, self.tool, self.input)
    }
}

/// May this call be put off? The CLI then ends, and of several calls it keeps only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// Nothing else is under way.
    Alone,
    NotAlone,
    /// The message that holds it is not all there yet.
    Unknown,
}

/// By what the run has printed so far. It may be in the middle of a line.
pub fn standing(call: &str, printed: impl BufRead) -> io::Result<Standing> {
    let mut seen = Seen::default();
    let mut printed = printed;
    let mut line = vec![];
    loop {
        line.clear();
        if printed.read_until(b'\n', &mut line)? == 0 {
            return Ok(seen.standing(call));
        }
        seen.line(&line);
    }
}

#[derive(Default)]
struct Seen {
    /// Each with the message it is in.
    calls: Vec<(String, String)>,
    returned: HashSet<String>,
    /// The message that is being streamed, and those that are whole.
    streaming: String,
    whole: HashSet<String>,
    /// Something goes on that would end with the process.
    background: bool,
}

#[derive(Deserialize)]
struct Line {
    #[serde(rename = "type")]
    kind: String,
    subtype: Option<String>,
    #[serde(default)]
    event: Value,
    parent_tool_use_id: Option<String>,
}

impl Seen {
    fn line(&mut self, line: &[u8]) {
        let Ok(head) = serde_json::from_slice::<Line>(line) else {
            return;
        };
        match head.kind.as_str() {
            "assistant" | "user" => {
                if let Ok(said) = serde_json::from_slice(line) {
                    self.said(said);
                }
            }
            "stream_event" if head.parent_tool_use_id.is_none() => {
                match head.event["type"].as_str() {
                    Some("message_start") => {
                        let id = head.event["message"]["id"].as_str().unwrap_or_default();
                        id.clone_into(&mut self.streaming);
                    }
                    Some("message_stop") => {
                        self.whole.insert(std::mem::take(&mut self.streaming));
                    }
                    Some(_) | None => {}
                }
            }
            "system" => self.background |= head.subtype.as_deref() == Some("task_started"),
            _ => {}
        }
    }

    fn said(&mut self, said: Said) {
        let message = said.message.id.clone().unwrap_or_default();
        for block in said.message.blocks() {
            match block {
                Block::ToolUse { id, input, .. } => {
                    self.background |= input["run_in_background"] == true;
                    self.calls.push((id, message.clone()));
                }
                Block::ToolResult { tool_use_id, .. } => {
                    self.returned.insert(tool_use_id);
                }
                Block::Text { .. } | Block::Thinking { .. } | Block::Other => {}
            }
        }
    }

    fn standing(&self, call: &str) -> Standing {
        let Some((_, message)) = self.calls.iter().find(|(id, _)| id == call) else {
            // One that was put off before, and stands in the session.
            return if self.calls.is_empty() && self.streaming.is_empty() {
                Standing::Alone
            } else {
                Standing::Unknown
            };
        };
        if !self.whole.contains(message) {
            return Standing::Unknown;
        }
        let open = |id: &String| !self.returned.contains(id);
        let others = self.calls.iter().filter(|(id, _)| id != call);
        let besides = |(id, of): &(String, String)| of == message || open(id);
        if self.background || others.into_iter().any(besides) {
            Standing::NotAlone
        } else {
            Standing::Alone
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = r#"{"type":"stream_event","event":{"type":"message_start","message":{"id":"m1"}},"parent_tool_use_id":null}"#;
    const STOP: &str =
        r#"{"type":"stream_event","event":{"type":"message_stop"},"parent_tool_use_id":null}"#;

    fn call(id: &str, message: &str, more: &str) -> String {
        format!(
            r#"{{"type":"assistant","message":{{"id":"{message}","content":[{{"type":"tool_use","id":"{id}","name":"AskUserQuestion","input":{{{more}}}}}]}}}}"#
        )
    }

    fn of(lines: &[&str]) -> Standing {
        let printed = lines.join("\n");
        standing("q", printed.as_bytes()).unwrap()
    }

    #[test]
    fn only_a_call_that_is_alone_is_put_off() {
        let (q, other) = (call("q", "m1", ""), call("b", "m1", ""));
        assert_eq!(of(&[START, &q, STOP]), Standing::Alone);
        assert_eq!(of(&[START, &q]), Standing::Unknown);
        assert_eq!(of(&[START, &q, &other, STOP]), Standing::NotAlone);
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}"#;
        // Also one of the same message that has ended: the CLI would lose it.
        assert_eq!(of(&[START, &other, &q, STOP, result]), Standing::NotAlone);
        let before = call("b", "m0", "");
        assert_eq!(of(&[&before, START, &q, STOP]), Standing::NotAlone);
        assert_eq!(of(&[&before, result, START, &q, STOP]), Standing::Alone);
    }

    #[test]
    fn nothing_that_goes_on_behind_it_is_ended() {
        let q = call("q", "m1", "");
        let task = r#"{"type":"system","subtype":"task_started","task_id":"t"}"#;
        assert_eq!(of(&[task, START, &q, STOP]), Standing::NotAlone);
        let job = call("b", "m0", r#""run_in_background":true"#);
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}"#;
        assert_eq!(of(&[&job, result, START, &q, STOP]), Standing::NotAlone);
    }

    /// The CLI asks again for what stands in its session, before it prints anything else.
    #[test]
    fn what_was_put_off_may_be_put_off_again() {
        let started = r#"{"type":"command_lifecycle","state":"started"}"#;
        assert_eq!(of(&[]), Standing::Alone);
        assert_eq!(of(&[started, "", "{"]), Standing::Alone);
        assert_eq!(of(&[START]), Standing::Unknown);
    }

    #[test]
    fn a_call_goes_to_whoever_follows_and_back() {
        let told = br#"{"hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[]},"tool_use_id":"q"}"#;
        let call = HeldCall::read(told).unwrap();
        assert_eq!(HeldCall::read(call.line().as_bytes()), Some(call));
        for bad in [
            &b""[..],
            b"{}",
            br#"{"tool_name":"Bash","tool_input":{},"tool_use_id":"q"}"#,
            br#"{"tool_name":"AskUserQuestion","tool_input":{},"tool_use_id":""}"#,
        ] {
            assert_eq!(HeldCall::read(bad), None);
        }
    }

    #[test]
    fn the_program_is_quoted_and_settings_of_the_user_are_left() {
        let hook = Hook {
            program: "/it's/rejoin",
            seconds: 80,
        };
        let command = hooked(CommandSpec::default(), &hook).unwrap();
        let settings: Value = serde_json::from_str(&command.args[1]).unwrap();
        let run = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
        assert_eq!(run["command"], r"'/it'\''s/rejoin' hook || true");
        assert_eq!(run["timeout"], 80);
        assert_eq!(hooked(command, &hook), None);
    }
}

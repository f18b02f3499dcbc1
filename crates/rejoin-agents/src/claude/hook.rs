//! Hook that lets a process end while its question is open. The CLI calls the hook before it asks.
//! The hook waits for the answer; if none arrives in time, it makes the CLI defer the call and
//! exit. Resumed without a prompt, the CLI asks again and continues with the answer (2.1.197,
//! 2.1.325).

use std::collections::HashSet;
use std::io::{self, BufRead};

use serde::Deserialize;
use serde_json::{Value, json};

use super::wire::{Block, MessageLine};
use super::{Claude, command};
use crate::capability::{CallLimits, CallState, Defer, HeldCall};
use crate::order::{CommandSpec, GoOnOrder, Hook};

const DEFER: &str =
    r#"{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"defer"}}"#;

/// Name of the only tool whose calls are deferred.
const TOOL: &str = "AskUserQuestion";

impl Defer for Claude {
    /// The user's own settings stay in effect, so a command that has some gets no hook.
    fn with_hook(&self, mut command: CommandSpec, hook: &Hook<'_>) -> Option<CommandSpec> {
        let own = |arg: &String| arg == "--settings" || arg.starts_with("--settings=");
        if command.args.iter().any(own) {
            return None;
        }
        let program = hook.program.replace('\'', r"'\''");
        // Only the program's output may decide, not its exit code. (Exit code 2 is a denial.)
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

    fn resume_deferred(&self, order: &GoOnOrder<'_>) -> CommandSpec {
        command::go_on(order)
    }

    fn held_call(&self, stdin: &[u8]) -> Option<HeldCall> {
        let call = Call::read(stdin)?;
        let line = call.line();
        Some(HeldCall { id: call.id, line })
    }

    fn call_state(&self, call: &str, printed: &mut dyn BufRead) -> io::Result<CallState> {
        let mut progress = Progress::default();
        let mut line = vec![];
        loop {
            line.clear();
            if printed.read_until(b'\n', &mut line)? == 0 {
                return Ok(progress.state_of(call));
            }
            progress.line(&line);
        }
    }

    fn deferral(&self) -> &'static str {
        DEFER
    }
}

impl CallLimits for Claude {
    /// Settings of the user stay in effect, so a command that has some cannot have the program.
    fn with_limits(
        &self,
        mut command: CommandSpec,
        program: &str,
        tools: &[&str],
    ) -> Option<CommandSpec> {
        let program = program.replace('\'', r"'\''");
        // Exit code 2 is a denial; any other failure would permit the call.
        let entry = json!({
            "matcher": tools.join("|"),
            "hooks": [{"type": "command", "command": format!("'{program}' limit || exit 2")}],
        });
        if command
            .args
            .iter()
            .any(|arg| arg.starts_with("--settings="))
        {
            return None;
        }
        let Some(at) = command.args.iter().position(|arg| arg == "--settings") else {
            let settings = json!({"hooks": {"PreToolUse": [entry]}});
            let args = ["--settings".to_owned(), settings.to_string()];
            command.args.extend(args);
            return Some(command);
        };
        // The settings of the hook that defers questions.
        let text = command.args.get_mut(at + 1)?;
        let mut settings: Value = serde_json::from_str(text).ok()?;
        let hooks = settings["hooks"]["PreToolUse"].as_array_mut()?;
        let own = |hook: &Value| hook["matcher"] == TOOL;
        if !hooks.iter().all(own) {
            return None;
        }
        hooks.push(entry);
        *text = settings.to_string();
        Some(command)
    }

    fn limited_call(&self, stdin: &[u8]) -> Option<(String, Value)> {
        let call: Value = serde_json::from_slice(stdin).ok()?;
        let tool = call["tool_name"].as_str()?.to_owned();
        Some((tool, call["tool_input"].clone()))
    }
}

/// A call that the hook is asked about, or that was deferred.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Call {
    #[serde(rename = "tool_use_id", alias = "id")]
    pub(super) id: String,
    #[serde(rename = "tool_name", alias = "name")]
    tool: String,
    #[serde(rename = "tool_input", alias = "input")]
    input: Value,
}

impl Call {
    /// Parses the hook's stdin, or a line of [`Call::line`].
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        Self::of(&serde_json::from_slice(bytes).ok()?)
    }

    pub(super) fn of(value: &Value) -> Option<Self> {
        let call = Self::deserialize(value).ok()?;
        (!call.id.is_empty() && call.tool == TOOL).then_some(call)
    }

    /// Formats the call as a line for the process that follows the run, including the newline.
    fn line(&self) -> String {
        let call =
            json!({"tool_use_id": self.id, "tool_name": self.tool, "tool_input": self.input});
        format!("{call}\n")
    }

    pub(super) fn into_parts(self) -> (String, String, Value) {
        (self.id, self.tool, self.input)
    }
}

/// Progress of a run, as its output shows it.
#[derive(Default)]
struct Progress {
    /// Calls, each with the id of its message.
    calls: Vec<(String, String)>,
    returned: HashSet<String>,
    /// Message that is being streamed, and messages that are complete.
    streaming: String,
    whole: HashSet<String>,
    /// True if there is background work that would end with the process.
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

impl Progress {
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

    fn said(&mut self, said: MessageLine) {
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

    fn state_of(&self, call: &str) -> CallState {
        let Some((_, message)) = self.calls.iter().find(|(id, _)| id == call) else {
            // The call was deferred in an earlier run and is already in the session.
            return if self.calls.is_empty() && self.streaming.is_empty() {
                CallState::Alone
            } else {
                CallState::Unknown
            };
        };
        if !self.whole.contains(message) {
            return CallState::Unknown;
        }
        let open = |id: &String| !self.returned.contains(id);
        let others = self.calls.iter().filter(|(id, _)| id != call);
        let besides = |(id, of): &(String, String)| of == message || open(id);
        if self.background || others.into_iter().any(besides) {
            CallState::NotAlone
        } else {
            CallState::Alone
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

    fn of(lines: &[&str]) -> CallState {
        let printed = lines.join("\n");
        Claude.call_state("q", &mut printed.as_bytes()).unwrap()
    }

    #[test]
    fn only_a_call_that_is_alone_is_put_off() {
        let (q, other) = (call("q", "m1", ""), call("b", "m1", ""));
        assert_eq!(of(&[START, &q, STOP]), CallState::Alone);
        assert_eq!(of(&[START, &q]), CallState::Unknown);
        assert_eq!(of(&[START, &q, &other, STOP]), CallState::NotAlone);
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}"#;
        // A finished call of the same message counts too: the CLI would lose it.
        assert_eq!(of(&[START, &other, &q, STOP, result]), CallState::NotAlone);
        let before = call("b", "m0", "");
        assert_eq!(of(&[&before, START, &q, STOP]), CallState::NotAlone);
        assert_eq!(of(&[&before, result, START, &q, STOP]), CallState::Alone);
    }

    #[test]
    fn nothing_that_goes_on_behind_it_is_ended() {
        let q = call("q", "m1", "");
        let task = r#"{"type":"system","subtype":"task_started","task_id":"t"}"#;
        assert_eq!(of(&[task, START, &q, STOP]), CallState::NotAlone);
        let job = call("b", "m0", r#""run_in_background":true"#);
        let result = r#"{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"b","content":"x"}]}}"#;
        assert_eq!(of(&[&job, result, START, &q, STOP]), CallState::NotAlone);
    }

    /// A call from the session is asked about again before the CLI prints anything else.
    #[test]
    fn what_was_put_off_may_be_put_off_again() {
        let started = r#"{"type":"command_lifecycle","state":"started"}"#;
        assert_eq!(of(&[]), CallState::Alone);
        assert_eq!(of(&[started, "", "{"]), CallState::Alone);
        assert_eq!(of(&[START]), CallState::Unknown);
    }

    #[test]
    fn a_call_goes_to_whoever_follows_and_back() {
        let told = br#"{"hook_event_name":"PreToolUse","tool_name":"AskUserQuestion","tool_input":{"questions":[]},"tool_use_id":"q"}"#;
        let call = Call::read(told).unwrap();
        assert_eq!(Call::read(call.line().as_bytes()), Some(call));
        for bad in [
            &b""[..],
            b"{}",
            br#"{"tool_name":"Bash","tool_input":{},"tool_use_id":"q"}"#,
            br#"{"tool_name":"AskUserQuestion","tool_input":{},"tool_use_id":""}"#,
        ] {
            assert_eq!(Call::read(bad), None);
        }
    }

    #[test]
    fn the_program_is_quoted_and_settings_of_the_user_are_left() {
        let hook = Hook {
            program: "/it's/rejoin",
            seconds: 80,
        };
        let command = Claude.with_hook(CommandSpec::default(), &hook).unwrap();
        let settings: Value = serde_json::from_str(&command.args[1]).unwrap();
        let run = &settings["hooks"]["PreToolUse"][0]["hooks"][0];
        assert_eq!(run["command"], r"'/it'\''s/rejoin' hook || true");
        assert_eq!(run["timeout"], 80);
        assert_eq!(Claude.with_hook(command.clone(), &hook), None);

        let limited = Claude.with_limits(command, hook.program, &["Bash", "Write"]);
        let limited = limited.unwrap();
        assert_eq!(limited.args.len(), 2);
        let settings: Value = serde_json::from_str(&limited.args[1]).unwrap();
        let added = &settings["hooks"]["PreToolUse"][1];
        assert_eq!(added["matcher"], "Bash|Write");
        let run = &added["hooks"][0]["command"];
        assert_eq!(run, r"'/it'\''s/rejoin' limit || exit 2");
        let alone = Claude.with_limits(CommandSpec::default(), "rejoin", &["Bash"]);
        assert_eq!(alone.unwrap().args[0], "--settings");
        for own in [&["--settings", "mine.json"][..], &["--settings={}"]] {
            let args = own.iter().map(|&arg| arg.to_owned()).collect();
            let command = CommandSpec {
                args,
                ..CommandSpec::default()
            };
            assert_eq!(Claude.with_limits(command, "rejoin", &["Bash"]), None);
        }
    }
}

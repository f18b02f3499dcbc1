//! The OpenAI Responses API, as Codex 0.166.0 speaks it: streamed, and with the whole history in
//! every request.

mod strict;
mod write;

use serde_json::{Value, json};

use super::{Dialect, Endpoint, Frame, openai};
use crate::{
    answer::{Answer, Fault},
    conversation::{Conversation, Message, Role, Wanted},
    script::ToolCall,
};

/// Beginnings of user messages that Codex wrote itself.
const CONTEXT: [&str; 8] = [
    "<environment_context>",
    "<user_instructions>",
    "<turn_aborted>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
    "# AGENTS.md instructions",
    // Remainder of a compacted history.
    "Another language model started to solve this problem",
];

#[derive(Debug, Clone, Copy)]
pub(crate) struct Responses;

impl Dialect for Responses {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        if path.ends_with("/responses") {
            Some(Endpoint::Generate)
        } else if path.ends_with("/responses/input_tokens") {
            Some(Endpoint::CountTokens)
        } else {
            None
        }
    }

    fn read(&self, _path: &str, body: &Value) -> Result<Conversation, Fault> {
        if !body.is_object() {
            return Err(Fault::new(400, "the request body must be a JSON object"));
        }
        Ok(Conversation {
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            delivery: if body["stream"] == true {
                Wanted::Streamed
            } else {
                Wanted::Whole
            },
            messages: messages(&body["input"]),
            aside: None,
        })
    }

    fn tool(&self, call: ToolCall) -> ToolCall {
        let input = &call.input;
        match call.name.as_str() {
            "Bash" => {
                // After this time a command continues in the background. Codex accepts between a
                // quarter of a second and half a minute.
                let patience = if input["run_in_background"] == true {
                    250
                } else {
                    30_000
                };
                let shell = json!({"cmd": input["command"], "yield_time_ms": patience});
                ToolCall::new("exec_command", shell)
            }
            "Write" => {
                let path = input["file_path"].as_str().unwrap_or_default();
                let content = input["content"].as_str().unwrap_or_default();
                ToolCall::new("apply_patch", json!(added_file(path, content)))
            }
            _ => call,
        }
    }

    fn check(&self, body: &Value) -> Result<(), Fault> {
        strict::check(body).map_err(|message| Fault::new(400, message))
    }

    fn token_count(&self, bytes: usize) -> Value {
        json!({"object": "response.input_tokens", "input_tokens": bytes / 4})
    }

    fn whole(&self, answer: &Answer) -> Value {
        write::whole(answer)
    }

    fn frames(&self, answer: &Answer) -> Vec<Frame> {
        write::frames(answer)
    }

    /// Returns the stream of a failure. A full context window shows only after the answer has
    /// begun.
    fn failure_frames(&self, fault: &Fault) -> Option<Vec<Frame>> {
        openai::too_long(fault).then(|| write::failed(openai::TOO_LONG, &fault.message))
    }

    fn failure(&self, fault: &Fault) -> Value {
        openai::failure(fault)
    }
}

/// Returns the messages of a plain text or of items. One answer of the model is several items
/// (thinking, text, calls), which belong together until another side's item follows.
fn messages(input: &Value) -> Vec<Message> {
    if let Some(text) = input.as_str() {
        return vec![Message {
            role: Role::User,
            texts: vec![text.to_owned()],
            attachment: false,
        }];
    }
    let mut messages: Vec<Message> = Vec::new();
    for item in input.as_array().into_iter().flatten() {
        let message = message(item);
        match messages.last_mut() {
            Some(last) if last.role == Role::Assistant && message.role == Role::Assistant => {
                last.texts.extend(message.texts);
            }
            _ => messages.push(message),
        }
    }
    messages
}

fn message(item: &Value) -> Message {
    const TEXT: [&str; 3] = ["input_text", "output_text", "text"];
    let content = &item["content"];
    let texts = openai::texts(content, &TEXT).into_iter();
    let role = role(item);
    Message {
        role,
        texts: texts.filter(|text| !is_context(text)).collect(),
        attachment: role == Role::User && openai::attachment(content, &TEXT),
    }
}

fn role(item: &Value) -> Role {
    match item["type"].as_str() {
        Some("message") | None => match item["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => Role::Other,
        },
        Some(kind) if kind == "reasoning" || kind.ends_with("_call") => Role::Assistant,
        Some(_) => Role::Other,
    }
}

fn is_context(text: &str) -> bool {
    let text = text.trim_start();
    CONTEXT.iter().any(|opening| text.starts_with(opening))
}

fn added_file(path: &str, content: &str) -> String {
    let lines = content.lines().map(|line| format!("+{line}\n"));
    let lines: String = lines.collect();
    format!("*** Begin Patch\n*** Add File: {path}\n{lines}*** End Patch")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(input: &Value) -> Vec<(Role, String)> {
        let body = json!({"input": input});
        let messages = Responses.read("/v1/responses", &body).unwrap().messages;
        let shown = messages.into_iter();
        shown
            .map(|message| (message.role, message.texts.join("|")))
            .collect()
    }

    #[test]
    fn the_items_of_one_answer_are_one_message() {
        let user = |text| {
            let content = json!([{"type": "input_text", "text": text}]);
            json!({"type": "message", "role": "user", "content": content})
        };
        let input = json!([
            {"type": "message", "role": "developer", "content": "rules"},
            user("<environment_context>\n#s:bash</environment_context>"),
            user("first"),
            {"type": "reasoning", "summary": []},
            {"role": "assistant", "content": [{"type": "output_text", "text": "a"}]},
            {"type": "function_call", "call_id": "1"},
            {"type": "custom_tool_call", "call_id": "2"},
            {"type": "function_call_output", "call_id": "1", "output": "#s:bash"},
            {"type": "custom_tool_call_output", "call_id": "2", "output": "x"},
            {"role": "assistant", "content": "b"}]);
        let expected = [
            (Role::Other, "rules"),
            (Role::User, ""),
            (Role::User, "first"),
            (Role::Assistant, "a"),
            (Role::Other, ""),
            (Role::Other, ""),
            (Role::Assistant, "b"),
        ];
        assert_eq!(
            read(&input),
            expected.map(|(role, text)| (role, text.to_owned()))
        );
        assert_eq!(read(&json!("plain")), [(Role::User, "plain".to_owned())]);
        assert_eq!(read(&json!({"a": 1})), []);
    }

    #[test]
    fn tools_get_the_names_of_codex() {
        let write = ToolCall::new("Write", json!({"file_path": "f", "content": "a\nb\n"}));
        let patch = "*** Begin Patch\n*** Add File: f\n+a\n+b\n*** End Patch";
        let expected = ToolCall::new("apply_patch", json!(patch));
        assert_eq!(Responses.tool(write), expected);
        let bash = Responses.tool(ToolCall::new("Bash", json!({"command": "ls"})));
        assert_eq!(
            (bash.name.as_str(), &bash.input["cmd"]),
            ("exec_command", &json!("ls"))
        );
    }
}

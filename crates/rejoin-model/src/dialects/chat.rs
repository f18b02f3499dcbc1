//! The OpenAI chat completions API, as OpenCode 1.18.33 speaks it through
//! `@ai-sdk/openai-compatible`.

mod strict;
mod write;

use serde_json::{Value, json};

use super::{Dialect, Endpoint, Frame, openai};
use crate::{
    answer::{Answer, Fault},
    conversation::{Conversation, Message, Role, Wanted},
    script::ToolCall,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Chat;

impl Dialect for Chat {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        path.ends_with("/chat/completions")
            .then_some(Endpoint::Generate)
    }

    fn read(&self, _path: &str, body: &Value) -> Result<Conversation, Fault> {
        if !body.is_object() {
            return Err(Fault::new(400, "the request body must be a JSON object"));
        }
        let messages = body["messages"]
            .as_array()
            .map(Vec::as_slice)
            .unwrap_or_default();
        Ok(Conversation {
            model: body["model"].as_str().unwrap_or("scripted").to_owned(),
            delivery: if body["stream"] == true {
                Wanted::Streamed
            } else {
                Wanted::Whole
            },
            messages: messages.iter().map(message).collect(),
            aside: asks_for_title(messages).then(|| "Scripted title".to_owned()),
        })
    }

    fn lookup(&self, path: &str) -> Option<Value> {
        path.ends_with("/models").then(openai::models)
    }

    /// Translates a tool call. OpenCode has no background jobs, so a background command runs in the
    /// foreground.
    fn tool(&self, call: ToolCall) -> ToolCall {
        let input = &call.input;
        match call.name.as_str() {
            "Bash" => {
                let (command, about) = (&input["command"], &input["description"]);
                ToolCall::new("bash", json!({"command": command, "description": about}))
            }
            "Write" => {
                let (path, content) = (&input["file_path"], &input["content"]);
                ToolCall::new("write", json!({"filePath": path, "content": content}))
            }
            "Agent" => {
                let (about, prompt) = (&input["description"], &input["prompt"]);
                let job =
                    json!({"description": about, "prompt": prompt, "subagent_type": "general"});
                ToolCall::new("task", job)
            }
            "AskUserQuestion" => ToolCall::new("question", call.input),
            _ => call,
        }
    }

    fn check(&self, body: &Value) -> Result<(), Fault> {
        strict::check(body).map_err(|message| Fault::new(400, message))
    }

    fn token_count(&self, bytes: usize) -> Value {
        json!({"total_tokens": bytes / 4})
    }

    fn whole(&self, answer: &Answer) -> Value {
        write::whole(answer)
    }

    fn frames(&self, answer: &Answer) -> Vec<Frame> {
        write::frames(answer)
    }

    fn failure(&self, fault: &Fault) -> Value {
        openai::failure(fault)
    }
}

fn message(message: &Value) -> Message {
    const TEXT: [&str; 1] = ["text"];
    let content = &message["content"];
    Message {
        role: match message["role"].as_str() {
            Some("user") => Role::User,
            Some("assistant") => Role::Assistant,
            _ => Role::Other,
        },
        texts: openai::texts(content, &TEXT),
        attachment: openai::attachment(content, &TEXT),
    }
}

/// Returns true if the request asks for a title. OpenCode lets its model name a new session, unless
/// it is started with `--title`.
fn asks_for_title(messages: &[Value]) -> bool {
    messages.first().is_some_and(|first| {
        let texts = openai::texts(&first["content"], &["text"]);
        first["role"] == "system"
            && texts
                .iter()
                .any(|text| text.starts_with("You are a title generator."))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_content() {
        let body = json!({"model": "m", "stream": true, "messages": [
            {"role": "system", "content": "rules"},
            {"role": "user", "content": "plain"},
            {"role": "assistant", "content": null, "tool_calls": [{"id": "c"}]},
            {"role": "tool", "tool_call_id": "c", "content": "#s:bash"},
            {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "image_url"}]},
            7]});
        let message = |role, texts: &[&str], attachment| Message {
            role,
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            attachment,
        };
        let expected = Conversation {
            model: "m".to_owned(),
            delivery: Wanted::Streamed,
            messages: vec![
                message(Role::Other, &["rules"], false),
                message(Role::User, &["plain"], false),
                message(Role::Assistant, &[], false),
                message(Role::Other, &["#s:bash"], false),
                message(Role::User, &["a"], true),
                message(Role::Other, &[], false),
            ],
            aside: None,
        };
        assert_eq!(Chat.read("", &body), Ok(expected));
    }

    #[test]
    fn a_title_is_an_aside() {
        let system = "You are a title generator. You output ONLY a thread title.";
        let body = json!({"messages": [
            {"role": "system", "content": system}, {"role": "user", "content": "#s:e500"}]});
        let aside = Chat.read("", &body).unwrap().aside;
        assert_eq!(aside.as_deref(), Some("Scripted title"));
    }

    #[test]
    fn tools_get_the_names_of_opencode() {
        let write = ToolCall::new("Write", json!({"file_path": "f", "content": "c"}));
        let expected = ToolCall::new("write", json!({"filePath": "f", "content": "c"}));
        assert_eq!(Chat.tool(write), expected);
        let unknown = ToolCall::new("grep", json!({"pattern": "x"}));
        assert_eq!(Chat.tool(unknown.clone()), unknown);
    }
}

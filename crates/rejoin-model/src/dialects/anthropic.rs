//! The Anthropic Messages API, as Claude Code 2.1.197 and 2.1.325 speak it.

mod strict;
mod write;

use serde_json::{Value, json};

use super::{Dialect, Endpoint, Frame};
use crate::{
    answer::{Answer, Fault},
    conversation::{Conversation, Message, Role, Wanted},
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Anthropic;

impl Dialect for Anthropic {
    /// Matches the end of the path, because a base URL may have a path of its own.
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        if path.ends_with("/v1/messages") {
            Some(Endpoint::Generate)
        } else if path.ends_with("/v1/messages/count_tokens") {
            Some(Endpoint::CountTokens)
        } else {
            None
        }
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
            aside: None,
        })
    }

    fn check(&self, body: &Value) -> Result<(), Fault> {
        strict::check(body).map_err(|message| Fault::new(400, message))
    }

    fn token_count(&self, bytes: usize) -> Value {
        json!({"input_tokens": bytes / 4})
    }

    fn whole(&self, answer: &Answer) -> Value {
        write::whole(answer)
    }

    fn frames(&self, answer: &Answer) -> Vec<Frame> {
        write::frames(answer)
    }

    fn failure(&self, fault: &Fault) -> Value {
        let kind = fault
            .kind
            .as_deref()
            .unwrap_or_else(|| usual_kind(fault.status));
        json!({"type": "error", "error": {"type": kind, "message": fault.message}})
    }
}

fn message(message: &Value) -> Message {
    let role = match message["role"].as_str() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        _ => Role::Other,
    };
    let content = &message["content"];
    if let Some(text) = content.as_str() {
        return Message {
            role,
            texts: vec![text.to_owned()],
            attachment: false,
        };
    }
    let blocks = content.as_array().map(Vec::as_slice).unwrap_or_default();
    let texts = blocks.iter().filter(|block| block["type"] == "text");
    Message {
        role,
        texts: texts
            .filter_map(|block| block["text"].as_str().map(str::to_owned))
            .collect(),
        // Beside tool results, an image or a document is part of the result.
        attachment: blocks.iter().any(|block| block["type"] != "text")
            && blocks.iter().all(|block| block["type"] != "tool_result"),
    }
}

/// The error types of <https://docs.anthropic.com/en/api/errors>.
fn usual_kind(status: u16) -> &'static str {
    match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_forms_of_content() {
        let body = json!({"model": "m", "stream": true, "messages": [
            {"role": "user", "content": "plain"},
            {"role": "assistant", "content": [{"type": "tool_use", "id": "t"}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t", "content": "#s:bash"},
                {"type": "document"},
                {"type": "text", "text": "beside"}]},
            {"role": "user", "content": [{"type": "image"}]},
            {"role": "system", "content": 5}, 7]});
        let message = |role, texts: &[&str], attachment| Message {
            role,
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            attachment,
        };
        let expected = Conversation {
            model: "m".to_owned(),
            delivery: Wanted::Streamed,
            messages: vec![
                message(Role::User, &["plain"], false),
                message(Role::Assistant, &[], true),
                message(Role::User, &["beside"], false),
                message(Role::User, &[], true),
                message(Role::Other, &[], false),
                message(Role::Other, &[], false),
            ],
            aside: None,
        };
        assert_eq!(Anthropic.read("/v1/messages", &body), Ok(expected));
    }

    #[test]
    fn foreign_json_is_no_conversation() {
        for body in [json!(null), json!([]), json!("text"), json!(1)] {
            assert_eq!(
                Anthropic.read("", &body).map_err(|fault| fault.status),
                Err(400),
                "{body}"
            );
        }
        assert_eq!(
            Anthropic.read("", &json!({})).map(|read| read.messages),
            Ok(Vec::new())
        );
    }

    #[test]
    fn failures_have_the_type_of_their_status() {
        let table = [
            (400, "invalid_request_error"),
            (500, "api_error"),
            (529, "overloaded_error"),
        ];
        for (status, kind) in table {
            let expected = json!({"type": "error", "error": {"type": kind, "message": "m"}});
            assert_eq!(Anthropic.failure(&Fault::new(status, "m")), expected);
        }
    }
}

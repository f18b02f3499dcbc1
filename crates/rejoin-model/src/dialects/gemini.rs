//! The Gemini API (`generateContent`, `streamGenerateContent`), as Gemini CLI 0.61.0 speaks it.

mod strict;
mod write;

use serde_json::{Map, Value, json};

use super::{Dialect, Endpoint, Frame};
use crate::{
    answer::{Answer, Fault},
    conversation::{Conversation, Message, Role, Wanted},
    script::ToolCall,
};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Gemini;

impl Dialect for Gemini {
    fn endpoint(&self, path: &str) -> Option<Endpoint> {
        match path.rsplit_once("/models/")?.1.rsplit_once(':')?.1 {
            "generateContent" | "streamGenerateContent" => Some(Endpoint::Generate),
            "countTokens" => Some(Endpoint::CountTokens),
            _ => None,
        }
    }

    fn read(&self, path: &str, body: &Value) -> Result<Conversation, Fault> {
        if !body.is_object() {
            return Err(Fault::new(400, "the request body must be a JSON object"));
        }
        let (model, method) = path
            .rsplit_once("/models/")
            .and_then(|(_, rest)| rest.rsplit_once(':'))
            .unwrap_or(("scripted", ""));
        Ok(Conversation {
            model: model.to_owned(),
            delivery: if method == "streamGenerateContent" {
                Wanted::Streamed
            } else {
                Wanted::Whole
            },
            messages: list(&body["contents"]).iter().map(message).collect(),
            aside: form(&body["generationConfig"]).map(|schema| filled(schema).to_string()),
        })
    }

    fn lookup(&self, path: &str) -> Option<Value> {
        let model = json!({
            "name": "models/scripted",
            "displayName": "scripted",
            "inputTokenLimit": 1_048_576,
            "outputTokenLimit": 65_536,
            "supportedGenerationMethods": ["generateContent", "countTokens"],
        });
        path.ends_with("/v1beta/models")
            .then(|| json!({"models": [model]}))
    }

    fn tool(&self, call: ToolCall) -> ToolCall {
        let input = &call.input;
        match call.name.as_str() {
            "Bash" => {
                let (command, about) = (&input["command"], &input["description"]);
                let mut shell = json!({"command": command, "description": about});
                if input["run_in_background"] == true {
                    shell["is_background"] = json!(true);
                }
                ToolCall::new("run_shell_command", shell)
            }
            "Write" => ToolCall::new("write_file", call.input),
            "AskUserQuestion" => ToolCall::new("ask_user", call.input),
            _ => call,
        }
    }

    fn check(&self, body: &Value) -> Result<(), Fault> {
        strict::check(body).map_err(|message| Fault::new(400, message))
    }

    fn token_count(&self, bytes: usize) -> Value {
        json!({"totalTokens": bytes / 4})
    }

    fn whole(&self, answer: &Answer) -> Value {
        write::whole(answer)
    }

    fn frames(&self, answer: &Answer) -> Vec<Frame> {
        write::frames(answer)
    }

    fn failure(&self, fault: &Fault) -> Value {
        let status = fault
            .kind
            .as_deref()
            .unwrap_or_else(|| usual_status(fault.status));
        let mut error = json!({"code": fault.status, "message": fault.message, "status": status});
        if let Some(seconds) = fault.retry_after {
            error["details"] = json!([{
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s"),
            }]);
        }
        json!({"error": error})
    }
}

/// Returns the contents: a list, or a single one.
fn list(contents: &Value) -> &[Value] {
    match contents {
        Value::Array(list) => list,
        Value::Object(_) => std::slice::from_ref(contents),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => &[],
    }
}

fn message(content: &Value) -> Message {
    let parts = list(&content["parts"]);
    let texts = parts.iter().filter(|part| part["thought"] != true);
    let texts = texts.filter_map(|part| part["text"].as_str());
    Message {
        role: match content["role"].as_str() {
            Some("user") | None => Role::User,
            Some("model") => Role::Assistant,
            Some(_) => Role::Other,
        },
        texts: texts
            .filter(|text| !is_context(text))
            .map(str::to_owned)
            .collect(),
        // Beside tool results, an image is part of the result.
        attachment: parts.iter().any(|part| part.get("text").is_none())
            && parts
                .iter()
                .all(|part| part.get("functionResponse").is_none()),
    }
}

/// Returns true for the CLI's own text about date and folder before the first prompt.
fn is_context(text: &str) -> bool {
    let text = text.trim();
    text.starts_with("<session_context>") && text.ends_with("</session_context>")
}

/// Returns the schema that a request wants its answer in. The CLI makes such requests for itself:
/// which model to use, who speaks next, whether it is in a loop.
fn form(config: &Value) -> Option<&Value> {
    let schemas = [&config["responseJsonSchema"], &config["responseSchema"]];
    let wanted = config["responseMimeType"] == "application/json";
    wanted.then(|| schemas.into_iter().find(|schema| !schema.is_null()))?
}

/// Returns the simplest value that fits a schema.
fn filled(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let kind = schema["type"].as_str().unwrap_or_default();
    match kind.to_ascii_lowercase().as_str() {
        "object" => {
            let properties = schema["properties"].as_object().into_iter().flatten();
            let filled = properties.map(|(name, schema)| (name.clone(), filled(schema)));
            Value::Object(filled.collect::<Map<_, _>>())
        }
        "array" => json!([]),
        // Numbers are degrees of doubt from 0, integers grades from 1. The schema gives no minimum.
        "number" => json!(0),
        "integer" => json!(1),
        "boolean" => json!(false),
        _ => json!("scripted"),
    }
}

/// Status words of <https://ai.google.dev/gemini-api/docs/troubleshooting>.
fn usual_status(status: u16) -> &'static str {
    match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 | 529 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_path_says_what_is_wanted() {
        let base = "/v1beta/models/gemini-2.5-pro";
        let table = [
            ("generateContent", Some(Endpoint::Generate), Wanted::Whole),
            (
                "streamGenerateContent",
                Some(Endpoint::Generate),
                Wanted::Streamed,
            ),
            ("countTokens", Some(Endpoint::CountTokens), Wanted::Whole),
            ("embedContent", None, Wanted::Whole),
        ];
        for (method, endpoint, delivery) in table {
            let path = format!("{base}:{method}");
            assert_eq!(Gemini.endpoint(&path), endpoint, "{path}");
            let read = Gemini.read(&path, &json!({})).unwrap();
            assert_eq!(
                (read.model.as_str(), read.delivery),
                ("gemini-2.5-pro", delivery)
            );
        }
        assert_eq!(Gemini.endpoint("/v1/messages"), None);
    }

    #[test]
    fn context_thoughts_and_tool_results_are_no_words() {
        let body = json!({"contents": [
            {"role": "user", "parts": [
                {"text": "<session_context>\n#s:bash\n</session_context>"},
                {"text": "one"}, {"text": "two"}]},
            {"role": "model", "parts": [{"text": "hm", "thought": true}, {"functionCall": {}}]},
            {"role": "user", "parts": [{"functionResponse": {}}, {"inlineData": {}}]},
            {"parts": {"text": "x"}}, 5]});
        let messages = Gemini.read("", &body).unwrap().messages;
        let shown: Vec<_> = messages
            .iter()
            .map(|message| (message.role, message.texts.join("|"), message.attachment))
            .collect();
        let expected = [
            (Role::User, "one|two".to_owned(), false),
            (Role::Assistant, String::new(), true),
            (Role::User, String::new(), false),
            (Role::User, "x".to_owned(), false),
            (Role::User, String::new(), false),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn forms_are_filled_in() {
        let schema = json!({"type": "OBJECT", "properties": {
            "why": {"type": "STRING"}, "score": {"type": "integer"},
            "next_speaker": {"type": "string", "enum": ["user", "model"]}}});
        let config = json!({"responseMimeType": "application/json", "responseSchema": schema});
        let read = Gemini
            .read("", &json!({"generationConfig": config}))
            .unwrap();
        let expected = r#"{"next_speaker":"user","score":1,"why":"scripted"}"#;
        assert_eq!(read.aside.as_deref(), Some(expected));
    }

    #[test]
    fn failures_say_when_to_come_back() {
        let fault = Fault {
            retry_after: Some(2),
            ..Fault::new(429, "m")
        };
        let error = &Gemini.failure(&fault)["error"];
        assert_eq!(
            (&error["code"], &error["status"]),
            (&json!(429), &json!("RESOURCE_EXHAUSTED"))
        );
        assert_eq!(error["details"][0]["retryDelay"], "2s");
    }
}

//! The Gemini dialect, in the requests of Gemini CLI 0.61.0.

use rejoin_model::ModelServer;
use serde_json::{Value, json};

use super::http::{Reply, post, send, start, start_strict};

const MODEL: &str = "/v1beta/models/gemini-2.5-pro";

async fn ask(server: &ModelServer, contents: &Value) -> Reply {
    let path = format!("{MODEL}:streamGenerateContent?alt=sse");
    post(server, &path, &json!({"contents": contents}).to_string()).await
}

fn said(role: &str, texts: &[&str]) -> Value {
    let parts: Vec<Value> = texts.iter().map(|text| json!({"text": text})).collect();
    json!({"role": role, "parts": parts})
}

fn prompt(text: &str) -> Value {
    let context = "<session_context>\nToday is a day.\n</session_context>";
    json!([said("user", &[context, text])])
}

/// All parts that were streamed.
fn parts(reply: &Reply) -> Vec<Value> {
    let events = reply.events();
    let parts = events
        .iter()
        .map(|event| &event["candidates"][0]["content"]["parts"]);
    parts
        .flat_map(|parts| parts.as_array().unwrap().clone())
        .collect()
}

fn text(reply: &Reply) -> String {
    let parts = parts(reply);
    let texts = parts.iter().filter(|part| part["thought"] != true);
    texts.filter_map(|part| part["text"].as_str()).collect()
}

#[tokio::test]
async fn a_streamed_turn_is_a_row_of_responses() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:think")).await;
    assert!(reply.complete);
    assert_eq!(text(&reply), "Thought done.");
    assert_eq!(
        parts(&reply)[0],
        json!({"text": "Let me think.", "thought": true})
    );
    let events = reply.events();
    let (last, others) = events.split_last().unwrap();
    assert_eq!(last["candidates"][0]["finishReason"], "STOP");
    assert!(
        others
            .iter()
            .all(|event| event["candidates"][0].get("finishReason").is_none())
    );
    let expected = json!({"promptTokenCount": 1110, "cachedContentTokenCount": 1000,
        "candidatesTokenCount": 25, "totalTokenCount": 1135});
    assert_eq!(last["usageMetadata"], expected);
    assert_eq!(last["modelVersion"], "gemini-2.5-pro");
}

#[tokio::test]
async fn a_tool_step_is_followed_by_a_text_step() {
    let server = start_strict().await;
    let mut contents = prompt("#s:two");
    let reply = ask(&server, &contents).await;
    let calls: Vec<Value> = parts(&reply)
        .into_iter()
        .filter(|part| part.get("functionCall").is_some())
        .collect();
    assert_eq!(calls.len(), 2);
    assert!(calls[0]["thoughtSignature"].is_string());
    assert_eq!(calls[1]["functionCall"]["name"], "run_shell_command");
    assert_eq!(calls[1]["functionCall"]["args"]["command"], "echo two");

    let results = calls.iter().map(|call| &call["functionCall"]).map(|call| {
        json!({"functionResponse": {"id": call["id"], "name": call["name"], "response": {}}})
    });
    let results: Vec<Value> = results.collect();
    let list = contents.as_array_mut().unwrap();
    list.push(json!({"role": "model", "parts": calls}));
    list.push(json!({"role": "user", "parts": results}));
    assert_eq!(text(&ask(&server, &contents).await), "Both done.");
}

#[tokio::test]
async fn an_answer_may_come_whole() {
    let server = start().await;
    let body = json!({"contents": prompt("#s:write")}).to_string();
    let reply = post(&server, &format!("{MODEL}:generateContent"), &body).await;
    let call = &reply.json()["candidates"][0]["content"]["parts"][0]["functionCall"];
    assert_eq!(call["name"], "write_file");
    assert_eq!(
        call["args"],
        json!({"file_path": "out.txt", "content": "written\n"})
    );
    let count = post(&server, &format!("{MODEL}:countTokens"), "{\"a\":123}").await;
    assert_eq!(count.json(), json!({"totalTokens": 2}));
    let models = send(&server, "GET /v1beta/models", "", b"").await;
    assert_eq!(models.json()["models"][0]["name"], "models/scripted");
}

#[tokio::test]
async fn what_the_cli_asks_for_itself_leaves_scripts_alone() {
    let server = start().await;
    let queued = json!({"steps": [{"status": 500}]}).to_string();
    post(&server, "/_rejoin/next", &queued).await;
    let score = json!({"type": "OBJECT", "properties": {"complexity_score": {"type": "INTEGER"}}});
    let config = json!({"responseMimeType": "application/json", "responseJsonSchema": score});
    let body = json!({"contents": prompt("#s:bash"), "generationConfig": config}).to_string();
    let reply = post(&server, &format!("{MODEL}:generateContent"), &body).await;
    let text_part = &reply.json()["candidates"][0]["content"]["parts"][0]["text"];
    assert_eq!(text_part, r#"{"complexity_score":1}"#);
    assert_eq!(server.requests()[0].note, "aside");
    assert_eq!(ask(&server, &prompt("#s:bash")).await.status, 500);
}

#[tokio::test]
async fn failures_have_the_shape_of_the_api() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:e500")).await;
    assert_eq!(reply.status, 500);
    let error = json!({"code": 500, "message": "Internal server error", "status": "INTERNAL"});
    assert_eq!(reply.json(), json!({"error": error}));
    let limited = ask(&server, &prompt("#s:e429")).await.json();
    assert_eq!(limited["error"]["details"][0]["retryDelay"], "1s");
    let hung = ask(&server, &prompt(r#"#j:[{"text":"never","hang_ms":50}]#"#)).await;
    assert_eq!(
        (hung.status, hung.body.as_str(), hung.complete),
        (200, "", false)
    );
}

#[tokio::test]
async fn strict_servers_refuse_doubled_results() {
    let server = start_strict().await;
    let call = json!({"functionCall": {"id": "c", "name": "run_shell_command", "args": {}}});
    let result = json!({"functionResponse": {"id": "c", "name": "run_shell_command"}});
    let mut contents = prompt("hi");
    let list = contents.as_array_mut().unwrap();
    list.push(json!({"role": "model", "parts": [call]}));
    list.push(json!({"role": "user", "parts": [result, result]}));
    let reply = ask(&server, &contents).await;
    assert_eq!(reply.json()["error"]["status"], "INVALID_ARGUMENT");
    let note = &server.requests()[0].note;
    assert!(note.contains("number of function response parts"), "{note}");
}

#[tokio::test]
async fn recall_shows_what_the_user_said() {
    let server = start().await;
    let mut contents = prompt("one");
    let list = contents.as_array_mut().unwrap();
    list.push(said("model", &["ok"]));
    list.push(said("user", &["two", "#s:recall"]));
    assert_eq!(text(&ask(&server, &contents).await), "one\ntwo #s:recall");
    assert_eq!(text(&ask(&server, &prompt("hello")).await), "ok: hello");
}

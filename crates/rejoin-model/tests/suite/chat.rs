//! OpenAI's chat completions dialect, in the requests of OpenCode 1.18.33.

use rejoin_model::ModelServer;
use serde_json::{Value, json};

use super::http::{Reply, post, send, start, start_strict};

async fn ask(server: &ModelServer, messages: &Value) -> Reply {
    let body = json!({"model": "m1", "stream": true, "messages": messages,
        "stream_options": {"include_usage": true}});
    post(server, "/v1/chat/completions", &body.to_string()).await
}

fn said(role: &str, text: &str) -> Value {
    json!({"role": role, "content": text})
}

fn prompt(text: &str) -> Value {
    json!([said("system", "You are opencode."), said("user", text)])
}

fn joined(reply: &Reply, field: &str) -> String {
    let events = reply.events();
    events
        .iter()
        .filter_map(|event| event["choices"][0]["delta"][field].as_str())
        .collect()
}

fn text(reply: &Reply) -> String {
    joined(reply, "content")
}

#[tokio::test]
async fn a_streamed_turn_is_a_row_of_chunks() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:think")).await;
    assert!(reply.complete && reply.body.ends_with("data: [DONE]\n\n"));
    assert_eq!(text(&reply), "Thought done.");
    assert_eq!(joined(&reply, "reasoning_content"), "Let me think.");
    let events = reply.events();
    assert_eq!(events[0]["choices"][0]["delta"]["role"], "assistant");
    let [.., ending, counted] = events.as_slice() else {
        panic!("{events:?}");
    };
    assert_eq!(ending["choices"][0]["finish_reason"], "stop");
    assert_eq!(counted["choices"], json!([]));
    assert_eq!(counted["usage"]["prompt_tokens"], 2110);
    assert_eq!(
        counted["usage"]["prompt_tokens_details"]["cached_tokens"],
        2000
    );
    assert_eq!(counted["usage"]["completion_tokens"], 25);
}

#[tokio::test]
async fn a_tool_step_is_followed_by_a_text_step() {
    let server = start_strict().await;
    let mut messages = prompt("#s:bash");
    let events = ask(&server, &messages).await.events();
    let deltas: Vec<&Value> = events
        .iter()
        .map(|event| &event["choices"][0]["delta"]["tool_calls"][0])
        .filter(|call| !call.is_null())
        .collect();
    assert_eq!(deltas[0]["function"]["name"], "bash");
    let arguments = deltas[1]["function"]["arguments"].as_str().unwrap();
    let input: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(
        input["command"],
        "echo tool-ran > ran.txt; echo hi-from-bash"
    );
    assert!(
        events
            .iter()
            .any(|event| event["choices"][0]["finish_reason"] == "tool_calls")
    );

    let function = json!({"name": "bash", "arguments": arguments});
    let call = json!({"id": deltas[0]["id"], "type": "function", "function": function});
    let list = messages.as_array_mut().unwrap();
    list.push(json!({"role": "assistant", "content": "Running it.", "tool_calls": [call]}));
    list.push(json!({"role": "tool", "tool_call_id": deltas[0]["id"], "content": "#s:e500"}));
    assert_eq!(text(&ask(&server, &messages).await), "Bash done.");
}

#[tokio::test]
async fn an_answer_may_come_whole() {
    let server = start().await;
    let body = json!({"messages": prompt("#s:agent")}).to_string();
    let reply = post(&server, "/chat/completions", &body).await.json();
    let choice = &reply["choices"][0];
    assert_eq!(choice["message"]["content"], "Delegating.");
    assert_eq!(
        choice["message"]["tool_calls"][0]["function"]["name"],
        "task"
    );
    assert_eq!(choice["finish_reason"], "tool_calls");
    let models = send(&server, "GET /v1/models", "", b"").await;
    assert_eq!(models.json()["data"][0]["id"], "scripted");
}

#[tokio::test]
async fn an_answer_may_lack_its_end() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:eof")).await;
    assert_eq!(text(&reply), "This answer lacks its end.");
    assert!(reply.complete && !reply.body.contains("DONE") && !reply.body.contains("stop"));
}

#[tokio::test]
async fn failures_have_the_shape_of_the_api() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:e401")).await;
    assert_eq!(reply.status, 401);
    let error = json!({"message": "invalid x-api-key", "type": "invalid_request_error",
        "param": null, "code": "invalid_api_key"});
    assert_eq!(reply.json(), json!({"error": error}));
    let long = ask(&server, &prompt("#s:toolong")).await;
    assert_eq!(
        (long.status, &long.json()["error"]["code"]),
        (400, &json!("context_length_exceeded"))
    );
    assert_eq!(ask(&server, &prompt("#s:refuse")).await.status, 0);
    assert_eq!(post(&server, "/v1/chat/completions", "1").await.status, 400);
}

#[tokio::test]
async fn strict_servers_refuse_broken_histories() {
    let server = start_strict().await;
    let orphan = json!({"role": "tool", "tool_call_id": "c", "content": "x"});
    let reply = ask(&server, &json!([said("user", "hi"), orphan])).await;
    assert_eq!(reply.status, 400);
    let message = reply.json()["error"]["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.contains("must be a response to a preceeding message"),
        "{message}"
    );
    assert_eq!(
        ask(&server, &json!([said("model", "hi")])).await.status,
        400
    );
}

#[tokio::test]
async fn recall_shows_what_the_user_said() {
    let server = start().await;
    let mut messages = prompt("one\n");
    let list = messages.as_array_mut().unwrap();
    list.push(said("assistant", "ok"));
    list.push(said("user", "two #s:recall"));
    assert_eq!(text(&ask(&server, &messages).await), "one\ntwo #s:recall");
    assert_eq!(text(&ask(&server, &prompt("hello")).await), "ok: hello");
}

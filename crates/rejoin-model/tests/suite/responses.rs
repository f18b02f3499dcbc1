//! OpenAI's Responses dialect, in the requests of Codex 0.166.0.

use rejoin_model::ModelServer;
use serde_json::{Value, json};

use super::http::{Reply, post, send, start, start_strict};

async fn ask(server: &ModelServer, input: &Value) -> Reply {
    let body = json!({"model": "gpt-5.5", "stream": true, "store": false, "input": input});
    post(server, "/v1/responses", &body.to_string()).await
}

fn said(role: &str, text: &str) -> Value {
    let content = json!([{"type": "input_text", "text": text}]);
    json!({"type": "message", "role": role, "content": content})
}

fn prompt(text: &str) -> Value {
    let context = "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>";
    json!([
        said("developer", "rules"),
        said("user", context),
        said("user", text)
    ])
}

fn text(reply: &Reply) -> String {
    let events = reply.events();
    let deltas = events
        .iter()
        .filter(|event| event["type"] == "response.output_text.delta");
    deltas
        .map(|event| event["delta"].as_str().unwrap())
        .collect()
}

/// The items the last event sums up.
fn output(reply: &Reply) -> Vec<Value> {
    let events = reply.events();
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    last["response"]["output"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_streamed_turn_builds_up_its_items() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:think")).await;
    assert!(reply.complete);
    let events = reply.events();
    let types: Vec<&str> = events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect();
    let (added, done) = ("response.output_item.added", "response.output_item.done");
    let delta = "response.output_text.delta";
    let expected = [
        "response.created",
        added,
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.delta",
        "response.reasoning_summary_text.done",
        done,
        added,
        "response.content_part.added",
        delta,
        delta,
        "response.output_text.done",
        "response.content_part.done",
        done,
        "response.completed",
    ];
    assert_eq!(types, expected);
    assert_eq!(text(&reply), "Thought done.");
    assert_eq!(output(&reply)[1]["content"][0]["text"], "Thought done.");
    let usage = &events.last().unwrap()["response"]["usage"];
    assert_eq!(usage["input_tokens"], 3110);
    assert_eq!(usage["input_tokens_details"]["cached_tokens"], 3000);
    assert_eq!(usage["total_tokens"], 3135);
}

#[tokio::test]
async fn a_tool_step_is_followed_by_a_text_step() {
    let server = start_strict().await;
    let mut input = prompt("#s:bash");
    let items = output(&ask(&server, &input).await);
    assert_eq!(items[0]["content"][0]["text"], "Running it.");
    assert_eq!(items[1]["name"], "exec_command");
    let arguments = items[1]["arguments"].as_str().unwrap();
    let arguments: Value = serde_json::from_str(arguments).unwrap();
    assert_eq!(
        arguments["cmd"],
        "echo tool-ran > ran.txt; echo hi-from-bash"
    );

    let list = input.as_array_mut().unwrap();
    let result =
        json!({"type": "function_call_output", "call_id": items[1]["call_id"], "output": "hi"});
    list.extend(items);
    list.push(result);
    assert_eq!(text(&ask(&server, &input).await), "Bash done.");
}

#[tokio::test]
async fn a_file_is_written_by_a_patch() {
    let server = start().await;
    let body = json!({"input": "#s:write"}).to_string();
    let reply = post(&server, "/responses", &body).await.json();
    let call = &reply["output"][0];
    assert_eq!(
        (&call["type"], &call["name"]),
        (&json!("custom_tool_call"), &json!("apply_patch"))
    );
    assert_eq!(
        call["input"],
        "*** Begin Patch\n*** Add File: out.txt\n+written\n*** End Patch"
    );
}

#[tokio::test]
async fn failures_have_the_shape_of_the_api() {
    let server = start().await;
    let reply = ask(&server, &prompt("#s:e429")).await;
    assert_eq!(reply.status, 429);
    assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
    let error = json!({"message": "rate limited", "type": "requests", "param": null,
        "code": "rate_limit_exceeded"});
    assert_eq!(reply.json(), json!({"error": error}));
    let long = ask(&server, &prompt("#s:toolong")).await;
    let events = long.events();
    assert_eq!(
        (long.status, &events[1]["type"]),
        (200, &json!("response.failed"))
    );
    assert_eq!(
        events[1]["response"]["error"]["code"],
        "context_length_exceeded"
    );
    let cut = ask(&server, &prompt("#s:cut")).await;
    assert_eq!((text(&cut).len(), cut.complete), (20, false));
    assert_eq!(post(&server, "/v1/responses", "[]").await.status, 400);
}

#[tokio::test]
async fn strict_servers_refuse_broken_histories() {
    let server = start_strict().await;
    let orphan = json!({"type": "function_call_output", "call_id": "call_1", "output": "x"});
    let reply = ask(&server, &json!([said("user", "hi"), orphan])).await;
    assert_eq!(reply.status, 400);
    let expected = "No tool call found for function call output with call_id call_1.";
    assert_eq!(reply.json()["error"]["message"], expected);
    let role = ask(&server, &json!([said("robot", "hi")])).await;
    assert_eq!(role.json()["error"]["type"], "invalid_request_error");
}

#[tokio::test]
async fn recall_shows_what_the_user_said() {
    let server = start().await;
    let mut input = prompt("one");
    let list = input.as_array_mut().unwrap();
    list.push(said("assistant", "ok"));
    list.push(said("user", "two #s:recall"));
    assert_eq!(text(&ask(&server, &input).await), "one\ntwo #s:recall");
    assert_eq!(text(&ask(&server, &prompt("hello")).await), "ok: hello");
    let models = send(&server, "GET /v1/models?client_version=0.166.0", "", b"").await;
    assert_eq!(models.json()["models"], json!([]));
}

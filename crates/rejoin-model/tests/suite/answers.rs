//! Answers that arrive: streamed and whole, with tools, and from scripts of the caller.

use rejoin_model::{ModelServer, Options, Step};
use serde_json::{Value, json};

use super::http::{ask, post, prompt, send, start};

fn types(events: &[Value]) -> Vec<&str> {
    events
        .iter()
        .map(|event| event["type"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn a_streamed_turn_has_the_events_of_the_api() {
    let server = start().await;
    let reply = prompt(&server, "please #s:think").await;
    assert_eq!(reply.status, 200);
    assert!(reply.complete);
    assert!(
        reply.head.contains("content-type: text/event-stream"),
        "{}",
        reply.head
    );
    assert!(reply.head.contains("request-id: req_"), "{}", reply.head);
    let events = reply.events();
    let (start, delta, stop) = (
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
    );
    let expected = [
        &[
            "message_start",
            start,
            delta,
            delta,
            stop,
            start,
            delta,
            delta,
            stop,
        ][..],
        &["message_delta", "message_stop"],
    ];
    assert_eq!(types(&events), expected.concat());
    assert_eq!(
        events[0]["message"]["usage"]["cache_read_input_tokens"],
        1000
    );
    assert_eq!(events[0]["message"]["usage"]["output_tokens"], 1);
    assert_eq!(events[1]["content_block"]["type"], "thinking");
    assert_eq!(events[5]["index"], 1);
    assert_eq!(reply.text(), "Thought done.");
    assert_eq!(events[9]["delta"]["stop_reason"], "end_turn");
    assert_eq!(events[9]["usage"]["output_tokens"], 25);
    server.stop().await;
}

#[tokio::test]
async fn a_tool_step_is_followed_by_a_text_step() {
    let server = start().await;
    let mut messages = json!([{"role": "user", "content": [{"type": "text", "text": "#s:two"}]}]);
    let reply = ask(&server, messages.clone()).await;
    let events = reply.events();
    let calls: Vec<&Value> = events
        .iter()
        .map(|event| &event["content_block"])
        .filter(|block| block["type"] == "tool_use")
        .collect();
    assert_eq!(calls.len(), 2);
    assert_ne!(calls[0]["id"], calls[1]["id"]);
    let input = events
        .iter()
        .find_map(|event| event["delta"]["partial_json"].as_str())
        .unwrap();
    assert_eq!(
        serde_json::from_str::<Value>(input).unwrap()["command"],
        "echo one"
    );

    let results: Vec<Value> = calls
        .iter()
        .map(|call| json!({"type": "tool_result", "tool_use_id": call["id"], "content": "x"}))
        .collect();
    let list = messages.as_array_mut().unwrap();
    list.push(json!({"role": "assistant", "content": calls}));
    list.push(json!({"role": "user", "content": results}));
    assert_eq!(ask(&server, messages.clone()).await.text(), "Both done.");

    messages
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "assistant", "content": "Both done."}));
    messages
        .as_array_mut()
        .unwrap()
        .push(json!({"role": "user", "content": "and now?"}));
    assert_eq!(ask(&server, messages).await.text(), "ok: and now?");
    let used: Vec<_> = server
        .requests()
        .into_iter()
        .map(|request| (request.script, request.step))
        .collect();
    assert_eq!(
        used,
        [(Some("two".into()), 0), (Some("two".into()), 1), (None, 0)]
    );
}

#[tokio::test]
async fn an_answer_may_come_whole() {
    let server = start().await;
    let body = json!({"model": "m", "messages": [{"role": "user", "content": "#s:bash"}]});
    let reply = post(&server, "/prefix/v1/messages", &body.to_string())
        .await
        .json();
    assert_eq!(
        reply["content"][0],
        json!({"type": "text", "text": "Running it."})
    );
    assert_eq!(reply["content"][1]["name"], "Bash");
    assert_eq!(
        (&reply["stop_reason"], &reply["model"]),
        (&json!("tool_use"), &json!("m"))
    );
    let count = post(&server, "/v1/messages/count_tokens", "{\"a\":123}").await;
    assert_eq!(count.json(), json!({"input_tokens": 2}));
}

#[tokio::test]
async fn scripts_of_the_caller_lie_over_the_built_in_ones() {
    let scripts = [("hello".to_owned(), vec![Step::text("mine")])].into();
    let options = Options {
        scripts,
        default_reply: Some("default".to_owned()),
        ..Options::default()
    };
    let server = ModelServer::start(options).await.unwrap();
    assert_eq!(prompt(&server, "#s:hello").await.text(), "mine");
    assert_eq!(prompt(&server, "x").await.text(), "default");
    assert_eq!(
        prompt(&server, r#"#j:[{"text":"in place"}]#"#).await.text(),
        "in place"
    );
}

#[tokio::test]
async fn recall_shows_what_the_model_was_shown() {
    let server = start().await;
    let messages = json!([
        {"role": "user", "content": "one"},
        {"role": "assistant", "content": "ok"},
        {"role": "user", "content": "<rejoin>note</rejoin> two #s:recall"}]);
    assert_eq!(
        ask(&server, messages).await.text(),
        "one\n<rejoin>note</rejoin> two #s:recall"
    );
}

#[tokio::test]
async fn bodies_may_be_chunked_and_large() {
    let server = start().await;
    let filler = "x".repeat(5 << 20);
    let body = json!({"stream": true, "messages": [
        {"role": "user", "content": filler}, {"role": "user", "content": "#s:hello"}]});
    let body = body.to_string();
    let (front, back) = body.split_at(body.len() / 2);
    let chunked = format!(
        "{:x}\r\n{front}\r\n{:x}\r\n{back}\r\n0\r\n\r\n",
        front.len(),
        back.len()
    );
    let head = "transfer-encoding: chunked\r\n";
    let reply = send(&server, "POST /v1/messages", head, chunked.as_bytes()).await;
    assert_eq!(reply.text(), "Hello from the scripted model.");
    assert_eq!(server.requests()[0].bytes, body.len());
}

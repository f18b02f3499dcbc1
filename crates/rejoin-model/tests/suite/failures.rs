//! Answers that do not arrive, or not as hoped.

use std::time::{Duration, Instant};

use serde_json::json;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::http::{ask, post, prompt, send, start, start_strict};

#[tokio::test]
async fn a_failure_is_repeated_on_every_retry() {
    let server = start().await;
    for _ in 0..3 {
        let reply = prompt(&server, "#s:e529").await;
        assert_eq!(reply.status, 529);
        assert!(reply.head.contains("retry-after: 1"), "{}", reply.head);
        let error = json!({"type": "overloaded_error", "message": "Overloaded"});
        assert_eq!(reply.json(), json!({"type": "error", "error": error}));
    }
    for (name, status) in [("e400", 400), ("e401", 401), ("e429", 429), ("e500", 500)] {
        assert_eq!(prompt(&server, &format!("#s:{name}")).await.status, status);
    }
    let long = prompt(&server, "#s:toolong").await.json();
    let expected = "prompt is too long: 208310 tokens > 200000 maximum";
    assert_eq!(long["error"]["message"], expected);
}

#[tokio::test]
async fn a_cut_stream_has_no_end() {
    let server = start().await;
    let reply = prompt(
        &server,
        r#"#j:[{"text":"abcdef","chunks":3,"cut_after":2}]#"#,
    )
    .await;
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.complete),
        (200, "abcd", false)
    );
}

#[tokio::test]
async fn a_refused_request_gets_not_a_byte() {
    let server = start().await;
    let reply = prompt(&server, "#s:refuse").await;
    assert_eq!((reply.status, reply.head.as_str()), (0, ""));
    assert_eq!(server.requests().len(), 1);
}

#[tokio::test]
async fn a_hanging_answer_begins_and_then_breaks() {
    let server = start().await;
    let reply = prompt(&server, r#"#j:[{"text":"never","hang_ms":80}]#"#).await;
    assert_eq!(reply.events().len(), 1);
    assert_eq!(reply.events()[0]["type"], "message_start");
    assert!(!reply.complete);
}

#[tokio::test]
async fn stopping_breaks_off_what_hangs() {
    let server = start().await;
    let address = server.url().replace("http://", "");
    let body = json!({"stream": true, "messages": [{"role": "user", "content": "#s:hang"}]});
    let body = body.to_string();
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /v1/messages HTTP/1.1\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).await.unwrap();
    assert_ne!(stream.read_u8().await.unwrap(), 0);

    let began = Instant::now();
    server.stop().await;
    let mut rest = String::new();
    drop(stream.read_to_string(&mut rest).await);
    assert!(
        began.elapsed() < Duration::from_secs(1),
        "{:?}",
        began.elapsed()
    );
    assert!(
        rest.contains("message_start") && !rest.contains("message_stop"),
        "{rest}"
    );
    assert!(TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn strict_servers_refuse_broken_histories() {
    let server = start_strict().await;
    let broken = json!([{"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": "t", "content": "x"}]}]);
    let reply = ask(&server, broken).await;
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    assert!(
        server.requests()[0]
            .note
            .starts_with("refused: messages.0.content.0")
    );
    assert_eq!(prompt(&server, "#s:hello").await.status, 200);
}

#[tokio::test]
async fn foreign_bytes_are_answered() {
    let server = start().await;
    let deep = "[".repeat(100_000);
    for body in [
        "",
        "{",
        "null",
        "[]",
        "\u{0}\u{1}",
        "{\"messages\":",
        deep.as_str(),
    ] {
        let reply = post(&server, "/v1/messages", body).await;
        assert_eq!(reply.status, 400);
        assert_eq!(reply.json()["error"]["type"], "invalid_request_error");
    }
    let odd = [
        r#"{"messages":5}"#,
        r#"{"messages":[null,{"content":{"a":[]}},"x"],"stream":1}"#,
    ];
    for body in odd {
        assert_eq!(
            post(&server, "/v1/messages", body).await.json()["content"][0]["text"],
            "ok:"
        );
    }
    let latin = send(
        &server,
        "POST /v1/messages",
        "content-length: 2\r\n",
        &[0xff, 0xfe],
    )
    .await;
    assert_eq!(latin.status, 400);
    assert_eq!(send(&server, "HEAD /", "", b"").await.status, 200);
    assert_eq!(send(&server, "GET /v1/other", "", b"").await.status, 404);
    assert_eq!(
        post(&server, "/v1/other", "{}").await.json()["type"],
        "error"
    );
}

//! Steering the server, in process and over HTTP.

use rejoin_model::Step;
use serde_json::json;

use super::http::{post, prompt, send, start};

#[tokio::test]
async fn queued_steps_come_first_and_once() {
    let server = start().await;
    server.fail_next(2, Step::status(500));
    assert_eq!(prompt(&server, "#s:hello").await.status, 500);
    assert_eq!(prompt(&server, "#s:hello").await.status, 500);
    assert_eq!(
        prompt(&server, "#s:hello").await.text(),
        "Hello from the scripted model."
    );
    assert_eq!(server.requests()[0].script.as_deref(), Some("queue"));
}

#[tokio::test]
async fn steps_are_queued_over_http() {
    let server = start().await;
    let steps = json!({"steps": [{"status": 529}, {"text": "queued"}]}).to_string();
    assert_eq!(
        post(&server, "/_rejoin/next", &steps).await.json(),
        json!({"queued": 2})
    );
    assert_eq!(prompt(&server, "x").await.status, 529);
    assert_eq!(prompt(&server, "x").await.text(), "queued");
    assert_eq!(prompt(&server, "x").await.text(), "ok: x");
    let typo = post(&server, "/_rejoin/next", r#"{"steps":[{"txt":""}]}"#).await;
    assert_eq!(typo.status, 400);
    assert!(typo.body.contains("unknown field `txt`"), "{}", typo.body);
}

#[tokio::test]
async fn requests_are_read_and_cleared_over_http() {
    let server = start().await;
    prompt(&server, "one").await;
    prompt(&server, "two").await;
    let all = send(&server, "GET /_rejoin/requests", "", b"").await.json();
    assert_eq!(all["requests"].as_array().unwrap().len(), 2);
    let later = send(&server, "GET /_rejoin/requests?after=1", "", b"")
        .await
        .json();
    assert_eq!(later["requests"][0]["seq"], 2);
    assert_eq!(
        later["requests"][0]["body"]["messages"][0]["content"],
        "two"
    );
    assert_eq!(later["requests"][0]["headers"]["x-api-key"], "<redacted>");
    assert_eq!(
        send(&server, "GET /_rejoin/requests?after=x", "", b"")
            .await
            .status,
        400
    );
    assert_eq!(
        send(&server, "GET /_rejoin/other", "", b"").await.status,
        404
    );
    assert_eq!(
        send(&server, "DELETE /_rejoin/requests", "", b"")
            .await
            .status,
        204
    );
    assert_eq!(server.requests(), []);
    prompt(&server, "three").await;
    assert_eq!(server.requests()[0].seq, 3);
}

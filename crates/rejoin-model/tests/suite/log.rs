//! The request log file.

use std::os::unix::fs::PermissionsExt;

use rejoin_model::{Error, ModelServer, Options};
use serde_json::Value;

use super::http::{post, prompt, send};

#[tokio::test]
async fn every_request_is_a_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("requests.jsonl");
    let options = Options {
        log: Some(path.clone()),
        ..Options::default()
    };
    let server = ModelServer::start(options.clone()).await.unwrap();
    send(&server, "HEAD /", "", b"").await;
    prompt(&server, "#s:hello").await;
    post(&server, "/_rejoin/next", r#"{"steps":[]}"#).await;
    post(&server, "/v1/messages", "{\n\"messages\":\n[]}").await;
    server.stop().await;

    let text = fs_err::read_to_string(&path).unwrap();
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let brief: Vec<_> = lines
        .iter()
        .map(|line| {
            (
                line["seq"].as_u64().unwrap(),
                line["note"].as_str().unwrap(),
            )
        })
        .collect();
    let expected = [
        (1, "no model path"),
        (2, "script=hello step=0"),
        (3, "script=none step=0"),
    ];
    assert_eq!(brief, expected);
    assert_eq!(lines[1]["path"], "/v1/messages?beta=true");
    assert_eq!(lines[1]["body"]["messages"][0]["content"], "#s:hello");
    assert!(!text.contains("secret"));
    assert_eq!(
        std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
        0o600
    );

    let again = ModelServer::start(options).await.unwrap();
    prompt(&again, "x").await;
    assert_eq!(fs_err::read_to_string(&path).unwrap().lines().count(), 4);
}

#[tokio::test]
async fn a_log_or_port_that_cannot_be_had_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let log = Some(folder.path().join("no/such/requests.jsonl"));
    let error = ModelServer::start(Options {
        log,
        ..Options::default()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, Error::Log { .. }), "{error}");

    let server = ModelServer::start(Options::default()).await.unwrap();
    let port = server.url().rsplit(':').next().unwrap().parse().unwrap();
    let error = ModelServer::start(Options {
        port,
        ..Options::default()
    })
    .await
    .unwrap_err();
    assert!(matches!(error, Error::Bind { .. }), "{error}");
}

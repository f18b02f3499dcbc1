//! A client that shows what really came over the wire, whole or broken.

use std::time::Duration;

use rejoin_model::{ModelServer, Options};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};

/// What the server sent until it closed the connection.
#[derive(Debug)]
pub(super) struct Reply {
    /// Zero if not a byte came.
    pub(super) status: u16,
    pub(super) head: String,
    /// The body, chunks joined.
    pub(super) body: String,
    /// Whether the body came to its proper end.
    pub(super) complete: bool,
}

impl Reply {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The server-sent events, in order.
    pub(super) fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| *data != "[DONE]");
        data.map(|data| serde_json::from_str(data).unwrap())
            .collect()
    }

    /// The text that was streamed.
    pub(super) fn text(&self) -> String {
        let events = self.events();
        events
            .iter()
            .filter_map(|event| event["delta"]["text"].as_str())
            .collect()
    }
}

pub(super) async fn start() -> ModelServer {
    ModelServer::start(Options::default()).await.unwrap()
}

pub(super) async fn start_strict() -> ModelServer {
    let options = Options {
        strict: true,
        ..Options::default()
    };
    ModelServer::start(options).await.unwrap()
}

/// A streamed request with these messages.
pub(super) async fn ask(server: &ModelServer, messages: Value) -> Reply {
    let body = json!({"model": "m", "stream": true, "messages": messages});
    post(server, "/v1/messages?beta=true", &body.to_string()).await
}

/// A streamed request with this prompt.
pub(super) async fn prompt(server: &ModelServer, prompt: &str) -> Reply {
    ask(server, json!([{"role": "user", "content": prompt}])).await
}

pub(super) async fn post(server: &ModelServer, path: &str, body: &str) -> Reply {
    let head = format!(
        "content-type: application/json\r\ncontent-length: {}\r\n",
        body.len()
    );
    send(server, &format!("POST {path}"), &head, body.as_bytes()).await
}

/// Sends one request and reads until the connection closes.
pub(super) async fn send(server: &ModelServer, line: &str, head: &str, body: &[u8]) -> Reply {
    let address = server.url().replace("http://", "");
    let mut stream = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "{line} HTTP/1.1\r\nhost: {address}\r\nx-api-key: secret\r\nconnection: close\r\n{head}\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    stream.write_all(body).await.unwrap();
    let mut received = Vec::new();
    let read = timeout(Duration::from_secs(20), stream.read_to_end(&mut received))
        .await
        .unwrap();
    // A reset counts as closed: only what came before it matters.
    drop(read);
    parse(&String::from_utf8(received).unwrap())
}

fn parse(received: &str) -> Reply {
    let Some((head, rest)) = received.split_once("\r\n\r\n") else {
        return Reply {
            status: 0,
            head: received.into(),
            body: String::new(),
            complete: false,
        };
    };
    let head = head.to_ascii_lowercase();
    let status = head[9..12].parse().unwrap();
    if !head.contains("transfer-encoding: chunked") {
        return Reply {
            status,
            head,
            body: rest.into(),
            complete: true,
        };
    }
    let (mut body, mut rest) = (String::new(), rest);
    while let Some((size, tail)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return Reply {
                status,
                head,
                body,
                complete: true,
            };
        }
        body.push_str(&tail[..size]);
        rest = &tail[size + 2..];
    }
    Reply {
        status,
        head,
        body,
        complete: false,
    }
}

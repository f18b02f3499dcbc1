//! Bodies of requests: not read where none is taken, and bounded over all connections.

use std::io::{Read, Write};
use std::net::TcpStream;

use rejoin_testkit::{Daemon, wait_for};
use serde_json::json;

use super::{demo, here};

const MIB: usize = 1 << 20;

fn head(daemon: &Daemon, line: &str, body: &str) -> String {
    format!(
        "{line} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{body}\r\n\r\n",
        daemon.address, daemon.token
    )
}

/// The answer, as far as it came before the daemon hung up or had nothing more to say.
fn answer(mut stream: &TcpStream) -> String {
    let mut bytes = vec![0; 4096];
    let got = stream.read(&mut bytes).unwrap_or(0);
    String::from_utf8_lossy(&bytes[..got]).into_owned()
}

/// Requests that take no body are answered before any of it has arrived.
#[test]
fn a_body_that_nobody_takes_is_not_waited_for() {
    let world = demo();
    let daemon = world.serve(&[]);
    let turn = daemon.say("k", "hello", &[here(&world)]);
    let id = turn["turn_id"].as_str().unwrap();
    let lengths = ["Content-Length: 1000000", "Content-Length: 1099511627776"];
    for length in lengths.into_iter().chain(["Transfer-Encoding: chunked"]) {
        for (line, status) in [
            ("GET /api/conversations", 200),
            ("GET /healthz", 200),
            ("HEAD /api/conversations", 200),
            ("OPTIONS /api/conversations", 405),
            ("GET /api/nothing", 404),
            ("POST /api/nothing", 404),
            ("DELETE /api/tokens/nobody", 404),
            (&format!("POST /api/turns/{id}/cancel"), 409),
        ] {
            let mut stream = daemon.connect();
            stream
                .write_all(head(&daemon, line, length).as_bytes())
                .unwrap();
            let said = answer(&stream);
            let wanted = format!("HTTP/1.1 {status}");
            assert!(said.starts_with(&wanted), "{line}, {length}: {said}");
        }
    }
}

/// Nine of the longest bodies are more than all bodies together may be.
#[test]
fn bodies_of_all_connections_are_bounded() {
    let world = demo();
    let daemon = world.serve(&[]);
    let declared = format!("Content-Length: {}", 16 * MIB);
    let begun = head(&daemon, "POST /api/send", &declared);
    let piece = vec![b' '; MIB];
    let streams: Vec<TcpStream> = (0..9)
        .map(|_| {
            let mut stream = daemon.connect();
            stream.write_all(begun.as_bytes()).unwrap();
            // All but the last byte; a daemon that refused it does not read on.
            for n in 0..16 {
                let piece = if n == 15 { &piece[1..] } else { &piece[..] };
                if stream.write_all(piece).is_err() {
                    break;
                }
            }
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let refused = wait_for("one of them to be refused", 60, || {
        let mut said = streams.iter().map(answer);
        said.find(|said| !said.is_empty())
    });
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(
        refused
            .contains("the daemon has no memory left for requests; nothing of this one was kept"),
        "{refused}"
    );
    assert_eq!(daemon.get("/api/conversations").status, 200);
    drop(streams);
    wait_for("their memory to be free", 30, || {
        let large = json!({"text": "x".repeat(15 * MIB), "key": "k"});
        (daemon.post("/api/send", &large).status == 400).then_some(())
    });
    daemon.say("k", "hello", &[here(&world)]);
    daemon.stop();
    world.assert_quiet();
}

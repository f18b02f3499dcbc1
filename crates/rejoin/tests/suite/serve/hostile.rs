//! Requests that nobody in their right mind sends: each refused as documented, and the daemon stays
//! responsive.

use std::io::{Read, Write};
use std::time::Duration;

use rejoin_testkit::Daemon;
use serde_json::json;

use super::{demo, here};

/// It still answers.
#[track_caller]
fn lives(daemon: &Daemon) {
    assert_eq!(daemon.get("/readyz").status, 200);
}

#[test]
fn in_every_id() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    let ids = [
        "..",
        "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "..%2f..%2frejoin.db",
        "%00",
        "a%00b",
        "'%20or%201=1--",
        "%ff%fe",
        "last",
        "-",
        "%F0%9F%92%A9",
        "01a1e1b4-7623-71e2-934b-4c940141fb6",
        "{id}",
        "%0d%0aX:%20y",
    ];
    let long = "z".repeat(8000);
    for id in ids.into_iter().chain([long.as_str()]) {
        for path in [
            "conversations/ID",
            "conversations/ID/next",
            "conversations/ID/events",
            "turns/ID",
            "turns/ID/chain",
        ] {
            let path = format!("/api/{}", path.replace("ID", id));
            let answer = daemon.get(&path);
            assert!((400..500).contains(&answer.status), "{path}: {answer:?}");
            assert!(!answer.head.contains("X: y"), "{answer:?}");
        }
        for (method, path) in [
            ("POST", "turns/ID/cancel"),
            ("POST", "turns/ID/answer"),
            ("DELETE", "messages/ID"),
            ("POST", "conversations/ID/fork"),
            ("PATCH", "conversations/ID"),
            ("DELETE", "tokens/ID"),
        ] {
            let path = format!("/api/{}", path.replace("ID", id));
            let answer = daemon.call(method, &path, &[], Some(&json!({})));
            assert!(
                (400..500).contains(&answer.status),
                "{method} {path}: {answer:?}"
            );
        }
    }
    lives(&daemon);
}

#[test]
fn bombs_and_bad_bytes() {
    let world = demo();
    let daemon = world.serve(&[]);
    let deep = "[".repeat(200_000);
    let wide = format!(
        "{{\"text\":\"x\",{}}}",
        (0..20_000)
            .map(|n| format!("\"k{n}\":1"))
            .collect::<Vec<_>>()
            .join(",")
    );
    let head = |length: usize| {
        format!(
            "POST /api/send HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n",
            daemon.address, daemon.token
        )
    };
    let bodies: [&[u8]; 6] = [
        deep.as_bytes(),
        wide.as_bytes(),
        b"",
        b"\xff\xfe\x00",
        b"{\"text\":\"\\ud800\"}",
        b"{\"text\":1e999}",
    ];
    for body in bodies {
        let mut request = head(body.len()).into_bytes();
        request.extend(body);
        let answer = daemon.raw(&request);
        assert_eq!(answer.status, 400, "{answer:?}");
        assert!(answer.body.len() < 2000, "{answer:?}");
    }
    let broken: [&[u8]; 5] = [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /api/inbox HTTP/1.1\r\nHost: localhost\r\nX: a\r\n\tb\r\n\r\n",
        b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
        b"POST /api/send HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ];
    for request in broken {
        let answer = daemon.raw(request);
        assert!(
            answer.status == 0 || (400..500).contains(&answer.status),
            "{answer:?}"
        );
    }
    lives(&daemon);
}

/// Connections that send nothing, or never read, do not keep others out.
#[test]
fn slow_ones_and_very_many() {
    let world = demo();
    let daemon = world.serve(&[]);
    daemon.say("k", "hello", &[here(&world)]);
    let mut slow = vec![];
    for _ in 0..200 {
        let mut stream = daemon.connect();
        stream
            .write_all(b"GET /api/inbox HTTP/1.1\r\nHost: loc")
            .unwrap();
        slow.push(stream);
    }
    let mut watchers = vec![];
    let mut refused = 0;
    for _ in 0..2000 {
        let Ok(mut stream) = std::net::TcpStream::connect(&daemon.address) else {
            break;
        };
        stream
            .set_read_timeout(Some(Duration::from_secs(20)))
            .unwrap();
        let request = format!(
            "GET /api/events?after=0 HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
            daemon.address, daemon.token
        );
        stream.write_all(request.as_bytes()).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        match &first {
            b"HTTP/1.1 200" => watchers.push(stream),
            b"HTTP/1.1 429" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert!(
        watchers.len() >= 500 && refused >= 500,
        "{} watch, {refused} refused",
        watchers.len()
    );
    lives(&daemon);
    let turn = daemon.say("k", "still there?", &[]);
    assert_eq!(turn["verdict"], "resumed");
    // Who never finishes a request's head is hung up on.
    for mut stream in slow {
        let wait = Some(Duration::from_secs(30));
        stream.set_read_timeout(wait).unwrap();
        let mut rest = vec![];
        stream.read_to_end(&mut rest).unwrap();
    }
    drop(watchers);
}

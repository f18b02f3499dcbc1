//! Stdin and the socket.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rejoin_runner::shim::{Order, Spec, StopReason};
use rejoin_runner::shim_link::{News, ShimLink};
use rejoin_runner::spool::SpoolReader;

use crate::turn::{Turn, sh, until};

fn held(script: &str) -> Spec {
    Spec {
        hold_stdin: true,
        close_stdin_on: vec!["result".into()],
        ..sh(script)
    }
}

async fn link(turn: &Turn) -> ShimLink {
    turn.cli();
    ShimLink::connect(&turn.folder)
        .await
        .unwrap()
        .expect("a shim")
}

#[tokio::test]
async fn held_stdin_is_closed_by_a_result_only() {
    let mut turn = Turn::start(&Spec {
        stdin: "a\n".into(),
        ..held(
            r#"read a; echo '{"x":{"type":"result"}}'; read b; echo "got $a$b";
            echo '{"x":{"type":"result"},"type":"result"}'; cat; echo eof"#,
        )
    });
    let mut link = link(&turn).await;
    turn.until_out("}}");
    link.order(Order::Ping).await.unwrap();
    link.order(Order::Stdin { data: "b\n".into() })
        .await
        .unwrap();
    assert_eq!(turn.end().code, Some(0));
    assert!(turn.file("out").contains("got ab\n"));
    assert!(turn.file("out").ends_with("eof\n"));
    while link.news().await == News::Grew {}
    assert!(ShimLink::connect(&turn.folder).await.unwrap().is_none());
}

#[tokio::test]
async fn an_orphan_is_closed_but_not_while_somebody_listens() {
    let mut turn = Turn::start(&Spec {
        orphan_ms: Some(400),
        ..held("cat; echo eof")
    });
    let mut first = link(&turn).await;
    let mut second = link(&turn).await;
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_secs(1) {
        second.order(Order::Ping).await.unwrap();
    }
    drop(second);
    first
        .order(Order::Stdin {
            data: "still open\n".into(),
        })
        .await
        .unwrap();
    turn.until_out("still open");
    drop(first);
    assert_eq!(turn.end().why, StopReason::Exited);
    assert!(turn.file("out").ends_with("eof\n"));

    let mut alone = Turn::start(&Spec {
        orphan_ms: Some(100),
        ..held("cat; echo eof")
    });
    assert_eq!(
        (alone.end().code, alone.file("out").as_str()),
        (Some(0), "eof\n")
    );
}

#[tokio::test]
async fn orders_and_refusals() {
    let mut turn = Turn::start(&held("cat; echo eof; read x; sleep 60"));
    let mut link = link(&turn).await;
    assert_eq!((link.hello().shim, link.hello().cli), (4, turn.cli().pid));
    assert_eq!(link.hello().pid, turn.shim_holder().pid);
    let big = "y".repeat(10_000_000);
    link.order(Order::Stdin { data: big.clone() })
        .await
        .unwrap();
    link.order(Order::CloseStdin).await.unwrap();
    turn.until_out("eof");
    assert_eq!(turn.file("out").len(), big.len() + "eof\n".len());
    let refused = link
        .order(Order::Stdin { data: "x".into() })
        .await
        .unwrap_err();
    assert_eq!(refused.to_string(), "stdin is closed");
    link.order(Order::Ping).await.unwrap();
    link.order(Order::Stop).await.unwrap();
    let end = turn.end();
    assert_eq!((end.signal, end.why), (Some(15), StopReason::Stopped));
    while link.news().await == News::Grew {}
}

#[test]
fn bad_clients_hurt_only_themselves() {
    let mut turn = Turn::start(&held("cat"));
    turn.cli();
    let connect = || UnixStream::connect(turn.folder.join("s")).unwrap();
    let mut client = BufReader::new(connect());
    let mut ask = |text: &[u8]| {
        client.get_mut().write_all(text).unwrap();
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        line
    };
    let hello = format!(
        "{{\"shim\":4,\"pid\":{},\"cli\":{}}}\n",
        turn.shim_holder().pid,
        turn.cli().pid
    );
    assert_eq!(ask(b""), hello);
    assert_eq!(ask(b"{\"order\":\"ping\"}\n"), "{\"ok\":true}\n");
    assert!(ask(b"\xff\xfe garbage\n").starts_with("{\"ok\":false,\"error\":\"not an order"));
    assert!(ask(b"{\"order\":\"dance\"}\n").starts_with("{\"ok\":false"));
    let mut long = vec![b'x'; 10_000_000];
    long.push(b'\n');
    assert!(ask(&long).starts_with("{\"ok\":false"));

    // Endless: dropped. Never reading: dropped. Half a line and gone: forgotten.
    let mut endless = connect();
    let block = vec![b'x'; 1 << 20];
    assert!((0..64).any(|_| endless.write_all(&block).is_err()));
    let mut deaf = connect();
    let pings = b"{\"order\":\"ping\"}\n".repeat(1000);
    assert!((0..1000).any(|_| deaf.write_all(&pings).is_err()));
    connect().write_all(b"{\"order\":").unwrap();

    assert_eq!(ask(b"{\"order\":\"ping\"}\n"), "{\"ok\":true}\n");
    assert_eq!(ask(b"{\"order\":\"close_stdin\"}\n"), "{\"ok\":true}\n");
    assert_eq!(turn.end().code, Some(0));
}

#[tokio::test]
async fn a_folder_too_deep_for_a_socket_address() {
    let mut turn = Turn::prepared(&held("cat"));
    let deep = turn.folder.join("d".repeat(120)).join("e".repeat(120));
    fs_err::create_dir_all(&deep).unwrap();
    assert!(ShimLink::connect(&deep).await.unwrap().is_none());
    fs_err::copy(turn.folder.join("spec.json"), deep.join("spec.json")).unwrap();
    turn.folder = deep;
    turn.shim = Some(turn.spawn());
    link(&turn).await.order(Order::CloseStdin).await.unwrap();
    assert_eq!(turn.end().code, Some(0));
}

#[tokio::test]
async fn lines_are_read_as_they_come() {
    let mut turn = Turn::prepared(&sh("for i in 1 2 3; do echo line $i; done; printf torn"));
    let mut reader = SpoolReader::new(&turn.folder.join("out"), 0);
    turn.shim = Some(turn.spawn());
    let mut lines = Vec::new();
    let begin = Instant::now();
    loop {
        let ended = turn.folder.join("end.json").exists();
        while let Some(line) = reader.next_line().unwrap() {
            lines.push(String::from_utf8(line.bytes).unwrap());
        }
        if ended {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    assert_eq!(lines, ["line 1", "line 2", "line 3"]);
    assert_eq!(reader.offset(), 21);
    let torn = reader.finish().unwrap();
    assert!(matches!(torn, Some(rejoin_runner::spool::Piece::Torn(it)) if it.bytes == b"torn"));
    turn.end();
}

#[tokio::test]
async fn a_shim_says_when_there_is_more_to_read_and_hangs_up_after_the_end() {
    let mut turn = Turn::start(&held("read a; echo one; read b; echo two"));
    let mut link = link(&turn).await;
    for (line, size) in [("a\n", 4), ("b\n", 8)] {
        link.order(Order::Stdin { data: line.into() })
            .await
            .unwrap();
        // The last word may be that it is over: then everything is there.
        while turn.file("out").len() < size && link.news().await == News::Grew {}
        assert_eq!(turn.file("out").len(), size);
    }
    while link.news().await == News::Grew {}
    assert!(turn.folder.join("end.json").exists());
    assert_eq!(turn.end().code, Some(0));
}

/// Whoever comes after a client that was killed says the same again.
#[tokio::test]
async fn what_is_said_under_a_key_is_written_once() {
    let mut turn = Turn::start(&held(
        r#"while read line; do echo "got $line"; [ "$line" = end ] && echo '{"type":"result"}'; done"#,
    ));
    let say = |key: &str, data: &str| Order::Say {
        key: key.into(),
        data: format!("{data}\n"),
    };
    let mut first = link(&turn).await;
    assert!(first.hello().shim >= 3);
    first.order(say("1", "one")).await.unwrap();
    first.order(say("2", "two")).await.unwrap();
    drop(first);
    let mut second = link(&turn).await;
    for (key, data) in [
        ("1", "one"),
        ("2", "two"),
        ("3", "two"),
        ("1", "other"),
        ("4", "end"),
    ] {
        second.order(say(key, data)).await.unwrap();
    }
    assert_eq!(turn.end().code, Some(0));
    let said = turn.file("out").replace("{\"type\":\"result\"}\n", "");
    assert_eq!(said, "got one\ngot two\ngot two\ngot end\n");
}

/// Once it only waits it holds less of the program than starting took, and does all it did before.
#[tokio::test]
async fn what_starting_needed_is_given_back() {
    let mut turn = Turn::start(&held(
        r#"read a; echo "got $a"; echo '{"type":"result"}'; cat"#,
    ));
    let shim = turn.shim.as_ref().unwrap().pid();
    let mapped = || {
        let status = fs_err::read_to_string(format!("/proc/{shim}/status")).unwrap();
        let line = status.lines().find(|l| l.starts_with("RssFile:")).unwrap();
        let number = line.split_ascii_whitespace().nth(1).unwrap();
        number.parse::<u64>().unwrap()
    };
    let mut most = 0;
    until("less of it", || {
        most = most.max(mapped());
        mapped() < most * 3 / 4
    });
    let mut link = link(&turn).await;
    link.order(Order::Stdin { data: "b\n".into() })
        .await
        .unwrap();
    assert_eq!(turn.end().code, Some(0));
    assert!(turn.file("out").starts_with("got b\n"));
}

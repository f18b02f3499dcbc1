//! Whoever does not watch is told: signed, tried again, and logged.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rejoin_testkit::wait_for;
use ring::hmac;
use serde_json::{Value, json};

use super::{demo, here};

/// A request as it came.
struct Heard {
    head: String,
    raw: Vec<u8>,
    body: Value,
}

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

impl Heard {
    /// As anybody who knows the secret would check it.
    fn is_signed(&self) -> bool {
        let key = STANDARD.decode(SECRET.strip_prefix("whsec_").unwrap());
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key.unwrap());
        let [id, at] = ["webhook-id", "webhook-timestamp"].map(|name| self.header(name));
        let signed = [format!("{id}.{at}.").as_bytes(), &self.raw].concat();
        let signature = self.header("webhook-signature");
        let tag = STANDARD.decode(signature.strip_prefix("v1,").unwrap());
        hmac::verify(&key, &signed, &tag.unwrap()).is_ok()
    }

    fn header(&self, name: &str) -> String {
        let found = self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then(|| value.to_owned())
        });
        found.unwrap_or_else(|| panic!("no {name} in {}", self.head))
    }
}

/// Hears requests; the first `deaf` of them are answered with 503.
fn listener(deaf: usize) -> (String, Receiver<Heard>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let (send, heard) = channel();
    std::thread::spawn(move || {
        for (n, stream) in listener.incoming().flatten().enumerate() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let length = head.lines().find_map(|l| {
                l.to_lowercase()
                    .strip_prefix("content-length: ")?
                    .parse()
                    .ok()
            });
            let mut raw = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut raw).unwrap();
            let status = if n < deaf { "503 Busy" } else { "200 OK" };
            let answer =
                format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            reader.into_inner().write_all(answer.as_bytes()).unwrap();
            let body = serde_json::from_slice(&raw).unwrap();
            if send.send(Heard { head, raw, body }).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

fn next(heard: &Receiver<Heard>) -> Heard {
    heard.recv_timeout(Duration::from_secs(30)).unwrap()
}

#[test]
fn a_webhook_is_signed_and_tried_again() {
    let (url, heard) = listener(1);
    let mut world = demo();
    world.set("REJOIN_NOTIFY_WEBHOOK", &url);
    let refused = world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    world.set("REJOIN_NOTIFY_SECRET", SECRET);
    world.set("REJOIN_NOTIFY_ON", "waiting,reseeded");
    let daemon = world.serve(&[]);
    // What was before is not news; a turn that went well was not asked for.
    daemon.say("k", "hello", &[here(&world)]);
    let asks = daemon.say("k", "approve: rm -r x", &[("permission", json!("ask"))]);
    assert_eq!(asks["status"], "waiting");
    let (first, again) = (next(&heard), next(&heard));
    assert_eq!(first.body["type"], "turn.waiting");
    assert_eq!(first.body["turn"]["turn_id"], asks["turn_id"]);
    assert_eq!(first.header("webhook-id"), again.header("webhook-id"));
    assert!(first.is_signed() && again.is_signed());
    let path = format!("/api/turns/{}/answer", asks["turn_id"].as_str().unwrap());
    daemon.post(&path, &json!({"decision": "deny"})).ok();
    let log = wait_for("the log", 20, || {
        let log = daemon.get("/api/deliveries").ok()["deliveries"].clone();
        (log[0]["state"] == "sent").then_some(log)
    });
    assert_eq!(
        (log.as_array().unwrap().len(), &log[0]["tries"]),
        (1, &json!(2)),
        "{log}"
    );
    wait_for("the turn", 20, || {
        (daemon.get("/api/conversations/k").ok()["conversation"]["state"] == "idle").then_some(())
    });
    daemon.post("/api/conversations/k/reset", &json!({})).ok();
    daemon.say("k", "and now?", &[]);
    assert_eq!(next(&heard).body["type"], "turn.reseeded");
}

/// Told even if the daemon was away when it happened, and only once.
#[test]
fn an_address_of_the_message_and_a_command() {
    let (url, heard) = listener(0);
    let mut world = demo();
    let told = world.root().join("told");
    let script = world.root().join("tell");
    world.script(
        &script,
        "#!/bin/sh\necho \"$REJOIN_NOTIFY_TYPE\" >> \"$TOLD\"\ncat > /dev/null\n",
    );
    world.set("TOLD", told.to_str().unwrap());
    world.set("REJOIN_NOTIFY_COMMAND", script.to_str().unwrap());
    world.set("REJOIN_NOTIFY_ON", "succeeded");
    world.set("REJOIN_NOTIFY_URLS", url.strip_suffix("hook").unwrap());
    world.set("REJOIN_NOTIFY_SECRET", "a secret of some length");
    let daemon = world.serve(&[]);
    let body = |notify: &str| json!({"key": "k", "text": "wait 0.5s", "notify_url": notify, "workdir": world.work().to_str().unwrap()});
    let elsewhere = daemon.post("/api/send", &body("http://127.0.0.1:9/hook"));
    assert_eq!(
        (elsewhere.status, elsewhere.json()["code"].as_str()),
        (403, Some("forbidden"))
    );
    let sent = daemon.post("/api/send", &body(&url)).ok();
    daemon.kill();
    let daemon = world.serve(&[]);
    let told_of = next(&heard);
    assert_eq!(told_of.body["type"], "turn.succeeded");
    assert_eq!(told_of.body["turn"]["turn_id"], sent["turn_id"]);
    wait_for("the command", 20, || {
        let told = std::fs::read_to_string(&told).unwrap_or_default();
        (told == "turn.succeeded\n").then_some(())
    });
    daemon.say("k", "one more", &[]);
    wait_for("the command", 20, || {
        let told = std::fs::read_to_string(&told).unwrap_or_default();
        (told == "turn.succeeded\nturn.succeeded\n").then_some(())
    });
    assert!(heard.try_recv().is_err());
    // The same by a command, which goes through the daemon.
    let send = ["send", "-k", "k", "--notify-url", &url, "and one more"];
    world.run(&send).ok();
    assert_eq!(next(&heard).body["type"], "turn.succeeded");
    assert_eq!(daemon.stop(), 0);
    let alone = world.run(&send);
    assert_eq!(
        (alone.code, alone.stderr.as_str()),
        (
            2,
            "error: --notify-url needs a daemon: without one nothing sends notifications; the message was not kept\n  try: rejoin serve\n"
        )
    );
}

//! Export and import over HTTP.

use std::io::{Read as _, Write as _};

use rejoin_testkit::{Answer, Daemon, World};
use serde_json::{Value, json};

use super::{demo, here};
use crate::suite::portable::hostile::{self, Frame, frames};

/// Sends a file as the body of a request.
fn upload(daemon: &Daemon, path: &str, header: &str, file: &[u8]) -> Answer {
    let head = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\n{header}\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
        daemon.address,
        file.len()
    );
    daemon.raw(&[head.as_bytes(), file].concat())
}

/// Fetches a body that is not text.
fn fetched(daemon: &Daemon, path: &str) -> Vec<u8> {
    let mut stream = daemon.connect();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {}\r\n{}\r\nConnection: close\r\n\r\n",
        daemon.address,
        bearer(daemon)
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = vec![];
    stream.read_to_end(&mut answer).unwrap();
    assert!(answer.starts_with(b"HTTP/1.1 200"));
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let (mut rest, mut body) = (&answer[end + 4..], vec![]);
    loop {
        let line = rest.windows(2).position(|w| w == b"\r\n").unwrap();
        let size = std::str::from_utf8(&rest[..line]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            return body;
        }
        body.extend(&rest[line + 2..line + 2 + size]);
        rest = &rest[line + 2 + size + 2..];
    }
}

fn archive(world: &World) -> Vec<u8> {
    let file = world.root().join("talk.rejoin");
    world
        .run(&["export", "k", "-o", file.to_str().unwrap()])
        .ok();
    std::fs::read(file).unwrap()
}

fn bearer(daemon: &Daemon) -> String {
    format!("Authorization: Bearer {}", daemon.token)
}

/// What one daemon exports another imports, and the next turn knows all of it.
#[test]
fn an_archive_travels() {
    let (one, other) = (demo(), demo());
    let daemon = one.serve(&[]);
    daemon.say("k", "unique-one", &[here(&one)]);
    daemon.say("k", "unique-two", &[]);
    let bytes = fetched(&daemon, "/api/conversations/k/export");
    let there = other.serve(&[]);
    let path = format!("/api/import?workdir={}", other.work().to_str().unwrap());
    let made = upload(&there, &path, &bearer(&there), &bytes);
    assert_eq!(made.status, 201, "{made:?}");
    let made = made.json();
    assert_eq!(
        (&made["outcome"], &made["messages"]),
        (&json!("imported"), &json!(4))
    );
    let again = upload(&there, &path, &bearer(&there), &bytes);
    assert_eq!(
        (again.status, again.json()["outcome"].clone()),
        (200, json!("same"))
    );
    let copy = upload(
        &there,
        &format!("{path}&as_copy=true&key=copy"),
        &bearer(&there),
        &bytes,
    );
    assert_eq!(
        (copy.status, copy.json()["outcome"].clone()),
        (201, json!("copied"))
    );
    let next = there.say("k", "unique-three", &[]);
    assert_eq!(next["status"], "succeeded", "{next:#}");
    assert_eq!(next["sent"]["left_out"], 0);
    let shown = there.get("/api/conversations/k").ok();
    assert_eq!(shown["messages"].as_array().unwrap().len(), 6);
}

/// Damaged and foreign files change nothing; ceilings, roots, scopes and namespaces hold.
#[test]
fn an_import_is_bounded() {
    let mut world = demo();
    let work = world.work().to_str().unwrap().to_owned();
    world.set("REJOIN_SERVE_ROOTS", &work);
    let daemon = world.serve(&[]);
    daemon.say("k", "unique-one", &[here(&world)]);
    let bytes = archive(&world);
    let token = |name: &str, more: &[&str]| {
        let args = [&["token", "create", name, "--json"], more].concat();
        let made = world.run(&args).ok().json();
        format!("Authorization: Bearer {}", made["token"].as_str().unwrap())
    };
    let work = format!("workdir={}", world.work().to_str().unwrap());
    let path = format!("/api/import?{work}");
    for (what, file) in [
        ("cut", &bytes[..bytes.len() / 2]),
        ("empty", &[][..]),
        ("foreign", &b"GIF89a"[..]),
    ] {
        let refused = upload(&daemon, &path, &bearer(&daemon), file);
        assert!((400..500).contains(&refused.status), "{what}: {refused:?}");
    }
    let reader = token("reader", &["--scope", "read"]);
    assert_eq!(upload(&daemon, &path, &reader, &bytes).status, 403);
    let away = "/api/import?workdir=/etc";
    let sender = token("sender", &["--scope", "send"]);
    assert_eq!(upload(&daemon, away, &sender, &bytes).status, 403);
    // The conversation of another namespace is neither shown nor changed.
    let other = token("other", &["--namespace", "b"]);
    let refused = upload(&daemon, &path, &other, &bytes);
    assert_eq!(refused.status, 409, "{refused:?}");
    let copy = upload(&daemon, &format!("{path}&as_copy=true"), &other, &bytes);
    assert_eq!(copy.status, 201, "{copy:?}");
    let theirs = daemon
        .call("GET", "/api/conversations", &[&other], None)
        .ok();
    assert_eq!(theirs["conversations"].as_array().unwrap().len(), 1);
    let low = token(
        "low",
        &["--namespace", "c", "--max-permission", "read-only"],
    );
    let wide = format!("{path}&as_copy=true&permission=edit");
    assert_eq!(upload(&daemon, &wide, &low, &bytes).status, 403);
    let copy = upload(&daemon, &format!("{path}&as_copy=true"), &low, &bytes).ok();
    let c = copy["conversation_id"].as_str().unwrap();
    let shown = daemon
        .call("GET", &format!("/api/conversations/{c}"), &[&low], None)
        .ok();
    assert_eq!(shown["conversation"]["permission"], "read-only");
    let export = "/api/conversations/k/export";
    assert_eq!(daemon.call("GET", export, &[&reader], None).status, 403);
    assert_eq!(daemon.call("GET", export, &[&other], None).status, 404);
}

/// A document has every message once, and no secret.
#[test]
fn documents_are_for_reading() {
    let world = demo();
    let daemon = world.serve(&[]);
    let key = "sk-ant-api03-0123456789abcdefghij";
    for n in 0..3 {
        daemon.say("k", &format!("unique{n}end {key}"), &[here(&world)]);
    }
    let get = |query: &str| daemon.get(&format!("/api/conversations/k/export?{query}"));
    let markdown = get("format=markdown");
    assert!(markdown.head.contains("text/markdown"), "{}", markdown.head);
    let text = markdown.body;
    assert!(!text.contains(key), "{text}");
    for n in 0..3 {
        let said = format!("\n\nunique{n}end [secret removed]\n");
        assert_eq!(text.matches(&said).count(), 1, "{text}");
    }
    let document: Value = get("format=json").json();
    assert_eq!(document["messages"].as_array().unwrap().len(), 6);
    let removed = document["secrets_removed"].as_u64().unwrap();
    assert!(removed >= 3, "{removed}");
    assert!(
        text.contains(&format!("{removed} secrets were removed")),
        "{text}"
    );
    assert!(get("format=json&keep_secrets=true").body.contains(key));
    assert_eq!(get("format=pdf").status, 400);
    let printed = world.run(&["export", "k", "--format", "markdown"]).ok();
    assert_eq!(printed.stdout, text);
    let file = world.root().join("k.json");
    let args = [
        "export",
        "k",
        "--format",
        "json",
        "--json",
        "-o",
        file.to_str().unwrap(),
    ];
    let report = world.run(&args).ok().json();
    assert_eq!(
        (&report["messages"], &report["secrets_removed"]),
        (&json!(6), &json!(removed))
    );
    let kept: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(kept, document);
}

/// An archive with one more message, of a user, at the end.
fn longer(whole: &[u8], edit: impl Fn(u8, &mut Value)) -> Vec<u8> {
    let mut all = vec![];
    let mut last = Value::Null;
    let mut put = false;
    for Frame(kind, content) in frames(whole) {
        if kind != b'M' && last != Value::Null && !put {
            let mut more = last.clone();
            let id = more["id"].as_str().unwrap().to_owned();
            more["id"] = format!("{}{:012x}", &id[..24], 7).into();
            more["seq"] = json!(last["seq"].as_i64().unwrap() + 1);
            more["role"] = "user".into();
            more["agent"] = Value::Null;
            more["text"] = "injected".into();
            more["turn"] = Value::Null;
            all.push(Frame(b'M', serde_json::to_vec(&more).unwrap()));
            put = true;
        }
        let row = serde_json::from_slice::<Value>(&content);
        let content = match row {
            Ok(mut row) => {
                if kind == b'M' {
                    last = row.clone();
                }
                if kind == b'N' {
                    row["messages"] = json!(row["messages"].as_i64().unwrap() + 1);
                }
                edit(kind, &mut row);
                serde_json::to_vec(&row).unwrap()
            }
            Err(_) => content,
        };
        all.push(Frame(kind, content));
    }
    hostile::archive(&all)
}

/// An import that continues a conversation is a message to it: the ceiling holds.
#[test]
fn a_conversation_above_the_ceiling_is_not_continued_by_an_import() {
    let world = demo();
    let daemon = world.serve(&[]);
    let token = |name: &str, most: &str| {
        let args = ["token", "create", name, "--max-permission", most, "--json"];
        let made = world.run(&args).ok().json();
        format!("Authorization: Bearer {}", made["token"].as_str().unwrap())
    };
    let (low, edit) = (token("low", "read-only"), token("edit", "edit"));
    let path = format!("/api/import?workdir={}", world.work().to_str().unwrap());
    daemon.say("k", "one", &[here(&world), ("permission", json!("full"))]);
    let older = fetched(&daemon, "/api/conversations/k/export");
    daemon.say("k", "two", &[]);
    let whole = fetched(&daemon, "/api/conversations/k/export");
    let seen = || daemon.get("/api/conversations/k").ok();
    let before = seen();
    let unchanged = |_: u8, _: &mut Value| ();
    // Every way in which an archive could change a conversation that it continues.
    let renamed = |kind: u8, row: &mut Value| {
        if kind == b'C' {
            row["title"] = "another".into();
        }
    };
    let removed = |kind: u8, row: &mut Value| {
        if kind == b'M' && row["seq"] == 1 {
            row["removed_at"] = json!(1);
        }
    };
    let reworded = |kind: u8, row: &mut Value| {
        if kind == b'M' && row["seq"] == 1 {
            row["text"] = "reworded".into();
            row["edited"] = json!(true);
        }
    };
    let restated = |kind: u8, row: &mut Value| {
        if kind == b'T' {
            row["status"] = "failed".into();
        }
    };
    let longer_ones = [
        ("added", longer(&whole, unchanged)),
        ("renamed", longer(&whole, renamed)),
        ("removed", longer(&whole, removed)),
        ("reworded", longer(&whole, reworded)),
        ("restated", longer(&whole, restated)),
    ];
    for (what, file) in &longer_ones {
        for token in [&low, &edit] {
            let refused = upload(&daemon, &path, token, file);
            let diverges = refused.status == 409 && *what != "added" && *what != "renamed";
            assert!(refused.status == 403 || diverges, "{what}: {refused:?}");
            if refused.status == 403 {
                let text = refused.json()["detail"].to_string();
                assert!(text.contains("a conversation like this needs"), "{text}");
            }
            assert_eq!(seen(), before, "{what}");
        }
    }
    // The same messages in other words, or fewer of them, change nothing for anybody.
    for (file, outcomes) in [
        (hostile::with(&whole, b'C', |c| renamed(b'C', c)), "same"),
        (older, "behind"),
    ] {
        let answer = upload(&daemon, &path, &low, &file).ok();
        assert_eq!(answer["outcome"], outcomes);
        assert_eq!(seen(), before);
    }
    let edited = hostile::with(&whole, b'M', |m| reworded(b'M', m));
    assert_eq!(upload(&daemon, &path, &low, &edited).status, 409);
    assert_eq!(seen(), before);
    // A copy is a conversation of the caller's own.
    let copy = format!("{path}&as_copy=true&key=copy");
    let copied = upload(&daemon, &copy, &low, &longer_ones[0].1).ok();
    assert_eq!(copied["permission"], "read-only");
    // Who may send messages to it may also continue it.
    let taken = upload(&daemon, &path, &bearer(&daemon), &longer_ones[0].1).ok();
    assert_eq!(taken["outcome"], "taken_over");
    // A list of tools needs as much as a mode.
    daemon.say("t", "one", &[here(&world)]);
    let tools = json!({"agents": {"claude": {"tools": ["shell"]}}});
    let header = bearer(&daemon);
    let changed = daemon.call("PATCH", "/api/conversations/t", &[&header], Some(&tools));
    changed.ok();
    let whole = fetched(&daemon, "/api/conversations/t/export");
    let refused = upload(&daemon, &path, &edit, &longer(&whole, unchanged));
    assert_eq!(refused.status, 403, "{refused:?}");
    // One within the ceiling is continued.
    daemon.say("e", "one", &[here(&world)]);
    let whole = fetched(&daemon, "/api/conversations/e/export");
    let taken = upload(&daemon, &path, &edit, &longer(&whole, unchanged)).ok();
    assert_eq!(taken["outcome"], "taken_over");
    assert_eq!(upload(&daemon, &path, &low, &whole).status, 200);
}

//! For whoever looks after it: logs, figures and traces.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use rejoin_testkit::{CLAUDE_325, World};
use serde_json::{Value, json};

use super::{REJOIN, demo, here};

/// The steps of a session that B-31 names, one line each, and never what was said.
#[test]
fn what_goes_on_is_logged() {
    let mut world = demo();
    world.set("REJOIN_LOG_FORMAT", "json");
    let daemon = world.serve(&[]);
    daemon.say("k", "userword-1", &[here(&world)]);
    std::fs::remove_dir_all(world.home().join(".rejoin-demo/sessions")).unwrap();
    let turn = daemon.say("k", "userword-2", &[]);
    assert_eq!(turn["verdict"], "restored");
    let wrong = ["Authorization: Bearer rejoin_nobodys-token"];
    assert_eq!(daemon.call("GET", "/api/inbox", &wrong, None).status, 401);
    let token = daemon.token.clone();
    let log = daemon.log();
    let lines: Vec<Value> = log
        .lines()
        .map(|l| serde_json::from_str(l).unwrap())
        .collect();
    let of_turn = |id: &Value| -> Vec<&str> {
        let session = &turn["session_id"];
        let about = |line: &&Value| {
            line["turn"] == *id || (line["turn"].is_null() && line["session"] == *session)
        };
        let said = lines
            .iter()
            .filter(about)
            .map(|line| line["message"].as_str().unwrap());
        said.collect()
    };
    let second = of_turn(&turn["turn_id"]);
    for step in [
        "Session restored for follow-up",
        "Starting execution",
        "Captured session ID",
        "Found session files",
        "Session file stats",
        "Session persisted",
        "turn ended",
    ] {
        assert!(second.contains(&step), "{step}: {second:?}");
    }
    assert!(
        lines
            .iter()
            .any(|l| l["message"] == "not let in" && l["code"] == "unauthorized")
    );
    for secret in ["userword", token.as_str(), "nobodys-token"] {
        assert!(!log.contains(secret), "{secret} in {log}");
    }
}

/// One figure of a page.
fn figure(page: &str, start: &str) -> u64 {
    let line = page.lines().find(|line| line.starts_with(start));
    let line = line.unwrap_or_else(|| panic!("no {start} in {page}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn what_was_done_is_counted() {
    let world = demo();
    let daemon = world.serve(&[]);
    let first = daemon.say("k", "hello", &[here(&world)]);
    let second = daemon.say("k", "again", &[]);
    let page = daemon.get("/metrics").body;
    let turns = "rejoin_turns_total{agent=\"demo\",";
    assert_eq!(
        figure(
            &page,
            &format!("{turns}status=\"succeeded\",verdict=\"resumed\"")
        ),
        1
    );
    let used = |kind: &str| {
        let of = |turn: &Value| turn["usage"][kind].as_u64().unwrap();
        of(&first) + of(&second)
    };
    for kind in ["input", "output"] {
        let counted = figure(
            &page,
            &format!("rejoin_tokens_total{{agent=\"demo\",kind=\"{kind}\"}}"),
        );
        assert!(counted == used(kind) && used(kind) > 0, "{kind}: {page}");
    }
    assert_eq!(figure(&page, "rejoin_captures_total{result=\"stored\"}"), 2);
    assert!(figure(&page, "rejoin_captured_bytes_total") > 0);
    assert_eq!(
        figure(
            &page,
            "rejoin_turn_duration_seconds_count{agent=\"demo\",status=\"succeeded\"}"
        ),
        2
    );
    for (name, value) in [
        ("rejoin_turns_now{status=\"queued\"}", 0),
        ("rejoin_conversations ", 1),
    ] {
        assert_eq!(figure(&page, name), value, "{page}");
    }
    // Every figure says what it is.
    for line in page
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty())
    {
        let name = line.split(['{', ' ']).next().unwrap();
        let base = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end));
        let is_described = |name: &str| page.contains(&format!("# HELP {name} "));
        assert!(
            is_described(name) || base.is_some_and(is_described),
            "{name}"
        );
    }
}

/// With a real agent: what its cache gave, what going on saved, and what coming back cost.
#[test]
fn what_a_cache_gave_is_counted() {
    let Some(world) = World::of(REJOIN, &CLAUDE_325) else {
        return;
    };
    let daemon = world.serve(&[]);
    let mut turns = vec![daemon.say("k", "one #s:a1", &[here(&world)])];
    turns.push(daemon.say("k", "two #s:a1", &[]));
    std::fs::remove_dir_all(world.home().join(".claude/projects")).unwrap();
    turns.push(daemon.say("k", "three #s:a1", &[]));
    let verdicts: Vec<&Value> = turns.iter().map(|turn| &turn["verdict"]).collect();
    assert_eq!(verdicts, ["started", "live", "restored"]);
    let page = daemon.get("/metrics").body;
    let sum = |kind: &str| -> u64 {
        let of = turns.iter().map(|turn| turn["usage"][kind].as_u64());
        of.map(Option::unwrap).sum()
    };
    let read = sum("cache_read");
    let tokens = "rejoin_tokens_total{agent=\"claude\",kind=\"cache_read\"}";
    assert!(read > 0 && figure(&page, tokens) == read, "{page}");
    let share = "rejoin_cache_hit_share{agent=\"claude\"}";
    let line = page.lines().find(|line| line.starts_with(share)).unwrap();
    let shown: f64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    let all = read + sum("cache_write") + sum("input");
    assert!((shown * all as f64 - read as f64).abs() < 0.5, "{line}");
    let saved = figure(&page, "rejoin_saved_tokens_total{agent=\"claude\"}");
    let went_on = read - turns[0]["usage"]["cache_read"].as_u64().unwrap();
    assert!(saved > 0 && saved <= went_on, "{saved} of {went_on}");
    let restores = "rejoin_restore_duration_seconds_count";
    assert_eq!(figure(&page, restores), 1, "{page}");
    assert!(figure(&page, "rejoin_restored_bytes_total") > 0);
}

/// Hears what is exported, and gives the spans.
fn collector() -> (String, Receiver<Value>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (send, spans) = channel();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") && reader.read_line(&mut head).unwrap_or(0) > 0 {}
            let length = head.lines().find_map(|line| {
                let (name, value) = line.split_once(": ")?;
                name.eq_ignore_ascii_case("content-length")
                    .then(|| value.parse().unwrap())
            });
            let mut body = vec![0; length.unwrap_or(0)];
            reader.read_exact(&mut body).unwrap();
            let answer = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close\r\n\r\n{}";
            reader.into_inner().write_all(answer.as_bytes()).unwrap();
            let Ok(export) = serde_json::from_slice::<Value>(&body) else {
                continue;
            };
            for resource in export["resourceSpans"].as_array().unwrap() {
                for scope in resource["scopeSpans"].as_array().unwrap() {
                    for span in scope["spans"].as_array().unwrap() {
                        let mut span = span.clone();
                        span["resource"] = resource["resource"].clone();
                        drop(send.send(span));
                    }
                }
            }
        }
    });
    (url, spans)
}

fn attribute(span: &Value, name: &str) -> Value {
    let all = span["attributes"].as_array().into_iter().flatten();
    let found = all.chain(
        span["resource"]["attributes"]
            .as_array()
            .into_iter()
            .flatten(),
    );
    let mut found = found.filter(|a| a["key"] == name);
    let value = found
        .next()
        .unwrap_or_else(|| panic!("no {name} in {span}"))["value"]
        .clone();
    value.as_object().unwrap().values().next().unwrap().clone()
}

/// One span for a turn and one for each of its tools, in the trace that the caller named; in a daemon and
/// in a command.
#[test]
fn turns_are_traced() {
    let (url, spans) = collector();
    let next = || spans.recv_timeout(Duration::from_secs(30)).unwrap();
    let mut world = World::of(REJOIN, &CLAUDE_325).unwrap();
    world.set("OTEL_EXPORTER_OTLP_ENDPOINT", &url);
    world.set("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json");
    world.set("OTEL_BSP_SCHEDULE_DELAY", "50");
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let parent = format!("traceparent: 00-{trace}-b7ad6b7169203331-01");
    let daemon = world.serve(&[]);
    let body = json!({"key": "k", "text": "#s:write", "permission": "edit", "workdir": world.work().to_str().unwrap()});
    let turn = daemon
        .call("POST", "/api/send?wait=true", &[&parent], Some(&body))
        .ok();
    let all = [next(), next()];
    let named = |name: &str| {
        all.iter()
            .find(|s| s["name"] == name)
            .unwrap_or_else(|| panic!("{all:?}"))
    };
    let (span, tool) = (named("invoke_agent claude"), named("execute_tool Write"));
    assert_eq!(
        (&span["traceId"], &tool["traceId"]),
        (&json!(trace), &json!(trace))
    );
    assert_eq!(tool["parentSpanId"], span["spanId"]);
    assert_eq!(span["parentSpanId"], "b7ad6b7169203331");
    assert_eq!(attribute(span, "rejoin.turn.id"), turn["turn_id"]);
    assert_eq!(
        attribute(span, "gen_ai.conversation.id"),
        turn["conversation_id"]
    );
    assert_eq!(attribute(span, "gen_ai.operation.name"), "invoke_agent");
    assert_eq!(attribute(span, "rejoin.verdict"), "started");
    assert_eq!(attribute(span, "service.name"), "rejoin");
    let tokens: u64 = attribute(span, "gen_ai.usage.output_tokens")
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    assert_eq!(json!(tokens), turn["usage"]["output"]);
    drop(daemon);
    world.set("TRACEPARENT", &format!("00-{trace}-00f067aa0ba902b7-01"));
    let sent = world.run(&["send", "-k", "k", "once more #s:a1"]);
    assert_eq!(sent.code, 0, "{sent:?}");
    let span = next();
    assert_eq!(
        (&span["traceId"], &span["parentSpanId"]),
        (&json!(trace), &json!("00f067aa0ba902b7"))
    );
    assert_eq!(attribute(&span, "rejoin.verdict"), "resumed");
}

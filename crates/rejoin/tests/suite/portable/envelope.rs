//! A session in the envelope of other tools: `{"sessionId","sessionBlob"}`.

use std::io::{Read as _, Write as _};
use std::path::Path;

use rejoin_testkit::{World, assert_shown, on_both_claudes, said, user};

use super::{REJOIN, code, demo, path};

fn envelope(world: &World) -> std::path::PathBuf {
    let file = world.root().join("envelope.json");
    world
        .run(&["export", "k", "--envelope", "-o", path(&file)])
        .ok();
    file
}

fn words(n: usize) -> Vec<String> {
    said(1..n).into_iter().chain([user(n)]).collect()
}

/// B-01, B-02, B-06: out, in where nothing is, and the session goes on.
fn goes_round(world: World) {
    let _first = world.say(1, &[]);
    let second = world.say(2, &[]);
    let file = envelope(&world);
    let text = std::fs::read_to_string(&file).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["sessionId"], second["session_id"]);
    let other = World::of(REJOIN, world.cli).unwrap();
    let came = other.run(&["import", "--envelope", path(&file), "-k", "k", "--json"]);
    let came = came.ok().json();
    assert_eq!(
        (&came["outcome"], &came["resumable"]),
        (&"adopted".into(), &true.into())
    );
    assert_eq!(came["messages"], 4);
    // The very bytes lie where the CLI looks for them.
    let (here, there) = (world.sessions(), other.sessions());
    assert_eq!(
        std::fs::read(&here[0]).unwrap(),
        std::fs::read(&there[0]).unwrap()
    );
    let third = other.say(3, &[]);
    assert_eq!(third["verdict"], "resumed", "{third}");
    assert_shown(&other.model.last(), &words(3));
    // B-08: by the variables of such tools.
    let document = std::fs::read_to_string(envelope(&other)).unwrap();
    let document: serde_json::Value = serde_json::from_str(&document).unwrap();
    let mut fresh = World::of(REJOIN, world.cli).unwrap();
    fresh.set("AGENT_SESSION_ID", document["sessionId"].as_str().unwrap());
    fresh.set(
        "AGENT_SESSION_BLOB",
        document["sessionBlob"].as_str().unwrap(),
    );
    fresh.run(&["import", "--envelope", "env", "-k", "k"]).ok();
    let fourth = fresh.say(4, &[]);
    assert_eq!(fourth["verdict"], "resumed", "{fourth}");
    assert_shown(&fresh.model.last(), &words(4));
    drop(world);
}

on_both_claudes!(goes_round);

/// Answers one request on loopback.
fn serve_once(body: Vec<u8>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/session", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut asked = [0; 4096];
        let _read = stream.read(&mut asked);
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        );
        let _sent = stream
            .write_all(head.as_bytes())
            .and_then(|()| stream.write_all(&body));
    });
    url
}

#[test]
fn from_an_address() {
    let Some(world) = World::claude(REJOIN, rejoin_testkit::CLAUDE_OLD) else {
        return;
    };
    let _first = world.say(1, &[]);
    let body = std::fs::read(envelope(&world)).unwrap();
    let other = World::of(REJOIN, world.cli).unwrap();
    let url = serve_once(body);
    other.run(&["import", "--envelope", &url, "-k", "k"]).ok();
    let second = other.say(2, &[]);
    assert_eq!(second["verdict"], "resumed", "{second}");
    // B-08: by the variable of tools whose session is too long for one, with the id beside it.
    let document: serde_json::Value =
        serde_json::from_slice(&std::fs::read(envelope(&other)).unwrap()).unwrap();
    let blob = document["sessionBlob"].as_str().unwrap();
    let mut fresh = World::of(REJOIN, world.cli).unwrap();
    fresh.set("AGENT_SESSION_ID", document["sessionId"].as_str().unwrap());
    fresh.set(
        "SESSION_DOWNLOAD_URL",
        &serve_once(blob.as_bytes().to_vec()),
    );
    fresh.run(&["import", "--envelope", "env", "-k", "k"]).ok();
    let third = fresh.say(3, &[]);
    assert_eq!(third["verdict"], "resumed", "{third}");
    assert_shown(&fresh.model.last(), &words(3));
    // Nobody is there any more.
    let gone = other.run(&["import", "--envelope", &url, "--json"]);
    assert_eq!(gone.code, 6, "{gone:?}");
}

/// B-14: an id without its session is a cold start, and that is said.
#[test]
fn an_id_alone_is_cold() {
    let mut world = World::new(REJOIN);
    let id = "b731fd0c-68de-4452-a02a-ef7d040b8069";
    world.set("AGENT_SESSION_ID", id);
    let done = world
        .run(&["import", "--envelope", "env", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&done["outcome"], &done["session_id"]),
        (&"cold".into(), &id.into())
    );
    let done = world.run(&["import", "--envelope", "env"]).ok();
    assert!(done.stderr.contains("begins cold"), "{done:?}");
    world.unset("AGENT_SESSION_ID");
    let done = world
        .run(&["import", "--envelope", "env", "--json"])
        .ok()
        .json();
    assert_eq!(done["outcome"], "cold");
    assert_eq!(super::seen(&world).len(), 0);
}

/// B-29: what is damaged is refused, and nothing is put anywhere.
#[test]
fn damaged_ones_are_refused() {
    let world = World::new(REJOIN);
    let file = world.root().join("bad");
    let id = "b731fd0c-68de-4452-a02a-ef7d040b8069";
    for bad in [
        format!("{{\"sessionId\":\"{id}\",\"sessionBlob\":\"%%\"}}"),
        format!("{{\"sessionId\":\"{id}\",\"sessionBlob\":\"aGVsbG8=\"}}"),
        format!("{{\"sessionId\":\"../../{id}\",\"sessionBlob\":\"aGVsbG8=\"}}"),
        "{\"sessionId\":".to_owned(),
        "what is this?".to_owned(),
    ] {
        std::fs::write(&file, &bad).unwrap();
        let done = world.run(&["import", "--envelope", path(&file), "--json"]);
        assert_eq!(code(&done), (11, "bad_archive".into()), "{bad}");
    }
    // It can be unpacked, and is no session.
    let packed = packed(b"{\"type\":\"nothing\"}\nhello\n");
    std::fs::write(&file, packed).unwrap();
    let mut command = world.command(&["import", "--envelope", path(&file), "--json"]);
    let done = rejoin_testkit::Done::of(command.spawn().unwrap());
    assert_eq!(code(&done), (11, "bad_archive".into()));
    assert_eq!(files_in(&world.home()), 0);
    assert_eq!(super::seen(&world).len(), 0);
}

/// Sessions of each CLI, with their ids.
const CLAUDE: (&str, &str) = (
    "claude/2.1.197/sessions/b731fd0c-68de-4452-a02a-ef7d040b8069.jsonl",
    "b731fd0c-68de-4452-a02a-ef7d040b8069",
);
const CODEX: (&str, &str) = (
    "codex/0.166.0/sessions/simple/rollout-2026-11-15T08-18-17-01a1de49-2494-7391-a595-647f5b1aba14.jsonl",
    "01a1de49-2494-7391-a595-647f5b1aba14",
);
const GEMINI: (&str, &str) = (
    "gemini/0.61.0/sessions/simple-turn.session.jsonl",
    "33b024d5-7a1b-49d8-a5a5-3eba03dcf48e",
);

/// B-29: a session of another agent is refused, whichever way round, and nothing is put anywhere.
#[test]
fn a_session_of_another_agent_is_refused() {
    let mut world = World::new(REJOIN);
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rejoin-agents/fixtures");
    for ((session, id), agent) in [
        (CODEX, "claude"),
        (CLAUDE, "codex"),
        (CLAUDE, "gemini"),
        (GEMINI, "claude"),
        (GEMINI, "codex"),
        (CODEX, "gemini"),
        (CLAUDE, "opencode"),
    ] {
        let file = world.root().join("blob");
        let plain = std::fs::read(fixtures.join(session)).unwrap();
        std::fs::write(&file, packed(&plain)).unwrap();
        world.set("AGENT_SESSION_ID", id);
        world.set("SESSION_DOWNLOAD_URL", &serve_once(packed(&plain)));
        for from in [path(&file), "env"] {
            let done = world.run(&["import", "--envelope", from, "-a", agent, "--json"]);
            // Only sessions of Claude Code travel by themselves; for others the agent alone may be refused.
            let refused = match code(&done) {
                (11, why) => why == "bad_archive",
                (2, why) => why == "usage" && agent != "claude",
                _ => false,
            };
            assert!(refused, "{session} {from} as {agent}: {done:?}");
            assert_eq!(files_in(&world.home()), 0, "{session} as {agent}");
            assert_eq!(super::seen(&world).len(), 0);
        }
    }
}

fn packed(plain: &[u8]) -> Vec<u8> {
    let mut packing = flate2::write::GzEncoder::new(vec![], flate2::Compression::default());
    packing.write_all(plain).unwrap();
    packing.finish().unwrap()
}

fn files_in(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let count = |entry: std::fs::DirEntry| {
        let path = entry.path();
        if path.is_dir() {
            files_in(&path)
        } else {
            usize::from(path.extension().is_some_and(|e| e == "jsonl"))
        }
    };
    entries.map(count).sum()
}

/// What went on here is not overwritten by what came.
#[test]
fn another_session_under_its_id_is_left_alone() {
    let Some(world) = World::claude(REJOIN, rejoin_testkit::CLAUDE_OLD) else {
        return;
    };
    let _first = world.say(1, &[]);
    let file = envelope(&world);
    let other = World::of(REJOIN, world.cli).unwrap();
    other
        .run(&["import", "--envelope", path(&file), "-k", "k"])
        .ok();
    let _theirs = other.say(2, &[]);
    let _ours = world.say(22, &[]);
    let before = std::fs::read(&world.sessions()[0]).unwrap();
    let work = world.work();
    let refused = world.run(&[
        "import",
        "--envelope",
        path(&envelope(&other)),
        "-w",
        path(&work),
        "--json",
    ]);
    assert_eq!(refused.code, 4, "{refused:?}");
    assert_eq!(std::fs::read(&world.sessions()[0]).unwrap(), before);
}

#[test]
fn what_has_no_session_has_no_envelope() {
    let world = demo(1);
    let done = world.run(&["export", "k", "--envelope", "-a", "claude", "--json"]);
    assert_eq!(code(&done), (3, "not_found".into()));
}

//! Archives that somebody made to hurt: nothing of them gets into the store, and nothing panics.

use std::io::Cursor;
use std::path::Path;

use rejoin_hub::{Clock, Hub, ImportOptions};
use rejoin_store::{Store, check};
use rejoin_testkit::World;
use serde_json::{Value, json};

use super::{REJOIN, demo, export, import, path, seen};

const END: usize = 37;
const MAGIC: &[u8] = b"rejoin archive 1\n";

pub(in crate::suite) struct Frame(pub(in crate::suite) u8, pub(in crate::suite) Vec<u8>);

pub(in crate::suite) fn frames(archive: &[u8]) -> Vec<Frame> {
    let mut rest = &archive[MAGIC.len()..archive.len() - END];
    let mut frames = vec![];
    while !rest.is_empty() {
        let length = u32::from_le_bytes(rest[1..5].try_into().unwrap()) as usize;
        frames.push(Frame(rest[0], rest[5..5 + length].to_vec()));
        rest = &rest[5 + length..];
    }
    frames
}

pub(in crate::suite) fn archive(frames: &[Frame]) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    for Frame(kind, content) in frames {
        bytes.push(*kind);
        bytes.extend((content.len() as u32).to_le_bytes());
        bytes.extend(content);
    }
    sealed(bytes)
}

/// With the hash that it would have, had somebody written it so.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    let hash = blake3::hash(&bytes);
    bytes.push(b'Z');
    bytes.extend(32_u32.to_le_bytes());
    bytes.extend(hash.as_bytes());
    bytes
}

/// The first row of that kind, otherwise.
pub(in crate::suite) fn with(whole: &[u8], kind: u8, edit: impl Fn(&mut Value)) -> Vec<u8> {
    let mut all = frames(whole);
    let frame = all.iter_mut().find(|f| f.0 == kind).unwrap();
    let mut row: Value = serde_json::from_slice(&frame.1).unwrap();
    edit(&mut row);
    frame.1 = serde_json::to_vec(&row).unwrap();
    archive(&all)
}

#[track_caller]
fn refused(world: &World, what: &str, bytes: &[u8], exits: &[i32]) {
    let file = world.root().join("bad");
    std::fs::write(&file, bytes).unwrap();
    let before = seen(world);
    let done = import(world, &file, &[]);
    assert!(exits.contains(&done.code), "{what}: {done:?}");
    assert!(done.json()["error"]["try"].is_string(), "{what}: {done:?}");
    assert_eq!(seen(world), before, "{what}");
}

#[test]
fn rows_that_say_what_they_must_not() {
    let whole = std::fs::read(export(&demo(2))).unwrap();
    assert_eq!(archive(&frames(&whole)), whole, "the test knows the form");
    let world = World::new(REJOIN);
    let file = "/manifest/files/0";
    let absent = json!("0".repeat(64) + "00000001");
    let edits = [
        (
            "another conversation",
            b'C',
            "/id",
            json!("01a1e0f3-3ddc-7fa2-a0ba-4d600f512e8f"),
        ),
        ("an unknown field", b'C', "/more", json!(1)),
        ("a key with a newline", b'C', "/key", json!("a\nb")),
        (
            "a permission of its own",
            b'C',
            "/permission",
            json!("root"),
        ),
        ("an agent with a path", b'C', "/agent", json!("../demo")),
        ("NUL", b'C', "/title", json!("a\u{0}b")),
        (
            "a model that is a flag",
            b'C',
            "/settings/demo",
            json!({"model": "--yolo"}),
        ),
        (
            "a flag in the place of a model",
            b'T',
            "/request/model",
            json!("--yolo"),
        ),
        ("a place that is not next", b'M', "/seq", json!(2)),
        ("a place below the first", b'M', "/seq", json!(i64::MIN)),
        ("a queued message", b'M', "/state", json!("queued")),
        (
            "a message twice",
            b'M',
            "/id",
            last(&whole, b'M')["id"].clone(),
        ),
        (
            "a turn twice",
            b'T',
            "/id",
            last(&whole, b'T')["id"].clone(),
        ),
        ("a user with an agent", b'M', "/agent", json!("demo")),
        ("an origin of its own", b'M', "/origin", json!("elsewhere")),
        ("a running turn", b'T', "/status", json!("running")),
        ("an unknown verdict", b'T', "/verdict", json!("believed")),
        ("no request", b'T', "/request", json!("x")),
        ("a third attempt first", b'A', "/n", json!(3)),
        (
            "a session id with a path",
            b'P',
            "/session",
            json!("../../x"),
        ),
        ("nothing confirmed", b'P', "/confirmed", json!({"value": 1})),
        (
            "an absolute path",
            b'S',
            &format!("{file}/path"),
            json!("/etc/passwd"),
        ),
        (
            "a path that climbs",
            b'S',
            &format!("{file}/path"),
            json!("a/../../b"),
        ),
        (
            "a part that climbs",
            b'S',
            &format!("{file}/part"),
            json!(".."),
        ),
        (
            "a file that is setuid",
            b'S',
            &format!("{file}/mode"),
            json!(0o4755),
        ),
        (
            "a length of its own",
            b'S',
            &format!("{file}/length"),
            json!(1),
        ),
        (
            "a chunk that is not there",
            b'S',
            &format!("{file}/chunks"),
            absent,
        ),
        ("another session", b'S', "/manifest/session", json!("other")),
        ("a form of tomorrow", b'S', "/manifest/format", json!(2)),
        ("a key of its own", b'S', "/manifest/key", json!("0011")),
        ("totals that do not fit", b'N', "/messages", json!(7)),
    ];
    for (what, kind, at, value) in edits {
        let edited = with(&whole, kind, |row| put(row, at, value.clone()));
        refused(&world, what, &edited, &[11]);
    }
}

/// The last row of a kind.
fn last(whole: &[u8], kind: u8) -> Value {
    let all = frames(whole);
    let row = all.iter().rfind(|frame| frame.0 == kind).unwrap();
    serde_json::from_slice(&row.1).unwrap()
}

fn put(row: &mut Value, at: &str, value: Value) {
    let (parent, field) = at.rsplit_once('/').unwrap();
    row.pointer_mut(parent).unwrap()[field] = value;
}

/// One chunk named a million times is a session of 128 GiB in a few bytes.
#[test]
fn bombs() {
    let whole = std::fs::read(export(&demo(2))).unwrap();
    let world = World::new(REJOIN);
    let large = vec![0; 128 * 1024];
    let chunk = |plain: &[u8], said: u32| {
        let mut frame = blake3::hash(plain).as_bytes().to_vec();
        frame.extend(said.to_le_bytes());
        frame.extend(zstd::bulk::compress(plain, 3).unwrap());
        Frame(b'K', frame)
    };
    let put = |chunk: Frame, times: u64| {
        let mut all = frames(&whole);
        let name = blake3::hash(&large).to_hex();
        for frame in all.iter_mut().filter(|f| f.0 == b'S') {
            let mut row: Value = serde_json::from_slice(&frame.1).unwrap();
            let file = &mut row["manifest"]["files"][0];
            file["chunks"] = json!(format!("{name}00020000").repeat(times as usize));
            file["length"] = json!(times * 128 * 1024);
            frame.1 = serde_json::to_vec(&row).unwrap();
        }
        let totals = all.iter_mut().find(|f| f.0 == b'N').unwrap();
        let mut row: Value = serde_json::from_slice(&totals.1).unwrap();
        row["chunks"] = json!(row["chunks"].as_u64().unwrap() + 1);
        row["bytes"] = json!(row["bytes"].as_u64().unwrap() + 128 * 1024);
        totals.1 = serde_json::to_vec(&row).unwrap();
        all.insert(1, chunk);
        archive(&all)
    };
    refused(
        &world,
        "a session that is too long",
        &put(chunk(&large, 128 << 10), 40_000),
        &[11],
    );
    refused(
        &world,
        "a chunk that says less",
        &put(chunk(&large, 7), 1),
        &[11],
    );
    refused(
        &world,
        "a chunk that says more",
        &put(chunk(&large, 128 << 20), 1),
        &[11],
    );
    let mut long = vec![0; 1 << 20];
    long[0] = 1;
    refused(
        &world,
        "a chunk that is more",
        &put(chunk(&long, 128 << 10), 1),
        &[11],
    );
    // And the same, not too often, is an archive.
    let file = world.root().join("good");
    std::fs::write(&file, put(chunk(&large, 128 << 10), 3)).unwrap();
    import(&world, &file, &[]).ok();
}

/// What belongs to another conversation here is not changed by naming it.
#[test]
fn rows_of_another_conversation() {
    let world = demo(2);
    let mine = world.show();
    let message = mine["messages"][0]["id"].clone();
    let turn = mine["turns"][0]["turn_id"].clone();
    let other = demo(1);
    other.run(&["set", "k", "key=theirs"]).ok();
    let file = other.root().join("k.rejoin");
    other.run(&["export", "theirs", "-o", path(&file)]).ok();
    let whole = std::fs::read(&file).unwrap();
    let steal =
        |kind: u8, field: &str, id: &Value| with(&whole, kind, |row| row[field] = id.clone());
    refused(&world, "its message", &steal(b'M', "id", &message), &[4]);
    refused(&world, "its turn", &steal(b'T', "id", &turn), &[4]);
    refused(
        &world,
        "an answer to its message",
        &steal(b'T', "message", &message),
        &[4],
    );
    refused(
        &world,
        "a reply of it",
        &steal(b'T', "reply", &message),
        &[4],
    );
    refused(
        &world,
        "a message of its turn",
        &steal(b'M', "turn", &turn),
        &[4],
    );
}

/// Every byte changed in some way, with a hash that fits and without: never a panic, and what was in
/// the store before is there after.
#[test]
fn thousands_of_broken_ones() {
    let world = demo(3);
    world.run(&["edit", "k:1", "other words"]).ok();
    let whole = std::fs::read(export(&world)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let scratch = world.root().join("scratch.db");
        let mut random = 7_u64;
        let mut next = |below: usize| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (random >> 33) as usize % below
        };
        let mut taken = 0;
        for round in 0..3000 {
            let mut bytes = whole.clone();
            for _ in 0..=next(3) {
                let at = next(bytes.len() - END);
                match next(5) {
                    0 => bytes[at] ^= 1 << next(8),
                    1 => bytes[at] = next(256) as u8,
                    2 => drop(bytes.drain(at..(at + next(64)).min(bytes.len() - END))),
                    3 => {
                        let some = bytes[at..(at + next(64)).min(bytes.len())].to_vec();
                        bytes.splice(at..at, some);
                    }
                    _ => bytes[at] = b'0' + next(10) as u8,
                }
            }
            if bytes == whole {
                continue;
            }
            assert!(check(&bytes[..], 0).is_err(), "round {round}: believed");
            bytes.truncate(bytes.len() - END);
            let bytes = sealed(bytes);
            if check(&bytes[..], 0).is_ok() {
                taken += 1;
                take(&scratch, &bytes).await;
            }
        }
        assert!(
            taken > 20,
            "{taken}: the hash hides everything from this test"
        );
    });
}

/// Into a store in which nothing else is: in whole, or not at all.
async fn take(scratch: &Path, bytes: &[u8]) {
    for ending in ["", "-wal", "-shm"] {
        let _gone = std::fs::remove_file(format!("{}{ending}", scratch.display()));
    }
    let hub = Hub {
        namespace: "".into(),
        ceiling: None,
        store: Store::open_sqlite(scratch).await.unwrap(),
        clock: Clock,
        machine: "here".into(),
        vault: None,
    };
    let came = hub
        .import(
            &mut Cursor::new(bytes),
            &ImportOptions::into_folder("/".into()),
        )
        .await;
    let filter = rejoin_store::ListFilter {
        limit: 9,
        ..rejoin_store::ListFilter::default()
    };
    let mut read = hub.store.read().await.unwrap();
    let all = read.listing(&filter).await.unwrap();
    assert_eq!(all.len(), usize::from(came.is_ok()), "{came:?}");
    for conversation in all {
        let span = rejoin_store::MessageRange {
            after: i64::MIN,
            before: i64::MAX,
            end: rejoin_store::RangeEnd::Oldest,
            removed: true,
        };
        let _messages = read
            .pages()
            .messages(conversation.id, span, 1000)
            .await
            .unwrap();
        let _queued = read.pages().unplaced(conversation.id, true).await.unwrap();
        let _turns = read.turns().of(conversation.id).await.unwrap();
        let _pins = read.pins().all(conversation.id).await.unwrap();
        for snapshot in read.snapshots().of(conversation.id).await.unwrap() {
            snapshot.manifest().unwrap();
        }
    }
    drop(read);
    hub.store.close().await;
}

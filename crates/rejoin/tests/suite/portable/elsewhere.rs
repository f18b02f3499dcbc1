//! Sessions that would lead a turn out of its folder: an archive brings them, and the turn that continues
//! the conversation tells its words instead (promise 7).

use std::collections::HashMap;
use std::path::Path;

use rejoin_testkit::{CLAUDE_325, Cli, GEMINI_061, World, answer, steps};
use serde_json::{Value, json};

use super::hostile::{Frame, archive, frames};
use super::{REJOIN, export, path};

/// The archive, with a line more at the end of every session.
fn with_line(whole: &[u8], line: &Value) -> Vec<u8> {
    let mut all = frames(whole);
    let more = format!("{line}\n").into_bytes();
    let mut chunks: HashMap<String, Vec<u8>> = HashMap::new();
    for Frame(_, frame) in all.iter().filter(|frame| frame.0 == b'K') {
        let name = rejoin_core::hex(&frame[..32]);
        chunks.insert(name, zstd::decode_all(&frame[36..]).unwrap());
    }
    let hash = blake3::hash(&more);
    for frame in all.iter_mut().filter(|frame| frame.0 == b'S') {
        let mut row: Value = serde_json::from_slice(&frame.1).unwrap();
        let file = &mut row["manifest"]["files"][0];
        let named = file["chunks"].as_str().unwrap().to_owned();
        let mut bytes: Vec<u8> = (0..named.len() / 72)
            .flat_map(|n| chunks[&named[n * 72..][..64]].clone())
            .collect();
        bytes.extend(&more);
        file["chunks"] = json!(format!("{named}{}{:08x}", hash.to_hex(), more.len()));
        file["length"] = json!(bytes.len());
        file["hash"] = json!(marked(&bytes));
        frame.1 = serde_json::to_vec(&row).unwrap();
    }
    let totals = all.iter_mut().find(|frame| frame.0 == b'N').unwrap();
    let mut row: Value = serde_json::from_slice(&totals.1).unwrap();
    row["chunks"] = json!(row["chunks"].as_u64().unwrap() + 1);
    row["bytes"] = json!(row["bytes"].as_u64().unwrap() + more.len() as u64);
    totals.1 = serde_json::to_vec(&row).unwrap();
    let mut chunk = hash.as_bytes().to_vec();
    chunk.extend((more.len() as u32).to_le_bytes());
    chunk.extend(zstd::bulk::compress(&more, 3).unwrap());
    all.insert(1, Frame(b'K', chunk));
    archive(&all)
}

/// The hash by which a session is known: a fold over its blocks, and the rest.
fn marked(bytes: &[u8]) -> String {
    let (blocks, rest) = bytes.as_chunks::<{ 256 * 1024 }>();
    let fold = blocks.iter().fold([0; 32], |fold: [u8; 32], block| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&fold).update(blake3::hash(block).as_bytes());
        *hasher.finalize().as_bytes()
    });
    format!(
        "{}-{}",
        blake3::Hash::from(fold).to_hex(),
        blake3::hash(rest).to_hex()
    )
}

/// A world with the conversation of such an archive.
fn arrived(cli: &'static dyn Cli, line: impl Fn(&str, &Path) -> Value) -> Option<World> {
    let world = World::of(REJOIN, cli)?;
    let turn = world.say(1, &[]);
    let other = World::of(REJOIN, cli)?;
    let session = turn["session_id"].as_str().unwrap();
    let whole = std::fs::read(export(&world)).unwrap();
    let file = other.root().join("hostile");
    std::fs::write(&file, with_line(&whole, &line(session, other.root()))).unwrap();
    other.run(&["import", path(&file)]).ok();
    Some(other)
}

#[test]
fn claude_stays_in_its_folder() {
    let line = |session: &str, root: &Path| {
        json!({"type": "worktree-state", "sessionId": session, "worktreeSession": {
            "originalCwd": root.join("work"), "worktreePath": root.join("elsewhere"),
            "worktreeName": "elsewhere", "worktreeBranch": "master", "originalBranch": "master",
            "originalHeadCommit": "0", "sessionId": session, "hookBased": false}})
    };
    let Some(world) = arrived(&CLAUDE_325, line) else {
        return;
    };
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let git = |folder: &Path| {
        let done = std::process::Command::new("git")
            .args(["init", "-q"])
            .arg(folder)
            .status();
        assert!(done.unwrap().success());
    };
    git(&elsewhere);
    git(&world.work());
    let planted = elsewhere.join("planted");
    let write = json!({"name": "Write", "input": {"file_path": planted, "content": "x"}});
    let script = steps(2, &json!([{"tools": [write]}, {"text": answer(2)}]));
    let turn = world
        .send(2, &script, &["--permission", "edit"])
        .ok()
        .json();
    assert!(!planted.exists(), "{turn:#}");
    assert_eq!(turn["verdict"], "reseeded", "{turn:#}");
    assert!(
        turn.to_string().contains("would lead the turn elsewhere"),
        "{turn:#}"
    );
    let next = world.say(3, &[]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
}

#[test]
fn gemini_takes_no_folders_along() {
    let line = |_: &str, root: &Path| json!({"$set": {"directories": [root.join("elsewhere")]}});
    let Some(world) = arrived(&GEMINI_061, line) else {
        return;
    };
    let turn = world.say(2, &[]);
    assert_eq!(turn["verdict"], "reseeded", "{turn:#}");
    assert!(
        turn.to_string().contains("would lead the turn elsewhere"),
        "{turn:#}"
    );
    let next = world.say(3, &[]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
}

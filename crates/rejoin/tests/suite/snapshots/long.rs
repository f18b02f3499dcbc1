//! Sessions that grew far beyond what a model is shown, the whole way through the real binary: read,
//! captured, put back, within 128 MiB.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use rejoin_testkit::{CLAUDE_NEW, Chronicle, Continued, Done, World, answer, assert_shown, user};
use serde_json::{Value, json};

use super::REJOIN;

/// In KiB, as the kernel counts.
const MOST_MEMORY: u64 = 128 * 1024;
const MB: usize = 1_000_000;

/// Runs a command and asks for the most memory that it has taken, again and again until its end.
#[track_caller]
fn watched(world: &World, args: &[&str]) -> Done {
    let child = world.command(args).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let (done, ended) = std::sync::mpsc::channel();
    let peak = std::thread::spawn(move || {
        let mut peak = 0;
        loop {
            let status = fs_err::read_to_string(&status).unwrap_or_default();
            let now = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
            let now = now.and_then(|kib| kib.trim().strip_suffix(" kB")?.parse::<u64>().ok());
            peak = peak.max(now.unwrap_or(0));
            if ended.recv_timeout(Duration::from_millis(1)).is_ok() {
                return peak;
            }
        }
    });
    let did = Done::of(child);
    done.send(()).unwrap();
    let peak = peak.join().unwrap();
    assert!((1..MOST_MEMORY).contains(&peak), "{args:?}: {peak} KiB");
    did
}

fn add(file: &Path, lines: impl Iterator<Item = String>) {
    let mut file = File::options().append(true).open(file).unwrap();
    for line in lines {
        writeln!(file, "{line}").unwrap();
    }
}

/// One line of 50 MB, and 150 MB of others, which its CLI keeps and does not show to the model.
#[test]
fn a_session_of_200_mb() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut story = Chronicle::begun(world);
    let file = story.session_file();
    let noted = |n| {
        let kind = r#""type":"queue-operation","operation":"remove""#;
        format!("{{{kind},\"content\":\"{}\"}}", "x".repeat(n))
    };
    let many = std::iter::repeat_with(|| noted(MB / 2)).take(300);
    add(&file, std::iter::once(noted(50 * MB)).chain(many));
    story.by_hand();
    let length = fs_err::metadata(&file).unwrap().len();
    assert!(length > 200 * MB as u64);
    for how in [Continued::Resumed, Continued::Restored] {
        if how == Continued::Restored {
            story.world.lose_the_machine();
            let args = ["snapshot", "restore", "k", "--json"];
            let done = watched(&story.world, &args).ok();
            assert_eq!(done.json()["restored"], true, "{done:?}");
            assert!(fs_err::metadata(&file).unwrap().len() > length);
            fs_err::remove_file(&file).unwrap();
        }
        let n = story.next();
        let text = format!("{} #s:a{n}", user(n));
        let turn = watched(&story.world, &["send", "--json", "-k", "k", &text]);
        let turn = turn.ok().json();
        let verdict = if how == Continued::Resumed {
            "resumed"
        } else {
            "restored"
        };
        assert_eq!(
            (&turn["verdict"], &turn["saved"]),
            (&verdict.into(), &"stored".into())
        );
        let mut shown = story.words.clone();
        shown.push(user(n));
        assert_shown(&story.request(), &shown);
        story.passed_over(vec![answer(n)]);
    }
}

/// A message of 50 MB, in one line: what no model could be shown of it is cut, nothing else is lost.
#[test]
fn a_message_of_50_mb() {
    let world = World::new(REJOIN);
    let first = world.say(1, &["-a", "demo"]);
    let session = first["session_id"].as_str().unwrap();
    let file = world
        .home()
        .join(format!(".rejoin-demo/sessions/{session}.jsonl"));
    let text = fs_err::read_to_string(&file).unwrap();
    let last: Value = serde_json::from_str(text.lines().last().unwrap()).unwrap();
    let said = format!("userword-2 {}", "long ".repeat(10 * MB));
    let lines = [
        json!({"id": "by-hand-1", "after": last["id"], "role": "user", "text": said}),
        json!({"id": "by-hand-2", "after": "by-hand-1", "role": "assistant", "text": "answered"}),
    ];
    add(&file, lines.iter().map(Value::to_string));
    let done = watched(&world, &["send", "--json", "-k", "k", "userword-3"]).ok();
    let turn = done.json();
    assert_eq!(
        (&turn["verdict"], &turn["saved"]),
        (&"resumed".into(), &"stored".into())
    );
    let messages = world.messages();
    assert_eq!(messages.len(), 6);
    let taken = &messages[2].2;
    assert!(taken.starts_with("userword-2 long ") && taken.ends_with("[…]"));
    assert_eq!(messages[3].2, "answered");
}

//! Out of one machine, into another, and back.

use std::io::Write as _;

use rejoin_testkit::{World, assert_shown, on_both_claudes, on_cli, said, user};
use serde_json::Value;

use super::{REJOIN, code, demo, export, import, path, seen};

fn words(turns: usize) -> Vec<String> {
    said(1..turns).into_iter().chain([user(turns)]).collect()
}

/// The session goes along: whoever has never seen it goes on with it (B-01, B-05, B-29).
fn travels_and_comes_back(world: World) {
    let _first = world.say(1, &[]);
    let _second = world.say(2, &[]);
    let file = export(&world);
    let other = World::of(REJOIN, world.cli).unwrap();
    let imported = import(&other, &file, &[]).ok().json();
    assert_eq!(imported["outcome"], "imported");
    let third = other.say(3, &[]);
    assert_eq!(third["verdict"], "restored", "{third}");
    assert_shown(&other.model.last(), &words(3));
    // Back, where its session has become stale.
    let back = export(&other);
    let taken = import(&world, &back, &[]).ok().json();
    assert_eq!(
        (&taken["outcome"], &taken["new_messages"]),
        (&"taken_over".into(), &2.into())
    );
    let fourth = world.say(4, &[]);
    assert_eq!(fourth["verdict"], "restored", "{fourth}");
    assert_shown(&world.model.last(), &words(4));
    let fifth = world.say(5, &[]);
    assert_eq!(fifth["verdict"], "resumed", "{fifth}");
    world.assert_quiet();
    drop(world);
}

on_both_claudes!(travels_and_comes_back);
on_cli!(codex_0_166_0, CODEX_166, travels_and_comes_back);

/// Whatever key the stores have, and wherever their chunks lie: the archive has none, and gets theirs.
#[test]
fn from_one_key_to_another() {
    let world = |key: &str| {
        let mut world = World::new(REJOIN);
        world.set("REJOIN_SNAPSHOTS_KEY", &key.repeat(32));
        let blobs = format!("file:{}", world.root().join("blobs").display());
        world.set("REJOIN_BLOBS_URL", &blobs);
        world
    };
    let (world, other) = (world("11"), world("22"));
    let _first = world.say(1, &["-a", "demo"]);
    let _second = world.say(2, &[]);
    let file = export(&world);
    import(&other, &file, &[]).ok();
    let third = other.say(3, &[]);
    assert_eq!(third["verdict"], "restored", "{third}");
    let packed = std::fs::read(&file).unwrap();
    let plain = World::new(REJOIN);
    import(&plain, &export(&other), &[]).ok();
    assert_eq!(plain.say(4, &[])["verdict"], "restored");
    assert!(
        packed.windows(12).any(|w| w == b"userword-1-e"),
        "it is not sealed"
    );
}

/// Messages with what they said before, what was removed, turns, changes that can be taken back.
#[test]
fn everything_is_there_again() {
    let world = demo(3);
    world.run(&["edit", "k:3", "other words"]).ok();
    world.run(&["undo", "k"]).ok();
    world.run(&["truncate", "k:5"]).ok();
    world.run(&["rename", "k", "A talk"]).ok();
    let file = export(&world);
    let other = World::new(REJOIN);
    other.run(&["import", path(&file)]).ok();
    let (mut here, mut there) = (seen(&world), seen(&other));
    for shown in here.iter_mut().chain(&mut there) {
        // Who has it open, where it works, what is new on this machine: not of the conversation.
        shown["conversation"]["workdir"] = Value::Null;
        for session in shown["sessions"].as_array_mut().unwrap() {
            session["machine"] = Value::Null;
        }
    }
    assert_eq!(here, there);
    let undone = other.run(&["undo", "k", "--json"]).ok().json();
    assert_eq!(undone["change"], "rename", "{undone}");
    let undone = other.run(&["undo", "k", "--json"]).ok().json();
    assert_eq!(undone["restored"].as_array().unwrap().len(), 2, "{undone}");
    let text = other.say(4, &[])["text"].as_str().unwrap().to_owned();
    for n in 1..=4 {
        assert_eq!(text.matches(&user(n)).count(), 1, "{n}: {text}");
    }
}

#[test]
fn through_a_pipe() {
    let world = demo(2);
    let exported = world.command(&["export", "k"]).output().unwrap();
    assert!(exported.status.success(), "{exported:?}");
    assert!(exported.stdout.starts_with(b"rejoin archive 1\n"));
    let other = World::new(REJOIN);
    let done = other
        .run_with_stdin(&["import", "-"], &exported.stdout)
        .ok();
    assert_eq!(done.stdout.trim().len(), 4, "{done:?}");
    assert_eq!(other.messages(), world.messages());
    assert_eq!(
        std::fs::read_dir(other.data())
            .unwrap()
            .flatten()
            .filter(|f| f.file_name().to_string_lossy().contains("import"))
            .count(),
        0
    );
}

/// What is here already stays; what went on elsewhere comes; what went on in both is not mixed.
#[test]
fn a_conversation_that_is_here() {
    in_both(&demo(2), &World::new(REJOIN));
}

/// The same, if one of them keeps its conversations on a server, and the other way round.
#[test]
fn a_conversation_that_is_on_a_server() {
    let (Some(one), Some(other)) = (rejoin_testkit::database(), rejoin_testkit::database()) else {
        return;
    };
    let on = |url: &str| {
        let mut world = World::new(REJOIN);
        world.set("REJOIN_DATABASE_URL", url);
        world
    };
    in_both(&demo(2), &on(&one.url));
    let world = on(&other.url);
    let _first = world.say(1, &["-a", "demo"]);
    let _second = world.say(2, &[]);
    in_both(&world, &World::new(REJOIN));
}

fn in_both(world: &World, other: &World) {
    let early = world.root().join("early");
    world.run(&["export", "k", "-o", path(&early)]).ok();
    assert_eq!(
        import(other, &early, &[]).ok().json()["outcome"],
        "imported"
    );
    assert_eq!(import(other, &early, &[]).ok().json()["outcome"], "same");
    let third = other.say(3, &[]);
    assert_eq!(third["verdict"], "restored", "{third}");
    assert_eq!(import(other, &early, &[]).ok().json()["outcome"], "behind");
    let late = export(other);
    // Here it went on as well.
    let _other_third = world.say(33, &[]);
    let before = seen(world);
    let refused = import(world, &late, &[]);
    assert_eq!(code(&refused), (4, "diverged".into()));
    let next = refused.json()["error"]["try"].as_str().unwrap().to_owned();
    assert!(next.ends_with("--as-copy"), "{next}");
    assert_eq!(seen(world), before);
    let copy = import(world, &late, &["--as-copy"]).ok().json();
    assert_eq!(copy["outcome"], "copied");
    // Two conversations never write to one session.
    assert_eq!(copy["sessions_left_out"], 1);
    assert_eq!(seen(world).len(), 2);
    let handle = copy["handle"].as_str().unwrap();
    let told = world
        .run(&["send", "-c", handle, "--json", "what was said?"])
        .ok()
        .json();
    assert_eq!(told["verdict"], "reseeded", "{told}");
    let text = told["text"].as_str().unwrap();
    assert!(
        text.contains(&user(3)) && !text.contains(&user(33)),
        "{text}"
    );
    // The one it was copied of is as it was.
    let text = world.say(4, &[])["text"].as_str().unwrap().to_owned();
    assert!(
        text.contains(&user(33)) && !text.contains(&user(3)),
        "{text}"
    );
}

/// The same words, said on two machines, are two messages.
#[test]
fn the_same_words_are_not_the_same_history() {
    let world = demo(1);
    let early = export(&world);
    let other = World::new(REJOIN);
    import(&other, &early, &[]).ok();
    let _theirs = other.say(2, &[]);
    let _ours = world.say(2, &[]);
    let refused = import(&world, &export(&other), &[]);
    assert_eq!(code(&refused), (4, "diverged".into()));
}

#[test]
fn a_key_that_is_taken() {
    let world = demo(1);
    let file = export(&world);
    let other = demo(1);
    let before = seen(&other);
    let refused = import(&other, &file, &[]);
    assert_eq!(refused.code, 4, "{refused:?}");
    let error = &refused.json()["error"];
    assert!(error["try"].as_str().unwrap().contains("--key"), "{error}");
    assert_eq!(seen(&other), before);
    import(&other, &file, &["--key", "theirs"]).ok();
    assert_eq!(
        other.run(&["show", "theirs", "--json"]).ok().json()["messages"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
}

/// Whoever made an archive does not say what may be done here.
#[test]
fn permissions_do_not_travel_upwards() {
    let world = World::new(REJOIN);
    let _first = world.say(1, &["-a", "demo", "--permission", "full"]);
    let file = export(&world);
    let other = World::new(REJOIN);
    let imported = import(&other, &file, &[]).ok().json();
    assert_eq!(imported["permission_lowered"], true);
    assert_eq!(other.show()["conversation"]["permission"], "edit");
    let third = World::new(REJOIN);
    let imported = import(&third, &file, &["--permission", "full"]).ok().json();
    assert_eq!(imported["permission_lowered"], false);
    assert_eq!(third.show()["conversation"]["permission"], "full");
}

/// What runs is not exported; what is queued runs where it is.
#[test]
fn what_runs_or_waits_stays() {
    let Some(world) = World::claude(REJOIN, rejoin_testkit::CLAUDE_OLD) else {
        return;
    };
    let _first = world.say(1, &[]);
    let running = world.start(2, "#s:slow", &[]);
    world.wait_until_asked(&user(2));
    let file = world.root().join("k.rejoin");
    let busy = world.run(&["export", "k", "-o", path(&file), "--json"]);
    assert_eq!(busy.code, 4, "{busy:?}");
    assert!(!file.exists());
    rejoin_testkit::kill(running.id() as i32, "INT");
    let _cancelled = rejoin_testkit::Done::of(running);
    let exported = world
        .run(&["export", "k", "-o", path(&file), "--json"])
        .ok()
        .json();
    assert_eq!(exported["messages"], 3);
}

/// An archive is not for a terminal, and a full disk leaves none.
#[test]
fn where_it_cannot_be_written() {
    let world = demo(1);
    let nowhere = world.root().join("no/such/folder/x");
    let done = world.run(&["export", "k", "-o", path(&nowhere)]);
    assert_eq!(done.code, 6, "{done:?}");
    let done = world.run(&["export", "k", "--json"]);
    assert_eq!(code(&done), (2, "usage".into()));
    if !std::path::Path::new("/dev/full").exists() {
        return;
    }
    let mut full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let _flushed = full.flush();
    let mut command = world.command(&["export", "k"]);
    let done = command.stdout(full).output().unwrap();
    assert_eq!(done.status.code(), Some(6), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(said.starts_with("error: it cannot be written"), "{said}");
}

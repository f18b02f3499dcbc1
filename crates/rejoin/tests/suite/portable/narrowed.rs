//! What comes from elsewhere never says what may be done here: not now, not when a turn is run again,
//! not when a change is taken back.

use std::path::{Path, PathBuf};

use rejoin_testkit::{Done, World, user};
use serde_json::{Value, json};

use super::hostile::{frames, with};
use super::{REJOIN, bundle, demo, export, import, path};

/// The rows of one kind in an archive.
pub(super) fn rows(file: &Path, kind: u8) -> Vec<Value> {
    let all = frames(&std::fs::read(file).unwrap());
    let of = all.iter().filter(|frame| frame.0 == kind);
    of.map(|frame| serde_json::from_slice(&frame.1).unwrap())
        .collect()
}

/// What the turns of `k` asked for, as they are kept.
fn asked(world: &World) -> Vec<Value> {
    let turns = rows(&export(world), b'T');
    turns.iter().map(|turn| turn["request"].clone()).collect()
}

/// An archive, as somebody else would have made it.
fn forged(file: &Path, kind: u8, edit: impl Fn(&mut Value)) -> PathBuf {
    let whole = std::fs::read(file).unwrap();
    let other = file.with_extension("forged");
    std::fs::write(&other, with(&whole, kind, edit)).unwrap();
    other
}

fn real(folder: &Path) -> Value {
    path(&folder.canonicalize().unwrap()).into()
}

fn permission(world: &World) -> Value {
    world.show()["conversation"]["permission"].clone()
}

/// Run again, a turn asks for what it asked for: no more than may be done here, where it works here.
#[test]
fn a_turn_that_is_run_again() {
    let world = World::new(REJOIN);
    let _first = world.say(1, &["-a", "demo", "--permission", "full"]);
    let file = forged(&export(&world), b'T', |turn| {
        turn["request"]["envelope"]["tools"] = json!(["shell"]);
        turn["request"]["envelope"]["deny_tools"] = json!(["web"]);
        turn["request"]["workdir"] = json!("/");
    });
    for (more, mode) in [
        (&[][..], "edit"),
        (&["--permission", "read-only"], "read-only"),
        (&["--permission", "full"], "full"),
    ] {
        let other = World::new(REJOIN);
        import(&other, &file, more).ok();
        let envelope = json!({"mode": mode, "tools": null, "deny_tools": ["web"]});
        // The demo agent would refuse a list of tools.
        other.run(&["retry", "k:1"]).ok();
        let asked = asked(&other);
        assert_eq!(asked.len(), 2);
        for request in asked {
            assert_eq!(request["envelope"], envelope);
            assert_eq!(request["workdir"], real(&other.work()));
        }
        assert_eq!(permission(&other), mode);
    }
}

/// The configured permission is the highest that an archive brings along.
#[test]
fn the_configured_permission() {
    let world = demo(1);
    let file = export(&world);
    let mut other = World::new(REJOIN);
    other.set("REJOIN_PERMISSION", "read-only");
    import(&other, &file, &[]).ok();
    assert_eq!(permission(&other), "read-only");
    let mut bundled = World::new(REJOIN);
    bundled.set("REJOIN_PERMISSION", "read-only");
    let bundle = bundled.root().join("b.rejoin");
    std::fs::copy(&file, &bundle).unwrap();
    bundled
        .run(&["send", "--bundle", path(&bundle), "more"])
        .ok();
    import(&bundled, &bundle, &["--permission", "full"]).ok();
    assert_eq!(asked(&bundled)[1]["envelope"]["mode"], "read-only");
}

/// The tiers of an archive are history: neither a retry nor a climb uses their permissions.
#[test]
fn a_turn_of_a_tier() {
    let world = demo(1);
    let file = forged(&export(&world), b'T', |turn| {
        let all = json!({"name": "all", "role": "x", "permission": "full"});
        let id = turn["id"].clone();
        turn["request"]["tier"] = json!({"name": "all", "tiers": {"tiers": [all]}, "climb": true});
        turn["request"]["notify_url"] = json!("http://127.0.0.1:1/");
        turn["chain"] = json!({"root": id, "parent": null, "tier": "all", "trigger": "user", "escalation": null});
    });
    let other = World::new(REJOIN);
    import(&other, &file, &[]).ok();
    let chain = other.run(&["chain", "k", "--json"]).ok().json();
    assert_eq!(chain["turns"][0]["tier"], "all");
    let again = other.run(&["retry", "k:1", "--json"]).ok().json();
    assert_eq!(again["tier"], Value::Null);
    for request in asked(&other) {
        assert_eq!(request["envelope"]["mode"], "edit");
        assert_eq!(request.get("tier"), None);
        assert_eq!(request.get("notify_url"), None);
    }
    let climb = other.run(&["escalate", "k"]);
    assert_eq!(climb.code, 5, "{climb:?}");
}

/// A message from elsewhere is text, also when it is sent again.
#[test]
fn a_raw_message() {
    let world = demo(1);
    let file = forged(&export(&world), b'T', |turn| {
        turn["request"]["raw"] = json!(true);
    });
    let other = World::new(REJOIN);
    import(&other, &file, &[]).ok();
    other.run(&["retry", "k:1"]).ok();
    assert!(
        asked(&other)
            .iter()
            .all(|request| request["raw"] != json!(true))
    );
}

/// A request that cannot be read asks for nothing.
#[test]
fn a_request_that_says_nonsense() {
    let world = demo(1);
    let file = export(&world);
    for envelope in [json!(7), json!({"mode": "root"}), Value::Null] {
        let file = forged(&file, b'T', |turn| {
            turn["request"]["envelope"] = envelope.clone();
        });
        let other = World::new(REJOIN);
        import(&other, &file, &["--permission", "read-only"]).ok();
        assert_eq!(asked(&other)[0]["envelope"]["mode"], "read-only");
    }
}

/// A new name can be taken back; what may be done cannot be, whatever the change is called.
#[test]
fn a_change_that_is_taken_back() {
    let world = demo(1);
    for change in ["permission=full", "permission=edit"] {
        world.run(&["set", "k", change]).ok();
    }
    world.run(&["rename", "k", "A talk"]).ok();
    let file = export(&world);
    assert_eq!(rows(&file, b'X').len(), 3);
    let other = World::new(REJOIN);
    import(&other, &file, &[]).ok();
    let undone = other.run(&["undo", "k", "--json"]).ok().json();
    assert_eq!(undone["change"], "rename");
    let nothing = other.run(&["undo", "k", "--json"]);
    assert_ne!(nothing.code, 0, "{nothing:?}");
    assert_eq!(permission(&other), "edit");

    let file = forged(&file, b'X', |change| {
        change["kind"] = json!("rename");
        let body = &mut change["body"];
        body["title"] = json!("Before");
        body["permission"] = json!("full");
        body["workdir"] = json!("/");
        body["settings"] = json!({"demo": {"tools": ["shell"]}});
    });
    let other = World::new(REJOIN);
    import(&other, &file, &[]).ok();
    for _ in 0..2 {
        other.run(&["undo", "k"]).ok();
    }
    let shown = other.show();
    assert_eq!(shown["conversation"]["title"], "Before");
    assert_eq!(permission(&other), "edit");
    let kept = &rows(&export(&other), b'C')[0];
    assert_eq!(kept["workdir"], real(&other.work()));
    assert_eq!(kept["settings"]["demo"]["tools"], Value::Null);
}

/// A list of tools permits what it names, and stays behind; one of denied tools comes along.
#[test]
fn tools_that_were_settled() {
    let world = demo(1);
    let tools = json!({"model": null, "tools": ["shell"], "deny_tools": ["web"]});
    let settled = |agent: &'static str| {
        let tools = tools.clone();
        move |c: &mut Value| c["settings"][agent] = tools.clone()
    };
    let none = json!({"model": null, "tools": null, "deny_tools": ["web"]});
    let file = forged(&export(&world), b'C', settled("demo"));
    let other = World::new(REJOIN);
    let imported = import(&other, &file, &[]).ok().json();
    assert_eq!(imported["tools_dropped"], true);
    assert_eq!(rows(&export(&other), b'C')[0]["settings"]["demo"], none);
    let _second = other.say(2, &[]);
    // What is taken over brings those of an agent that is new here.
    let late = forged(&export(&other), b'C', settled("claude"));
    let taken = import(&world, &late, &[]).ok().json();
    assert_eq!(
        (&taken["outcome"], &taken["tools_dropped"]),
        (&"taken_over".into(), &true.into())
    );
    assert_eq!(rows(&export(&world), b'C')[0]["settings"]["claude"], none);
    // And a bundle.
    let elsewhere = World::new(REJOIN);
    let done = bundle::send(&elsewhere, &file, 2, &[]).ok();
    assert!(done.stderr.contains("--tools"), "{done:?}");
    assert_eq!(rows(&file, b'C')[0]["settings"]["demo"], none);
}

/// Nothing of another machine is gone to: it works where it is taken in, and that is said.
#[test]
fn the_folder_of_the_archive() {
    let world = demo(1);
    let file = forged(&export(&world), b'C', |c| c["workdir"] = json!("/"));
    let other = World::new(REJOIN);
    let done = other.run(&["import", path(&file)]).ok();
    let here = real(&other.work());
    let told = format!("which works in {}", here.as_str().unwrap());
    assert!(done.stderr.contains(&told), "{done:?}");
    let same = other.run(&["import", path(&file), "--json"]).ok().json();
    assert_eq!(same["workdir"], here);
    assert_eq!(asked(&other)[0]["workdir"], here);
    // A message for which nothing ran is taken back, and the folder is again that of the turn before.
    let refused = other.send(2, "", &["--tools", "x", "-w", "/"]);
    assert_ne!(refused.code, 0, "{refused:?}");
    assert_eq!(rows(&export(&other), b'C')[0]["workdir"], here);
    let given = World::new(REJOIN);
    let folder = given.root().join("given");
    std::fs::create_dir(&folder).unwrap();
    let wish = ["import", path(&file), "-w", path(&folder), "--json"];
    assert_eq!(given.run(&wish).ok().json()["workdir"], real(&folder));
}

/// What is here stays as it is, also for the turns that were run elsewhere.
#[test]
fn what_is_taken_over() {
    let world = demo(1);
    let other = World::new(REJOIN);
    import(&other, &export(&world), &["--permission", "full"]).ok();
    let _second = other.say(2, &[]);
    assert_eq!(asked(&other)[1]["envelope"]["mode"], "full");
    let more = ["-w", "/", "--permission", "full", "--json"];
    let late = export(&other);
    let taken = world.run(&[&["import", path(&late)], &more[..]].concat());
    let taken = taken.ok().json();
    let here = real(&world.work());
    assert_eq!(
        (&taken["outcome"], &taken["workdir"]),
        (&"taken_over".into(), &here)
    );
    let second = &asked(&world)[1];
    assert_eq!(
        (&second["envelope"]["mode"], &second["workdir"]),
        (&"edit".into(), &here)
    );
}

/// A bundle works in the folder it is run in.
#[test]
fn the_folder_of_a_bundle() {
    let world = World::new(REJOIN);
    let file = world.root().join("talk");
    let _first = bundle::send(&world, &file, 1, &["-a", "demo"]).ok();
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    let message = user(2);
    let args = ["send", "--bundle", path(&file), "--json", &message];
    let mut command = world.command(&args);
    let second = Done::of(command.current_dir(&elsewhere).spawn().unwrap());
    let text = second.ok().json()["text"].to_string();
    assert_eq!(text.matches("userword-").count(), 2, "{text}");
    assert_eq!(rows(&file, b'C')[0]["workdir"], real(&elsewhere));
    for turn in rows(&file, b'T') {
        assert_eq!(turn["request"]["workdir"], real(&elsewhere));
    }
}

/// A session that another one took the place of does not go along for ever, unless it was pinned.
#[test]
fn a_bundle_does_not_grow_with_new_sessions() {
    let world = demo(1);
    let listed = world.run(&["snapshot", "list", "--json"]).ok().json();
    let pinned = listed["snapshots"][0]["id"].as_str().unwrap().to_owned();
    let plain = world.root().join("plain");
    std::fs::rename(export(&world), &plain).unwrap();
    world.run(&["snapshot", "pin", &pinned]).ok();
    for (file, snapshots) in [(plain, 1), (export(&world), 2)] {
        let other = World::new(REJOIN);
        for n in 2..=4 {
            let turn = bundle::send(&other, &file, n, &["--fresh-session"]);
            assert_eq!(turn.ok().json()["verdict"], "reseeded");
            assert_eq!(rows(&file, b'S').len(), snapshots, "after {n}");
        }
        // The one that is there is the one that serves.
        let elsewhere = World::new(REJOIN);
        let turn = bundle::send(&elsewhere, &file, 5, &[]).ok().json();
        assert_eq!(turn["verdict"], "restored", "{turn}");
        let text = turn["text"].to_string();
        assert_eq!(text.matches("userword-").count(), 5, "{text}");
    }
}

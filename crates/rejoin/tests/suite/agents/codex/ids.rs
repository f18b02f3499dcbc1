//! Whose session it is: ids never mixed up, never malformed, and a CLI that begins another session
//! than it was told is noticed.

use std::process::{Child, Command};

use rejoin_testkit::{Chronicle, Continued, Done, Talk, World, assert_shown, said, user};

use super::world;

/// E-16: ten conversations in one folder at once, three rounds of them.
#[test]
fn ten_conversations_in_parallel() {
    let Some(world) = world() else { return };
    let mut ids: Vec<Vec<String>> = vec![vec![]; 10];
    for round in 0..3 {
        let send = |of: usize| {
            let n = 3 * of + round + 1;
            let text = format!("{} #s:a{n}", user(n));
            let key = format!("k{of}");
            world.spawn(&["send", "--json", "-k", &key, &text])
        };
        let sends: Vec<Child> = (0..10).map(send).collect();
        for (of, child) in sends.into_iter().enumerate() {
            let turn = Done::of(child).ok().json();
            let verdict = if round == 0 { "started" } else { "resumed" };
            assert_eq!(turn["verdict"], verdict, "{of}: {turn}");
            ids[of].push(turn["session_id"].as_str().unwrap().to_owned());
        }
    }
    for (of, own) in ids.iter().enumerate() {
        assert!(own.iter().all(|id| *id == own[0]), "{own:?}");
        let others = ids.iter().enumerate().filter(|(o, _)| *o != of);
        assert!(!others.flat_map(|(_, ids)| ids).any(|id| *id == own[0]));
    }
    let asked = world.model.requests();
    for of in 0..10 {
        let last = 3 * of + 3;
        let is_it = |r: &&rejoin_model::Request| r.script == Some(format!("a{last}"));
        let request = asked.iter().find(is_it).unwrap();
        let mut words = said(last - 2..last);
        words.push(user(last));
        assert_shown(request, &words);
    }
    world.assert_quiet();
}

/// A program that calls the real one with changed arguments once `change` exists.
fn wrapped(world: &mut World, change: &str) -> std::path::PathBuf {
    let switch = world.root().join("change");
    let bin = world.root().join("codex-wrapped");
    let real = world.bin();
    let text = format!(
        "#!/bin/bash\nif [ -e {} ]; then\n{change}\nfi\nexec {} \"$@\"\n",
        switch.display(),
        real.display()
    );
    world.script(&bin, &text);
    world.use_bin(&bin);
    switch
}

/// As 0.166.0 does with an id it takes for a name: it begins another session, and says so first.
#[test]
fn a_cli_that_starts_afresh_is_noticed() {
    let Some(mut world) = world() else { return };
    let forget = "args=(); for a; do [ \"$a\" = resume ] && gone=1 && continue; \
        case \"$a\" in ????????-????-7*) continue;; esac; args+=(\"$a\"); done\n\
        [ -n \"$gone\" ] && set -- \"${args[@]}\"";
    let switch = wrapped(&mut world, forget);
    let mut story = Chronicle::begun(world);
    story.resumes(&[]);
    std::fs::write(&switch, "").unwrap();
    story.turn(Continued::Reseeded("rejected"), &[]);
    std::fs::remove_file(&switch).unwrap();
    story.resumes(&[]);
}

/// The session is there when it is looked at, and unknown to the CLI.
#[test]
fn a_session_the_cli_does_not_know() {
    let Some(mut world) = world() else { return };
    let empty = world.root().join("empty");
    let elsewhere = format!(
        "for a; do if [ \"$a\" = resume ]; then export CODEX_HOME={0}; mkdir -p {0}; \
         cp \"$HOME/.codex/config.toml\" {0}/; fi; done",
        empty.display()
    );
    let switch = wrapped(&mut world, &elsewhere);
    let mut story = Chronicle::begun(world);
    std::fs::write(&switch, "").unwrap();
    story.turn(Continued::Reseeded("rejected"), &[]);
    std::fs::remove_file(&switch).unwrap();
    story.resumes(&[]);
}

/// Every way to say that a thread is not resumed is a refusal: the turn is run once more with the
/// transcript.
#[test]
fn a_thread_that_is_not_resumed_is_told_again() {
    for words in [
        "Error: thread/resume: thread/resume failed: failed to load rollout (code -32603)",
        "Error: error resuming thread: unsupported history",
        "ERROR: Failed to initialize session: unsupported rollout",
    ] {
        let Some(mut world) = world() else { return };
        let refuse =
            format!("for a; do if [ \"$a\" = resume ]; then echo '{words}' >&2; exit 1; fi; done");
        let switch = wrapped(&mut world, &refuse);
        let mut story = Chronicle::begun(world);
        std::fs::write(&switch, "").unwrap();
        story.turn(Continued::Reseeded("rejected"), &[]);
        std::fs::remove_file(&switch).unwrap();
        story.resumes(&[]);
    }
}

/// Makes the store say that the pinned session has another id.
fn forge(world: &World, id: &str, other: &str) {
    let code = "import sqlite3, sys\n\
        store = sqlite3.connect(sys.argv[1])\n\
        old, new = sys.argv[2:]\n\
        done = store.execute('update pins set session_id = ?2, \
        confirmed = replace(confirmed, ?1, ?2) where session_id = ?1', (old, new))\n\
        store.commit()\n\
        print(done.rowcount)";
    let store = world.data().join("rejoin.db");
    let done = Command::new("python3")
        .args(["-c", code, store.to_str().unwrap(), id, other])
        .output()
        .unwrap();
    let changed = String::from_utf8_lossy(&done.stdout).trim().to_owned();
    assert_eq!(changed, "1", "{done:?}");
}

/// E-15: what is no id of this CLI is never passed to it; nor one whose session is not there.
#[test]
fn a_malformed_or_stale_id_is_never_passed() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    let mut turn = talk.good("started", &[]);
    for other in ["latest", "01a1de49", "01a1de49-ffff-7391-a595-647f5b1aba14"] {
        forge(&talk.world, turn["session_id"].as_str().unwrap(), other);
        turn = talk.good("reseeded", &[]);
        let command = turn["command"].to_string();
        assert!(!command.contains(other), "{command}");
        assert_eq!(turn["attempts"].as_array().unwrap().len(), 1, "{turn}");
    }
    talk.good("resumed", &[]);
}

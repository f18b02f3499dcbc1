//! What is peculiar to its sessions: compactions that nobody is told of, context use that only the
//! session knows, a provider that may be gone, a process that lives on, a configuration that it
//! likes to write to.

use std::fs;
use std::path::Path;
use std::process::Command;

use rejoin_model::Step;
use rejoin_testkit::{
    Chronicle, Continued, Model, Talk, answering, assert_shown, runs, said, user,
};
use serde_json::Value;

use super::{TOOLS, scripted, world};

/// five turns, and what is sent does not grow. (The same as for every CLI, with tools.)
#[test]
fn turns_send_the_same_bytes() {
    let Some(world) = world() else { return };
    let mut talk = Talk::begin(world);
    let mut bytes = vec![];
    for n in 1..=5 {
        let verdict = if n == 1 { "started" } else { "resumed" };
        let turn = talk.good(verdict, &TOOLS);
        assert_eq!(turn["sent"]["resumed"], 2 * (n - 1));
        bytes.push(turn["sent"]["bytes"].as_u64().unwrap());
    }
    assert!(bytes[1..].iter().all(|b| *b == bytes[1]), "{bytes:?}");
}

/// C-58, C-59: how full it was is read from the session.
#[test]
fn a_full_session_is_told_everything_anew() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    let first = story.scripted(Continued::Started, &answering(1, 15_000, 25), &TOOLS);
    let window = first["context"]["window"].as_u64().unwrap();
    assert_eq!(first["context"]["used"], 15_000);
    let part =
        |story: &Chronicle, per_mille: u64| answering(story.next(), window * per_mille / 1000, 25);
    let script = part(&story, 750);
    story.scripted(Continued::Resumed, &script, &TOOLS);
    let script = part(&story, 850);
    story.scripted(Continued::Resumed, &script, &TOOLS);
    let script = part(&story, 75);
    story.scripted(Continued::Reseeded("context_full"), &script, &TOOLS);
    story.resumes(&TOOLS);
}

#[track_caller]
fn assert_compacted(story: &mut Chronicle, flags: &[&str]) {
    let turn = story.world.say(3, flags);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let summary = turn["summary"].as_str().unwrap();
    assert!(summary.contains("compacted by the agent"), "{summary}");
    let again = story.world.say(4, flags);
    assert_eq!(again["verdict"], "resumed", "{again:#}");
    let summary = again["summary"].as_str().unwrap();
    assert!(!summary.contains("compacted by the agent"), "{summary}");
    story.world.set("REJOIN_RESUME_AFTER_COMPACTION", "reseed");
    let retold = story.world.say(5, flags);
    assert_eq!(
        (&retold["verdict"], &retold["reason"]),
        (&"reseeded".into(), &"compacted".into())
    );
    let mut words = said(1..5);
    words.push(user(5));
    assert_shown(&story.request(), &words);
}

/// The stream says nothing of it.
#[test]
fn a_compaction_for_want_of_room_is_noticed() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    let first = story.scripted(Continued::Started, &answering(1, 15_000, 25), &TOOLS);
    let window = first["context"]["window"].as_u64().unwrap();
    let nearly = answering(2, window * 985 / 1000, 25);
    story.scripted(Continued::Resumed, &nearly, &TOOLS);
    // Past our own threshold, so that the CLI has to make room itself.
    story.world.set("REJOIN_RESUME_CONTEXT_THRESHOLD", "1");
    assert_compacted(&mut story, &TOOLS);
}

/// Between models of different families the old one is asked for a summary, silently.
#[test]
fn a_compaction_by_another_model_is_noticed() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    story.turn(Continued::Started, &TOOLS);
    story.turn(Continued::Resumed, &TOOLS);
    assert_compacted(&mut story, &["-m", "gpt-5.6-sol"]);
}

#[test]
fn a_session_of_another_provider_is_not_resumed() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::begun(world);
    let config = story.world.home().join(".codex/config.toml");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("scripted", "renamed")).unwrap();
    story.reseeds("other_provider", &[]);
    fs::write(&config, text).unwrap();
}

/// After its last word it is done, whatever it does then and however it ends.
#[test]
fn a_process_that_lingers_does_not_hold_the_turn() {
    let Some(mut world) = world() else { return };
    let bin = world.root().join("codex-lingers");
    let real = world.bin();
    let text = format!(
        "#!/bin/bash\ntrap '' INT TERM\n{} \"$@\"\ncase \"$*\" in *--version*) exit 0;; esac\n\
         [ -e {}/linger ] && tail -f /etc/hostname\nexit 3\n",
        real.display(),
        world.root().display()
    );
    world.script(&bin, &text);
    world.use_bin(&bin);
    let mut talk = Talk::begin(world);
    talk.good("started", &[]);
    fs::write(talk.world.root().join("linger"), "").unwrap();
    talk.good("resumed", &[]);
    talk.world.assert_quiet();
    talk.good("resumed", &[]);
}

/// A writable sandbox makes this CLI note the folder as trusted, if it is let.
#[test]
fn the_users_configuration_stays_as_it_is() {
    let Some(world) = world() else { return };
    let config = world.home().join(".codex/config.toml");
    let before = fs::read(&config).unwrap();
    let mut talk = Talk::begin(world);
    let unchanged = |turn: &Value| {
        assert_eq!(fs::read(&config).unwrap(), before, "{}", turn["verdict"]);
    };
    // Neither inside nor outside a checkout, neither new nor resumed.
    unchanged(&talk.good("started", &["--permission", "edit"]));
    unchanged(&talk.good("resumed", &[]));
    let repo = talk.world.root().join("re po.x");
    checkout(&repo);
    let flags = ["-w", repo.to_str().unwrap(), "--permission", "edit"];
    unchanged(&talk.good("reseeded", &flags));
    unchanged(&talk.good("resumed", &flags));
    let flags = ["-w", repo.to_str().unwrap(), "--permission", "full"];
    unchanged(&talk.good("resumed", &flags));
}

fn checkout(folder: &Path) {
    fs::create_dir(folder).unwrap();
    let done = Command::new("git")
        .args(["init", "-q"])
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
}

/// The npm wrapper is never what is run: killed, it would leave the program behind. What it adds to
/// the environment is kept.
#[test]
fn the_program_behind_the_wrapper_is_called() {
    let model = || {
        let script = vec![runs("env > env.txt"), Step::text("done")];
        Model::scripted([("env", script)])
    };
    let Some(mut world) = scripted(model) else {
        return;
    };
    let native = world.bin();
    let modules = native.ancestors().find(|f| f.ends_with("node_modules"));
    let package = modules.unwrap().join("@openai/codex");
    world.use_bin(&package.join("bin/codex.js"));
    let turn = world.send(1, "#s:env", &TOOLS).ok().json();
    assert_eq!(turn["command"][0], native.to_str().unwrap(), "{turn:#}");
    let env = fs::read_to_string(world.work().join("env.txt")).unwrap();
    let root = format!("CODEX_MANAGED_PACKAGE_ROOT={}\n", package.display());
    assert!(
        env.contains(&root) && env.contains("CODEX_MANAGED_BY_NPM=1\n"),
        "{env}"
    );
    assert!(env.contains("REJOIN_TURN="), "{env}");
}

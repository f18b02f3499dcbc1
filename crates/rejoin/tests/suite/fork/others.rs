//! What else can be asked of a fork, and what it does where the CLI does not.

use rejoin_model::Step;
use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Done, GEMINI_061, Model, OPENCODE, World, answer, runs,
};

use super::assert_forked;
use super::branch::Branch;

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// A parent with one turn, its fork, and a program in front of the real one that does this instead of
/// forking.
fn without_fork(body: &str) -> Option<(World, Branch, Branch)> {
    let mut world = World::claude(REJOIN, CLAUDE_OLD)?;
    let real = world.bin();
    let path = world.root().join("claude");
    let text = format!(
        "#!/bin/sh\nfor arg; do if [ \"$arg\" = --fork-session ]; then {body}; exit 1; fi; done\nexec {} \"$@\"\n",
        real.display()
    );
    world.script(&path, &text);
    world.use_bin(&path);
    let mut parent = Branch::new("parent");
    parent.says(&world, 1, "started");
    let child = parent.fork(&world, "c", &[]);
    Some((world, parent, child))
}

/// What the CLI will refuse cannot be foreseen, so the prediction is not asked for.
const UNFORESEEN: &[&str] = &["--if-busy", "wait"];

fn told_instead(body: &str) {
    let Some((world, mut parent, mut child)) = without_fork(body) else {
        return;
    };
    let turn = child.says_so(&world, 2, "reseeded", "#s:a2", UNFORESEEN);
    assert_eq!(turn["reason"], "rejected", "{turn:#}");
    let attempts = turn["attempts"].as_array().unwrap();
    let statuses: Vec<_> = attempts.iter().map(|a| &a["status"]).collect();
    assert_eq!(statuses, ["refused", "succeeded"], "{turn:#}");
    child.says(&world, 3, "resumed");
    parent.says(&world, 4, "resumed");
}

/// tried once more, told.
#[test]
fn a_refused_copy_is_told_instead() {
    told_instead("echo 'No conversation found with session ID: x' >&2");
}

#[test]
fn a_cli_that_knows_no_fork_is_told_instead() {
    told_instead("echo \"error: unknown option '--fork-session'\" >&2");
}

/// A fork that fails and fails is not tried for ever; the parent is not blamed for it.
#[test]
fn a_fork_that_never_works_is_given_up() {
    let Some((world, mut parent, mut child)) = without_fork("kill -9 $$") else {
        return;
    };
    for n in [2, 3] {
        let done = Done::of(child.starts(&world, n));
        let turn = done.json();
        let told = (&turn["error"]["class"], &turn["verdict"]);
        assert_eq!(told, (&"crashed".into(), &"resumed".into()), "{turn:#}");
        child.unanswered(n);
    }
    let turn = child.says(&world, 4, "reseeded");
    assert_eq!(turn["reason"], "session_retired", "{turn:#}");
    child.says(&world, 5, "resumed");
    parent.says(&world, 6, "resumed");
}

/// hold for the first turn of a fork as for any.
#[test]
fn a_fresh_session_is_one() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    let mut fresh = parent.fork(&world, "f", &[]);
    let turn = fresh.says_so(&world, 2, "reseeded", "#s:a2", &["--fresh-session"]);
    assert_eq!(turn["reason"], "fresh_requested", "{turn:#}");
    fresh.says(&world, 3, "resumed");
    let mut strict = parent.fork(&world, "strict", &[]);
    let turn = strict.says_so(&world, 4, "resumed", "#s:a4", &["--no-reseed"]);
    assert_forked(&world, &turn, first["session_id"].as_str().unwrap());
}

/// Each agent of the parent is forked when it is its turn, and caught up on what it missed.
#[test]
fn every_agent_brings_its_own_session() {
    let Some(world) = World::claude(REJOIN, CLAUDE_NEW) else {
        return;
    };
    let mut parent = Branch::new("parent");
    let first = parent.says(&world, 1, "started");
    let demo = |key: &str, text: &str| {
        let args = ["send", "--json", "-k", key, "-a", "demo", text];
        world.run(&args).ok().json()
    };
    let told = demo("parent", "for-the-demo");
    assert_eq!(told["verdict"], "reseeded", "{told:#}");
    world.run(&["fork", "parent", "-k", "c"]).ok();
    let turn = demo("c", "and-again");
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    assert_ne!(turn["session_id"], told["session_id"], "{turn:#}");
    assert_eq!(turn["sent"]["caught_up"], 0, "{turn:#}");
    let text = turn["text"].as_str().unwrap();
    assert_eq!(text.matches("for-the-demo").count(), 1, "{text}");
    let args = ["send", "--json", "-k", "c", "-a", "claude", "third #s:a3"];
    let turn = world.run(&args).ok().json();
    assert_forked(&world, &turn, first["session_id"].as_str().unwrap());
    assert_eq!(turn["sent"]["caught_up"], 4, "{turn:#}");
    let asked = world.model.last().history().to_string();
    for word in [
        parent.words[0].as_str(),
        parent.words[1].as_str(),
        "for-the-demo",
        "and-again",
    ] {
        // The demo agent repeats what it was told.
        assert!(asked.contains(word), "{word}: {asked}");
    }
}

/// What came along is given up with the rest, also by a fork of the fork; and comes back.
#[test]
fn a_reset_gives_up_the_parents_session() {
    let world = World::new(REJOIN);
    let say = |key: &str| {
        let args = ["send", "--json", "-k", key, "-a", "demo", "hello"];
        let turn = world.run(&args).ok().json();
        (turn["verdict"].clone(), turn["reason"].clone())
    };
    say("parent");
    for key in ["c", "undone"] {
        world.run(&["fork", "parent", "-k", key]).ok();
        world.run(&["reset", key]).ok();
    }
    world.run(&["fork", "c", "-k", "g"]).ok();
    world.run(&["undo", "undone"]).ok();
    let told = ("reseeded".into(), "no_session".into());
    assert_eq!((say("g"), say("c")), (told.clone(), told));
    assert_eq!(say("undone").0, "resumed");
}

/// What the parent's tools did is shown once, also in the fork.
fn with_tools(world: Option<World>, flags: &[&str]) {
    let Some(world) = world else { return };
    let mut parent = Branch::new("parent");
    parent.says_so(&world, 1, "started", "#s:tool", flags);
    let mut child = parent.fork(&world, "c", &[]);
    let turn = child.says(&world, 2, "resumed");
    assert_forked(
        &world,
        &turn,
        parent.last_turn(&world)["session_id"].as_str().unwrap(),
    );
    for (branch, n) in [(&mut child, 3), (&mut parent, 4)] {
        branch.says(&world, n, "resumed");
        let asked = world.model.last().history().to_string();
        assert_eq!(asked.matches("result-once").count(), 1, "{asked}");
    }
}

fn tool() -> Model {
    let call = runs("printf 'result-%s' once");
    Model::scripted([("tool", vec![call, Step::text(answer(1))])])
}

#[test]
fn tools_of_claude() {
    with_tools(
        World::claude_with(REJOIN, CLAUDE_NEW, tool),
        &["--tools", "Bash"],
    );
}

#[test]
fn tools_of_gemini() {
    let world = World::with(REJOIN, &GEMINI_061, tool);
    with_tools(world, &["--tools", "shell"]);
}

#[test]
fn tools_of_opencode() {
    let world = World::with(REJOIN, &OPENCODE, tool);
    with_tools(world, &["--tools", "bash"]);
}

//! What cannot be opened is said in one sentence, with what to do instead; nothing is started.

use insta::assert_snapshot;
use rejoin_testkit::{CLAUDE_OLD, World};

use super::REJOIN;
use crate::suite::errors::said;
use crate::suite::terminal::steady;

fn claude() -> Option<World> {
    let world = World::claude(REJOIN, CLAUDE_OLD).map(steady)?;
    world.say(1, &["-m", "sonnet"]);
    Some(world)
}

/// Nothing came of it.
fn refused(world: &World, args: &[&str]) -> String {
    let asked = world.model.requests().len();
    let shown = world.show();
    let said = said(world, args);
    assert_eq!(world.model.requests().len(), asked);
    assert_eq!(world.show()["messages"], shown["messages"]);
    said
}

#[test]
fn without_a_terminal() {
    let Some(world) = claude() else { return };
    assert_snapshot!(refused(&world, &["open", "k"]), @r#"
    exit 2, usage
    error: claude's terminal interface needs a terminal on stdin and stdout
      try: rejoin send -c tmqx -a claude "…"
    "#);
    // The lease was given back.
    world.say(2, &[]);
}

#[test]
fn a_session_that_a_turn_could_not_resume() {
    let Some(mut world) = claude() else { return };
    // Another agent spoke, which claude has not seen.
    world.say(2, &["-a", "demo"]);
    assert_snapshot!(refused(&world, &["open", "k", "-a", "claude"]), @r#"
    exit 5, not_opened
    error: claude's session of tmqx cannot be opened: it has not seen the newest 2 messages
      try: rejoin send -c tmqx -a claude "…"
    "#);
    assert_snapshot!(refused(&world, &["open", "k"]), @r#"
    exit 5, not_opened
    error: demo has no terminal interface that could be opened
      try: rejoin send -c tmqx -a demo "…"
    "#);
    assert_snapshot!(refused(&world, &["open", "k", "-a", "codex"]), @r#"
    exit 3, agent_missing
    error: codex is not installed: `codex` was not found; nothing was sent
      try: rejoin send -a claude "…", or npm install -g @openai/codex
    "#);
    world.say(3, &["-a", "claude"]);
    world.without_snapshots();
    for file in world.sessions() {
        std::fs::remove_file(file).unwrap();
    }
    let missing = refused(&world, &["open", "k"]);
    let says = |words: &str| assert!(missing.contains(words), "{missing}");
    says("exit 5, not_opened\nerror: claude's session of tmqx cannot be opened: projects/");
    says(".jsonl is not here, and no snapshot of it (session_missing)\n");
    world.say(4, &[]);
    world.run(&["reset", "k"]).ok();
    assert_snapshot!(refused(&world, &["open", "k"]), @r#"
    exit 5, not_opened
    error: claude's session of tmqx cannot be opened: retired by rejoin reset (session_retired)
      try: rejoin send -c tmqx -a claude "…"
    "#);
    assert_eq!(world.run(&["open", "nobody"]).code, 3);
}

#[test]
fn one_that_somebody_changed() {
    let Some(mut world) = claude() else { return };
    world.without_snapshots();
    let file = world.sessions().pop().unwrap();
    let whole = std::fs::read(&file).unwrap();
    std::fs::write(&file, &whole[..whole.len() / 2]).unwrap();
    assert_snapshot!(refused(&world, &["open", "k"]), @r#"
    exit 5, not_opened
    error: claude's session of tmqx cannot be opened: shorter than confirmed, or other bytes (session_damaged)
      try: rejoin send -c tmqx -a claude "…"
    "#);
}

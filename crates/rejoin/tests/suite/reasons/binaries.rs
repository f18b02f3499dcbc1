//! Another program answers to the name, or the CLI refuses.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, Chronicle, Continued, World, claude, on_both_claudes, on_cli,
};

on_both_claudes!(
    a_fork_without_resume_is_told_everything,
    another_product_is_told_everything,
    a_refused_session_is_retried_once_as_a_record,
);

/// A script that stands in front of the real binary, which it knows as `$real`.
fn wrapper(world: &World, name: &str, body: &str) -> PathBuf {
    let real = world.bin();
    let real = real.display();
    let path = world.root().join(name);
    fs::write(&path, format!("#!/bin/sh\nreal={real}\n{body}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

/// A-51: the probe shows that the flag is not known, whatever the version says.
fn a_fork_without_resume_is_told_everything(world: World) {
    let real = PathBuf::from(&world.env["REJOIN_AGENTS_CLAUDE_BIN"]);
    let fork = wrapper(
        &world,
        "fork",
        r#"for arg; do
             if [ "$arg" = --resume ]; then echo "error: unknown option '--resume'" >&2; exit 1; fi
           done
           exec "$real" "$@""#,
    );
    let mut story = Chronicle::begun(world);
    story.world.use_claude(&fork);
    let turn = story.turn(Continued::Reseeded("no_capability"), &[]);
    assert!(
        turn["summary"]
            .as_str()
            .unwrap()
            .contains("unknown option '--resume'"),
        "{turn:#}"
    );
    story.turn(Continued::Reseeded("no_capability"), &[]);
    // What the fork wrote is a session of the same product: the real one goes on with it.
    story.world.use_claude(&real);
    story.resumes(&[]);
}

on_cli!(codex_0_166_0, CODEX_166, without_resume, an_older_version);
on_cli!(gemini_0_61_0, GEMINI_061, without_resume, an_older_version);
on_cli!(opencode, OPENCODE, without_resume, an_older_version);

/// A-51, for the CLIs that call it otherwise.
fn without_resume(world: World) {
    let real = world.bin();
    let body = r#"for arg; do case "$arg" in
             --resume|resume|-s) [ "$arg" != -s ] || [ "$1" = run ] || continue
               echo "error: unexpected argument '$arg'" >&2; exit 2 ;;
           esac; done
           exec "$real" "$@""#;
    let fork = wrapper(&world, "fork", body);
    let mut story = Chronicle::begun(world);
    story.world.use_bin(&fork);
    story.turn(Continued::Reseeded("no_capability"), &[]);
    story.world.use_bin(&real);
    story.resumes(&[]);
}

/// A-25, A-49
fn an_older_version(world: World) {
    let real = world.bin();
    let body = r#"if [ "$1" = --version ]; then
             "$real" "$@" | sed 's/[0-9][0-9]*\.[0-9][0-9.]*/0.0.1/'; exit
           fi
           exec "$real" "$@""#;
    let older = wrapper(&world, "older", body);
    let mut story = Chronicle::begun(world);
    story.world.use_bin(&older);
    story.turn(Continued::Reseeded("other_runtime"), &[]);
    // A newer one reads what an older one wrote.
    story.world.use_bin(&real);
    story.resumes(&[]);
}

/// A-25, A-49
fn another_product_is_told_everything(world: World) {
    let real = PathBuf::from(&world.env["REJOIN_AGENTS_CLAUDE_BIN"]);
    let product = wrapper(
        &world,
        "product",
        r#"if [ "$1" = --version ]; then echo "9.9 (OpenClaude)"; exit; fi
           exec "$real" "$@""#,
    );
    let mut story = Chronicle::begun(world);
    story.world.use_claude(&product);
    let turn = story.reseeds("other_runtime", &[]);
    assert_eq!(turn["version"], "OpenClaude 9.9");
    story.world.use_claude(&real);
    story.turn(Continued::Reseeded("other_runtime"), &[]);
}

/// A-25, A-49: an older version does not read what a newer one wrote; a newer one does.
#[test]
fn an_older_version_is_told_everything_a_newer_one_resumes() {
    let rejoin = env!("CARGO_BIN_EXE_rejoin");
    let (Some(world), Some(old), Some(new)) = (
        World::claude(rejoin, CLAUDE_NEW),
        claude(CLAUDE_OLD),
        claude(CLAUDE_NEW),
    ) else {
        return;
    };
    let mut story = Chronicle::begun(world);
    story.world.use_claude(&old);
    story.reseeds("other_runtime", &[]);
    story.world.use_claude(&new);
    story.resumes(&[]);
    // Now it is a session of the newer one.
    story.world.use_claude(&old);
    story.turn(Continued::Reseeded("other_runtime"), &[]);
}

/// A-35, A-50: our own look finds the session as it was, the CLI does not find it at all.
fn a_refused_session_is_retried_once_as_a_record(mut world: World) {
    let empty = world.root().join("empty");
    fs::create_dir(&empty).unwrap();
    let body = format!(
        r#"empty={}
           for arg; do
             if [ "$arg" = --resume ] && [ -e "$empty/refuse" ]; then
               export HOME="$empty" CLAUDE_CONFIG_DIR="$empty"
             fi
           done
           exec "$real" "$@""#,
        empty.display()
    );
    let bin = wrapper(&world, "forgetful", &body);
    world.use_claude(&bin);
    let mut story = Chronicle::begun(world);
    fs::write(empty.join("refuse"), "").unwrap();
    // Each refusal is a session's own: the second time another session was refused, once.
    for _ in 0..2 {
        let asked = story.world.model.requests().len();
        let turn = story.turn(Continued::Reseeded("rejected"), &[]);
        assert_eq!(story.world.model.requests().len(), asked + 1);
        assert!(turn["cost_usd"].as_f64().unwrap() > 0.0);
    }
    // Not even then if it must not be told anew.
    let asked = story.world.model.requests().len();
    let flags = ["send", "--json", "-k", "k", "--no-reseed", "not-kept-word"];
    let refused = story.world.run(&flags);
    assert_eq!(refused.code, 5, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "would_reseed");
    assert_eq!(story.world.model.requests().len(), asked);
    let left = fs::read_dir(story.world.data().join("turns"));
    assert_eq!(left.into_iter().flatten().count(), 0);
    let shown = story.world.run(&["show", "k", "--json"]).ok();
    assert!(!shown.stdout.contains("not-kept-word"), "{shown:?}");

    fs::remove_file(empty.join("refuse")).unwrap();
    story.reseeds("session_retired", &[]);
    assert_eq!(story.world.leftovers(), []);
}

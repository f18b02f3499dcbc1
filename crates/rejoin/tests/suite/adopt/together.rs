//! Sessions of all four CLIs in one folder: made by hand, and as they were captured elsewhere.

use std::path::Path;

use rejoin_testkit::{
    CLAUDE_325, CODEX_166, Cli, GEMINI_061, OPENCODE, World, answer, texts, user,
};
use serde_json::{Value, json};

use super::{adopted, alone, keep_gemini, listed, messages};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");
const CLIS: [&dyn Cli; 4] = [&CLAUDE_325, &CODEX_166, &GEMINI_061, &OPENCODE];

fn world_of_all() -> Option<World> {
    let mut world = World::of(REJOIN, &CLAUDE_325)?;
    let others: [&'static dyn Cli; 3] = [&CODEX_166, &GEMINI_061, &OPENCODE];
    for cli in others {
        world.also(cli);
    }
    keep_gemini(&world);
    Some(world)
}

fn fixture(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../rejoin-agents/fixtures");
    std::fs::read_to_string(root.join(path)).unwrap()
}

pub(super) fn put(world: &World, place: &str, text: &str) {
    let path = world.home().join(place);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// As the CLI would have written it in this world's folder.
pub(super) fn put_claude(world: &World, name: &str, id: &str) {
    let work = world.work().canonicalize().unwrap();
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
    let folder: String = work.to_str().unwrap().chars().map(plain).collect();
    let text = fixture(&format!("claude/{name}.jsonl"));
    put(
        world,
        &format!(".claude/projects/{folder}/{id}.jsonl"),
        &text,
    );
}

pub(super) fn put_codex(world: &World, case: &str, name: &str) {
    let work = world.work().canonicalize().unwrap();
    let text = fixture(&format!("codex/0.166.0/sessions/{case}/{name}.jsonl"));
    let text = text.replace("/srv/codex/srv/repo", work.to_str().unwrap());
    let text = text.replace(
        r#""model_provider":"fake""#,
        r#""model_provider":"scripted""#,
    );
    let text = text.replace(
        r#""model_provider_id":"fake""#,
        r#""model_provider_id":"scripted""#,
    );
    put(
        world,
        &format!(".codex/sessions/2026/11/15/{name}.jsonl"),
        &text,
    );
}

fn put_gemini(world: &World, name: &str, id: &str) {
    let text = fixture(&format!("gemini/0.61.0/sessions/{name}.session.jsonl"));
    let file = format!("session-2026-11-15T08-19-{}.jsonl", &id[..8]);
    put(world, &format!(".gemini/tmp/captured/chats/{file}"), &text);
    let work = world.work().canonicalize().unwrap();
    put(
        world,
        ".gemini/tmp/captured/.project_root",
        work.to_str().unwrap(),
    );
}

fn of<'s>(sessions: &'s [Value], id: &str) -> &'s Value {
    let found = sessions.iter().find(|s| s["session_id"] == id);
    found.unwrap_or_else(|| panic!("{id} in {sessions:#?}"))
}

/// Each is listed and imported once; those that a CLI would go on with are gone on with, and the
/// model is shown every message once.
#[test]
fn all_four_in_one_folder() {
    let Some(world) = world_of_all() else { return };
    for (n, cli) in (1..).zip(CLIS) {
        alone(&world, cli, None, n);
    }
    let seven = "0c3e9f0b-7d7f-4f0c-9a55-1f8c5a3d2b11";
    put_claude(&world, "2.1.325/sessions/seven_turns", seven);
    let killed = "611c635e-2b13-4548-94f9-4fe03338281e";
    put_claude(
        &world,
        &format!("2.1.197/sessions/killed_bash_{killed}"),
        killed,
    );
    let patch = "01a1de49-2a24-76f0-a68b-5ddf34f7f103";
    put_codex(
        &world,
        "patch",
        &format!("rollout-2026-11-15T08-18-19-{patch}"),
    );
    let tool = "b573ea3c-6491-4edc-b77b-13ade9bd44c3";
    put_gemini(&world, "tool-turn", tool);
    let found = listed(&world, &[]);
    assert_eq!(found.len(), 8, "{found:#?}");
    assert!(found.iter().all(|s| s["state"] == "new"), "{found:#?}");
    let agents = |agent: &str| found.iter().filter(|s| s["agent"] == agent).count();
    assert_eq!(
        ["claude", "codex", "gemini", "opencode"].map(agents),
        [3, 2, 2, 1]
    );
    assert_eq!(listed(&world, &["--agent", "codex"]).len(), 2);

    let all = adopted(&world, &["--all"]);
    assert_eq!(all.len(), 8, "{all:#?}");
    assert_eq!(adopted(&world, &["--all"]), [] as [Value; 0]);
    let cut_off = of(&all, killed);
    assert_eq!(cut_off["resumable"], false, "{cut_off:#}");
    assert!(
        cut_off["note"].as_str().unwrap().contains("no result"),
        "{cut_off:#}"
    );
    for (id, copied) in [(seven, false), (patch, false), (tool, true)] {
        let one = of(&all, id);
        assert_eq!(
            (&one["resumable"], &one["copied"]),
            (&json!(true), &json!(copied)),
            "{one:#}"
        );
    }
    ledgers(&world, &all, [seven, patch, tool]);
    // Every one goes on, and shows the model what was said in it, once.
    for one in &all {
        let said = messages(&world, one);
        let handle = one["handle"].as_str().unwrap();
        let text = format!("{} #s:a90", user(90));
        let turn = world
            .run(&["send", "--json", "-c", handle, &text])
            .ok()
            .json();
        let expected = if one["resumable"] == true {
            "resumed"
        } else {
            "reseeded"
        };
        assert_eq!(turn["verdict"], expected, "{one:#} {turn:#}");
        assert_eq!(turn["text"], answer(90));
        let shown = texts(&world.model.last());
        for message in &said {
            let first = message["text"].as_str().unwrap().lines().next().unwrap();
            if first.len() < 12 {
                // Such words stand elsewhere too.
                continue;
            }
            let same = said
                .iter()
                .filter(|m| m["text"].as_str().unwrap().contains(first));
            assert_eq!(
                shown.matches(first).count(),
                same.count(),
                "{first:?} in {shown}"
            );
        }
        assert_eq!(shown.matches(&user(90)).count(), 1);
    }
    assert_eq!(world.leftovers(), []);
}

/// What tools did is told with the answers.
fn ledgers(world: &World, all: &[Value], ids: [&str; 3]) {
    let tools = ids.map(|id| {
        let told = messages(world, of(all, id));
        let notes = told
            .iter()
            .flat_map(|m| m["tools"].as_array().unwrap().clone());
        let told = notes.map(|n| {
            let changed = if n["changed_file"] == true {
                " changed"
            } else {
                ""
            };
            let subject = n["subject"]
                .as_str()
                .unwrap()
                .rsplit('/')
                .next()
                .unwrap()
                .to_owned();
            format!("{} {subject}{changed}", n["tool"].as_str().unwrap())
        });
        told.collect::<Vec<_>>().join(", ")
    });
    insta::assert_snapshot!(tools.join("\n"), @r"
    Bash echo one, Read in.txt, Bash echo three, Agent sub job, Agent sub job2, Write e.txt changed, Edit e.txt changed, Bash echo hi
    apply_patch newf.txt changed
    run_shell_command echo hi; echo err >&2, write_file x.txt changed
    ");
}

/// A fork of Codex holds only what followed: its parent's words are its own as well.
#[test]
fn a_fork_by_hand_is_read_with_its_parent() {
    let Some(world) = World::of(REJOIN, &CODEX_166) else {
        return;
    };
    alone(&world, world.cli, None, 1);
    let parent = listed(&world, &[])[0]["session_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let text = format!("{} #s:a2", user(2));
    let args = [
        "exec",
        "-s",
        "read-only",
        "--skip-git-repo-check",
        "fork",
        &parent,
        &text,
    ];
    let done = std::process::Command::new(world.bin())
        .args(args)
        .current_dir(world.work())
        .env_clear()
        .envs(&world.env)
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    alone(&world, world.cli, Some(&parent), 3);
    let all = adopted(&world, &["--all"]);
    assert_eq!(all.len(), 2, "{all:#?}");
    let fork = all
        .iter()
        .find(|one| one["session_id"] != parent.as_str())
        .unwrap();
    assert_eq!(
        (&fork["messages"], &fork["resumable"]),
        (&json!(4), &json!(true)),
        "{fork:#}"
    );
    let turn = super::goes_on(&world, fork, 4, &[1, 2]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
    let turn = super::goes_on(&world, of(&all, &parent), 5, &[1, 3]);
    assert_eq!(turn["verdict"], "resumed", "{turn:#}");
}

//! `rejoin trust` lists exactly what a repository's files would run, and lets them.

use std::fs;

use rejoin_testkit::{CLAUDE_197, CLAUDE_325, CODEX_166, Cli, GEMINI_061, OPENCODE};
use serde_json::{Value, json};

use super::table::{Fate, ROWS, Row};
use super::{Hostile, OFFER, write};

/// The row of an agent with this path whose file leaves a trace.
fn leaving_a_trace(agent: &str, path: &str) -> &'static Row {
    ROWS.iter()
        .find(|row| row.agent == agent && row.path == path && !row.text.contains("{url}"))
        .unwrap()
}

/// Trusted, the file is obeyed; changed afterwards, it is not; revoked, neither.
fn trust_lets_a_file_count(cli: &'static dyn Cli, path: &str) {
    let Some(hostile) = Hostile::of(cli) else {
        return;
    };
    hostile.git_init();
    let (world, sub) = (&hostile.world, hostile.sub());
    let folder = sub.to_str().unwrap();
    let row = leaving_a_trace(cli.agent(), path);
    hostile.put(row, &sub);
    let file = sub.join(path);

    let shown = world
        .run(&["trust", folder, "--dry-run", "--json"])
        .ok()
        .json();
    assert_eq!(shown["trusted"], false);
    let listed = shown["agent_files"].as_array().unwrap();
    let this = listed.iter().find(|f| f["path"] == json!(file)).unwrap();
    assert_eq!(
        (&this["was"], &this["trusted"]),
        (&json!("untrusted"), &json!(false))
    );
    assert!(
        this["agents"]
            .as_array()
            .unwrap()
            .contains(&json!(cli.agent()))
    );
    let text = world.run(&["trust", folder, "-n"]).ok().stdout;
    assert!(text.contains("would be obeyed by"), "{text}");
    let names_the_command = row.text.contains("{run}");
    assert!(!names_the_command || text.contains("touch "), "{text}");

    let stored = world.run(&["trust", folder, "--json"]).ok().json();
    assert!(
        stored["agent_files"]
            .as_array()
            .unwrap()
            .iter()
            .all(|f| f["trusted"] == true)
    );
    let flags = hostile.flags(folder, "edit");
    let _obeyed = world.say(1, &flags);
    assert!(!hostile.ran().is_empty(), "a trusted file was not obeyed");

    clear(&hostile);
    let before = fs::read_to_string(&file).unwrap();
    write(&file, &format!("{before}\n"));
    let list = world.run(&["trust", "--list", "--json"]).ok().json();
    let entry = list["files"]
        .as_array()
        .unwrap()
        .iter()
        .find(|f| f["path"] == json!(file));
    assert_eq!(entry.unwrap()["state"], "changed");
    not_obeyed(&hostile, row, 2, "changed since you trusted it");

    write(&file, &before);
    let revoked = world.run(&["trust", "--revoke", folder]).ok().stdout;
    assert!(revoked.contains("is no longer trusted"), "{revoked}");
    not_obeyed(&hostile, row, 3, "rejoin trust");
}

fn clear(hostile: &Hostile) {
    for entry in fs::read_dir(&hostile.traces).unwrap().flatten() {
        fs::remove_file(entry.path()).unwrap();
    }
}

fn not_obeyed(hostile: &Hostile, row: &Row, n: usize, hint: &str) {
    let sub = hostile.sub();
    let flags = hostile.flags(sub.to_str().unwrap(), "edit");
    match row.fate {
        Fate::Ignored => {
            let _ignored = hostile.world.say(n, &flags);
        }
        Fate::Refused => {
            let done = hostile.world.send(n, &format!("#s:a{n}"), &flags);
            assert_eq!(done.code, 5, "{done:?}");
            let message = done.json()["error"]["message"].to_string();
            assert!(message.contains(hint), "{message}");
        }
    }
    assert_eq!(hostile.ran(), Vec::<String>::new());
}

#[test]
fn trusted_hooks_of_claude_2_1_197_run() {
    trust_lets_a_file_count(&CLAUDE_197, ".claude/settings.json");
}

#[test]
fn trusted_servers_of_claude_2_1_325_run() {
    trust_lets_a_file_count(&CLAUDE_325, ".mcp.json");
}

#[test]
fn trusted_servers_of_codex_run() {
    trust_lets_a_file_count(&CODEX_166, ".codex/config.toml");
}

#[test]
fn trusted_hooks_of_gemini_run() {
    trust_lets_a_file_count(&GEMINI_061, ".gemini/settings.json");
}

#[test]
fn trusted_plugins_of_opencode_run() {
    trust_lets_a_file_count(&OPENCODE, ".opencode/plugin/evil.js");
}

/// The first turn says that files were ignored, and how to see them.
#[test]
fn ignored_files_are_mentioned_once() {
    let Some(hostile) = Hostile::of(&CLAUDE_197) else {
        return;
    };
    let sub = hostile.sub();
    hostile.put(leaving_a_trace("claude", ".mcp.json"), &sub);
    let flags = hostile.flags(sub.to_str().unwrap(), "edit");
    let summary = |turn: Value| turn["summary"].as_str().unwrap().to_owned();
    let first = summary(hostile.world.say(1, &flags));
    assert!(
        first.ends_with(" · .mcp.json of the repository ignored (rejoin trust)"),
        "{first}"
    );
    let second = summary(hostile.world.say(2, &flags));
    assert!(!second.contains("ignored"), "{second}");
}

#[test]
fn a_folder_without_such_files_needs_no_trust() {
    let Some(hostile) = Hostile::of(&CLAUDE_197) else {
        return;
    };
    let done = hostile.world.run(&["trust"]);
    assert_eq!(done.code, 3, "{done:?}");
    assert!(
        done.stderr.contains("no file that an agent would obey"),
        "{done:?}"
    );
}

/// With everything allowed the refusal is waived, and the model sees what the repository offers.
#[test]
fn gemini_offers_skills_of_a_repository() {
    let Some(hostile) = Hostile::of(&GEMINI_061) else {
        return;
    };
    let sub = hostile.sub();
    let rows = ROWS.iter().filter(|row| row.agent == "gemini");
    for (at, row) in rows.filter(|row| row.text.contains("{offer}")).enumerate() {
        hostile.put(row, &sub);
        let flags = hostile.flags(sub.to_str().unwrap(), "full");
        let _turn = hostile.world.say(at + 1, &flags);
        let requests = hostile.world.model.requests();
        let last = requests.last().unwrap().body.to_string();
        assert!(last.contains(OFFER), "{} is not offered", row.path);
        fs::remove_file(sub.join(row.path)).unwrap();
    }
}

/// A skill beneath the working folder is offered once the CLI reads a file there, and only in a trusted
/// repository; a definition that is added later takes the trust back.
#[test]
fn claude_takes_nested_skills_only_from_a_trusted_repository() {
    let Some(hostile) = Hostile::of(&CLAUDE_325) else {
        return;
    };
    hostile.git_init();
    let (world, sub) = (&hostile.world, hostile.sub());
    write(&sub.join("deep/x.txt"), "hello\n");
    hostile.put(leaving_a_trace("claude", ".claude/settings.json"), &sub);
    let skill = sub.join("deep/.claude/skills/evil/SKILL.md");
    let text = format!("---\nname: evil\ndescription: {OFFER}\n---\nhi\n");
    let file = sub.join("deep/x.txt");
    let script = json!([
        {"tools": [{"name": "Read", "input": {"file_path": file}}]},
        {"text": "read"},
    ]);
    let script = format!("#j:{script}#");
    let offered = |n: usize| {
        let flags = hostile.flags(sub.to_str().unwrap(), "edit");
        let done = world.send(n, &script, &flags);
        assert_eq!(done.code, 0, "{done:?}");
        let requests = world.model.requests();
        requests.last().unwrap().body.to_string().contains(OFFER)
    };
    write(&skill, &text);
    assert!(!offered(1), "untrusted");
    world.run(&["trust", sub.to_str().unwrap()]).ok();
    assert!(offered(2), "trusted");
    assert!(!hostile.ran().is_empty(), "a trusted file was not obeyed");
    clear(&hostile);
    write(&sub.join("deep/.claude/agents/more.md"), &text);
    // The session remembers what was offered before: the hooks tell.
    let _remembered = offered(3);
    assert_eq!(hostile.ran(), Vec::<String>::new());
}

/// A memory file that leads out of the checkout shows the model nothing before the user trusts the place.
#[test]
fn a_memory_link_out_of_the_checkout_waits_for_trust() {
    let Some(hostile) = Hostile::of(&CLAUDE_325) else {
        return;
    };
    hostile.git_init();
    let (world, sub) = (&hostile.world, hostile.sub());
    let secret = world.root().join("secret");
    fs::write(&secret, "SECRETWORD\n").unwrap();
    std::os::unix::fs::symlink(&secret, sub.join("CLAUDE.md")).unwrap();
    let folder = sub.to_str().unwrap();
    let flags = hostile.flags(folder, "read-only");
    let refused = world.send(1, "#s:a1", &flags);
    assert_eq!(refused.code, 5, "{refused:?}");
    let message = refused.json()["error"]["message"].clone();
    assert!(
        message
            .as_str()
            .unwrap()
            .contains("outside of the repository"),
        "{message}"
    );
    assert!(world.model.requests().is_empty(), "the CLI was run");
    let shown = world.run(&["trust", folder, "--dry-run"]).ok().stdout;
    assert!(shown.contains(secret.to_str().unwrap()), "{shown}");
    world.run(&["trust", folder]).ok();
    let list = world.run(&["trust", "--list", "--json"]).ok().json();
    assert_eq!(list["files"][0]["state"], "trusted", "{list:#}");
    let _turn = world.say(1, &flags);
    assert!(world.model.last().body.to_string().contains("SECRETWORD"));
}

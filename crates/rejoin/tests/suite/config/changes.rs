//! `rejoin config set`, `unset` and `edit`.

use std::path::PathBuf;

use rejoin_testkit::World;

use crate::suite::terminal::{Terminal, world};

fn file(world: &World) -> PathBuf {
    world.home().join(".config/rejoin/config.toml")
}

fn written(world: &World, text: &str) {
    std::fs::create_dir_all(file(world).parent().unwrap()).unwrap();
    std::fs::write(file(world), text).unwrap();
}

fn text(world: &World) -> String {
    std::fs::read_to_string(file(world)).unwrap_or_default()
}

#[test]
fn a_value_is_set_and_removed_and_comments_stay() {
    let world = world();
    let done = world.run(&["config", "set", "default_agent", "demo"]).ok();
    assert!(
        done.stdout.starts_with("default_agent = \"demo\" in "),
        "{done:?}"
    );
    assert_eq!(text(&world), "default_agent = \"demo\"\n");
    world.run(&["send", "UWORD1"]).ok();

    let before = "# mine\ndefault_agent = \"demo\" # for now\n\n[resume]\n# twice\nbreaker = 2\n";
    written(&world, before);
    let set = |key: &str, value: &str| world.run(&["config", "set", key, value]).ok();
    set("resume.breaker", "5");
    set("agents.claude.model", "sonnet");
    set("notify.on", "waiting,failed");
    let after = text(&world);
    assert!(after.starts_with(&before.replace("= 2", "= 5")), "{after}");
    assert!(
        after.contains("[agents.claude]\nmodel = \"sonnet\"\n"),
        "{after}"
    );
    let shown = world.run(&["config", "show", "--json"]).ok().json();
    let value = |key: &str| {
        let mut all = shown["settings"].as_array().unwrap().iter();
        all.find(|s| s["key"] == key).unwrap()["value"].clone()
    };
    assert_eq!(value("resume.breaker"), 5);
    assert_eq!(value("notify.on"), serde_json::json!(["waiting", "failed"]));
    let done = world
        .run(&["config", "unset", "resume.breaker", "--json"])
        .ok()
        .json();
    assert_eq!(
        (&done["key"], &done["value"]),
        (&"resume.breaker".into(), &serde_json::Value::Null)
    );
    assert!(!text(&world).contains("breaker") && text(&world).contains("# mine"));
    let done = world.run(&["config", "unset", "resume.breaker"]);
    assert_eq!(done.code, 3, "{done:?}");
}

#[test]
fn wrong_keys_values_and_files_change_nothing() {
    let mut world = world();
    let before = "# mine\npermission = \"edit\"\n";
    written(&world, before);
    for (args, code, words) in [
        (
            ["default_agnt", "codex"],
            2,
            "did you mean `default_agent`?",
        ),
        (["resume", "1"], 2, "is a section"),
        (
            ["permission", "everything"],
            2,
            "`permission` cannot be `everything`",
        ),
        (["resume.breaker", "many"], 2, "a whole number"),
        (["default_agent", "two words"], 2, "single word"),
        (
            ["models.gpt-5.5.price.input", "1"],
            2,
            "try: rejoin config set 'models.\"gpt-5.5\".price.input' VALUE",
        ),
        (["models.gpt-5.5.prise.input", "1"], 2, "unknown key"),
    ] {
        let done = world.run(&["config", "set", args[0], args[1]]);
        assert_eq!(done.code, code, "{done:?}");
        assert!(done.stderr.contains(words), "{done:?}");
        assert_eq!(text(&world), before);
    }
    // The place that counts is named.
    world.set("REJOIN_PERMISSION", "read-only");
    let done = world.run(&["config", "set", "permission", "full"]).ok();
    assert!(done.stderr.contains("REJOIN_PERMISSION"), "{done:?}");
    world.unset("REJOIN_PERMISSION");
    written(&world, "nonsense = 1\n");
    let done = world.run(&["config", "set", "permission", "edit"]);
    assert_eq!(
        (done.code, text(&world).as_str()),
        (2, "nonsense = 1\n"),
        "{done:?}"
    );
}

#[test]
fn the_file_is_changed_in_an_editor() {
    let mut world = world();
    world.set("EDITOR", "sh ed.sh");
    let editor = |script: &str| std::fs::write(world.work().join("ed.sh"), script).unwrap();
    let terminal = Terminal::open(&world).unwrap();
    editor("echo 'default_agent = \"demo\" # new' >\"$1\"");
    terminal.run("rejoin config edit");
    assert_eq!(text(&world), "default_agent = \"demo\" # new\n");
    editor("true");
    let screen = terminal.run("rejoin config edit");
    assert!(screen.contains("is unchanged"), "{screen}");
    editor("echo 'default_agnt = \"demo\"' >\"$1\"");
    let screen = terminal.run("rejoin config edit; echo code $?");
    let screen = screen.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        screen.contains("did you mean `default_agent`?") && screen.contains("code 2"),
        "{screen}"
    );
    assert!(screen.contains("the text is kept in"), "{screen}");
    assert_eq!(text(&world), "default_agent = \"demo\" # new\n");
}

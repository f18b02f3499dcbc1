//! The same chain of three tiers with the other CLIs: one session, each tier with its own
//! permissions.

use std::fmt::Write as _;

use rejoin_model::{Script, Step};
use rejoin_testkit::{
    CLAUDE_NEW, CLAUDE_OLD, CODEX_166, CODEX_TOOLS, Cli, GEMINI_061, Model, OPENCODE, World, runs,
    texts, user,
};
use serde_json::{Value, json};

use super::{REJOIN, configure};

/// Tries to leave a file, then asks for a tier.
fn tries(file: &str, answer: &str, to: Option<&str>) -> Script {
    let block = |to: &str| {
        let body = json!({"escalate": {"to": to, "reason": "down"}});
        format!("\n\n```rejoin\n{body}\n```")
    };
    let text = format!("{answer}{}", to.map(block).unwrap_or_default());
    vec![runs(&format!("touch {file}")), Step::text(text)]
}

fn scripts() -> Model {
    Model::scripted([
        ("first", tries("by-one", "answerword-1-end", Some("two"))),
        ("second", tries("by-two", "answerword-2-end", Some("three"))),
        ("third", tries("by-three", "answerword-3-end", None)),
    ])
}

/// The first tier may only read, the second is denied the shell, the third is not.
fn a_chain_of_three_tiers(cli: &'static dyn Cli) {
    let world = World::of_all(REJOIN, &[cli], scripts()).unwrap();
    let models = match cli.agent() {
        "codex" => [CODEX_TOOLS; 3],
        _ => [cli.models()[0], cli.models()[1], cli.models()[0]],
    };
    let rest = [
        "permission = \"read-only\"\nmay = [\"look\"]",
        "permission = \"edit\"\ndeny_tools = [\"shell\"]\nmay = [\"do #s:second\"]",
        "permission = \"full\"\nmay = [\"do #s:third\"]",
    ];
    let mut tiers = format!("default_agent = \"{}\"\n", cli.agent());
    for (n, rest) in rest.iter().enumerate() {
        let (name, model) = (["one", "two", "three"][n], models[n]);
        writeln!(
            tiers,
            "[[tier]]\nname = \"{name}\"\nmodel = \"{model}\"\n{rest}"
        )
        .unwrap();
    }
    configure(&world, &tiers);
    world.run(&["tiers", "check"]).ok();
    let last = world
        .send(1, "#s:first", &["--tier", "one", "--climb"])
        .ok()
        .json();
    assert_eq!(last["text"], "answerword-3-end", "{last:#}");
    let turns = last["chain"]["turns"].as_array().unwrap();
    let of = |key: &str| -> Vec<Value> { turns.iter().map(|turn| turn[key].clone()).collect() };
    assert_eq!(of("tier"), ["one", "two", "three"]);
    assert_eq!(of("verdict"), ["started", "resumed", "resumed"], "{last:#}");
    assert!(
        of("session_id")
            .iter()
            .all(|id| *id == turns[0]["session_id"])
    );
    let files = std::fs::read_dir(world.work()).unwrap().flatten();
    let files: Vec<_> = files.map(|file| file.file_name()).collect();
    assert_eq!(
        files,
        ["by-three"],
        "what a tier is denied does not run, and an old denial is gone"
    );
    let shown = texts(&world.model.last());
    for word in [
        user(1),
        "answerword-1-end".into(),
        "answerword-2-end".into(),
    ] {
        assert_eq!(shown.matches(&word).count(), 1, "{word}: {shown}");
    }
    assert_eq!(world.leftovers(), []);
}

/// A stand-in for Claude Code that drops its lists of tools: it offers what the tier excludes, and is
/// stopped before it runs anything.
#[test]
fn a_cli_that_ignores_its_list_of_tools_is_stopped() {
    let slow = Step {
        delay_ms: Some(3_000),
        ..runs("touch by-one")
    };
    let script = vec![slow, Step::text("answerword-1-end")];
    let model = || Model::scripted([("first", script.clone())]);
    for version in [CLAUDE_OLD, CLAUDE_NEW] {
        let mut world = World::claude_with(REJOIN, version, model).unwrap();
        let tier = "[[tier]]\nname = \"one\"\npermission = \"edit\"\ntools = [\"Read\"]\nmay = [\"look\"]\n";
        configure(&world, tier);
        // Proven while it still behaves, as a release that breaks later.
        world.run(&["doctor", "--json"]);
        let (real, path) = (world.bin(), world.root().join("stand-in"));
        let text = format!(
            "#!/bin/bash\nargs=(); skip=\nfor arg; do\n  [ -n \"$skip\" ] && {{ skip=; continue; }}\n  case \"$arg\" in --tools|--allowedTools|--disallowedTools) skip=1; continue ;; esac\n  args+=(\"$arg\")\ndone\nexec {} \"${{args[@]}}\"\n",
            real.display()
        );
        world.script(&path, &text);
        world.use_bin(&path);
        let done = world.send(1, "#s:first", &["--tier", "one"]);
        let turn = done.json();
        assert_ne!(done.code, 0, "{turn:#}");
        let error = turn["error"]["message"].as_str().unwrap();
        assert!(error.contains("it offers Bash"), "{turn:#}");
        assert_eq!(turn["error"]["class"], "envelope", "{turn:#}");
        assert_eq!(std::fs::read_dir(world.work()).unwrap().count(), 0);
        assert_eq!(world.leftovers(), []);
    }
}

#[test]
fn c12_c13_c42_codex() {
    a_chain_of_three_tiers(&CODEX_166);
}

#[test]
fn c12_c13_c42_gemini() {
    a_chain_of_three_tiers(&GEMINI_061);
}

#[test]
fn c12_c13_c42_opencode() {
    a_chain_of_three_tiers(&OPENCODE);
}

/// Codex compacts a session when a model of another family goes on with it, and prints nothing of it.
/// The climb is resumed, and its verdict says how much is known verbatim.
#[test]
fn a_hidden_compaction_of_codex_is_shown() {
    let world = World::of_all(REJOIN, &[&CODEX_166], scripts()).unwrap();
    let [first, second] = [CODEX_TOOLS, CODEX_166.models()[0]];
    let tiers = format!(
        "default_agent = \"codex\"\n[[tier]]\nname = \"one\"\nmodel = \"{first}\"\npermission = \"read-only\"\nmay = [\"look\"]\n[[tier]]\nname = \"two\"\nmodel = \"{second}\"\npermission = \"read-only\"\nmay = [\"do it\"]\n"
    );
    configure(&world, &tiers);
    let last = world
        .send(1, "#s:first", &["--tier", "one", "--climb"])
        .ok()
        .json();
    assert_eq!(last["tier"], "two", "{last:#}");
    assert_eq!(last["verdict"], "resumed", "{last:#}");
    let summary = last["summary"].as_str().unwrap();
    assert!(summary.contains("compacted by the agent"), "{summary}");
    let next = world.say(2, &["-m", second]);
    assert_eq!(next["verdict"], "resumed", "{next:#}");
    assert!(next["sent"]["summarised"].as_u64().unwrap() > 0, "{next:#}");
}

//! Limits of tools: counted over all conversations, never exceeded, and named in the prompt.

use std::process::{Child, Command};

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Done, Model, World, runs, texts};
use serde_json::{Value, json};

use super::{REJOIN, TIERS, configure, flag};

/// Chains and conversations at once.
const AT_ONCE: usize = 20;
const MAX: usize = 3;

/// A tier of the demo agent that may make three calls.
fn demo(world: &World, max: usize) {
    let text = format!(
        "[[tier]]\nname = \"fix\"\npermission = \"edit\"\nmay = [\"restart the db\"]\nlimit = [{{ tool = \"Shell(restart:*)\", max = {max}, per = \"4h\" }}]\n[[tier]]\nname = \"all\"\npermission = \"full\"\nmay = [\"all\"]\n"
    );
    configure(world, &text);
}

fn calls(turn: &Value) -> usize {
    turn["text"]
        .as_str()
        .unwrap()
        .matches("I called restart")
        .count()
}

/// Three calls at once, of which two are left: two are made. Later runs are denied the rule, in
/// every conversation.
#[test]
fn claude_makes_no_call_more_than_the_limit() {
    let three = |what: &str| -> Vec<Step> {
        let call = |n: usize| json!({"name": "Bash", "input": {"command": format!("touch {what}{n}"), "description": "x"}});
        let tools: Vec<Value> = (0..3).map(call).collect();
        let step = Step {
            tools: serde_json::from_value(json!(tools)).unwrap(),
            ..Step::default()
        };
        vec![step, Step::text("tried")]
    };
    let scripts = [
        ("three", three("first")),
        ("again", three("later")),
        ("other", vec![runs("echo x > free"), Step::text("done")]),
    ];
    let scripts = scripts.map(|(name, script)| (name.to_owned(), script));
    let world = World::claude_with(REJOIN, CLAUDE_NEW, || Model::with(scripts.into())).unwrap();
    let limit = "limit = [{ tool = \"Bash(touch:*)\", max = 2, per = \"4h\" }]";
    configure(
        &world,
        &TIERS.replace(
            "name = \"remediate\"",
            &format!("name = \"remediate\"\n{limit}"),
        ),
    );
    let made = |what: &str| {
        let files = std::fs::read_dir(world.work()).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.starts_with(what)).count()
    };
    let first = world
        .send(1, "#s:three", &["--tier", "remediate"])
        .ok()
        .json();
    assert_eq!(made("first"), 2, "{first}");
    assert!(
        texts(&world.model.requests()[0])
            .contains("Limits: Bash(touch:*) 2 of 2 calls left per 4 h.")
    );
    let shown = texts(&world.model.last());
    assert!(
        shown.contains("The limit of Bash(touch:*) is used up (2 calls)"),
        "{shown}"
    );
    let id = first["turn_id"].as_str().unwrap();
    let explained = world.run(&["explain", id, "--json"]).ok().json();
    assert_eq!(explained["limits"][0]["left"], 2, "{explained}");

    let send = [
        "send",
        "-k",
        "other",
        "-a",
        "claude",
        "--tier",
        "remediate",
        "--json",
        "go #s:again",
    ];
    let second = world.run(&send).ok().json();
    assert_eq!(made("later"), 0, "{second}");
    assert!(
        flag(&second, "--disallowedTools")
            .unwrap()
            .ends_with(",Bash(touch:*)")
    );
    let shown = texts(&world.model.last());
    assert!(
        shown.contains("Bash(touch:*) is used up and denied until 20"),
        "{shown}"
    );
    let third = world
        .send(2, "#s:other", &["--tier", "remediate"])
        .ok()
        .json();
    assert!(world.work().join("free").exists(), "{third}");
    assert_eq!(world.leftovers(), []);
}

/// Calls of a tier without the limit count, and a deleted conversation takes none back.
#[test]
fn calls_of_other_tiers_count_and_outlive_their_conversation() {
    let world = World::new(REJOIN);
    demo(&world, MAX);
    let send = |key: &str, tier: &str, text: &str| {
        let send = [
            "send", "-a", "demo", "-k", key, "--tier", tier, "--json", text,
        ];
        world.run(&send).ok().json()
    };
    assert_eq!(
        calls(&send("a", "all", "call: restart db\ncall: restart web")),
        2
    );
    world.run(&["delete", "a", "--yes"]).ok();
    let turn = send(
        "b",
        "fix",
        "call: restart db\ncall: restart web\ncall: list",
    );
    assert_eq!(calls(&turn), 1, "{turn}");
    let text = turn["text"].as_str().unwrap();
    assert!(
        text.contains("I did not call restart web") && text.contains("I called list."),
        "{text}"
    );
    let turn = send("c", "fix", "call: restart db");
    let text = turn["text"].as_str().unwrap();
    assert_eq!(calls(&turn), 0);
    assert!(text.contains("Available again at 20"), "{text}");
    // Only a tier with the limit is held to it.
    assert_eq!(calls(&send("d", "all", "call: restart db")), 1);
    let shown = world.run(&["tiers"]).ok().stdout;
    assert!(
        shown.contains("limits   Shell(restart:*) 3 per 4 h"),
        "{shown}"
    );
}

/// Sends that many messages at once, each of which asks for two calls. Returns the calls made.
fn at_once(start: impl Fn(usize, &[&str]) -> Child) -> usize {
    let send = |n: usize| {
        let key = format!("c{n}");
        let text = "call: restart db\ncall: restart web";
        start(
            n,
            &[
                "send", "--json", "-a", "demo", "-k", &key, "--tier", "fix", text,
            ],
        )
    };
    let senders: Vec<Child> = (0..AT_ONCE).map(send).collect();
    let turns = senders
        .into_iter()
        .map(|sender| Done::of(sender).ok().json());
    turns.map(|turn| calls(&turn)).sum()
}

#[test]
fn twenty_at_once_make_no_call_more() {
    let world = World::new(REJOIN);
    demo(&world, MAX);
    let made = at_once(|_, args| world.spawn(args));
    finish(&world, made);
}

/// Command of another machine on the same server.
fn elsewhere(world: &World, args: &[&str]) -> Command {
    let at = |folder: &str| {
        let folder = world.root().join(format!("{folder}-other"));
        std::fs::create_dir_all(&folder).unwrap();
        folder
    };
    let mut command = world.command(args);
    command
        .env("REJOIN_HOME", at("data"))
        .env("HOME", at("home"))
        .env("XDG_CONFIG_HOME", world.home().join(".config"))
        .env("REJOIN_FAKE_MACHINE", "other");
    command
}

/// Processes of two machines share a server.
#[test]
fn twenty_on_two_machines_make_no_call_more() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    demo(&world, MAX);
    let made = at_once(|n, args| match n % 2 {
        0 => world.spawn(args),
        _ => elsewhere(&world, args).spawn().unwrap(),
    });
    finish(&world, made);
}

/// A cooldown holds for every process and machine: one of twenty commands climbs.
#[test]
fn one_of_twenty_commands_climbs_within_a_cooldown() {
    let Some(world) = World::new(REJOIN).on_server() else {
        return;
    };
    let tiers = "[[tier]]\nname = \"look\"\nmay = [\"look\"]\n[[tier]]\nname = \"fix\"\nmay = [\"fix\"]\ncooldown = \"1h\"\n";
    configure(&world, tiers);
    let look = [
        "send", "--json", "-a", "demo", "-k", "k", "--tier", "look", "see",
    ];
    world.run(&look).ok();
    let climb = ["escalate", "k", "--to", "fix", "--json"];
    let commands: Vec<Child> = (0..AT_ONCE)
        .map(|n| match n % 2 {
            0 => world.spawn(&climb),
            _ => elsewhere(&world, &climb).spawn().unwrap(),
        })
        .collect();
    let done: Vec<Done> = commands.into_iter().map(Done::of).collect();
    let climbed = done.iter().filter(|done| done.code == 0).count();
    assert_eq!(climbed, 1, "{done:?}");
    // The others found the conversation busy, the tier reached, or the cooldown.
    assert!(
        done.iter().all(|done| [0, 4, 5].contains(&done.code)),
        "{done:?}"
    );
    let chain = world.run(&["chain", "k", "--json"]).ok().json();
    assert_eq!(chain["turns"].as_array().unwrap().len(), 2, "{chain:#}");
    world.run(&look).ok();
    let again = world.run(&climb);
    assert_eq!(again.code, 5, "{again:?}");
    assert!(again.stdout.contains("again possible in"), "{again:?}");
    world.assert_quiet();
}

/// Uses up the calls that are left: in the end exactly as many were made as the limit allows.
fn finish(world: &World, mut made: usize) {
    assert!((1..=MAX).contains(&made), "{made}");
    for n in 0..=MAX {
        let key = format!("later{n}");
        let send = [
            "send",
            "--json",
            "-a",
            "demo",
            "-k",
            &key,
            "--tier",
            "fix",
            "call: restart db",
        ];
        made += calls(&world.run(&send).ok().json());
    }
    assert_eq!(made, MAX);
    world.assert_quiet();
}

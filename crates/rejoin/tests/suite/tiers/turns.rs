//! Turns of a tier: the tier's model and complete permissions, for that turn alone.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Model, World, assert_shown, runs, said, user};
use serde_json::{Value, json};

use super::{REJOIN, TIERS, configure, flag};

fn writes(name: &str) -> Step {
    let input = json!({"file_path": name, "content": "x"});
    Step {
        tools: serde_json::from_value(json!([{"name": "Write", "input": input}])).unwrap(),
        ..Step::default()
    }
}

fn offered(world: &World) -> Vec<String> {
    let tools = world.model.last().body["tools"].clone();
    let tools = tools.as_array().unwrap().iter();
    tools
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

fn world(scripts: Vec<(&'static str, Vec<Step>)>) -> World {
    let scripts = scripts
        .into_iter()
        .map(|(name, script)| (name.to_owned(), script))
        .collect();
    let world = World::claude_with(REJOIN, CLAUDE_NEW, || Model::with(scripts)).unwrap();
    configure(&world, TIERS);
    world
}

/// C-40, C-41, C-42, C-43, C-44, C-45: one session, whose tools change with each turn. What a lower
/// tier was denied works in a higher one, and a turn without a tier has the conversation's own again.
#[test]
fn c43_c44_the_tools_of_a_session_are_those_of_the_turns_tier() {
    let world = world(vec![
        ("touch", vec![runs("touch by-shell"), Step::text("tried")]),
        (
            "restart",
            vec![runs("docker restart db"), Step::text("tried")],
        ),
        (
            "look",
            vec![runs("echo healthy > by-look"), Step::text("tried")],
        ),
        ("ansible", vec![runs("ansible all"), Step::text("tried")]),
        ("write", vec![writes("by-write"), Step::text("tried")]),
    ]);
    let path = world.work();
    let send = |n: usize, script: &str, more: &[&str]| -> Value {
        world.send(n, script, more).ok().json()
    };
    let first = send(1, "#s:touch", &["--tier", "observe"]);
    assert_eq!(
        (&first["tier"], &first["verdict"]),
        (&json!("observe"), &json!("started"))
    );
    assert!(!path.join("by-shell").exists(), "{first}");
    assert_eq!(flag(&first, "--model").as_deref(), Some("haiku"));
    assert_eq!(
        flag(&first, "--allowedTools").as_deref(),
        Some("Bash,Read,Grep,Glob")
    );
    let denied = flag(&first, "--disallowedTools").unwrap();
    assert!(
        denied.contains("Bash(docker restart:*),Bash(touch:*)"),
        "{denied}"
    );
    assert!(!offered(&world).contains(&"Write".to_owned()));
    let session = first["session_id"].clone();

    let looked = send(8, "#s:look", &["--tier", "observe"]);
    assert!(
        path.join("by-look").exists(),
        "an observer runs commands: {looked}"
    );

    let second = send(2, "#s:write", &["--tier", "observe"]);
    assert!(!path.join("by-write").exists(), "{second}");

    let third = send(3, "#s:touch", &["--tier", "remediate"]);
    assert_eq!(
        (&third["tier"], &third["verdict"]),
        (&json!("remediate"), &json!("resumed"))
    );
    assert_eq!(third["session_id"], session);
    assert!(path.join("by-shell").exists(), "{third}");
    assert_eq!(flag(&third, "--model").as_deref(), Some("sonnet"));
    let denied = flag(&third, "--disallowedTools").unwrap();
    assert!(denied.ends_with("Bash(ansible:*),Bash(helm:*)"), "{denied}");
    assert!(!denied.contains("docker"), "{denied}");
    assert!(offered(&world).contains(&"Write".to_owned()));
    let fourth = send(4, "#s:write", &["--tier", "remediate"]);
    assert!(path.join("by-write").exists(), "{fourth}");
    let fifth = send(5, "#s:ansible", &["--tier", "remediate"]);
    assert_eq!(fifth["denied"][0]["tool"], "Bash", "{fifth}");
    // The shell is there; only the program is not.
    let sixth = send(6, "#s:restart", &["--tier", "remediate"]);
    assert_eq!(sixth["denied"], json!([]), "{sixth}");

    std::fs::remove_file(path.join("by-shell")).unwrap();
    let plain = send(7, "#s:touch", &[]);
    assert_eq!(plain["tier"], Value::Null);
    assert_eq!(plain["session_id"], session);
    assert!(flag(&plain, "--disallowedTools").is_none(), "{plain}");
    assert!(flag(&plain, "--tools").is_none(), "{plain}");
    let words: Vec<String> = [1, 8, 2, 3, 4, 5, 6, 7].map(user).to_vec();
    assert_shown(&world.model.last(), &words);
}

/// The conversation's own list is not part of a tier's, and comes back after it.
#[test]
fn c44_the_list_of_a_tier_replaces_the_conversations() {
    let world = world(vec![(
        "touch",
        vec![runs("touch by-shell"), Step::text("tried")],
    )]);
    let own = world.say(1, &["-m", "haiku", "--deny-tools", "Bash"]);
    assert_eq!(flag(&own, "--disallowedTools").as_deref(), Some("Bash"));
    let tier = world.send(2, "#s:touch", &["--tier", "full"]).ok().json();
    assert_eq!(tier["verdict"], "resumed");
    assert!(world.work().join("by-shell").exists(), "{tier}");
    let own = world.say(3, &[]);
    assert_eq!(flag(&own, "--disallowedTools").as_deref(), Some("Bash"));
    let mut words = said([1]);
    words.extend([user(2), user(3)]);
    assert_shown(&world.model.last(), &words);
    // A retry runs with the tier of the turn that it repeats.
    let message = format!(
        "{}:3",
        tier["handle"].as_str().unwrap().split(':').next().unwrap()
    );
    let again = world.run(&["retry", &message, "--json"]).ok().json();
    assert_eq!(again["tier"], "full", "{again}");
    assert_eq!(
        flag(&again, "--allowedTools").as_deref(),
        Some("Bash,Read,Write,Edit,Grep,Glob")
    );
}

/// A dry run runs no command and writes no file, whatever the lists of the tier allow.
#[test]
fn a_dry_run_writes_and_runs_nothing() {
    let world = world(vec![
        ("touch", vec![runs("touch by-shell"), Step::text("tried")]),
        ("write", vec![writes("by-write"), Step::text("tried")]),
    ]);
    configure(
        &world,
        &TIERS.replace("name = \"full\"", "name = \"full\"\ndry_run = true"),
    );
    for (n, script) in [(1, "#s:touch"), (2, "#s:write")] {
        let turn = world.send(n, script, &["--tier", "full"]).ok().json();
        assert_eq!(turn["tier"], "full");
    }
    assert!(!world.work().join("by-shell").exists());
    assert!(!world.work().join("by-write").exists());
    let offered = offered(&world);
    assert!(
        offered.contains(&"Read".to_owned()) && !offered.contains(&"Bash".to_owned()),
        "{offered:?}"
    );
}

/// Over HTTP a tier is held to the ceiling of the token, in a new and in a known conversation.
#[test]
fn a_tier_above_the_ceiling_of_a_token_is_refused() {
    let world = World::new(REJOIN);
    configure(
        &world,
        "[[tier]]\nname = \"observe\"\npermission = \"read-only\"\nmay = [\"look\"]\n\n[[tier]]\nname = \"all\"\npermission = \"full\"\nmay = [\"all\"]\n",
    );
    let daemon = world.serve(&[]);
    let token = world
        .run(&["token", "create", "plain", "--json"])
        .ok()
        .json();
    let header = format!("Authorization: Bearer {}", token["token"].as_str().unwrap());
    let post = |body: &Value| daemon.call("POST", "/api/send?wait=true", &[&header], Some(body));
    let body = |tier: &str| json!({"text": "hello", "key": "k", "agent": "demo", "workdir": world.work(), "tier": tier});
    let sent = post(&body("observe"));
    assert_eq!(sent.status, 200);
    assert_eq!(sent.json()["tier"], "observe");
    let refused = post(&body("all"));
    assert_eq!(refused.status, 403, "{}", refused.json());
    let both = json!({"text": "x", "key": "k", "tier": "observe", "tools": ["Bash"]});
    assert_eq!(post(&both).status, 400);
    let tiers = daemon.get("/api/tiers").ok();
    assert_eq!(tiers["tiers"][1]["name"], "all");
    // A command that the daemon carries out sends its own tiers along.
    let sent = world
        .run(&["send", "-k", "k", "--tier", "observe", "--json", "hello"])
        .ok()
        .json();
    assert_eq!(sent["tier"], "observe");
    assert_eq!(daemon.stop(), 0);
}

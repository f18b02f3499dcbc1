//! The supervisor: what refuses a climb, and what the agent and people learn of it.

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Model, World, texts};
use serde_json::{Value, json};

use super::{REJOIN, TIERS, configure};

const BLOCK: &str = "```rejoin\n{\"escalate\": {\"reason\": \"db is down\"}}\n```";

fn claude(tiers: &str) -> World {
    let script = vec![Step::text(format!("down\n\n{BLOCK}"))];
    let model = || {
        Model::with(
            [
                ("asks".to_owned(), script),
                ("second".to_owned(), vec![Step::text("fixed")]),
            ]
            .into(),
        )
    };
    let world = World::claude_with(REJOIN, CLAUDE_NEW, model).unwrap();
    configure(&world, tiers);
    world
}

fn climb(world: &World, n: usize) -> Value {
    world
        .send(n, "#s:asks", &["--tier", "observe", "--climb"])
        .ok()
        .json()
}

/// The check that refused the request of a turn.
fn refused_by(turn: &Value) -> String {
    assert_eq!(turn["escalation"]["decision"], "refused", "{turn}");
    let checks = turn["escalation"]["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 9, "every check is kept: {turn}");
    let failed = checks.iter().find(|check| check["ok"] == false).unwrap();
    failed["check"].as_str().unwrap().to_owned()
}

/// C-64: a refusal is stored with its evidence, shown, and told to the agent once.
#[test]
fn a_refusal_is_told_to_the_agent_once() {
    let world = claude(&format!("[climb]\nmax_tier = \"observe\"\n{TIERS}"));
    let turn = climb(&world, 1);
    assert_eq!(refused_by(&turn), "max_tier");
    assert_eq!(
        (&turn["tier"], &turn["text"]),
        (&json!("observe"), &json!("down"))
    );
    let told = |n: usize| {
        world.say(n, &["--tier", "observe"]);
        texts(&world.model.last())
            .matches("was refused: the highest tier is `observe`")
            .count()
    };
    assert_eq!((told(2), told(3)), (1, 1));
    let shown = world
        .run(&[
            "send",
            "-k",
            "k",
            "--tier",
            "observe",
            "--climb",
            "again #s:asks",
        ])
        .ok();
    assert!(
        shown
            .stderr
            .contains("asked for remediate, refused: the highest tier is `observe`"),
        "{shown:?}"
    );
}

#[test]
fn hold_dry_run_and_cooldown_refuse() {
    let world = claude(&TIERS.replace(
        "name = \"remediate\"",
        "name = \"remediate\"\ncooldown = \"30m\"",
    ));
    world.run(&["hold"]).ok();
    assert_eq!(refused_by(&climb(&world, 1)), "hold");
    world.run(&["hold", "--off"]).ok();
    let climbed = climb(&world, 2);
    assert_eq!(
        (&climbed["tier"], &climbed["text"]),
        (&json!("remediate"), &json!("fixed"))
    );
    // The cooldown is that of the conversation, and holds for a person too.
    assert_eq!(refused_by(&climb(&world, 3)), "cooldown");
    let person = world.run(&["escalate", "k"]);
    assert_eq!(person.code, 5, "{person:?}");
    assert!(person.stderr.contains("again possible in"), "{person:?}");
    configure(
        &world,
        &TIERS.replace("name = \"observe\"", "name = \"observe\"\ndry_run = true"),
    );
    assert_eq!(refused_by(&climb(&world, 4)), "dry_run");
    configure(&world, &format!("[climb]\nhold = true\n{TIERS}"));
    assert_eq!(refused_by(&climb(&world, 5)), "hold");
}

/// The budget of a chain, and a tier that the agent cannot hold to.
#[test]
fn the_chain_budget_and_the_agents_abilities_refuse() {
    let world = claude(&format!("[climb]\nmax_cost_usd = 0.000001\n{TIERS}"));
    assert_eq!(refused_by(&climb(&world, 1)), "chain_budget");
    configure(
        &world,
        &TIERS.replace(
            "deny_tools = [\"Bash(ansible:*)\"",
            "deny_tools = [\"not a tool\"",
        ),
    );
    assert_eq!(refused_by(&climb(&world, 2)), "enforceable");
}

/// Over HTTP: a person's climb, its dry run, the chain from any member, and a hold.
#[test]
fn http_escalates_shows_chains_and_holds() {
    let world = World::new(REJOIN);
    configure(
        &world,
        "[[tier]]\nname = \"observe\"\npermission = \"read-only\"\nmay = [\"look\"]\n[[tier]]\nname = \"fix\"\npermission = \"edit\"\nmay = [\"fix\"]\n[[tier]]\nname = \"all\"\npermission = \"full\"\nmay = [\"all\"]\n",
    );
    let daemon = world.serve(&[]);
    let first = daemon.say(
        "k",
        "look",
        &[
            ("agent", json!("demo")),
            ("tier", json!("observe")),
            ("workdir", json!(world.work())),
        ],
    );
    let path = format!(
        "/api/conversations/{}/escalate",
        first["conversation_id"].as_str().unwrap()
    );
    let dry = daemon.post(&path, &json!({"dry_run": true}));
    assert_eq!(
        (dry.status, dry.json()["turn_id"].clone()),
        (200, Value::Null)
    );
    assert!(
        dry.json()["prompt"]
            .as_str()
            .unwrap()
            .contains("You are now operating as fix")
    );
    let climbed = daemon.post(&path, &json!({"reason": "by hand"}));
    assert_eq!(climbed.status, 202, "{}", climbed.json());
    let turn = climbed.json()["turn_id"].as_str().unwrap().to_owned();
    world.run(&["wait", &turn]).ok();
    let turns = daemon.get(&format!("/api/turns/{turn}/chain")).ok()["turns"].clone();
    assert_eq!(turns[1]["parent_turn_id"], first["turn_id"]);
    assert_eq!(turns[1]["trigger"], "person");
    let root = first["turn_id"].as_str().unwrap();
    assert_eq!(
        daemon.get(&format!("/api/turns/{root}/chain")).ok()["turns"],
        turns
    );
    // C-30: the page of a turn shows the chain with tier, model, cost, time and status of each.
    let page = daemon.get(&format!("/c/k/t/{turn}"));
    assert_eq!(page.status, 200);
    let table = page
        .body
        .split("<h2 class=\"grow\">Chain</h2>")
        .nth(1)
        .unwrap();
    let table = table.split("</table>").next().unwrap();
    for part in [
        "observe",
        "fix",
        "demo demo",
        "started",
        "resumed",
        "succeeded",
        "person",
        "$0.00",
        root,
        "ms<",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    // The ceiling of a token holds for a climb too.
    let token = world
        .run(&["token", "create", "plain", "--json"])
        .ok()
        .json();
    let header = format!("Authorization: Bearer {}", token["token"].as_str().unwrap());
    let high = daemon.call("POST", &path, &[&header], Some(&json!({})));
    assert_eq!(high.status, 403, "{}", high.json());
    assert!(
        high.json()["detail"].as_str().unwrap().contains("ceiling"),
        "{}",
        high.json()
    );
    // C-64: the bearer of a token does not bring a policy of its own.
    let own = json!({"tiers": [{"name": "observe", "role": "x"}, {"name": "any", "role": "x"}], "hold": false});
    let climb = json!({"tiers": own});
    let send = json!({"key": "k", "text": "look", "tier": "any", "climb": true, "defaults": {"tiers": own}});
    for (path, body) in [(path.as_str(), &climb), ("/api/send", &send)] {
        let refused = daemon.call("POST", path, &[&header], Some(body));
        assert_eq!(refused.status, 403, "{}", refused.json());
        assert!(
            (refused.json()["detail"].as_str().unwrap()).contains("cannot define tiers"),
            "{}",
            refused.json()
        );
    }
    assert_eq!(
        daemon
            .call("PUT", "/api/hold", &[&header], Some(&json!({"hold": true})))
            .status,
        403
    );
    assert_eq!(
        daemon
            .call("PUT", "/api/hold", &[], Some(&json!({"hold": true})))
            .status,
        200
    );
    let held = world.run(&["escalate", "k", "--to", "all"]);
    assert_eq!(held.code, 5, "{held:?}");
    assert!(held.stderr.contains("on hold"), "{held:?}");
    assert_eq!(daemon.stop(), 0);
}

/// Chains outlive a fork and a merge, and end with their conversation.
#[test]
fn chains_outlive_forks_and_end_with_their_conversation() {
    let world = claude(TIERS);
    let last = climb(&world, 1);
    let chain = last["chain"].clone();
    let id = last["turn_id"].as_str().unwrap();
    world.run(&["fork", "k", "--json"]).ok();
    let seen = world.run(&["chain", id, "--json"]).ok().json();
    assert_eq!(seen["turns"], chain["turns"]);
    let text = world.run(&["chain", id]).ok().stdout;
    assert!(
        text.contains("observe") && text.contains("remediate") && text.contains("total $"),
        "{text}"
    );
    // The block that asked is not part of the answer, on the page either.
    let daemon = world.serve(&[]);
    let page = daemon.call("GET", "/c/k", &[], None);
    assert_eq!(page.status, 200);
    assert!(page.body.contains("class=\"turn"), "{}", page.body);
    assert!(
        page.body.contains("down") && !page.body.contains("db is down"),
        "{}",
        page.body
    );
    assert_eq!(daemon.stop(), 0);
    let file = world.root().join("k.rejoin");
    let file = file.to_str().unwrap();
    world.run(&["export", "k", "-o", file]).ok();
    world.run(&["import", file, "--as-copy", "-k", "copy"]).ok();
    let copy = world.run(&["chain", "copy", "--json"]).ok().json();
    let (copied, first) = (&copy["turns"], &chain["turns"]);
    assert_eq!(
        copied.as_array().unwrap().len(),
        first.as_array().unwrap().len()
    );
    assert_eq!(copied[1]["parent_turn_id"], copied[0]["turn_id"]);
    assert_ne!(copied[0]["turn_id"], first[0]["turn_id"]);
    assert_eq!(copied[1]["trigger"], first[1]["trigger"]);
    world.run(&["delete", "k", "--yes"]).ok();
    assert_eq!(world.run(&["chain", id]).code, 3);
}

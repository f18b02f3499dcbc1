//! Climbs that a person must approve: the question in the inbox, and the first answer.

use std::thread;

use rejoin_model::Step;
use rejoin_testkit::{CLAUDE_NEW, Model, World, texts};
use serde_json::{Value, json};

use super::{REJOIN, TIERS, configure, flag};

const BLOCK: &str =
    "```rejoin\n{\"escalate\": {\"reason\": \"db is down\", \"services\": [\"db\"]}}\n```";

/// Tiers of the demo agent.
const DEMO: &str = "[[tier]]\nname = \"observe\"\npermission = \"read-only\"\nmay = [\"look\"]\n[[tier]]\nname = \"fix\"\npermission = \"edit\"\nmay = [\"restart the db\"]\napproval = true\n";

fn claude() -> World {
    let asks = vec![Step::text(format!("down\n\n{BLOCK}"))];
    let fixed = vec![Step::text("fixed")];
    let scripts = [("asks".to_owned(), asks), ("second".to_owned(), fixed)];
    let world = World::claude_with(REJOIN, CLAUDE_NEW, || Model::with(scripts.into())).unwrap();
    configure(
        &world,
        &TIERS.replace(
            "name = \"remediate\"",
            "name = \"remediate\"\napproval = true",
        ),
    );
    world
}

fn demo(world: World) -> World {
    configure(&world, DEMO);
    world
}

/// Asks for the tier `fix` and waits for a person.
fn asks(world: &World) -> Value {
    let send = [
        "send", "-a", "demo", "-k", "k", "--tier", "observe", "--climb", "--json",
    ];
    let done = world.run(&[&send[..], &["climb: fix the db is down"]].concat());
    assert_eq!(done.code, 7, "{done:?}");
    done.json()
}

fn inbox(world: &World) -> Vec<Value> {
    let inbox = world.run(&["inbox", "--json"]).ok().json();
    inbox["turns"].as_array().unwrap().clone()
}

fn check<'a>(turn: &'a Value, name: &str) -> &'a Value {
    let checks = turn["escalation"]["checks"].as_array().unwrap();
    checks.iter().find(|check| check["check"] == name).unwrap()
}

/// The turn has succeeded, the question is open, and the answer begins the next turn on the session.
#[test]
fn claude_climbs_when_a_person_allows_it() {
    let world = claude();
    let waits = world.send(1, "#s:asks", &["--tier", "observe", "--climb"]);
    assert_eq!(waits.code, 7, "{waits:?}");
    let turn = waits.json();
    assert_eq!(
        (&turn["status"], &turn["text"]),
        (&json!("succeeded"), &json!("down"))
    );
    assert_eq!(turn["escalation"]["decision"], "waiting", "{turn}");
    assert_eq!(turn["escalation"]["turn_id"], Value::Null);
    assert_eq!(check(&turn, "approval")["ok"], Value::Null);
    assert_eq!(turn["chain"]["turns"].as_array().unwrap().len(), 1);

    let listed = inbox(&world);
    assert_eq!(listed.len(), 1, "{listed:?}");
    assert_eq!(listed[0]["turn_id"], turn["turn_id"]);
    let question = &listed[0]["questions"][0];
    assert_eq!(
        (&question["kind"], &question["tool"]),
        (&json!("approval"), &json!("escalate"))
    );
    assert_eq!(question["input"]["to"], "remediate");
    assert_eq!(question["input"]["services"], json!(["db"]));
    let page = world.run(&["inbox"]).ok().stdout;
    for part in [
        "asks to climb to remediate",
        "reason: db is down",
        "allow|deny",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
    assert_eq!(world.run(&["wait", "k"]).code, 7);
    assert_eq!(world.run(&["answer", "k", "always"]).code, 2);

    let answered = world.run(&["answer", "k", "allow", "--json"]).ok().json();
    assert_eq!(answered["escalation"]["decision"], "climbed", "{answered}");
    assert_eq!(check(&answered, "approval")["ok"], true);
    let late = world.run(&["answer", turn["turn_id"].as_str().unwrap(), "deny"]);
    assert_eq!(late.code, 4, "{late:?}");
    let next = world.run(&["wait", "k", "--json"]).ok().json();
    assert_eq!(
        (&next["tier"], &next["text"]),
        (&json!("remediate"), &json!("fixed"))
    );
    assert_eq!(next["turn_id"], answered["escalation"]["turn_id"]);
    assert_eq!(next["verdict"], "resumed", "{next}");
    assert_eq!(flag(&next, "--model").as_deref(), Some("sonnet"));
    assert_eq!(inbox(&world), Vec::<Value>::new());
    assert_eq!(world.leftovers(), []);
}

/// A denial is stored with its author and told to the agent once. A command to climb replaces the
/// approval.
#[test]
fn claude_is_told_of_a_denial_once() {
    let world = claude();
    world.send(1, "#s:asks", &["--tier", "observe", "--climb"]);
    let denied = ["answer", "k", "deny", "--text", "not on a Friday", "--json"];
    let turn = world.run(&denied).ok().json();
    assert_eq!(turn["escalation"]["decision"], "refused", "{turn}");
    assert_eq!(check(&turn, "approval")["ok"], false);
    let told = |n: usize| {
        world.say(n, &["--tier", "observe"]);
        texts(&world.model.last())
            .matches(": not on a Friday")
            .count()
    };
    assert_eq!((told(2), told(3)), (1, 1));

    world.send(4, "#s:asks", &["--tier", "observe", "--climb"]);
    let climbed = world.run(&["escalate", "k", "--json"]).ok().json();
    assert_eq!(climbed["tier"], "remediate");
    assert_eq!(climbed["chain"]["turns"][1]["trigger"], "person");
    assert_eq!(inbox(&world), Vec::<Value>::new());
}

/// Every check is evaluated again when a person allows the climb. A request lapses when the
/// conversation goes on.
#[test]
fn an_approval_decides_by_the_facts_of_its_moment() {
    every_check_again(&demo(World::new(REJOIN)));
}

#[test]
fn the_same_on_a_server() {
    if let Some(world) = World::new(REJOIN).on_server() {
        every_check_again(&demo(world));
    }
}

fn every_check_again(world: &World) {
    let turn = asks(world);
    world.run(&["hold"]).ok();
    let allowed = world.run(&["answer", "k", "allow"]);
    assert_eq!(allowed.code, 5, "{allowed:?}");
    assert!(allowed.stderr.contains("on hold"), "{allowed:?}");
    let id = turn["turn_id"].as_str().unwrap();
    let turn = world.run(&["explain", id, "--json"]).ok().json();
    assert_eq!(turn["escalation"]["decision"], "refused", "{turn}");
    assert_eq!(check(&turn, "hold")["ok"], false);
    assert_eq!(check(&turn, "approval")["ok"], true);
    world.run(&["hold", "--off"]).ok();
    assert_eq!(world.run(&["answer", id, "allow"]).code, 4);

    let turn = asks(world);
    assert_eq!(inbox(world).len(), 1);
    world.run(&["send", "-c", "k", "and the disk?"]).ok();
    assert_eq!(inbox(world), Vec::<Value>::new());
    let id = turn["turn_id"].as_str().unwrap();
    let lapsed = world.run(&["answer", id, "allow"]);
    assert_eq!(lapsed.code, 4, "{lapsed:?}");
    let turn = world.run(&["explain", id, "--json"]).ok().json();
    assert_eq!(turn["escalation"]["decision"], "none", "{turn}");
}

/// Of answers over HTTP that come at once the first counts, also after a restart of the daemon.
#[test]
fn one_of_many_answers_over_http_counts() {
    let world = demo(World::new(REJOIN));
    let daemon = world.serve(&[]);
    let body = [
        ("agent", json!("demo")),
        ("tier", json!("observe")),
        ("climb", json!(true)),
        ("workdir", json!(world.work())),
    ];
    let turn = daemon.say("k", "climb: fix the db is down", &body);
    assert_eq!(turn["escalation"]["decision"], "waiting", "{turn}");
    daemon.kill();
    let daemon = world.serve(&[]);
    let inbox = daemon.get("/api/inbox").ok();
    assert_eq!(inbox["turns"][0]["turn_id"], turn["turn_id"], "{inbox}");
    let listed = daemon.get("/api/conversations").ok();
    assert_eq!(
        listed["conversations"][0]["asks"]["tool"], "escalate",
        "{listed}"
    );
    let token = world.run(&[
        "token",
        "create",
        "low",
        "--max-permission",
        "read-only",
        "--json",
    ]);
    let token = token.ok().json();
    let low = format!("Authorization: Bearer {}", token["token"].as_str().unwrap());
    let path = format!("/api/turns/{}/answer", turn["turn_id"].as_str().unwrap());
    let allow = json!({"decision": "allow"});
    assert_eq!(
        daemon.call("POST", &path, &[&low], Some(&allow)).status,
        403
    );

    let mut codes: Vec<u16> = thread::scope(|scope| {
        let answer = || daemon.post(&path, &allow).status;
        let all: Vec<_> = (0..8).map(|_| scope.spawn(answer)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect()
    });
    codes.sort_unstable();
    assert_eq!(codes, [&[200][..], &[409; 7]].concat());
    let next = world.run(&["wait", "k", "--json"]).ok().json();
    assert_eq!(
        (&next["tier"], &next["status"]),
        (&json!("fix"), &json!("succeeded"))
    );
    let chain = daemon.get(&format!(
        "/api/turns/{}/chain",
        next["turn_id"].as_str().unwrap()
    ));
    assert_eq!(chain.ok()["turns"].as_array().unwrap().len(), 2);
    assert_eq!(daemon.stop(), 0);
}
